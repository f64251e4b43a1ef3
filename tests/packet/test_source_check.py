# SPDX-License-Identifier: Apache-2.0
"""With a source check on its port, a guest cannot send with an address of another one."""
import pytest
from scapy.layers.inet6 import (ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6NDOptDstLLAddr, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop)
from scapy.layers.l2 import ARP, Ether
from scapy.utils6 import in6_mactoifaceid

from packets import assert_nothing, assert_out, forwarded, from_guest, to_guest, udp_packet
from router import GATEWAY_MAC
from topology import FAMILIES, GATEWAY, T1, T2

OTHER = {4: "10.1.0.99", 6: "fd00:1::99"}


@pytest.fixture
def check(router):
    def to(kind):
        router.cli("port", "set", "t1", "--source-check", kind)
    yield to
    to("none")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind,reason", [("strict", "source_address"), ("reverse_path", "source_reverse_path")])
def test_another_s_ip_address(router, check, family, kind, reason):
    own, spoofed, neighbour = (udp_packet(family, src, T2) for src in (T1, OTHER, T2))
    check("none")
    assert len(router.run("t1", from_guest(T1, spoofed))) == 1
    check(kind)
    with router.drops():
        assert_out(router.run("t1", from_guest(T1, own)), ("t2", to_guest(T2, forwarded(own))))
    with router.drops(**{reason: 2}):
        assert_nothing(router.run("t1", from_guest(T1, spoofed), from_guest(T1, neighbour)))


def test_reverse_path_takes_what_is_routed_to_the_guest(network, router, check):
    """A prefix behind the guest is accepted once a route leads there."""
    nexthop = network.new_id()
    packet = udp_packet(4, "10.99.0.1", T2)
    check("reverse_path")
    with router.drops(source_reverse_path=1):
        assert_nothing(router.run("t1", from_guest(T1, packet)))
    router.cli("nexthop", "add", nexthop, "port", "t1", "--mac", T1["mac"])
    router.cli("route", "add", "10.99.0.0/24", "--vrf", "red", "--nexthop", nexthop)
    try:
        assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest(T2, forwarded(packet))))
    finally:
        router.cli("route", "del", "10.99.0.0/24", "--vrf", "red")


def test_another_s_mac(router, check):
    packet = udp_packet(4, T1, T2)
    frame = from_guest({"mac": "02:00:00:00:99:99"}, packet)
    check("reverse_path")
    assert len(router.run("t1", frame)) == 1
    check("strict")
    with router.drops(source_mac=1):
        assert_nothing(router.run("t1", frame))


def test_arp_and_nd(router, check):
    check("strict")
    broadcast = Ether(src=T1["mac"], dst="ff:ff:ff:ff:ff:ff")
    asks = ARP(hwsrc=T1["mac"], psrc=T1[4], pdst=GATEWAY[4])
    assert [o.port for o in router.run("t1", broadcast / asks)] == ["t1"]
    probe = ARP(hwsrc=T1["mac"], psrc="0.0.0.0", pdst=GATEWAY[4])
    with router.drops():
        assert [o.port for o in router.run("t1", broadcast / probe)] == ["t1"]
    with router.drops(source_address=1):
        assert_nothing(router.run("t1", broadcast / ARP(hwsrc=T1["mac"], psrc=T2[4], pdst=GATEWAY[4])))
    with router.drops(source_mac=1):
        assert_nothing(router.run("t1", broadcast / ARP(hwsrc=T2["mac"], psrc=T1[4], pdst=GATEWAY[4])))
    claim = Ether(src=T1["mac"], dst="33:33:00:00:00:01") / IPv6(src=T1[6], dst="ff02::1", hlim=255) / ICMPv6ND_NA(
        tgt=T2[6], O=1) / ICMPv6NDOptDstLLAddr(lladdr=T1["mac"])
    with router.drops(source_address=1):
        assert_nothing(router.run("t1", claim))


def advertisement(source, target, *hidden_behind):
    p = Ether(src=T1["mac"], dst="33:33:00:00:00:01") / IPv6(src=source, dst="ff02::1", hlim=255)
    for h in hidden_behind:
        p /= h
    return p / ICMPv6ND_NA(tgt=target, O=1) / ICMPv6NDOptDstLLAddr(lladdr=T1["mac"])


EUI64 = "fe80::" + in6_mactoifaceid(T1["mac"]).lower()


@pytest.mark.parametrize("target,allowed", [(T1[6], True), (EUI64, True), ("fe80::77", False), (T2[6], False)])
def test_advertised_targets(router, check, target, allowed):
    check("strict")
    with router.drops(**{} if allowed else {"source_address": 1}):
        router.run("t1", advertisement(T1[6], target))


def test_a_link_local_target_may_be_the_source(router, check):
    """A guest may have any link-local address but the gateway's."""
    check("strict")
    with router.drops():
        router.run("t1", advertisement("fe80::5", "fe80::5"))
    with router.drops(source_address=1):
        router.run("t1", advertisement("fe80::5", "fe80::6"))
    gateway = "fe80::" + in6_mactoifaceid(GATEWAY_MAC).lower()
    with router.drops(source_address=3):
        router.run("t1", advertisement(gateway, gateway), advertisement(T1[6], GATEWAY[6]), advertisement("fe80::5", gateway))


@pytest.mark.parametrize("what", [ICMPv6ND_RA(routerlifetime=9000), ICMPv6ND_Redirect(tgt="fe80::5", dst="2001:db8::9")],
                         ids=["advertisement", "redirect"])
def test_only_the_gateway_is_a_router(router, check, what):
    """Linux also accepts both in unicast frames, which the gateway's node does not get."""
    check("strict")
    for mac in ("33:33:00:00:00:01", T2["mac"]):
        with router.drops(source_router=1):
            assert_nothing(router.run("t1", Ether(src=T1["mac"], dst=mac) / IPv6(src="fe80::5", dst="ff02::1", hlim=255) / what))


@pytest.mark.parametrize("headers", [(IPv6ExtHdrDestOpt(),), (IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt()),
                                     (IPv6ExtHdrFragment(),), (IPv6ExtHdrDestOpt(),) * 9], ids=["options", "two", "fragment", "nine"])
def test_discovery_behind_extension_headers(router, check, headers):
    """Hosts accept discovery behind extension headers, where its claims cannot be checked (CVE-2021-27853)."""
    check("strict")
    with router.drops(source_unchecked=1):
        assert_nothing(router.run("t1", advertisement(T1[6], T2[6], *headers)))


PRIORITY = {"802.1Q": b"\x81\x00\xe0\x00", "802.1ad": b"\x88\xa8\x00\x00", "two": b"\x88\xa8\x00\x00\x81\x00\x00\x00"}
HIDING = {"802.1Q": b"\x81\x00\x00\x05", "802.1ad": b"\x88\xa8\x00\x05", "9100": b"\x91\x00\x00\x00", "802.3": b"\x00\x26",
          "behind a priority tag": b"\x81\x00\x00\x00\x91\x00\x00\x00"}


@pytest.fixture(scope="module")
def hidden(network):
    """Two guests of a bridge, checked strictly, with an ARP request from the first to the second: its MAC addresses and the rest."""
    router = network.router
    router.cli("vrf", "add", "hidden")
    router.cli("bridge", "add", "hidden")
    ends = {"hid1": ("10.8.0.2", "02:00:00:00:08:02"), "hid2": ("10.8.0.3", "02:00:00:00:08:03")}
    for name, (address, mac) in ends.items():
        router.add_tenant(name, "--bridge", "hidden", "--source-check", "strict", vrf="hidden", gateway="10.8.0.1/24",
                          guest=address, guest_mac=mac)
    own, mac = ends["hid1"]

    def frame(tag, source=own):
        asks = bytes(ARP(op=1, hwsrc=mac, psrc=source, pdst=ends["hid2"][0]))
        return Ether(bytes.fromhex("ffffffffffff") + bytes.fromhex(mac.replace(":", "")) + tag + b"\x08\x06" + asks)

    yield frame
    for name in ends:
        router.del_port(name)
    router.cli("bridge", "del", "hidden")
    router.cli("vrf", "del", "hidden")


@pytest.mark.parametrize("tag", HIDING.values(), ids=HIDING)
def test_frames_that_hide_their_addresses(router, hidden, tag):
    """A receiver that removes a tag, or reads another length, would accept the address inside."""
    with router.drops():
        assert [o.port for o in router.run("hid1", hidden(b""), fence="hid2")] == ["hid2"]
    with router.drops(source_unchecked=1):
        assert_nothing(router.run("hid1", hidden(tag), fence="hid2"))


@pytest.mark.parametrize("tag", PRIORITY.values(), ids=PRIORITY)
def test_addresses_behind_a_priority_tag(router, hidden, tag):
    """It is removed first, so the receiver gets what was checked."""
    with router.drops():
        assert_out(router.run("hid1", hidden(tag), fence="hid2"), ("hid2", hidden(b"")))
    with router.drops(source_address=1):
        assert_nothing(router.run("hid1", hidden(tag, source="10.8.0.66"), fence="hid2"))


def test_duplicate_address_detection(network, router):
    """On a bridge, checked strictly: the probe of one guest reaches the other, whose answer comes back."""
    router.cli("vrf", "add", "dad")
    router.cli("bridge", "add", "dad")
    ends = {"dad1": ("10.8.1.2", "fd00:8::2", "02:00:00:00:08:12"), "dad2": ("10.8.1.3", "fd00:8::3", "02:00:00:00:08:13")}
    for name, (ip4, ip6, mac) in ends.items():
        router.add_tenant(name, "--bridge", "dad", "--proxy-arp", vrf="dad", gateway=("10.8.1.1/24", "fd00:8::1/64"), guest=(ip4, ip6),
                          guest_mac=mac)
    (_, _, mac1), (ip2, taken, mac2) = ends.values()
    try:
        probe = Ether(src=mac1, dst="33:33:ff:00:00:03") / IPv6(src="::", dst="ff02::1:ff00:3", hlim=255) / ICMPv6ND_NS(tgt=taken)
        answer = Ether(src=mac2, dst="33:33:00:00:00:01") / IPv6(src=taken, dst="ff02::1", hlim=255) / ICMPv6ND_NA(
            tgt=taken, O=1) / ICMPv6NDOptDstLLAddr(lladdr=mac2)
        arp = Ether(src=mac1, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=mac1, psrc="0.0.0.0", pdst=ip2)
        with router.drops():
            assert_out(router.run("dad1", probe, fence="dad2"), ("dad2", probe))
            assert_out(router.run("dad2", answer, fence="dad1"), ("dad1", answer))
            assert_out(router.run("dad1", arp, fence="dad2"), ("dad2", arp))
    finally:
        for name in ends:
            router.del_port(name)
        router.cli("bridge", "del", "dad")
        router.cli("vrf", "del", "dad")


def test_wrong_settings_are_refused(router):
    for args in (("t1", "--source-check", "sometimes"), ("fab0", "--source-check", "strict")):
        with pytest.raises(Exception, match="source|role"):
            router.cli("port", "set", *args)


def test_strict_by_default(router, network):
    """Where MAC and addresses of the guest are given: it cannot pass by the flows of another guest."""
    guest = {4: "10.1.0.41", 6: "fd00:1::41", "mac": "02:00:00:00:01:41"}
    spoofed = udp_packet(4, T2, T1)
    router.add_tenant("def1", vrf="red", gateway=f"{GATEWAY[4]}/24", guest=guest[4], guest_mac=guest["mac"], stateful=True)
    try:
        assert router.cli("port", "show", "def1")[0]["state"]["source_check"] == "SOURCE_CHECK_STRICT"
        assert_out(router.run("t2", from_guest(T2, spoofed)), ("t1", to_guest(T1, forwarded(spoofed))))
        with router.drops(source_address=1):
            assert_nothing(router.run("def1", from_guest(guest, spoofed)))
        router.cli("port", "set", "def1", "--source-check", "none")
        assert len(router.run("def1", from_guest(guest, spoofed))) == 1
    finally:
        router.del_port("def1")
