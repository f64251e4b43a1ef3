# SPDX-License-Identifier: Apache-2.0
"""A port that is only bridged, with the MAC and the addresses of its guest: it sends with no others, whatever carries them."""
import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from daemon import Refused
from packets import assert_nothing, assert_out, udp_packet
from topology import FAMILIES

OWN = {4: "10.7.0.2", 6: "fd00:7::2", "mac": "02:00:00:00:07:02"}
OTHER = {4: "10.7.0.3", 6: "fd00:7::3", "mac": "02:00:00:00:07:03"}
BROADCAST = "ff:ff:ff:ff:ff:ff"
MAC_OF_OWN = bytes.fromhex(OWN["mac"].replace(":", ""))
MAC_OF_OTHER = bytes.fromhex(OTHER["mac"].replace(":", ""))


@pytest.fixture(scope="module")
def pair(network):
    r = network.router
    r.cli("bridge", "add", "sources")
    for name, g in (("s1", OWN), ("s2", OTHER)):
        r.cli("port", "add", name, "tenant", "tap", "--bridge", "sources", "--guest-mac", g["mac"], "--guest-address", f"{g[4]},{g[6]},10.7.9.0/24")
        r.attach(name, None)
    yield
    for name in ("s1", "s2"):
        r.del_port(name)
    r.cli("bridge", "del", "sources")


def assert_arrives(router, *frames):
    with router.drops():
        assert_out(router.run("s1", *frames, fence="t1"), *(("s2", f) for f in frames), ordered=False)


def assert_dropped(router, reason, *frames):
    with router.drops(**{reason: len(frames)}):
        assert_nothing(router.run("s1", *frames, fence="t1"))


def ether(dst=OTHER["mac"], src=OWN["mac"]):
    return Ether(src=src, dst=dst)


def test_the_check_is_in_effect(router, pair):
    """Both ports have one of the prefixes: on a bridge, no address belongs to one port alone."""
    for name in ("s1", "s2"):
        (port,) = router.cli("port", "show", name)
        assert port["state"]["source_check"] == "SOURCE_CHECK_STRICT" and "10.7.9.0/24" in port["guest_addresses"]


def test_gateways_need_a_vrf(router, pair):
    with pytest.raises(Refused, match="gateways need a VRF"):
        router.cli("port", "set", "s1", "--gateway", "10.7.0.1/24")


@pytest.mark.parametrize("family", FAMILIES)
def test_packets(router, pair, family):
    packet = udp_packet(family, OWN, OTHER)
    assert_arrives(router, ether() / packet)
    assert_dropped(router, "source_address", ether() / udp_packet(family, OTHER, OWN))
    assert_dropped(router, "source_mac", ether(src="02:00:00:00:07:99") / packet)


def test_another_address_of_the_guest(router, pair):
    assert_arrives(router, ether() / udp_packet(4, {4: "10.7.9.200"}, OTHER))
    router.cli("port", "set", "s1", "--guest-address", f"{OWN[4]},{OWN[6]}")
    try:
        assert_dropped(router, "source_address", ether() / udp_packet(4, {4: "10.7.9.200"}, OTHER))
    finally:
        router.cli("port", "set", "s1", "--guest-address", f"{OWN[4]},{OWN[6]},10.7.9.0/24")


def test_arp(router, pair):
    def says(**fields):
        return ether(BROADCAST) / ARP(**{"hwsrc": OWN["mac"], "psrc": OWN[4], "pdst": OTHER[4]} | fields) / Raw(bytes(18))
    assert_arrives(router, says(), says(psrc="0.0.0.0"))
    assert_dropped(router, "source_address", says(psrc=OTHER[4]), says(op=2, psrc=OTHER[4]))
    assert_dropped(router, "source_mac", says(hwsrc=OTHER["mac"]))


def solicits(*options):
    p = Ether(src=OWN["mac"], dst="33:33:ff:00:00:03") / IPv6(src=OWN[6], dst="ff02::1:ff00:3", hlim=255) / ICMPv6ND_NS(tgt=OTHER[6])
    for o in options:
        p /= o
    return p


def advertises(*options, target=OWN[6]):
    p = Ether(src=OWN["mac"], dst="33:33:00:00:00:01") / IPv6(src=OWN[6], dst="ff02::1", hlim=255) / ICMPv6ND_NA(tgt=target, O=1)
    for o in options:
        p /= o
    return p


def test_neighbour_discovery(router, pair):
    own, other = ({"lladdr": g["mac"]} for g in (OWN, OTHER))
    rs = Ether(src=OWN["mac"], dst="33:33:00:00:00:02") / IPv6(src="fe80::2", dst="ff02::2", hlim=255) / ICMPv6ND_RS()
    assert_arrives(router, solicits(), solicits(ICMPv6NDOptSrcLLAddr(**own)), advertises(ICMPv6NDOptDstLLAddr(**own)), rs / ICMPv6NDOptSrcLLAddr(**own),
                   advertises(ICMPv6NDOptMTU(), ICMPv6NDOptDstLLAddr(**own)))
    assert_dropped(router, "source_address", advertises(ICMPv6NDOptDstLLAddr(**own), target=OTHER[6]))
    assert_dropped(router, "source_mac", solicits(ICMPv6NDOptSrcLLAddr(**other)), advertises(ICMPv6NDOptDstLLAddr(**other)),
                   rs / ICMPv6NDOptSrcLLAddr(**other), advertises(ICMPv6NDOptMTU(), ICMPv6NDOptDstLLAddr(**other)))
    assert_dropped(router, "source_unchecked", solicits(Raw(b"\x01\x00" + MAC_OF_OWN)), advertises(Raw(b"\x02\x02" + MAC_OF_OWN)))


def dhcp(*, src="0.0.0.0", mac=MAC_OF_OWN, sport=68, dst=BROADCAST, **fields):
    to = "255.255.255.255" if dst == BROADCAST else OTHER[4]
    return ether(dst) / IP(src=src, dst=to) / UDP(sport=sport, dport=67) / BOOTP(chaddr=mac, xid=7, **fields) / DHCP(
        options=[("message-type", "request"), "end"])


def test_dhcp_requests(router, pair):
    """Who could ask in the name of another guest could get its address, or release it."""
    renewal = dhcp(src=OWN[4], dst=OTHER["mac"], ciaddr=OWN[4])
    assert_arrives(router, dhcp(), renewal)
    assert_dropped(router, "source_mac", dhcp(mac=MAC_OF_OTHER), dhcp(src=OWN[4], dst=OTHER["mac"], mac=MAC_OF_OTHER, ciaddr=OTHER[4]))
    assert_dropped(router, "source_mac", dhcp(src=OWN[4], dst=OTHER["mac"], mac=MAC_OF_OTHER, sport=9999))
    assert_dropped(router, "source_dhcp_server", dhcp(giaddr=OWN[4]), dhcp(src=OWN[4], op=2, sport=9999))
    assert_dropped(router, "source_unchecked", ether(BROADCAST) / IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / Raw(bytes(33)))
    router.cli("port", "set", "s1", "--allow-dhcp-server")
    try:
        assert_arrives(router, dhcp(src=OWN[4], giaddr=OWN[4], mac=MAC_OF_OTHER, sport=67))
    finally:
        router.cli("port", "set", "s1", "--allow-dhcp-server=false")
