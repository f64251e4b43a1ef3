# SPDX-License-Identifier: Apache-2.0
"""One's complement sums at their edges: 0 and 0xffff, and every carry in between."""
import struct

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.packet import Raw

from packets import assert_out, forwarded, from_guest, from_host, to_guest, to_host
from topology import FAMILIES, GATEWAY, IN_UDP, T1, T2, WITH_VNI


def with_sum(packet, wanted):
    """The IPv4 packet with an identification for which its header checksum is `wanted`."""
    p = packet.copy()
    p.id = 0
    del p.chksum
    have = IP(bytes(p)).chksum
    p.id = ((have ^ 0xffff) * -1 + (wanted ^ 0xffff)) % 0xffff
    assert IP(bytes(p)).chksum == wanted
    return IP(bytes(p))


EDGES = [0x0000, 0x0001, 0x00ff, 0x0100, 0x7fff, 0x8000, 0xfe00, 0xfefe, 0xfeff, 0xff00, 0xff01, 0xfffe]


@pytest.mark.parametrize("ttl", [2, 64, 255])
def test_ttl_decrement(network, router, ttl):
    base = IP(src=T1[4], dst=T2[4], ttl=ttl) / UDP(chksum=0) / Raw(b"x")
    packets = [with_sum(base, s) for s in EDGES] + [with_sum(base, s * 655 & 0xfffe) for s in range(100)]
    with router.drops():
        out = router.run("t1", *(from_guest(T1, p) for p in packets))
    assert_out(out, *(("t2", to_guest(T2, forwarded(p))) for p in packets))


@pytest.mark.parametrize("outer", [1, 2, 3])
def test_ecn_from_the_tunnel(network, router, outer):
    """The ECN of the inner header changes, and its checksum with it."""
    base = IP(src="10.2.0.9", dst=T1[4], tos=2) / UDP(chksum=0) / Raw(b"x")
    packets = [with_sum(base, s) for s in EDGES]
    out = router.run("fab0", *(from_host("mplsoudp", 4, p, tos=outer) for p in packets))
    assert_out(out, *(("t1", to_guest(T1, forwarded(p, tos=outer))) for p in packets))


def test_outer_header(network, router):
    """Every length from the smallest on, so that the outer sum takes many values."""
    dst = network.tunnel("mplsogre", 4)
    packets = [IP(src=T1[4], dst=dst[4], tos=t) / Raw(bytes(n)) for n in range(0, 1400, 41) for t in (0, 255)]
    out = router.run("t1", *(from_guest(T1, p) for p in packets))
    assert_out(out, *(("fab0", to_host("mplsogre", 4, forwarded(p), o.data, tos=p.tos)) for p, o in zip(packets, out)))


@pytest.mark.parametrize("encap", IN_UDP)
def test_udp6_checksum_is_never_zero(network, router, encap):
    """RFC 8200: a checksum of zero is sent as 0xffff."""
    dst = network.tunnel(encap, 6, "--udp6-checksum", "on")

    def packet(word):
        return IP(src=T1[4], dst=dst[4]) / UDP(sport=1, dport=2, chksum=0) / Raw(struct.pack("!H", word))

    out = router.run("t1", from_guest(T1, packet(0)))
    out = router.run("t1", from_guest(T1, packet(out[0].packet[UDP].chksum)))
    assert out[0].packet[UDP].chksum == 0xffff
    assert_out(router.run("fab0", reversed_way(out[0].packet, encap)),
               ("t1", to_guest(T1, forwarded(answer_of(out[0].packet, encap)))))


def inner_of(p, encap):
    return p[MPLS].payload if encap == "mplsoudp" else p[UDP].payload.payload.payload


def answer_of(p, encap):
    """The inner packet with its addresses exchanged, which changes no checksum."""
    inner = IP(bytes(inner_of(p, encap)))
    inner.src, inner.dst = inner.dst, inner.src
    return inner


def reversed_way(p, encap):
    """The router's own frame, sent back by the other end: the addresses are exchanged, the outer checksum stays."""
    q = p.copy()
    q.src, q.dst = q.dst, q.src
    q[1].src, q[1].dst = q[1].dst, q[1].src
    inner = inner_of(q, encap)
    inner.src, inner.dst = inner.dst, inner.src
    if encap in WITH_VNI:
        frame = q[UDP].payload.payload
        frame.src, frame.dst = frame.dst, frame.src
    return q


@pytest.mark.parametrize("family", FAMILIES)
def test_echo(network, router, family):
    """The reply's checksum is derived from the request's; the identifiers make it take every edge value."""
    if family == 6:
        there, back = IPv6(src=T1[6], dst=GATEWAY[6]), IPv6(src=GATEWAY[6], dst=T1[6])
        pairs = [(there / ICMPv6EchoRequest(id=i, data=b"x"), back / ICMPv6EchoReply(id=i, data=b"x"))
                 for i in range(0, 65536, 523)]
    else:
        there, back = IP(src=T1[4], dst=GATEWAY[4]), IP(src=GATEWAY[4], dst=T1[4], ttl=64)
        pairs = [(there / ICMP(id=i) / Raw(b"x"), back / ICMP(type=0, id=i) / Raw(b"x")) for i in range(0, 65536, 523)]
    out = router.run("t1", *(from_guest(T1, q) for q, _ in pairs))
    assert_out(out, *(("t1", to_guest(T1, a)) for _, a in pairs))


def test_mss(network, router):
    """The sequence numbers make the TCP checksum take every edge value."""
    router.cli("port", "set", "t1", "--mss-clamp", 1000)
    try:
        for options in ([("MSS", 1460)], [("NOP", None), ("MSS", 1460), ("NOP", None), ("NOP", None), ("NOP", None)]):
            packets = [IP(src=T1[4], dst=T2[4]) / TCP(seq=i, flags="S", options=options) for i in range(0, 65536, 523)]
            out = router.run("t1", *(from_guest(T1, p) for p in packets))
            clamped = []
            for p in packets:
                c = forwarded(p)
                c[TCP].options = [(n, 1000 if n == "MSS" else v) for n, v in options]
                clamped.append(("t2", to_guest(T2, c)))
            assert_out(out, *clamped)
    finally:
        router.cli("port", "set", "t1", "--mss-clamp", 0)
