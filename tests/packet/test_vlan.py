# SPDX-License-Identifier: Apache-2.0
"""A fabric port whose underlay is a VLAN."""
import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Padding, Raw

from packets import (PAYLOAD, assert_nothing, assert_out, assert_same, forwarded, from_guest, from_host, to_guest, to_host,
                     udp_packet)
from topology import FAMILIES, OVERLAYS, RED, T1, ids_of

VLAN = 100
MAC, PEER_MAC = "02:00:00:00:fa:01", "02:00:00:00:fa:02"
OWN = {4: "192.0.3.1", 6: "2001:db8:3::1"}
PEER = {4: "192.0.3.2", 6: "2001:db8:3::2"}
FAR = {4: "10.2.0.9", 6: "fd00:2::9"}


@pytest.fixture(scope="module")
def fabv(network):
    network.router.add_fabric("fabv", address=(f"{OWN[4]}/24", f"{OWN[6]}/64"), host=PEER.values(), host_mac=PEER_MAC, mac=MAC,
                              vlan=VLAN)
    return network.router


def tagged(frame, vlan=VLAN, **fields):
    """The frame of the untagged topology, moved to this link."""
    p = frame.copy()
    payload = p.payload
    p.remove_payload()
    return Ether(src=PEER_MAC, dst=MAC) / Dot1Q(vlan=vlan, **fields) / payload


def arriving(encap, under, packet):
    p = from_host(encap, under, packet)
    p[1].src, p[1].dst = PEER[under], OWN[under]
    return p


@pytest.mark.parametrize("encap", OVERLAYS)
@pytest.mark.parametrize("under", FAMILIES)
def test_both_directions(network, fabv, encap, under):
    packet = udp_packet(4, FAR, T1)
    for priority in (0, 7):
        with fabv.drops():
            assert_out(fabv.run("fabv", tagged(arriving(encap, under, packet), prio=priority)),
                       ("t1", to_guest(T1, forwarded(packet))))
    nexthop = network.new_id()
    fabv.cli("nexthop", "add", nexthop, "tunnel", "--encap", encap, "--remote", PEER[under], *ids_of(RED)[encap])
    outward = udp_packet(6, T1, network.route_to(nexthop))
    out = fabv.run("t1", from_guest(T1, outward))
    assert len(out) == 1 and out[0].port == "fabv"
    tag = out[0].data[12:16]
    assert tag == bytes([0x81, 0, 0, VLAN])
    expected = to_host(encap, under, forwarded(outward), out[0].data[:12] + out[0].data[16:])
    expected[1].src, expected[1].dst = OWN[under], PEER[under]
    expected.src, expected.dst = MAC, PEER_MAC
    raw = bytes(expected)
    assert_same(Ether(raw[:12] + tag + raw[12:]), out[0].data)


def test_other_tags(fabv):
    frame = arriving("mplsoudp", 4, udp_packet(4, FAR, T1))
    untagged = frame.copy()
    untagged.dst = MAC
    double = Ether(src=PEER_MAC, dst=MAC) / Dot1Q(vlan=VLAN) / Dot1Q(vlan=5) / frame[IP]
    with fabv.drops(fabric_vlan=4, fabric_unknown_type=1):
        assert_nothing(fabv.run("fabv", untagged, tagged(frame, vlan=0), tagged(frame, vlan=VLAN + 1), tagged(frame, vlan=4095),
                                double))


@pytest.mark.parametrize("family", FAMILIES)
def test_echo(fabv, family):
    if family == 4:
        echo = IP(src=PEER[4], dst=OWN[4]) / ICMP(id=1) / Raw(PAYLOAD)
        back = IP(src=OWN[4], dst=PEER[4]) / ICMP(type=0, id=1) / Raw(PAYLOAD)
    else:
        echo = IPv6(src=PEER[6], dst=OWN[6]) / ICMPv6EchoRequest(id=1, data=PAYLOAD)
        back = IPv6(src=OWN[6], dst=PEER[6]) / ICMPv6EchoReply(id=1, data=PAYLOAD)
    assert_out(fabv.run("fabv", tagged(Ether() / echo)), ("fabv", Ether(src=MAC, dst=PEER_MAC) / Dot1Q(vlan=VLAN) / back))


def test_arp(fabv):
    who, mac = "192.0.3.70", "02:00:00:00:fa:70"
    fabv.wait(0, lambda fs: False)
    request = Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / Dot1Q(vlan=VLAN) / ARP(hwsrc=mac, psrc=who, pdst=OWN[4])
    fabv.taps["fabv"].send(request)
    got = fabv.expect("fabv", lambda p: ARP in p)
    assert_same(Ether(src=MAC, dst=mac) / Dot1Q(vlan=VLAN) / ARP(op=2, hwsrc=MAC, psrc=OWN[4], hwdst=mac, pdst=who), bytes(got))
    fabv.cli("neighbor", "del", "fabv", who)
    # After an echo from an unknown host the router's question has the tag, too.
    fabv.taps["fabv"].send(tagged(Ether() / IP(src="192.0.3.71", dst=OWN[4]) / ICMP()))
    got = fabv.expect("fabv", lambda p: ARP in p)
    asked = ARP(hwsrc=MAC, psrc=OWN[4], hwdst="00:00:00:00:00:00", pdst="192.0.3.71")
    expected = Ether(src=MAC, dst="ff:ff:ff:ff:ff:ff") / Dot1Q(vlan=VLAN) / asked
    assert_same(expected / Padding(bytes(14)), bytes(got))
    with fabv.drops(neighbor_unresolved=1):
        fabv.cli("neighbor", "del", "fabv", "192.0.3.71")


def test_the_tag_changes(network, fabv):
    packet = udp_packet(4, FAR, T1)
    fabv.cli("port", "set", "fabv", "--vlan", 200)
    try:
        fabv.taps["fabv"].echo[Dot1Q].vlan = 200
        with fabv.drops(fabric_vlan=1):
            out = fabv.run("fabv", tagged(arriving("vxlan", 4, packet), vlan=200), tagged(arriving("vxlan", 4, packet)))
        assert_out(out, ("t1", to_guest(T1, forwarded(packet))))
    finally:
        fabv.cli("port", "set", "fabv", "--vlan", VLAN)
        fabv.taps["fabv"].echo[Dot1Q].vlan = VLAN
