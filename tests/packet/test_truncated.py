# SPDX-License-Identifier: Apache-2.0
"""Frames that are cut at every byte are counted and dropped."""
import pytest
from scapy.layers.inet import ICMP, IP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import ICMPv6EchoRequest, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from packets import assert_nothing, assert_out, cut, forwarded, from_guest, from_host, to_guest, udp_packet, with_udp6_checksum
from router import GATEWAY_MAC
from topology import FAMILIES, GATEWAY, IN_UDP, OVERLAYS, RED_UNIFORM, T1

FAR = {4: "10.2.0.9", 6: "fd00:2::9"}
outsides = pytest.mark.parametrize("encap,under", [(e, u) for e in OVERLAYS for u in FAMILIES])
ETHERNET = 14  # the kernel sends nothing shorter


@outsides
@pytest.mark.parametrize("inner", FAMILIES)
def test_from_the_underlay(network, router, encap, under, inner):
    frame = bytes(from_host(encap, under, udp_packet(inner, FAR, T1, payload=b"payload")))
    frames = [cut(frame, n) for n in range(ETHERNET, len(frame))]
    with router.all_dropped(len(frames), {"fabric_truncated", "fabric_bad_header"}):
        assert_nothing(router.run("fab0", *frames))


@outsides
@pytest.mark.parametrize("inner", FAMILIES)
def test_from_the_underlay_with_lengths_that_fit(network, router, encap, under, inner):
    """The outer headers are correct, but the inner ones state more bytes than there are."""
    tag = RED_UNIFORM if inner == 6 else 1001
    frame = bytes(from_host(encap, under, udp_packet(inner, FAR, T1, payload=b"payload"), tag=tag, tos=1))
    frames = [cut(frame, n, fix=True) for n in range(ETHERNET, len(frame))]
    with router.all_dropped(len(frames), {"fabric_truncated", "tunnel_truncated", "tunnel_not_ip", "ip_truncated"}):
        assert_nothing(router.run("fab0", *frames))


@pytest.mark.parametrize("encap", IN_UDP)
@pytest.mark.parametrize("under", FAMILIES)
def test_udp_length_ends_before_the_payload(network, router, encap, under):
    """RFC 768: bytes behind the UDP length are not part of the datagram."""
    packet = udp_packet(4, FAR, T1, payload=b"payload")
    frames = []
    for n in range(8, len(bytes(from_host(encap, under, packet)[UDP]))):
        p = from_host(encap, under, packet)
        p[UDP].len = n
        frames.append(with_udp6_checksum(p))
    with router.all_dropped(len(frames), {"tunnel_truncated", "tunnel_not_ip", "ip_truncated"}):
        assert_nothing(router.run("fab0", *frames))


@outsides
def test_padding_is_cut_off(network, router, encap, under):
    """Bytes behind the IP length are padding and are removed."""
    for family in FAMILIES:
        packet = udp_packet(family, FAR, T1, payload=b"")
        out = router.run("fab0", bytes(from_host(encap, under, packet)) + b"padding" * 3)
        assert_out(out, ("t1", to_guest(T1, forwarded(packet))))


GUEST_FRAMES = {
    "udp4": from_guest(T1, udp_packet(4, T1, {4: "10.1.0.12"}, payload=b"payload")),
    "udp6": from_guest(T1, udp_packet(6, T1, {6: "fd00:1::12"}, payload=b"payload")),
    "options4": from_guest(T1, IP(src=T1[4], dst="10.1.0.12", options=IPOption_Router_Alert()) / UDP() / b"payload"),
    "echo4": from_guest(T1, IP(src=T1[4], dst=GATEWAY[4]) / ICMP() / b"payload"),
    "echo6": from_guest(T1, IPv6(src=T1[6], dst=GATEWAY[6]) / ICMPv6EchoRequest(data=b"payload")),
    "arp": Ether(src=T1["mac"], dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=T1["mac"], psrc=T1[4], pdst=GATEWAY[4]),
    "nd": Ether(src=T1["mac"], dst="33:33:ff:00:00:01") / IPv6(src=T1[6], dst="ff02::1:ff00:1", hlim=255) /
          ICMPv6ND_NS(tgt=GATEWAY[6]) / ICMPv6NDOptSrcLLAddr(lladdr=T1["mac"]),
}
TRUNCATED = {"options4": {"ip_truncated", "ip4_bad_header_length"}, "arp": {"arp_malformed"},
             "nd": {"eth_multicast_ignored", "nd_malformed"}}


@pytest.mark.parametrize("kind", GUEST_FRAMES)
def test_from_a_guest(network, router, kind):
    frame = bytes(GUEST_FRAMES[kind])
    assert router.run("t1", frame)  # the whole frame is answered or forwarded
    frames = [frame[:n] for n in range(ETHERNET, len(frame))]
    with router.all_dropped(len(frames), TRUNCATED.get(kind, {"ip_truncated"})):
        assert_nothing(router.run("t1", *frames))


@pytest.mark.parametrize("kind", ["echo4", "echo6"])
def test_short_echo(network, router, kind):
    """The IP header is correct, but the ICMP message has fewer than 8 bytes."""
    frame = bytes(GUEST_FRAMES[kind])
    l4 = 34 if kind == "echo4" else 54
    frames = [cut(frame, n, fix=True) for n in range(l4, l4 + 8)]
    with router.all_dropped(8, {"local_truncated"}):
        assert_nothing(router.run("t1", *frames))


def test_gateway_mac_alone(network, router):
    with router.drops(eth_unknown_type=1):
        assert_nothing(router.run("t1", Ether(src=T1["mac"], dst=GATEWAY_MAC, type=0x88b5) / b"?"))
