#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpora of fuzz_tenant, fuzz_fabric, fuzz_mss and fuzz_translate: one valid packet of each kind (make_corpus.py [FOLDER]).

The addresses are those of dataplane/testing/router_fixture.h and fuzz_router.c; the bytes in front of a frame are the port, what to correct,
where to split it, and its length if another frame follows.
"""
import ipaddress
import pathlib
import sys

from scapy.all import (ARP, GRE, ICMP, IP, TCP, UDP, Dot1Q, Ether, ICMPv6DestUnreach, ICMPv6EchoRequest, ICMPv6ND_NA,
                       ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6,
                       IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Raw)
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS

FIX_ALL, SPLIT, MORE = 7, 16, 32
RED0, RED1, BLUE0, LAN0, LAN1, IRB0 = range(6)
GATEWAY, GUEST, FABRIC, ROUTER = "00:00:5e:00:01:01", "02:00:00:00:00:03", "02:00:00:00:f0:01", "02:00:00:00:aa:01"


def tenant():
    to_gateway = Ether(src=GUEST, dst=GATEWAY)
    udp = UDP(sport=1000, dport=2000) / Raw(b"x" * 20)
    for n in (0, 4, 9, 20, 21, 22, 24):
        yield f"route4-{n}", RED0, to_gateway / IP(src="10.0.0.2", dst=f"172.{16 + n}.0.1") / udp
        yield f"route6-{n}", RED0, to_gateway / IPv6(src="fd00::2", dst=f"fd00:{16 + n}::1") / udp
    yield "blue", BLUE0, to_gateway / IP(src="10.0.0.2", dst="172.16.0.1") / udp
    yield "syn", RED0, to_gateway / IP(src="10.0.0.2", dst="172.16.0.1") / TCP(flags="S", options=[("MSS", 1460), ("SAckOK", b"")])
    yield "syn6", BLUE0, to_gateway / IPv6(src="fd00::2", dst="fd00:16::1") / TCP(flags="S", options=[("NOP", None), ("MSS", 1440)])
    yield "echo", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.1") / ICMP() / Raw(b"ping")
    yield "echo6", RED0, to_gateway / IPv6(src="fd00::2", dst="fd00::1") / ICMPv6EchoRequest(data=b"ping")
    yield "ttl", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.3", ttl=1) / udp
    yield "ttl6", RED0, to_gateway / IPv6(src="fd00:21::2", dst="fd00::3", hlim=1) / udp
    yield "fragment", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.3", flags="MF", frag=10) / Raw(b"x" * 600)
    yield "fragment-df", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.3", flags="DF") / Raw(b"x" * 600)
    yield "fragment6", RED0, to_gateway / IPv6(src="fd00::2", dst="fd00::3") / IPv6ExtHdrFragment(offset=1, m=1) / Raw(b"x" * 32)
    yield "too-big6", RED0, to_gateway / IPv6(src="fd00::2", dst="fd00::3") / Raw(b"x" * 600)
    yield "options", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.3", options=[b"\x07\x07\x04\x00\x00\x00\x00\x00"]) / udp
    yield "hop-by-hop", RED0, to_gateway / IPv6(src="fd00::2", dst="fd00::3") / IPv6ExtHdrHopByHop() / udp
    yield "local-udp", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.1") / udp
    yield "arp", RED0, Ether(src=GUEST, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=GUEST, psrc="10.0.0.2", pdst="10.0.0.1")
    yield "nd", RED0, Ether(src=GUEST, dst="33:33:ff:00:00:01") / IPv6(src="fd00::2", dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt="fd00::1")
    yield "vlan", RED0, Ether(src=GUEST, dst=GATEWAY) / Dot1Q(vlan=5) / IP(src="10.0.0.2", dst="10.0.0.3") / udp
    yield "bridge-flood", LAN0, Ether(src=GUEST, dst="ff:ff:ff:ff:ff:ff", type=0x88b5) / Raw(b"x" * 46)
    yield "bridge-ip", LAN0, Ether(src=GUEST, dst="02:00:00:00:00:99") / IP(src="10.0.9.1", dst="10.0.9.2", tos=3) / udp
    yield "bridge-big", IRB0, Ether(src=GUEST, dst="02:00:00:00:00:99") / IP(src="10.0.1.5", dst="10.0.1.6", flags="DF") / Raw(b"x" * 1490)
    for mac in ("21", "22"):
        yield f"bridge-{mac}", LAN0, Ether(src=GUEST, dst=f"02:00:00:00:00:{mac}") / IP(src="10.0.9.1", dst="10.0.9.2") / udp
        yield f"irb-{mac}", IRB0, Ether(src=GUEST, dst=f"02:00:00:00:00:{mac}") / IPv6(src="fd00:1::5", dst="fd00:1::6") / udp
    yield "irb", IRB0, to_gateway / IP(src="10.0.1.5", dst="172.16.0.1") / udp
    other = "02:00:00:00:00:04"
    yield "proxy-arp", RED1, Ether(src=other, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=other, psrc="10.0.0.3", pdst="172.16.0.1")
    yield "proxy-nd", RED1, Ether(src=other, dst="33:33:ff:00:00:01") / IPv6(src="fd00::3", dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt="fd00:16::1")
    yield "link-local", LAN0, Ether(src=GUEST, dst="01:80:c2:00:00:0e", type=0x88cc) / Raw(b"x" * 46)
    yield "qinq", LAN0, Ether(src=GUEST, dst="02:00:00:00:00:99", type=0x88a8) / Raw(bytes.fromhex("00050800") + b"x" * 46)
    yield "fragment-past-end", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.3", frag=8100) / Raw(b"x" * 1200)
    yield "fragment-too-many", RED0, to_gateway / IP(src="10.0.0.2", dst="10.0.0.3") / Raw(b"x" * 9500)
    yield "reverse-path", BLUE0, Ether(src=GUEST, dst=GATEWAY) / IP(src="172.16.0.9", dst="172.17.0.1") / udp
    yield "reverse-path6", BLUE0, Ether(src=GUEST, dst=GATEWAY) / IPv6(src="fd00:16::9", dst="fd00:17::1") / udp


def tenant_sequences():
    udp = UDP(sport=1000, dport=2000) / Raw(b"x" * 20)
    here, there, tunnel = "02:00:00:00:01:01", "02:00:00:00:01:02", "02:00:00:00:00:22"
    frame = IP(src="10.0.9.1", dst="10.0.9.2") / udp
    yield "learn", [(LAN0, Ether(src=here, dst=there) / frame), (LAN1, Ether(src=there, dst=here) / frame), (LAN0, Ether(src=here, dst=there) / frame)]
    yield "move", [(LAN0, Ether(src=here, dst=there) / frame), (LAN1, Ether(src=here, dst=there) / frame), (LAN0, Ether(src=here, dst=tunnel) / frame)]
    yield "back", [(LAN0, Ether(src=here, dst=there) / frame), (LAN0, Ether(src=there, dst=here) / frame)]
    yield "big", [(LAN0, Ether(src=here, dst=there) / frame), (LAN1, Ether(src=there, dst=here) / IP() / Raw(b"x" * 3000))]
    absent = Ether(src=GUEST, dst=GATEWAY) / IP(src="10.0.0.2", dst="10.0.0.77") / udp
    answer = Ether(src="02:00:00:00:00:04", dst=GATEWAY) / ARP(op=2, hwsrc="02:00:00:00:00:04", psrc="10.0.0.77", hwdst=GATEWAY, pdst="10.0.0.1")
    yield "resolve", [(RED0, absent), (RED1, answer), (RED0, absent)]
    advert = IPv6(src="fd00::2", dst="fd00::1", hlim=255)
    for flags in range(8):
        yield f"advert-{flags}", [(RED0, Ether(src=GUEST, dst=GATEWAY) / advert / ICMPv6ND_NA(tgt="fd00::2", R=flags & 1, S=flags >> 1 & 1, O=flags >> 2) /
                                   ICMPv6NDOptDstLLAddr(lladdr=mac)) for mac in (GUEST, "02:00:00:00:00:33")]


def flow_sequences():
    """Connections in both directions, and errors about them; the ports are those of fuzz_flow.c."""
    red, blue, fabric = 0, 2, 4
    guest = Ether(src=GUEST, dst=GATEWAY)
    wire = Ether(src="02:00:00:00:0f:01", dst=FABRIC)
    for v4 in (True, False):
        ip, me, peer = (IP, "10.0.0.2", "172.16.0.1") if v4 else (IPv6, "fd00::2", "fd00:16::1")
        outer = wire / IP(src="203.0.113.9", dst="192.0.2.1") / UDP(sport=50000, dport=6635, chksum=0)
        names = "4" if v4 else "6"
        for vrf, port in ((100, red), (101, blue)):
            label = MPLS(label=vrf, s=1, ttl=64)
            for name, flags in (("handshake", ("S", "SA", "A")), ("reset", ("S", "RA", "A")), ("close", ("S", "SA", "FA", "FA")), ("odd", ("A", "SA", "S", "R"))):
                out = [(port, guest / ip(src=me, dst=peer) / TCP(sport=1000, dport=80, flags=f, seq=1, ack=1)) for f in flags[::2]]
                back = [(fabric, outer / label / Raw(bytes(ip(src=peer, dst=me) / TCP(sport=80, dport=1000, flags=f, seq=1, ack=1)))) for f in flags[1::2]]
                yield f"tcp-{name}{names}-{vrf}", [frame for pair in zip(out, back) for frame in pair]
            sent = ip(src=me, dst=peer) / UDP(sport=1000, dport=2000) / Raw(b"x" * 30)
            for code, error in enumerate((ICMP(type=3, code=1), ICMP(type=3, code=4), ICMP(type=11)) if v4 else
                                         (ICMPv6DestUnreach(), ICMPv6PacketTooBig(mtu=1300), ICMPv6TimeExceeded())):
                about = ip(src=peer, dst=me) / error / ip(bytes(sent))
                yield f"error-{code}{names}-{vrf}", [(port, guest / sent), (fabric, outer / label / Raw(bytes(about)))]
                long = ip(src=peer, dst=me) / error / ip(bytes(sent)) / Raw(b"x" * 1300)
                yield f"error-long-{code}{names}-{vrf}", [(port, guest / sent), (fabric, outer / label / Raw(bytes(long)))]
        yield f"telnet{names}", [(red, guest / ip(src=me, dst=peer) / TCP(sport=1000, dport=23, flags="S"))] * 2
        yield f"meter{names}", [(blue, guest / ip(src=me, dst=peer) / UDP(sport=5, dport=6) / Raw(b"x" * 1000))] * 4
        yield f"ping{names}", [(red, guest / ip(src=me, dst=peer) / (ICMP(id=7) if v4 else ICMPv6EchoRequest(id=7)))] * 2
        outside = ("198.18.0.2", "198.18.0.3", "198.18.0.80", "203.0.113.200") if v4 else ("fd00:18::2", "fd00:18::3", "fd00:18::80", "2001:db8:f::200")
        for n, dst in enumerate(outside):
            yield f"nat-{n}{names}", [(red, guest / ip(src=me, dst=dst) / UDP(sport=1000, dport=2000)),
                                      (red, guest / ip(src=me, dst=dst) / TCP(sport=1000, dport=80, flags="S"))] * 2
            yield f"nat-back-{n}{names}", [(fabric, outer / MPLS(label=100, s=1, ttl=64) / Raw(bytes(ip(src=peer, dst=dst) / l4)))
                                           for l4 in (UDP(sport=2000, dport=1000), TCP(sport=9, dport=80, flags="S"))]
        if v4:
            first = guest / ip(src=me, dst=peer, flags="MF", id=5) / UDP(sport=1, dport=2) / Raw(b"x" * 24)
            rest = guest / ip(src=me, dst=peer, frag=4, id=5, proto=17) / Raw(b"x" * 24)
        else:
            first = guest / ip(src=me, dst=peer) / IPv6ExtHdrFragment(m=1, id=5) / UDP(sport=1, dport=2) / Raw(b"x" * 24)
            rest = guest / ip(src=me, dst=peer) / IPv6ExtHdrFragment(offset=4, id=5, nh=17) / Raw(b"x" * 24)
        # Headers that end in the middle, behind the 64 bytes that every buffer has.
        head = ip(src=me, dst=peer, options=[b"\x01"] * 40) if v4 else ip(src=me, dst=peer) / IPv6ExtHdrDestOpt()
        for name, proto, n in (("ports", 17, 3), ("echo", 1 if v4 else 58, 7), ("flags", 6, 13)):
            short = guest / head / Raw((bytes([128 if proto == 58 else 8]) + bytes(12))[:n])
            short.getlayer(ip if v4 else IPv6ExtHdrDestOpt).setfieldval("proto" if v4 else "nh", proto)
            yield f"truncated-{name}{names}", [(red, short)]
        yield f"fragments{names}", [(red, first), (red, rest), (red, rest)]
        yield f"fragments-late{names}", [(red, rest), (red, first)]


def inner():
    udp = UDP(sport=1000, dport=2000) / Raw(b"x" * 20)
    yield "ip4", IP(src="172.16.0.1", dst="10.0.0.2", tos=2) / udp
    yield "ip6", IPv6(src="fd00:16::1", dst="fd00::2", tc=2) / udp
    yield "ttl", IP(src="172.20.0.1", dst="10.0.0.3", ttl=1) / udp
    yield "echo", IP(src="172.16.0.1", dst="10.0.0.1") / ICMP() / Raw(b"ping")
    yield "big", IP(src="172.16.0.1", dst="10.0.0.3") / Raw(b"x" * 1200)
    yield "frame", Ether(src="02:00:00:00:00:77", dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="10.0.1.9", pdst="10.0.1.1")
    yield "frame-known", Ether(src="02:00:00:00:00:77", dst="02:00:00:00:00:21") / IP(src="10.0.1.9", dst="10.0.1.5", tos=1) / udp
    yield "frame-ip", Ether(src="02:00:00:00:00:77", dst=GATEWAY) / IP(src="10.0.1.9", dst="10.0.0.2") / udp


def encapsulated(label, payload):
    routed = payload if isinstance(payload, Ether) else Ether(src="02:00:00:00:bb:01", dst=ROUTER) / payload
    stack = MPLS(label=label, s=1, ttl=64) / Raw(bytes(payload))
    yield "mplsoudp", UDP(sport=50000, dport=6635, chksum=0) / stack
    yield "mplsoudp-null", UDP(sport=50000, dport=6635, chksum=0) / MPLS(label=0, s=0, ttl=64) / stack
    yield "mplsogre", GRE(proto=0x8847) / stack
    yield "mplsogre-all", GRE(proto=0x8847, chksum_present=1, key_present=1, key=7, seqnum_present=1) / stack
    yield "vxlan", UDP(sport=50000, dport=4789, chksum=0) / Raw(bytes.fromhex("08000000") + (label << 8).to_bytes(4, "big")) / routed
    geneve = UDP(sport=50000, dport=6081, chksum=0)
    option = bytes.fromhex("0102010111223344")
    yield "geneve", geneve / GENEVE(vni=label, proto=0x6558) / routed
    yield "geneve-options", geneve / Raw(bytes(GENEVE(vni=label, proto=0x6558, optionlen=4)) + option * 2 + bytes(routed))
    if not isinstance(payload, Ether):
        yield "geneve-ip", geneve / GENEVE(vni=label, proto=0x86dd if isinstance(payload, IPv6) else 0x0800) / payload


def fabric():
    link = Ether(src="02:00:00:00:0f:01", dst=FABRIC)
    outers = {4: IP(src="203.0.113.9", dst="192.0.2.1", tos=3), 6: IPv6(src="2001:db8:f::9", dst="2001:db8::1", tc=1)}
    for name, payload in inner():
        label = 103 if name.startswith("frame") else 100
        for kind, packet in encapsulated(label, payload):
            outer = outers[4 if len(name) % 2 else 6]
            yield f"{kind}-{name}", 0, link / outer / packet
    for label in range(101, 110):
        for kind, packet in encapsulated(label, dict(inner())["ip4"]):
            if label % 5 == len(kind) % 5:
                yield f"{kind}-{label}", 0, link / outers[4] / packet
    for label, ttl in ((105, 64), (107, 1)):  # the error has no VRF, and the underlay has a host of that address
        for kind, packet in encapsulated(label, IP(src="203.0.113.77", dst="10.0.0.2", ttl=ttl, tos=2) / UDP() / Raw(b"x" * 20)):
            yield f"{kind}-nobody-{label}", 0, link / outers[4] / packet
    yield "checksum", 0, link / outers[6] / UDP(sport=50000, dport=6635) / MPLS(label=100, s=1, ttl=64) / Raw(bytes(dict(inner())["ip4"]))
    yield "vlan", 1, Ether(src="02:00:00:00:0f:02", dst="02:00:00:00:f0:02") / Dot1Q(vlan=100) / IP(src="203.0.114.9", dst="198.51.100.1") / \
        GRE(proto=0x8847) / MPLS(label=100, s=1, ttl=64) / Raw(bytes(dict(inner())["ip4"]))
    yield "echo", 0, link / IP(src="192.0.2.2", dst="192.0.2.1") / ICMP() / Raw(b"ping")
    yield "echo6", 0, link / IPv6(src="2001:db8::2", dst="2001:db8::1") / ICMPv6EchoRequest(data=b"ping")
    yield "arp", 0, Ether(src="02:00:00:00:0f:01", dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="192.0.2.2", pdst="192.0.2.1")
    yield "nd", 0, link / IPv6(src="2001:db8::2", dst="2001:db8::1", hlim=255) / ICMPv6ND_NS(tgt="2001:db8::1")
    for n, (outer, quoted) in enumerate(((4, IP(src="192.0.2.1", dst="203.0.113.9")), (6, IPv6(src="2001:db8::1", dst="2001:db8:f::9")))):
        error = ICMP(type=3, code=4, nexthopmtu=1400) if outer == 4 else ICMPv6PacketTooBig(mtu=1400)
        hop = IP(src="203.0.113.1", dst="192.0.2.1") if outer == 4 else IPv6(src="2001:db8:f::1", dst="2001:db8::1")
        for kind, packet in encapsulated(1000, dict(inner())["ip4"]):
            yield f"too-big-{kind}-{n}", 0, link / hop / error / Raw(bytes(quoted / packet))
    for kind, packet in encapsulated(110, dict(inner())["ip4"]):
        yield f"{kind}-source", 0, link / outers[4] / packet
        yield f"{kind}-other-source", 0, link / IP(src="203.0.113.8", dst="192.0.2.1") / packet
    tagged = Ether(src="02:00:00:00:0f:02", dst="02:00:00:00:f0:02") / Dot1Q(vlan=100)
    everybody = Ether(src="02:00:00:00:0f:02", dst="ff:ff:ff:ff:ff:ff") / Dot1Q(vlan=100)
    yield "host-udp", 1, tagged / IP(src="203.0.114.9", dst="198.51.100.1") / UDP(dport=53)
    yield "host-arp", 1, everybody / ARP(psrc="198.51.100.2", pdst="198.51.100.1")
    yield "host-nd", 1, tagged / IPv6(src="2001:db8:1::2", dst="2001:db8:1::1", hlim=255) / ICMPv6ND_NS(tgt="2001:db8:1::1")
    yield "host-answer", 1, everybody / ARP(op=2, psrc="198.51.100.2", pdst="198.51.100.1")
    yield "host-advert", 1, tagged / IPv6(src="2001:db8:1::2", dst="2001:db8:1::1", hlim=255) / ICMPv6ND_NA(tgt="2001:db8:1::2")
    yield "host-sends", 3, Ether(src="02:00:00:00:f0:02", dst="02:00:00:00:0f:02") / IP(src="198.51.100.1", dst="203.0.114.9") / UDP(dport=53)
    yield "host-asks", 3, Ether(src="02:00:00:00:f0:02", dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="198.51.100.1", pdst="198.51.100.2")
    yield "fragment", 0, link / IP(src="203.0.113.9", dst="192.0.2.1", flags="MF") / UDP(sport=50000, dport=6635)


def flow_key(proto, src, sport, dst, dport):
    src, dst = ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed
    return sport.to_bytes(2, "big") + dport.to_bytes(2, "big") + bytes([1, 0, proto, 4 if len(src) == 4 else 6]) + (src + dst).ljust(32, b"\0")


def translate():
    """Packets that are translated to another address and port, in both directions."""
    for ip, icmp, inside, outside, peer in ((IP, ICMP(type=3, code=1), "10.0.0.2", "198.51.100.1", "203.0.113.1"),
                                            (IPv6, ICMPv6DestUnreach(), "fd00::2", "2001:db8:1::1", "2001:db8:2::1")):
        v4 = ip is IP
        echo = ICMP(id=7) if v4 else ICMPv6EchoRequest(id=7)
        kinds = {"udp": (17, UDP(sport=1000, dport=2000), 1000, 2000), "tcp": (6, TCP(sport=1000, dport=2000), 1000, 2000),
                 "echo": (1 if v4 else 58, echo, 7, 7), "zero": (17, UDP(sport=1000, dport=2000, chksum=0), 1000, 2000)}
        for name, (proto, l4, sport, dport) in kinds.items():
            mapped = (5555, 5555) if sport == dport else (5555, dport)
            keys = flow_key(proto, inside, sport, peer, dport) + flow_key(proto, peer, mapped[1], outside, mapped[0])
            family = "4" if v4 else "6"
            sent = ip(src=inside, dst=peer) / l4 / Raw(b"x" * 30)
            yield name + family, bytes([v4]) + keys + bytes(Ether() / sent)
            first = ip(src=inside, dst=peer, flags="MF") / l4 if v4 else ip(src=inside, dst=peer) / IPv6ExtHdrFragment(m=1) / l4
            yield f"{name}{family}-fragment", bytes([v4]) + keys + bytes(Ether() / first / Raw(b"x" * 32))
            out = ip(src=outside, dst=peer) / type(l4)(bytes(l4)) / Raw(b"x" * 30)
            error = Ether() / ip(src=peer, dst=outside) / icmp / out
            yield f"{name}{family}-error", bytes([v4 | 2]) + keys + bytes(error)
            yield f"{name}{family}-direct", bytes([v4 | 2 | 8 | (0 if v4 else 5 << 4)]) + keys + bytes(error)


def mss():
    for name, options in {"mss": [("MSS", 1460)], "usual": [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("WScale", 7)],
                          "odd": [("NOP", None), ("MSS", 1460)], "none": [("NOP", None)]}.items():
        yield name, bytes([5, 0x78]) + bytes(TCP(sport=1000, dport=2000, flags="S", options=options))


def varint(n):
    return bytes([n & 0x7f | 0x80]) + varint(n >> 7) if n > 0x7f else bytes([n])


def message(*fields):
    """A message of protobuf: pairs of a field's number and its value."""
    data = b""
    for number, value in fields:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def ports():
    """Requests of Ports.Add: the numbers of the fields are those of api/port.proto."""
    server = ((1, "/tmp/s"), (3, "root"), (4, "kvm"), (5, "0660"))
    memif = ((1, "/tmp/m"), (2, 1), (4, "secret"), (5, 64), (7, "root"), (8, "kvm"), (9, "0600"))
    devices = {"dpdk": (3, message((1, "net_af_packet0,iface=eth1"))), "dpdk-memif": (3, message((1, "net_memif,role=client,socket=/tmp/m,id=3"))),
               "tap": (4, message((1, "tap0"), (2, "blue"))), "tap-name": (4, b""), "memif": (5, message(*memif)),
               "memif-client": (5, message((1, "/tmp/m"), (3, 1), (6, 128))), "memif-client-mode": (5, message((1, "/tmp/m"), (3, 1), (9, "0600"))),
               "vhost": (6, message(*server)), "vhost-client": (6, message((1, "/tmp/s"), (2, 1)))}
    tenant = ((20, "red"), (21, "irb"), (22, "10.0.0.1/24"), (22, "fd00::1/64"), (23, "02:00:00:00:00:03"), (24, "10.0.0.2"), (24, "10.1.0.0/16"),
              (24, "fd00::2"), (25, 1), (26, 1400), (27, 1), (32, 1), (33, 1000), (34, 10), (35, 2), (40, 1), (41, 2), (42, "0"), (42, "1:3"), (43, "0:1"))
    fabric = ((7, 1), (8, 1500), (9, 1), (10, 100), (11, "192.0.2.1/24"), (11, "2001:db8::1/64"), (12, "02:00:00:00:00:01"))
    for name, device in devices.items():
        yield name, message((1, message((1, "p"), (2, 2), device, *tenant)))
    yield "fabric", message((1, message((1, "p"), (2, 1), devices["dpdk"], *fabric)))
    yield "host", message((1, message((1, "p"), (2, 3), devices["tap"], (45, "fabric0"))))
    yield "long-name", message((1, message((1, "a-port-with-a-long-name"), (2, 2), (4, b""))))
    for number in (20, 21, 30, 31, 36, 37, 38, 45):
        yield f"absent-{number}", message((1, message((1, "p"), (2, 2), devices["vhost"], (number, "absent"))))
    for number, wrong in ((11, "192.0.2.1"), (12, "02:00"), (23, "x"), (22, "10.0.0.1/33"), (24, "10.0.0.1/8"), (42, "0:0"), (42, "x"), (43, "0"), (43, "99:0")):
        yield f"wrong-{number}-{len(wrong)}", message((1, message((1, "p"), (2, 2), devices["vhost"], (number, wrong))))
    for number, twice in ((22, ("10.0.0.1/24", "10.0.0.1/16")), (24, ("10.0.0.2", "10.0.0.2/32")), (42, ("1", "1:2")), (43, ("0:1", "0:2"))):
        yield f"twice-{number}", message((1, message((1, "p"), (2, 2), devices["vhost"], *((number, text) for text in twice))))


def flow_filters():
    flows = {"tcp": flow_key(6, "10.0.0.2", 1000, "203.0.113.1", 80) + flow_key(6, "203.0.113.1", 80, "198.51.100.1", 5555) + bytes([1, 3, 3, 0, 7, 0x11]),
             "udp6": flow_key(17, "fd00::2", 1000, "2001:db8::1", 53) + flow_key(17, "2001:db8::1", 53, "fd00::2", 1000) + bytes([0, 0, 3, 4, 0, 0x01])}
    filters = {"all": (), "vrf": ((1, "red"),), "no-vrf": ((1, "absent"),), "prefix": ((2, "10.0.0.0/8"),), "prefix6": ((2, "fd00::/16"),),
               "wrong": ((2, "10.0.0.0"),), "port": ((3, "red0"),), "no-port": ((3, "absent"),), "protocol": ((4, "tcp"),), "no-protocol": ((4, "x"),),
               "l4": ((5, 80),), "action": ((6, 1),), "state": ((7, 2),), "nat": ((8, 7),), "both": ((1, "red"), (2, "203.0.113.0/24"), (4, "6"), (5, 1000))}
    for flow, keys in flows.items():
        for name, fields in filters.items():
            yield f"{flow}-{name}", keys + message(*fields)


def capture_filters():
    packet = bytes(Ether() / IP(src="10.0.0.2", dst="10.0.0.3") / UDP(sport=1000, dport=6635) / Raw(b"x" * 20))
    for n, text in enumerate(("", "udp port 6635", "ip6 and not tcp", "vlan 100 and host 10.0.0.2", "ether host 02:00:00:00:00:03", "mpls 100", "geneve",
                              "tcp[13] & 2 != 0", "greater 100 or less 64", "net 10.0.0.0/8 and portrange 1-1024", "host nobody", "icmp6 or arp", "(", "ip proto 300")):
        yield f"filter-{n}", text.encode() + b"\n" + packet


def options():
    lines = ("--run-dir /tmp/x --worker-cpus 0-3 --idle sleep --control-cpus 4 --service-cpus (5) --allow-overlap", "--worker-ring-size 4096 --run-to-completion",
             "--no-huge --memory 1024 --mbufs 4096 --mbuf-size 9216 --fib-memory 64 --flows 1024", "--router-mac 02:00:00:00:00:01 --log-level debug",
             "--read-group daemon --operate-group absent", "--user nobody --port-kinds vhost,memif --system-calls logged", "--core-dumps --allow-debug --check",
             "--vr_dpdk_rx_ring_sz 2048 --vr_dpdk_tx_ring_sz 64 --vr_no_load_balance --service_core_mask 0xf0 --dpdk_ctrl_thread_mask 0x0f",
             "--yield_option 1", "--idle x", "--system-calls x", "--log-level x", "--memory x", "--memory 1", "--worker-cpus 0,0", "--worker-cpus 9999",
             "--worker-cpus 0x", "--router-mac x", "--port-kinds x", "--", "-- --log-level=8 -a 0000:00:01.0", "x", "--help", "--version", "--absent",
             "--user nobody --run-dir /" + "d" * 70, "--run-dir " + "d" * 100, "--worker-cpus 0-63", "--worker-cpus 50", "--control-cpus 0 --worker-cpus 0")
    for n, line in enumerate(lines):
        yield f"line-{n}", "".join(word + "\n" for word in line.split()).encode()
    yield "dpdk-many", b"--\n" + b"-v\n" * 40


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def fabric_sequences():
    """A host behind one tunnel, then behind another one, or on a port."""
    link = Ether(src="02:00:00:00:0f:01", dst=FABRIC)
    for bridge in (102, 103):
        def frame(remote, src, dst):
            inner = Ether(src=src, dst=dst) / IP(src="10.0.9.1", dst="10.0.9.2") / UDP(sport=1, dport=2)
            outer = IPv6(src=remote, dst="2001:db8::1") if ":" in remote else IP(src=remote, dst="192.0.2.1")
            return 0, link / outer / dict(encapsulated(bridge, inner))["vxlan"]

        one, two = "203.0.113.9", "2001:db8:f::9"
        here, there, static = "02:00:00:00:01:01", "02:00:00:00:01:02", "02:00:00:00:00:22"
        yield f"tunnel-learn-{bridge}", [frame(one, here, there), frame(one, here, there), frame(two, there, here)]
        yield f"tunnel-move-{bridge}", [frame(one, here, there), frame(two, here, there), frame(one, here, static), frame(one, static, here)]


def sequence(frames):
    """An input of several frames."""
    data = b""
    for n, (port, frame) in enumerate(frames, 1):
        frame = bytes(frame)
        data += bytes([port, FIX_ALL, 0]) if n == len(frames) else bytes([port, FIX_ALL | MORE, 0]) + len(frame).to_bytes(2, "big")
        data += frame
    return data


def main():
    base = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus")
    for folder, frames in (("tenant", tenant()), ("fabric", fabric())):
        for name, port, frame in frames:
            write(base / folder, name, bytes([port, FIX_ALL, 0]) + bytes(frame))
            if name in ("route4-0", "fragment", "mplsoudp-big", "vxlan-frame-ip", "bridge-flood"):
                write(base / folder, name + "-split", bytes([port, FIX_ALL | SPLIT, 90]) + bytes(frame))
    for folder, sequences in (("tenant", tenant_sequences()), ("fabric", fabric_sequences()), ("flow", flow_sequences())):
        for name, frames in sequences:
            write(base / folder, name, sequence(frames))
    for folder, inputs in (("translate", translate()), ("mss", mss()), ("port", ports()), ("flow_filter", flow_filters()),
                           ("capture_filter", capture_filters()), ("options", options())):
        for name, data in inputs:
            write(base / folder, name, data)


main()
