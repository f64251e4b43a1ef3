# SPDX-License-Identifier: Apache-2.0
"""What only Geneve (RFC 8926) has: options, other payloads than Ethernet, packets for the control plane."""
import pytest
from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from packets import assert_nothing, assert_out, carrier, forwarded, ip, to_guest, udp_packet
from router import ROUTER_MAC
from topology import FAB0, FAB0_MAC, FAMILIES, HOST, HOST_MAC, RED, REMOTE_ROUTER_MAC, T1, vni

FAR = {4: "10.2.0.9", 6: "fd00:2::9"}  # the sender's address inside
PROTOCOL = {4: 0x0800, 6: 0x86dd}
LAN_VNI = 6100
INSIDE, OUTSIDE = "02:00:00:00:61:01", "02:00:00:00:61:02"

unders = pytest.mark.parametrize("under", FAMILIES)


def option(kind=1, words=1):
    """An option of class 0x0102, which OVN uses."""
    return bytes((1, 2, kind, words)) + bytes(range(4 * words))


def geneve(under, payload, options=b"", **fields):
    """A frame whose `options` may be malformed; scapy would correct them."""
    fields.setdefault("vni", vni(RED))
    fields.setdefault("proto", 0x6558)
    header = bytes(GENEVE(optionlen=len(options) // 4, **fields))
    return Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / carrier("geneve", under) / Raw(header + options + bytes(payload))


def routed(packet):
    return Ether(src=REMOTE_ROUTER_MAC, dst=ROUTER_MAC) / packet


@unders
@pytest.mark.parametrize("inner", FAMILIES)
def test_options_are_skipped(network, router, under, inner):
    packet = udp_packet(inner, FAR, T1)
    lists = (option(), option(words=0), option() + option(2, 0) + option(3, 31), b"".join(option(i, 0) for i in range(63)))
    with router.drops():
        out = router.run("fab0", *(geneve(under, routed(packet), o) for o in lists))
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * len(lists))


@unders
def test_critical_options(network, router, under):
    """This node knows no critical option, and RFC 8926 demands that such packets are dropped."""
    frame = routed(udp_packet(4, FAR, T1))
    with router.drops(geneve_critical_option=3):
        assert_nothing(router.run("fab0", geneve(under, frame, option(0x81)), geneve(under, frame, option() + option(0xff, 2), critical=1),
                                  geneve(under, frame, critical=1)))


@unders
def test_options_that_do_not_add_up(network, router, under):
    frame = routed(udp_packet(4, FAR, T1))
    longer = option()[:3] + bytes((2, )) + option()[4:]
    with router.drops(geneve_bad_options=2):
        assert_nothing(router.run("fab0", geneve(under, frame, longer), geneve(under, frame, option() + longer[:4])))
    with router.drops(tunnel_truncated=1):
        assert_nothing(router.run("fab0", cut_off(under)))


def cut_off(under):
    """The header announces more bytes of options than the datagram has."""
    header = bytes(GENEVE(vni=vni(RED), proto=0x6558, optionlen=63))
    return Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / carrier("geneve", under) / Raw(header + option() * 4)


@unders
def test_other_versions_and_control_packets(network, router, under):
    frame = routed(udp_packet(4, FAR, T1))
    with router.drops(geneve_bad_version=2, geneve_control=1):
        assert_nothing(router.run("fab0", geneve(under, frame, version=1), geneve(under, frame, version=3), geneve(under, frame, oam=1)))


@unders
@pytest.mark.parametrize("inner", FAMILIES)
def test_ip_without_ethernet(network, router, under, inner):
    packet = udp_packet(inner, FAR, T1)
    with router.drops():
        out = router.run("fab0", geneve(under, packet, proto=PROTOCOL[inner]), geneve(under, packet, option(), proto=PROTOCOL[inner]))
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * 2)


@unders
def test_unknown(network, router, under):
    frame = routed(udp_packet(4, FAR, T1))
    wrong = Ether(src=REMOTE_ROUTER_MAC, dst="02:00:00:00:aa:77") / udp_packet(4, FAR, T1)
    with router.drops(geneve_unknown_vni=1, geneve_unknown_protocol=1, geneve_wrong_router_mac=1):
        assert_nothing(router.run("fab0", geneve(under, frame, vni=9999), geneve(under, frame, proto=0x894f), geneve(under, wrong)))


@pytest.fixture(scope="module")
def bridge(network):
    r = network.router
    nexthop = network.new_id()
    r.cli("nexthop", "add", nexthop, "tunnel", "--encap", "geneve", "--remote", HOST[4], "--vni", LAN_VNI)
    r.cli("bridge", "add", "glan", "--flood", nexthop)
    r.cli("vni", "add", LAN_VNI, "bridge", "glan")
    r.cli("port", "add", "g1", "tenant", "tap", "--bridge", "glan", "--vrf", "red", "--gateway", "10.9.0.1/24", "--guest-address", "10.9.0.2",
          "--guest-mac", INSIDE)
    r.attach("g1", Ether(src=INSIDE, dst="00:00:5e:00:01:01") / ip(4, "10.9.0.2", "10.9.0.1"))
    yield r
    r.del_port("g1")
    r.cli("vni", "del", LAN_VNI)
    r.cli("bridge", "del", "glan")
    r.cli("nexthop", "del", nexthop)


def test_bridge(network, bridge):
    """Ethernet frames pass unchanged in both directions; IP without an Ethernet header is dropped."""
    out = Ether(src=INSIDE, dst=OUTSIDE) / udp_packet(4, "10.9.0.2", "198.18.0.2")
    back = Ether(src=OUTSIDE, dst=INSIDE) / udp_packet(4, "198.18.0.2", "10.9.0.2")
    sent = [o for o in bridge.run("g1", out) if o.port == "fab0"]
    assert len(sent) == 1
    seen = Ether(sent[0].data)
    assert seen[UDP].dport == 6081 and seen[UDP].sport >= 49152
    assert bytes(seen[UDP].payload) == bytes(GENEVE(vni=LAN_VNI, proto=0x6558)) + bytes(out)
    with bridge.drops():
        assert_out(bridge.run("fab0", geneve(4, back, vni=LAN_VNI), geneve(6, back, option(), vni=LAN_VNI)), ("g1", back), ("g1", back))
    with bridge.drops(geneve_unknown_protocol=1):
        assert_nothing(bridge.run("fab0", geneve(4, back.payload, vni=LAN_VNI, proto=0x0800)))
