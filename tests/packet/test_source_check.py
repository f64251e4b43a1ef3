# SPDX-License-Identifier: Apache-2.0
"""A guest cannot send with another's address where its port says so."""
import pytest
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from packets import assert_nothing, assert_out, forwarded, from_guest, to_guest, udp_packet
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
    """Prefixes behind the guest, also those that a route brings later."""
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


def test_wrong_settings_are_refused(router):
    for args in (("t1", "--source-check", "sometimes"), ("fab0", "--source-check", "strict")):
        with pytest.raises(Exception, match="source|role"):
            router.cli("port", "set", *args)
