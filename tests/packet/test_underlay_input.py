# SPDX-License-Identifier: Apache-2.0
"""Which packets a fabric port accepts, and which it drops."""
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_RA, IPv6, IPv6ExtHdrDestOpt,
                                IPv6ExtHdrFragment, IPv6ExtHdrHopByHop)
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from packets import assert_nothing, assert_out, forwarded, from_host, to_guest, udp_packet
from topology import FAB0, FAB0_MAC, FAMILIES, HOST, HOST_MAC, OVERLAYS, T1

FAR = {4: "10.2.0.9", 6: "fd00:2::9"}
outsides = pytest.mark.parametrize("encap,under", [(e, u) for e in OVERLAYS for u in FAMILIES])


def good(encap="mplsoudp", under=4):
    return from_host(encap, under, udp_packet(4, FAR, T1))


def changed(encap="mplsoudp", under=4, **fields):
    p = good(encap, under)
    for name, value in fields.items():
        setattr(p[1], name, value)
    return p


def link(**fields):
    p = good()
    for name, value in fields.items():
        setattr(p, name, value)
    return p


CASES = {
    "fabric_not_local_mac": [link(dst="02:00:00:00:f0:99")],
    "fabric_unknown_type": [link(type=0x88cc), link(type=0x8847), link(type=46)],
    "fabric_vlan": [Ether(src=HOST_MAC, dst=FAB0_MAC) / Dot1Q(vlan=100) / good()[IP]],
    "fabric_not_local": [changed(dst="192.0.2.3"), changed(dst="10.1.0.11"), changed(dst="224.0.0.1"),
                         changed(dst="255.255.255.255"),
                         changed(under=6, dst="2001:db8::3"), changed(under=6, dst="ff02::1")],
    "fabric_bad_header": [changed(version=5), changed(version=6), changed(ihl=4), changed(ihl=15, len=40), changed(chksum=1),
                          changed(len=19),
                          changed(len=1000), changed(under=6, version=4), changed(under=6, plen=1000)],
    "fabric_martian_source": [changed(src=s) for s in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
                                                       "255.255.255.255",
                                                       FAB0[4])] +
                             [changed(under=6, src=s) for s in ("::", "::1", "ff02::1", FAB0[6])],
    "fabric_protocol": [Ether(src=HOST_MAC, dst=FAB0_MAC) / IP(src=HOST[4], dst=FAB0[4]) / TCP(dport=179, flags="S"),
                        changed(proto=50), changed(proto=4), changed(under=6, nh=41), changed(under=6, nh=59),
                        Ether(src=HOST_MAC, dst=FAB0_MAC) / IPv6(src=HOST[6], dst=FAB0[6]) / IPv6ExtHdrHopByHop() / UDP(dport=6635),
                        Ether(src=HOST_MAC, dst=FAB0_MAC) / IPv6(src=HOST[6], dst=FAB0[6]) / IPv6ExtHdrDestOpt() / UDP(dport=6635)],
    "fabric_fragment": [changed(flags="MF"), changed(frag=1), changed(frag=8191),
                        Ether(src=HOST_MAC, dst=FAB0_MAC) / IPv6(src=HOST[6], dst=FAB0[6]) / IPv6ExtHdrFragment(m=1) /
                        UDP(dport=6635)],
    "fabric_udp_port": [Ether(src=HOST_MAC, dst=FAB0_MAC) / IP(src=HOST[4], dst=FAB0[4]) / UDP(dport=53)],
    "local_icmp_ignored": [Ether(src=HOST_MAC, dst=FAB0_MAC) / IP(src=HOST[4], dst=FAB0[4]) / ICMP(type="echo-reply"),
                           Ether(src=HOST_MAC, dst=FAB0_MAC) / IP(src=HOST[4], dst=FAB0[4]) / ICMP(type=3, code=1) / good()[IP],
                           Ether(src=HOST_MAC, dst=FAB0_MAC) / IPv6(src=HOST[6], dst=FAB0[6]) / ICMPv6EchoReply()],
    "local_port_unreachable": [
        Ether(src=HOST_MAC, dst=FAB0_MAC) / IP(src=HOST[4], dst=FAB0[4]) / ICMP(type=3, code=3) / good()[IP],
        Ether(src=HOST_MAC, dst=FAB0_MAC) / IPv6(src=HOST[6], dst=FAB0[6]) / ICMPv6DestUnreach(code=4) / good()[IP]],
    "local_icmp_checksum": [Ether(src=HOST_MAC, dst=FAB0_MAC) / IP(src=HOST[4], dst=FAB0[4]) / ICMP(chksum=1),
                            Ether(src=HOST_MAC, dst=FAB0_MAC) / IPv6(src=HOST[6], dst=FAB0[6]) / ICMPv6EchoRequest(cksum=1)],
    "nd_router_advert_ignored": [Ether(src=HOST_MAC, dst="33:33:00:00:00:01") /
                                 IPv6(src="fe80::1", dst="ff02::1", hlim=255) / ICMPv6ND_RA()],
}


@pytest.mark.parametrize("reason", CASES)
def test_dropped(network, router, reason):
    with router.drops(**{reason: len(CASES[reason])}):
        assert_nothing(router.run("fab0", *CASES[reason]))


@outsides
def test_udp_length_that_cannot_be(network, router, encap, under):
    if encap == "mplsogre":
        p = good(encap, under)
        p[1].payload = Raw(b"\0")
        with router.drops(tunnel_truncated=1):
            assert_nothing(router.run("fab0", p))
        return
    frames = []
    for n in (0, 7, len(bytes(good(encap, under)[UDP])) + 1, 65535):
        p = good(encap, under)
        p[UDP].len = n
        frames.append(p)
    with router.drops(fabric_bad_udp=4):
        assert_nothing(router.run("fab0", *frames))


@pytest.mark.parametrize("encap", OVERLAYS)
def test_outer_options(network, router, encap):
    p = good(encap)
    p[IP].options = [IPOption_Router_Alert()] * 10
    with router.drops():
        assert_out(router.run("fab0", p), ("t1", to_guest(T1, forwarded(udp_packet(4, FAR, T1)))))


@pytest.mark.parametrize("family", FAMILIES)
def test_echo_to_a_fabric_address(network, router, family):
    payload = bytes(range(200))
    if family == 4:
        request = IP(src=HOST[4], dst=FAB0[4], ttl=3, id=77, tos=4) / ICMP(id=7, seq=9) / Raw(payload)
        answer = IP(src=FAB0[4], dst=HOST[4], ttl=64, id=77, tos=4) / ICMP(type="echo-reply", id=7, seq=9) / Raw(payload)
    else:
        request = IPv6(src=HOST[6], dst=FAB0[6], hlim=3) / ICMPv6EchoRequest(id=7, seq=9, data=payload)
        answer = IPv6(src=FAB0[6], dst=HOST[6], hlim=64) / ICMPv6EchoReply(id=7, seq=9, data=payload)
    with router.drops():
        out = router.run("fab0", Ether(src=HOST_MAC, dst=FAB0_MAC) / request)
    assert_out(out, ("fab0", Ether(src=FAB0_MAC, dst=HOST_MAC) / answer))


def test_the_underlay_does_not_reach_a_tenant_without_a_tunnel(network, router):
    with router.drops(fabric_not_local=2):
        assert_nothing(router.run("fab0", *(Ether(src=HOST_MAC, dst=FAB0_MAC) / udp_packet(f, HOST, T1) for f in FAMILIES)))
