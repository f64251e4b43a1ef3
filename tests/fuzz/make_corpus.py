#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpora of fuzz_tenant, fuzz_fabric, fuzz_mss, fuzz_translate and others: one valid packet of each kind (make_corpus.py [FOLDER]).

The addresses are those of dataplane/testing/router_fixture.h and fuzz_router.c; the bytes in front of a frame are the port, what to correct,
where to split it, and its length if another frame follows.
"""
import ipaddress
import itertools
import pathlib
import struct
import sys

from scapy.all import (ARP, BOOTP, DHCP, GRE, ICMP, IP, TCP, UDP, DHCP6_Advertise, Dot1AD, Dot1Q, Ether, ICMPv6DestUnreach,
                       ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr,
                       ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6,
                       IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Raw)
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS

FIX_ALL, SPLIT, MORE, BUSY, EMPTY = 7, 16, 32, 64, 128
OFTEN = bytes([FIX_ALL | BUSY | EMPTY, 255])
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
    yield from guarded()
    for name in ("boot-discover", "boot-solicit6", "boot-router"):
        yield name, RED0, dict(booting())[name]


def guarded():
    """What the guards of strict source checks look at: DHCP of clients, servers and relays, and advertisements of routers."""
    message = Raw(bytes(BOOTP(op=2, xid=7) / DHCP(options=[("message-type", "offer"), "end"])))
    for port, mac, four, six in ((RED0, GUEST, "10.0.0.2", "fd00::2"), (IRB0, GUEST, "10.0.1.5", "fd00:1::5"), (LAN0, GUEST, "10.0.9.1", "fd00:9::1")):
        for name, src, sport, dport in (("client", "0.0.0.0", 68, 67), ("server", four, 67, 68), ("relay", four, 67, 67), ("odd", four, 1000, 68)):
            for to, dst in (("all", "255.255.255.255"), ("one", "10.0.0.3")):
                eth = Ether(src=mac, dst="ff:ff:ff:ff:ff:ff" if to == "all" else GATEWAY)
                yield f"dhcp-{name}-{to}-{port}", port, eth / IP(src=src, dst=dst) / UDP(sport=sport, dport=dport) / message
        for name, sport, dport in (("client", 546, 547), ("server", 547, 546), ("relay", 547, 547)):
            yield f"dhcp6-{name}-{port}", port, Ether(src=mac, dst="33:33:00:01:00:02") / IPv6(src=six, dst="ff02::1:2") / UDP(sport=sport, dport=dport) / DHCP6_Advertise()
        advert = IPv6(src="fe80::ff:fe00:3", dst="ff02::1", hlim=255) / ICMPv6ND_RA()
        yield f"router6-{port}", port, Ether(src=mac, dst="33:33:00:00:00:01") / advert
        yield f"router4-{port}", port, Ether(src=mac, dst="01:00:5e:00:00:01") / IP(src=four, dst="224.0.0.1", ttl=1) / ICMP(type=9) / Raw(bytes(12))
    options = [b"\x01" * 4]
    gateway = Ether(src=GUEST, dst=GATEWAY)
    yield "dhcp-options", RED0, gateway / IP(src="10.0.0.2", dst="10.0.0.3", options=options) / UDP(sport=67, dport=68) / message
    yield "dhcp-fragment", RED0, gateway / IP(src="10.0.0.2", dst="10.0.0.3", flags="MF") / UDP(sport=67, dport=68) / message
    yield "dhcp6-extension", RED0, gateway / IPv6(src="fd00::2", dst="fd00::3") / IPv6ExtHdrDestOpt() / UDP(sport=547, dport=546) / DHCP6_Advertise()


def booting():
    """What a guest asks for when it boots, and what the router refuses to answer: names and frames."""
    def frame(options, src="0.0.0.0", dst="255.255.255.255", ip=None, udp=None, **fixed):
        message = bytes(BOOTP(**{"op": 1, "chaddr": bytes.fromhex(GUEST.replace(":", "")), "xid": 7, **fixed}) / DHCP(options=options + ["end"]))
        to = "ff:ff:ff:ff:ff:ff" if dst == "255.255.255.255" else GATEWAY
        return Ether(src=GUEST, dst=to) / IP(src=src, dst=dst, **(ip or {})) / UDP(sport=68, dport=67, **(udp or {})) / Raw(message)

    own, server = ("requested_addr", "10.0.0.2"), ("server_id", "10.0.0.1")
    ask = [("message-type", "request")]
    for kind in ("discover", "decline", "release", "inform"):
        yield f"boot-{kind}", frame([("message-type", kind), ("client_id", b"\x01abc"), ("max_dhcp_size", 1500)])
    yield "boot-broadcast", frame([("message-type", "discover")], flags="B")
    yield "boot-request", frame(ask + [own, server])
    yield "boot-other-address", frame(ask + [("requested_addr", "10.0.0.9")])
    yield "boot-other-server", frame(ask + [own, ("server_id", "10.0.0.8")])
    yield "boot-renew", frame(ask, src="10.0.0.2", dst="10.0.0.1", ciaddr="10.0.0.2")
    yield "boot-answer", frame([("message-type", "offer")])
    yield "boot-no-type", frame([])
    yield "boot-relay", frame(ask, giaddr="10.0.0.9")
    yield "boot-other-mac", frame(ask, chaddr=b"\x02\0\0\0\0\x99")
    yield "boot-op", frame(ask, op=2)
    yield "boot-fragment", frame(ask, ip={"flags": "MF"})
    yield "boot-checksum", frame(ask, udp={"chksum": 1})
    yield "boot-no-checksum", frame(ask, udp={"chksum": 0})
    yield "boot-udp-length", frame(ask, udp={"len": 9})
    yield from booting6()


def booting6():
    link = "fe80::ff:fe00:3"

    def frame(message, src=link, dst="ff02::1:2", mac=GUEST, **udp):
        return Ether(src=mac, dst="33:33:00:01:00:02") / IPv6(src=src, dst=dst) / UDP(sport=546, dport=547, **udp) / Raw(message)

    messages = dict(dhcp6())
    own = messages["type-1"][1:] + struct.pack(">HHHH", 2, 10, 3, 1) + bytes.fromhex(GATEWAY.replace(":", ""))
    address = struct.pack(">HH12xHH", 3, 40, 5, 24) + ipaddress.ip_address("fd00::2").packed + bytes(8)
    for name, kind in (("solicit", 1), ("request", 3), ("confirm", 4), ("renew", 5), ("rebind", 6), ("release", 8), ("decline", 9), ("relay", 12)):
        yield f"boot-{name}6", frame(bytes([kind]) + messages["type-1"][1:])
        yield f"boot-{name}-associations", frame(bytes([kind]) + messages["associations"][1:])
    for kind in (3, 4, 5, 6, 8, 9):
        yield f"boot-own-{kind}", frame(bytes([kind]) + (messages["type-1"][1:] if kind in (4, 6) else own) + address)
    yield "boot-full", frame(b"\5" + own + struct.pack(">HH12x", 3, 12 + 28 * 45) + (b"\0\5\0\x18" + bytes(24)) * 45)
    yield "boot-full-many", frame(b"\5" + own + (struct.pack(">HH12x", 3, 12 + 28 * 21) + (b"\0\5\0\x18" + bytes(24)) * 21) * 2 + b"\0\4\0\4abcd")
    all_options = struct.pack(">HH5H", 6, 10, 23, 24, 39, 56, 59)
    for kind in (1, 11):
        yield f"boot-wants-all-{kind}", frame(bytes([kind]) + messages["client"][1:] + all_options)
        yield f"boot-wants-{kind}", frame(bytes([kind]) + messages["type-1"][1:] + all_options)
    yield "boot-other-server6", frame(messages["server-3"])
    yield "boot-reply", frame(messages["type-7"])
    yield "boot-odd", frame(messages["odd"])
    yield "boot-many", frame(messages["many"])
    yield "boot-global", frame(messages["type-1"], src="fd00::2")
    yield "boot-other-mac6", frame(messages["type-1"], mac="02:00:00:00:00:99")
    yield "boot-checksum6", frame(messages["type-1"], chksum=0)
    yield "boot-udp-length6", frame(messages["type-1"], len=9)
    for name, src in (("router", link), ("router-unspecified", "::")):
        solicit = Ether(src=GUEST, dst="33:33:00:00:00:02") / IPv6(src=src, dst="ff02::2", hlim=255) / ICMPv6ND_RS()
        yield f"boot-{name}", solicit
        yield f"boot-{name}-mac", solicit / ICMPv6NDOptSrcLLAddr(lladdr=GUEST if src == link else "02:00:00:00:00:99")
    yield "boot-router-passed", Ether(src=GUEST, dst="33:33:00:00:00:02") / IPv6(src=link, dst="ff02::2", hlim=64) / ICMPv6ND_RS()


def boots():
    """For fuzz_boot: on a port that answers all, and some on ports with less; FIX corrects what needs no wrong checksum."""
    bridged, bare, only4, only6, slaac, fix, late, no_buffer = 4, 8, 1, 2, 3, 16, 64, 128
    for name, frame in booting():
        yield name.removeprefix("boot-"), bytes([0]) + bytes(frame)
    for name, bits in itertools.product(("request", "discover", "solicit6", "wants-all-1", "wants-11", "own-9", "router"),
                                        (bridged, bare, bridged | bare, only4, only6, slaac, slaac | bridged, late, no_buffer)):
        yield f"{name}-{bits}", bytes([bits | fix]) + bytes(dict(booting())[f"boot-{name}"])


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


def vlans():
    """Frames of the trunks of fuzz_vlan.c, with the tags of their sub-ports and others, and frames to these sub-ports; the ports are those of fuzz_vlan.c."""
    red0, lan0, lan1, irb0, blue0, fabric = range(6)
    everybody = "ff:ff:ff:ff:ff:ff"
    udp = UDP(sport=1000, dport=2000) / Raw(b"x" * 20)
    for v4 in (True, False):
        ip, n = (IP, 4) if v4 else (IPv6, 6)
        far, near, me = ("172.16.0.1", "10.0.0.2", "10.0.0.5") if v4 else ("fd00:16::1", "fd00::2", "fd00::5")
        for name, tags in (("own", None), ("blue", Dot1Q(vlan=10)), ("priority", Dot1Q(vlan=10, prio=5)), ("zero", Dot1Q(vlan=0, prio=7)),
                           ("zero-blue", Dot1Q(vlan=0) / Dot1Q(vlan=10)), ("lan", Dot1AD(vlan=100) / Dot1Q(vlan=7)), ("inner", Dot1Q(vlan=10) / Dot1Q(vlan=7)),
                           ("unknown", Dot1Q(vlan=11)), ("half", Dot1AD(vlan=100)), ("twice", Dot1AD(vlan=100) / Dot1AD(vlan=7)), ("other", Dot1AD(vlan=10) / Dot1Q(vlan=7))):
            for to, mac, dst in (("far", GATEWAY, far), ("near", GATEWAY, near), ("all", everybody, far)):
                head = Ether(src=GUEST, dst=mac) / tags if tags else Ether(src=GUEST, dst=mac)
                yield f"{name}-{to}{n}", [(red0, head / ip(src=me, dst=dst) / udp)]
        for name, tags in (("irb", Dot1Q(vlan=20)), ("same", Dot1Q(vlan=30)), ("neither", Dot1Q(vlan=31))):
            there = Ether(src="02:00:00:00:01:02", dst="02:00:00:00:01:01") / tags / ip() / udp
            for where, port in (("lan1", lan1), ("irb0", irb0), ("lan0", lan0)):
                yield f"bridge-{name}-{where}{n}", [(port, Ether(src="02:00:00:00:01:01", dst=everybody) / ip() / udp), (lan0, there), (port, there), (lan0, there)]
        yield f"guest{n}", [(blue0, Ether(src=GUEST, dst=GATEWAY) / ip(src=near, dst=me) / udp)]
        outer = Ether(src="02:00:00:00:0f:01", dst=FABRIC) / IP(src="203.0.113.9", dst="192.0.2.1")
        for kind, packet in encapsulated(101, ip(src=far, dst=me) / udp):
            yield f"fabric-{kind}{n}", [(fabric, outer / packet)]
    asks = ARP(hwsrc=GUEST, psrc="10.0.0.5", pdst="10.0.0.1")
    yield "arp", [(red0, Ether(src=GUEST, dst=everybody) / Dot1Q(vlan=10) / asks)]
    yield "nd", [(red0, Ether(src=GUEST, dst="33:33:ff:00:00:01") / Dot1Q(vlan=10) / IPv6(src="fd00::5", dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt="fd00::1"))]
    yield "long", [(red0, Ether(src=GUEST, dst=GATEWAY) / Dot1Q(vlan=10) / IP(src="10.0.0.5", dst="172.16.0.1") / Raw(b"x" * 1600))]
    whole = bytes(Ether(src=GUEST, dst=GATEWAY) / Dot1AD(vlan=100) / Dot1Q(vlan=7) / Raw(b"xx"))
    for n in (12, 13, 14, 15, 16, 17, 18, 20, 22, 24):
        yield f"cut-{n}", [(red0, Raw(whole[:n]))]
        yield f"cut-once-{n}", [(red0, Raw(bytes(Ether(src=GUEST, dst=GATEWAY) / Dot1Q(vlan=10) / Raw(b"x" * 8))[:n]))]
    yield "often", [(red0, Ether(src=GUEST, dst=GATEWAY) / Dot1Q(vlan=10) / IP(src="10.0.0.5", dst="172.16.0.1") / udp, BUSY, EMPTY)]


def memberships():
    """IGMP and MLD for fuzz_snoop: reports of each version, leaves, queries, the hello of PIM, and messages that are cut."""
    packets = {}
    groups, source = [ipaddress.ip_address(a).packed for a in ("239.1.1.1", "239.1.1.2")], ipaddress.ip_address("10.0.0.9").packed
    six, source6 = [ipaddress.ip_address(a).packed for a in ("ff0e::1", "ff05::2")], ipaddress.ip_address("fd00::9").packed

    def igmp(message, **ip):
        return bytes(IP(**{"src": "10.0.0.2", "dst": "224.0.0.22", "ttl": 1, "proto": 2, "options": [b"\x94\x04\0\0"], **ip}) / Raw(message))

    def mld(message, **ip):
        return bytes(IPv6(**{"src": "fe80::2", "dst": "ff02::16", "hlim": 1, "nh": 0, **ip}) / Raw(b"\x3a\0\x05\x02\0\0\x01\0" + message))

    for kind in (0x11, 0x12, 0x16, 0x17, 0x30):
        packets[f"igmp-{kind:x}"] = igmp(bytes([kind, 100, 0, 0]) + groups[0])
    packets["igmp-query"] = igmp(b"\x11\x64" + bytes(6))
    packets["igmp-query3"] = igmp(b"\x11\xff" + bytes(6) + b"\x02\x7d\0\0")
    packets["igmp-query-nobody"] = igmp(b"\x11\x64" + bytes(6), src="0.0.0.0")
    packets["igmp-fragment"] = igmp(b"\x16\0\0\0" + groups[0], flags="MF")
    packets["pim"] = igmp(b"\x20" + bytes(7), proto=103)
    for kind in (128, 130, 131, 132):
        packets[f"mld-{kind}"] = mld(bytes([kind, 0, 0, 0, 0x27, 0x10, 0, 0]) + six[0])
    packets["mld-query"] = mld(b"\x82\0\0\0\x27\x10\0\0" + bytes(16))
    packets["mld-query2"] = mld(b"\x82\0\0\0\xff\xff\0\0" + bytes(16) + b"\x02\x7d\0\0")
    packets["mld-unspecified"] = mld(b"\x83" + bytes(7) + six[0], src="::")
    packets["mld-global"] = mld(b"\x83" + bytes(7) + six[0], src="fd00::2")
    packets["mld-routed"] = mld(b"\x83" + bytes(7) + six[0], hlim=2)
    packets["pim6"] = bytes(IPv6(src="fe80::2", dst="ff02::d", nh=103) / Raw(b"\x20" + bytes(7)))
    for kind in range(1, 8):
        for n in (0, 2):
            packets[f"igmp-record-{kind}-{n}"] = igmp(b"\x22" + bytes(6) + b"\x02" + b"".join(struct.pack(">BBH", kind, 1, n) + g + source * n + b"aux!" for g in groups))
            packets[f"mld-record-{kind}-{n}"] = mld(b"\x8f" + bytes(6) + b"\x02" + b"".join(struct.pack(">BBH", kind, 1, n) + g + source6 * n + b"aux!" for g in six))
    for name, packet in packets.items():
        bits = int(packet[0] >> 4 == 6)
        yield name, bytes([bits | 2]) + packet
        yield f"{name}-checked", bytes([bits]) + packet
    for name in ("igmp-record-4-2", "mld-record-4-2", "igmp-16", "mld-131"):
        for n in (19, 23, 27, 39, 47, 50, 60, len(packets[name]) - 1):
            yield f"{name}-cut-{n}", bytes([2 | int(name[0] == "m")]) + packets[name][:n]
    for name, proto, at in (("igmp-checksum-ok", 0, 24), ("mld-checksum-ok", 1, 48)):
        packet = bytearray(packets["mld-131" if proto else "igmp-16"])
        pseudo = packet[8:40] + struct.pack(">II", len(packet) - at, 58) if proto else b""
        words = pseudo + packet[at:]
        total = sum(struct.unpack(f">{len(words) // 2}H", words))
        total = (total & 0xffff) + (total >> 16)
        packet[at + 2:at + 4] = struct.pack(">H", ~((total & 0xffff) + (total >> 16)) & 0xffff)
        yield name, bytes([proto]) + bytes(packet)


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
                yield f"error-often-{code}{names}-{vrf}", [(port, guest / sent), (fabric, outer / label / Raw(bytes(about)), BUSY, EMPTY)]
                long = ip(src=peer, dst=me) / error / ip(bytes(sent)) / Raw(b"x" * 1300)
                yield f"error-long-{code}{names}-{vrf}", [(port, guest / sent), (fabric, outer / label / Raw(bytes(long)))]
            yield f"strict{names}-{vrf}", [(36 + port, guest / ip(src=me, dst=peer) / TCP(sport=1001, dport=80, flags="A"))]
        yield f"telnet-in{names}", [(fabric, outer / MPLS(label=100, s=1, ttl=64) / Raw(bytes(ip(src=peer, dst=me) / TCP(sport=1000, dport=23, flags="S"))))] * 2
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
    yield from bridged_flows()


def bridged_flows():
    """On the bridge "lan": LAN0 has rules, a mirror and a meter, LAN1 keeps no flows; 02:...:21 is at LAN1, 02:...:22 behind a tunnel."""
    lan0, lan1, fabric = 6, 7, 4
    here, there, tunnel = "02:00:00:00:01:01", "02:00:00:00:00:21", "02:00:00:00:00:22"
    wire = Ether(src="02:00:00:00:0f:01", dst=FABRIC) / IP(src="203.0.113.9", dst="192.0.2.1") / UDP(sport=50000, dport=6635, chksum=0)
    for v4 in (True, False):
        ip, me, peer = (IP, "10.0.9.1", "10.0.9.2") if v4 else (IPv6, "fd00:9::1", "fd00:9::2")
        name = "4" if v4 else "6"
        for to, mac in (("port", there), ("tunnel", tunnel), ("unknown", "02:00:00:00:00:99")):
            out, back = Ether(src=here, dst=mac) / ip(src=me, dst=peer), Ether(src=mac, dst=here) / ip(src=peer, dst=me)

            def answer(l4):
                frame = back / l4
                return (fabric, wire / MPLS(label=102, s=1, ttl=64) / Raw(bytes(frame))) if to == "tunnel" else (lan1, frame)
            for l4, reply, what in ((UDP(sport=1, dport=2), UDP(sport=2, dport=1), "udp"), (TCP(sport=1, dport=80, flags="S"), TCP(sport=80, dport=1, flags="SA"), "tcp"),
                                    (TCP(sport=1, dport=23, flags="S"), TCP(sport=23, dport=1, flags="R"), "telnet"), (UDP(sport=68, dport=67), UDP(sport=67, dport=68), "dhcp")):
                yield f"lan-{what}-{to}{name}", [(lan0, out / l4), answer(reply), (lan0, out / l4), answer(reply)]
            yield f"lan-asked-{to}{name}", [answer(UDP(sport=9, dport=8)), (lan0, out / UDP(sport=8, dport=9)), answer(TCP(sport=9, dport=8, flags="S"))]
            sent = ip(src=me, dst=peer) / UDP(sport=1, dport=2) / Raw(b"x" * 30)
            error = (ICMP(type=3, code=1) if v4 else ICMPv6DestUnreach()) / ip(bytes(sent))
            yield f"lan-error-{to}{name}", [(lan0, Ether(src=here, dst=mac) / sent), answer(error)]
            yield f"lan-moved-{to}{name}", [(lan0, out / UDP(sport=1, dport=2)), (lan1, out / UDP(sport=1, dport=2)), answer(UDP(sport=2, dport=1))]
        group = ("01:00:5e:00:00:fb", "224.0.0.251") if v4 else ("33:33:00:00:00:fb", "ff02::fb")
        hello = Ether(src=here, dst=group[0]) / ip(src=me, dst=group[1]) / UDP(sport=5353, dport=5353)
        yield f"lan-group{name}", [(lan0, hello), (lan1, hello)]
        short = bytes(Ether(src=here, dst=there) / ip(src=me, dst=peer) / UDP())
        yield f"lan-truncated{name}", [(lan0, Raw(short[:20])), (lan0, Raw(short[:36]))]
    for kind, payload in ((0x8100, bytes.fromhex("00050800") + b"x" * 46), (0x88b5, b"x" * 46)):
        yield f"lan-type-{kind:x}", [(lan1, Ether(src=here, dst=mac, type=kind) / Raw(payload)) for mac in (there, "ff:ff:ff:ff:ff:ff", "02:00:00:00:00:99")] + [
            (lan0, Ether(src=there, dst=here, type=kind) / Raw(payload)), (lan1, Ether(src=here, dst=there, type=kind) / Raw(payload))]


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


def dhcp4():
    """Messages, whose fixed fields the target corrects."""
    def request(options, file=b"", sname=b""):
        return bytes([1, 1, 6, 0]) + bytes(40) + sname.ljust(64, b"\0") + file.ljust(128, b"\0") + b"c\x82Sc" + options

    address, server, end = b"\x32\x04\x0a\x01\x00\x02", b"\x36\x04\x0a\x01\x00\x01", b"\xff"
    for kind in range(1, 9):
        yield f"type-{kind}", request(bytes([53, 1, kind]) + address + server + end)
    yield "client", request(b"\x35\x01\x01\x00\x39\x02\x05\xdc\x3d\x07\x01\x02\x00\x00\x00\x01\x11\x37\x03\x01\x03\x79" + end)
    for where in range(5):
        yield f"overload-{where}", request(bytes([53, 1, 3, 52, 1, where]) + end, address + end, server + end)
    yield "overload-twice", request(b"\x35\x01\x03\x34\x01\x01" + end, b"\x34\x01\x02" + end)
    yield "overload-cut", request(b"\x35\x01\x03\x34\x01\x03" + end, b"\0" * 127 + b"\x32", b"\0" * 62 + b"\x32\x04")
    yield "sname-cut", request(b"\x35\x01\x03\x34\x01\x02" + end, b"", b"\0" * 62 + b"\x32\x04")
    for n in range(1, len(address)):
        yield f"cut-{n}", request(b"\x35\x01\x01" + address[:n])
    yield "long-type", request(b"\x35\x02\x01\x01" + end)
    yield "short-client", request(b"\x35\x01\x01\x3d\x01\x01" + end)
    yield "short", request(b"")[:239]
    yield "no-options", request(b"")


def dhcp6():
    def option(code, value=b""):
        return struct.pack(">HH", code, len(value)) + value

    client, server, address = option(1, b"\0\3\0\1" + bytes(6)), option(2, b"\0\3\0\1" + bytes(6)), option(5, bytes(24))
    na, ta, pd = option(3, b"abcd" + bytes(8) + address), option(4, b"efgh"), option(25, b"ijkl" + bytes(8))
    for kind in range(15):
        yield f"type-{kind}", bytes([kind, 1, 2, 3]) + client
        yield f"server-{kind}", bytes([kind, 1, 2, 3]) + client + server + na
    start = b"\1\1\2\3" + client
    yield "client", start + option(6, b"\0\x17\0\x18") + option(8, bytes(2)) + option(14) + na
    yield "information", b"\x0b\1\2\3" + option(6, b"\0\x17")
    yield "associations", start + ta + pd + na + option(3, b"abcd" + bytes(8) + option(13, bytes(2)) + address + address)
    yield "many", start + ta * 10
    yield "twice", start + client
    for name, value in {"odd": option(6, b"\0"), "long-duid": option(2, bytes(131)), "short-duid": option(2, bytes(2)), "short-na": option(3, bytes(11)),
                        "short-ta": option(4, bytes(3)), "short-address": option(3, bytes(12) + option(5, bytes(23))),
                        "cut-inside": option(3, bytes(12) + address[:9]), "no-header": option(3, bytes(13))}.items():
        yield name, start + value
    for n in (1, 3, 5, len(client) - 1):
        yield f"cut-{n}", start + client[:n]
    yield "short", b"\1\2\3"


def segments():
    """For fuzz_segment: packets to join (each with a byte: 1 follows, 2 right sums, 4 changed), and large segments to cut."""
    data = b"x" * 300
    tcp = TCP(sport=1000, dport=2000, flags="A", options=[("NOP", None), ("NOP", None), ("Timestamp", (1, 2))])
    for v, ip in ((4, IP(src="10.0.0.2", dst="10.0.0.3", id=7, flags="DF")), (6, IPv6(src="fd00::2", dst="fd00::3"))):
        for name, l4, l4_len in (("tcp", tcp, 32), ("udp", UDP(sport=1000, dport=2000), 8)):
            frame = bytes(Ether(type=0x800 if v == 4 else 0x86dd) / ip / l4 / data)
            first = struct.pack(">BH", 2, len(frame)) + frame
            yield f"join-{name}{v}", b"\x01" + first + b"\x03" * 3
            yield f"join-{name}{v}-changed", b"\x01" + first + b"\x03" + struct.pack("BBB", 7, 47, 8) + b"\x03" + struct.pack("BBB", 7, 15, 8)
            yield f"join-{name}{v}-wrong", b"\x01" + first + b"\x03" + struct.pack("BBB", 5, 100, 8) + b"\x03"
            yield f"cut-{name}{v}", struct.pack(">BBBBBH", 0, 14, (name == "tcp") | (v == 6) << 1, 20 if v == 4 else 40, l4_len, 100) + frame
        long = bytes(Ether(type=0x800 if v == 4 else 0x86dd) / ip / tcp / (b"x" * 7000))
        for few in (0, 1, 2, 3, 4, 5, 9):
            yield f"cut-long{v}-{few}", bytes([few << 1]) + struct.pack(">BBBBH", 14, 1 | (v == 6) << 1, 20 if v == 4 else 40, 32, 5000) + long
    frame = bytes(Ether() / Dot1Q(vlan=7) / IP(src="10.0.0.2", dst="10.0.0.3") / tcp / data)
    yield "join-tagged", b"\x01" + struct.pack(">BH", 2, len(frame)) + frame + b"\x03\x03"
    frame = bytes(Ether() / IPv6(src="fd00::2", dst="fd00::3") / IPv6ExtHdrDestOpt() / UDP() / data)
    yield "join-extension", b"\x01" + struct.pack(">BH", 0, len(frame)) + frame + b"\x01"
    yield "join-other", b"\x01" + b"".join(struct.pack(">BH", 0, len(f)) + f for f in (
        bytes(Ether() / ARP()), bytes(Ether() / IP() / ICMP()), bytes(Ether() / IPv6(src="fd00::2", dst="fd00::3") / ICMPv6EchoRequest())))


def vnet():
    """Virtio-net headers (flags, type, header length, segment size, checksum's start and offset), sizes of buffers, frames."""
    data = b"x" * 3000
    for v, ip in ((4, IP(src="10.0.0.2", dst="10.0.0.3")), (6, IPv6(src="fd00::2", dst="fd00::3"))):
        start = 14 + (20 if v == 4 else 40)
        for name, l4, kind, offset in (("tcp", TCP(flags="PA"), 1 if v == 4 else 4, 16), ("udp", UDP(), 5, 6)):
            frame = bytes(Ether() / ip / l4 / data)
            headers = start + (20 if name == "tcp" else 8)
            yield f"{name}{v}-large", struct.pack("<BBHHHH", 1, kind, headers, 1400, start, offset) + bytes([60, 0]) + frame
            yield f"{name}{v}-checksum", struct.pack("<BBHHHH", 1, 0, 0, 0, start, offset) + bytes([127, 8]) + frame
            yield f"{name}{v}-pieces", struct.pack("<BBHHHH", 1, kind, headers, 3, start, offset) + bytes([127, 8]) + frame
            yield f"{name}{v}-valid", struct.pack("<BBHHHH", 2, 0, 0, 0, 0, 0) + bytes([9, 0]) + frame
        yield f"elsewhere{v}", struct.pack("<BBHHHH", 1, 0, 0, 0, start + 8, 4) + bytes([127, 8]) + bytes(Ether() / ip / UDP() / data)
    behind = Ether() / IPv6(src="fd00::2", dst="fd00::3") / IPv6ExtHdrDestOpt() / UDP() / data
    yield "extension", struct.pack("<BBHHHH", 1, 0, 0, 0, 14 + 48, 6) + bytes([127, 0]) + bytes(behind)
    yield "tagged", struct.pack("<BBHHHH", 1, 1, 58, 1400, 38, 16) + bytes([60, 0]) + bytes(Ether() / Dot1Q() / IP() / TCP() / data)
    yield "arp", struct.pack("<BBHHHH", 1, 1, 58, 1400, 38, 16) + bytes([60, 0]) + bytes(Ether() / ARP())
    tcp = bytes(Ether() / IP(src="10.0.0.2", dst="10.0.0.3") / TCP(flags="CPA") / data)
    for name, (flags, kind, size, start, buffer) in {"ecn": (1, 0x81, 1400, 34, 0), "no-checksum": (0, 1, 1400, 34, 0), "kind": (1, 3, 1400, 34, 0),
                                                     "no-size": (1, 1, 0, 34, 0), "too-large": (1, 1, 60000, 34, 0), "elsewhere": (1, 1, 1400, 50, 0),
                                                     "short-buffer": (1, 1, 1400, 34, 3), "outside": (1, 0, 0, 4000, 0), "within-mac": (1, 0, 0, 4, 0)}.items():
        yield f"lie-{name}", struct.pack("<BBHHHH", flags, kind, 54, size, start, 16) + bytes([60, buffer]) + tcp
    for name, frame in (("version", Ether(type=0x800) / (b"\x95" + b"x" * 60)), ("extensions", Ether() / IPv6(nh=0) / (b"\x00\xff" + b"x" * 20))):
        yield f"lie-{name}", struct.pack("<BBHHHH", 1, 0, 0, 0, 34, 16) + bytes([60, 0]) + bytes(frame)


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


def rules():
    """Words of a rule: protocol, source, destination, ports, ICMP type and code, groups, meter, mirror. An odd length denies."""
    names = ("protocol", "source", "destination", "source_ports", "destination_ports", "icmp_type", "icmp_code", "source_group", "destination_group", "meter", "mirror")
    given = {"everything": ("tcp", "", "", "80", "443-444", "", "", "one", "more", "slow", "copies"), "icmp": ("icmp", "10.0.0.0/8", "", "", "", "3-5", "4"),
             "icmp6": ("58", "", "fd00::/64", "", "", "128", "0-1"), "any-any": ("any", "any", "any"), "groups": ("17", "", "", "", "53", "", "", "more", "more")}
    wrong = {"protocol": "x", "source": "10.0.0.1/8", "destination": "fd00::/200", "source_ports": "80-70", "destination_ports": "99999", "icmp_type": "256", "icmp_code": "1",
             "source_group": "absent", "destination_group": "absent", "meter": "absent", "mirror": "absent"}
    for name, words in given.items():
        yield "words-" + name, "\n".join(words).encode()
        yield "words-" + name + "-other", "\n".join(words).encode() + b"\n"
    for n, name in enumerate(names):
        words = [""] * len(names)
        words[0] = "icmp" if name.startswith("icmp") else "tcp"
        words[n] = wrong[name]
        yield "wrong-" + name, "\n".join(words).encode()
        yield "wrong-" + name + "-other", "\n".join(words).encode() + b"\n"
    for name, words in {"both": ("", "10.0.0.0/8", "", "", "", "", "", "one"), "families": ("", "10.0.0.0/8", "fd00::/8"), "icmp-ports": ("icmp", "", "", "80"),
                        "icmp-ports-to": ("icmp", "", "", "", "80"), "tcp-type": ("tcp", "", "", "", "", "3"), "tcp-code": ("tcp", "", "", "", "", "", "3"),
                        "icmp-ip6": ("icmp", "fd00::/8"), "icmp6-ip4": ("icmpv6", "", "10.0.0.0/8"), "ports": ("tcp", "", "", "80-", "x")}.items():
        yield "wrong-" + name, "\n".join(words).encode()
    yield "request", b"\xff" + message((1, message((2, 5), (3, 1), (4, "tcp"), (10, "80"), (13, 1))))


def requests():
    """For fuzz_api: frames (method, flags, stream, length of the payload, payload) of the methods that fuzz_api.c adds, and bytes of a socket."""
    def frame(method, flags, payload=b"", stream=0):
        return bytes([method, flags, stream, len(payload)]) + payload

    def raw(stream, kind, payload, flags=0):
        return struct.pack(">IIBB", len(payload), stream, kind, flags) + payload

    own, limits = 0x20, 0x40
    route = message((1, "red"), (2, "10.0.0.0/8"), (3, 7))
    huge = message((1, "red"), (3, 4242))
    for name, method in (("long", 21), ("single", 22)):
        yield name, b"\x02" + frame(method, own, route) + frame(method, own, huge)
    yield "single-fails", b"\x02" + frame(22, own, message((3, 4)))
    yield "stream", b"\x02" + frame(23, own | 1, message((1, message((1, "a"), (2, 5)))) * 3) + frame(23, own | 1, message((1, message((2, 4242)))))
    yield "stream-unary", b"\x02" + frame(23, own)
    waits = frame(15, 1, message((1, 302)))  # an odd length: it is not woken
    yield "many-streams", b"\x02" + waits * 140
    yield "user-streams", b"\xe3" + waits * 6
    yield "refused", b"\x02" + b"".join(frame(14, 0, message((1, "red"), (3, code))) for code in (0, 1, 12, 13, 16, 17, 22, 28, 34, 38, 71, 90, 95, 110, 125))
    yield "long-text", b"\x02" + frame(21, own, message((1, "red"), (2, "x" * 150)))
    yield "socket-half", bytes([1, 8, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0])
    yield "socket-long", bytes([1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0])
    for method in range(64):
        for which in range(8):
            for values in (1, 2, 3, 0x82):
                yield f"limits-{method}-{which}-{values}", bytes([3, method]) + bytes([which << 2 | values]) * 40
    yield "stream-memory", b"\x00" + raw(1, 1, message((1, "s"), (2, "x"), (3, message((1, b"")) * 1800)), 1)
    yield "too-long", b"\x00" + struct.pack(">IIBB", 5 << 20, 1, 1, 0) + b"rest"
    yield "garbage", b"\x00" + b"GET / HTTP/1.1\r\n\r\n"
    for kind, stream in ((0, 1), (2, 1), (9, 1), (1, 2), (3, 5)):
        yield f"kind-{kind}-{stream}", b"\x00" + raw(stream, kind, b"") + raw(stream, 3, b"", 1)
    for ends in range(8):
        yield f"socket-{ends}", bytes([1, ends]) + frame(22, own, route) + frame(15, 1, message((1, 700))) + frame(21, own, huge) + frame(3, 0x81, b"", 3)
    fields = [message((n, v)) for n in range(1, 24) for v in (77777, "x")]
    for method in range(40):
        for name, payload in (("none", b""), ("within", message((1, b""))), ("twice", message((1, message((1, "a"), (2, "a"))), (2, "a"), (2, "a"), (3, "absent")))):
            yield f"request-{method}-{name}", b"\x02" + frame(method, limits, payload)
        yield f"request-{method}-fields", b"\x02" + b"".join(frame(method, limits, message((1, field))) for field in fields)


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


def memif():
    """Whole packets of tunnels from a peer that has agreed to them, in one descriptor and in many, with marks that lie."""
    client, whole, ring = 1, 32, 128 + 32 * 16
    none, memfd, eventfd, memory = 0, 1, 2, 6

    def sent(kind, *values, layout, extended=False):
        body = struct.pack("<" + layout, *values).ljust(120, b"\0")[:120]
        return bytes([kind]) + body + struct.pack("<II", 0x434C414E if extended else 0, int(extended))

    def handshake(role, extended):
        if role == client:
            hello = sent(none, 2, b"peer", 0x200, 0x200, 0, 0, 0, 5, layout="H32sHHHHHB")
            return hello + sent(none, 1, layout="H") * 4 + sent(none, 7, b"peer", layout="H32s", extended=extended)
        return (sent(none, 3, 0x200, 0, 0, b"", b"peer", layout="HHIB24s32s", extended=extended) + sent(memfd, 4, 0, 65536, layout="HHQ")
                + sent(eventfd, 5, 1, 0, 0, 0, 5, 0, layout="HHHHIBH") + sent(none, 6, b"peer", layout="H32s"))

    def shared(role, frame, size, mark, flags=2):
        """What is laid over the memory: the descriptors of the frame, and their buffers."""
        pieces = [frame[i:i + size] for i in range(0, len(frame), size)]
        at, buffers, stride, room = (ring, 2 * ring + 192 * 32, 192, 128) if role == client else (0, 2048, size, 0)
        data = bytearray(65536)
        struct.pack_into("<H", data, at + (64 if role == client else 6), len(pieces))
        for i, piece in enumerate(pieces):
            more = int(i + 1 < len(pieces))
            struct.pack_into("<HHI", data, at + 128 + 16 * i, more | (flags if i == 0 else 0), 0, len(piece) ^ room)
            struct.pack_into("<I", data, at + 128 + 16 * i + 12, mark if i == 0 else 0)
            if role != client:
                struct.pack_into("<I", data, at + 128 + 16 * i + 8, buffers + i * stride)
            data[buffers + i * stride:buffers + i * stride + len(piece)] = piece
        return bytes([memory]) + bytes(data[:buffers + len(pieces) * stride])

    link = Ether(src="02:00:00:00:0f:01", dst=FABRIC)
    outer = link / IP(src="203.0.113.9", dst="192.0.2.1", flags="DF") / UDP(sport=49152, dport=4789, chksum=0) / Raw(b"\x08" + bytes(3) + b"\0\0\x64\0")
    for role in (0, client):
        for name, inner in (("tcp4", IP(src="10.0.0.2", dst="10.0.0.3") / TCP(flags="PA")), ("udp4", IP(src="10.0.0.2", dst="10.0.0.3") / UDP()),
                            ("tcp6", IPv6(src="fd00::2", dst="fd00::3") / TCP(flags="PA")), ("arp", ARP()), ("fragment", IP(frag=1) / UDP())):
            frame = bytes(outer / Ether(src=GUEST, dst=GATEWAY) / inner / Raw(b"x" * 700))
            for kind, size in (("one", 2000), ("many", 100)):
                if role == client and size > 128:
                    continue
                start = f"whole-{'client' if role else 'server'}-{name}-{kind}"
                lies = (("-none", 0), ("-all", 0xFFFFFFFF), ("-long", 50 << 16 | 700), ("-short", 50 << 16 | 1), ("-inside", 20 << 16 | 100), ("-outside", 511 << 16 | 100))
                for what, mark in (("", 50 << 16 | 100),) + (lies if name == "tcp4" else ()):
                    yield start + what, bytes([role | whole]) + handshake(role, True) + shared(role, frame, size, mark)
                opened = b"\x01" + frame[1:]  # the target opens it
                yield start + "-opened", bytes([role | whole]) + handshake(role, True) + shared(role, opened, size, 50 << 16 | 100)
                if name == "tcp4":
                    yield start + "-unmarked", bytes([role | whole]) + handshake(role, True) + shared(role, frame, size, 50 << 16 | 100, 0)
                    yield start + "-refused", bytes([role | whole]) + handshake(role, False) + shared(role, frame, size, 50 << 16 | 100)
                    yield start + "-unasked", bytes([role]) + handshake(role, True) + shared(role, frame, size, 50 << 16 | 100)


def vhost_control():
    """Each message in each state of the connection; the requests are those of the vhost-user specification."""
    ordered, everything, use = 0, 18, 128

    def sent(request, ring=0, descriptors=0, cut=0, *changes):
        return bytes([request | ring << 6, descriptors, cut // 2 << 3 | len(changes)]) + b"".join(bytes(c) for c in changes)

    for request in range(45):
        for state in (ordered, everything):
            yield f"message-{request}-{state}", bytes([state]) + sent(request) + sent(18, 1, use)
    for request in (5, 6, 7, 12, 13, 14, 21):
        for descriptors in range(1, 10):
            yield f"descriptors-{request}-{descriptors}", bytes([everything]) + sent(request, 0, descriptors | use)
    for request in (2, 5, 8, 9):
        yield f"half-{request}", bytes([everything]) + sent(request, 0, 0, 16)
        for at in range(0, 52, 4):
            yield f"changed-{request}-{at}", bytes([everything]) + sent(request, 1, use, 0, (at, 0x81))
    yield "vrings", bytes([7]) + b"".join(sent(r, n) for n in range(4) for r in (8, 10, 9, 13, 12, 18)) + sent(18, 1, use)
    yield "other-guest", bytes([everything]) + sent(18, 0, use, 0, (16, 1)) + sent(18, 0, use) + sent(11, 0, use) + sent(11, 1, use) + sent(4)
    yield "no-kick", bytes([9]) + sent(13) + sent(12, 0, 5) + sent(12, 1, 3) + sent(18, 0, use) + sent(18, 1, use)


def vhost():
    """Frames of guests that may send large segments: their bytes are XORed over those that the guest has at its start."""
    split, packed = 2 << 6 | 63, 3 << 6 | 63
    size, ring = 72, 64

    def input_of(guest, frames, lengths=()):
        fill = 1 if guest == split else 0
        data = b""
        for header, frame in frames:
            frame = bytes(frame)[:size - 12].ljust(size - 12, bytes([fill]))
            data += header + bytes(2) + bytes(b ^ fill for b in frame)
        descriptors = b"".join(bytes(8) + (size ^ n).to_bytes(4, "little") + bytes(4) for n in lengths)
        return bytes([guest]) + data.ljust(4 * size, b"\0") + descriptors.ljust(16 * ring, b"\0")

    for guest in (split, packed):
        kind = "split" if guest == split else "packed"
        yield kind, bytes([guest & ~63 | 3]) + bytes(400)
        for v, ip in ((4, IP(src="10.0.0.2", dst="10.0.0.3")), (6, IPv6(src="fd00::2", dst="fd00::3"))):
            for name, l4, offset in (("tcp", TCP(flags="PA"), 16), ("udp", UDP(), 6)):
                start, gso = 14 + (20 if v == 4 else 40), (1 if v == 4 else 4) if name == "tcp" else 5
                short = Ether() / ip / l4
                short /= Raw(b"x" * max(0, size - 12 - len(short)))
                headers = start + (20 if name == "tcp" else 8)
                cut = struct.pack("<BBHHHH", 1, gso, headers, 3, start, offset)
                checksum = struct.pack("<BBHHHH", 1, 0, 0, 0, start, offset)
                yield f"{kind}-{name}{v}", input_of(guest, [(cut, short), (checksum, short), (struct.pack("<BBHHHH", 2, 0, 0, 0, 0, 0), short)])
                for length in (4000, 30000, 60000, 65000):
                    long = bytes(Ether() / ip / l4 / Raw(b"x" * (length - 12 - headers)))
                    cut = struct.pack("<BBHHHH", 1, gso, headers, 1400, start, offset)
                    yield f"{kind}-{name}{v}-{length}", input_of(guest, [(cut, long)] * 4, [length] * 8)
        lies = [struct.pack("<BBHHHH", 1, gso, 54, size, start, 16) for gso in (0, 1, 4, 0x81) for size in (0, 3, 60000) for start in (0, 20, 34, 3000)]
        for n in range(0, len(lies), 4):
            yield f"{kind}-lies-{n}", input_of(guest, [(lie, Ether() / IP() / TCP() / Raw(b"x" * 6)) for lie in lies[n:n + 4]])
        yield f"{kind}-arp", input_of(guest, [(struct.pack("<BBHHHH", 1, gso, 54, 3, 34, 16), Ether() / ARP()) for gso in (0, 1)])


def variants(frames):
    """The same frames to a worker without a free buffer, to a busy one, and many of them."""
    for name, port, frame in frames:
        yield name + "-empty", bytes([port, FIX_ALL | EMPTY, 0]) + bytes(frame)
        yield name + "-busy", bytes([port, FIX_ALL | BUSY, 0]) + bytes(frame)
        yield name + "-often", bytes([port]) + OFTEN + bytes(frame)


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def fabric_sequences():
    """A host behind one tunnel, then behind another one, or on a port; packets for the kernel, while who sends them changes."""
    host = Ether(src="02:00:00:00:0f:02", dst="02:00:00:00:f0:02") / Dot1Q(vlan=100) / IP(src="203.0.114.9", dst="198.51.100.1") / UDP(dport=53)
    yield "host-worker-changes", [(1, host, BUSY), (1, host), (1, host, BUSY), (1, host, BUSY)]
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
    """An input of several frames, each with a port, and how, if not as usual."""
    data = b""
    for n, (port, frame, *how) in enumerate(frames, 1):
        frame, how = bytes(frame), bytes([FIX_ALL | sum(how), 255 if sum(how) == BUSY | EMPTY else 0])
        data += bytes([port]) + how if n == len(frames) else bytes([port, how[0] | MORE, how[1]]) + len(frame).to_bytes(2, "big")
        data += frame
    return data


def main():
    base = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus")
    for folder, frames_of in (("tenant", tenant), ("fabric", fabric)):
        for name, port, frame in frames_of():
            write(base / folder, name, bytes([port, FIX_ALL, 0]) + bytes(frame))
            if name in ("route4-0", "fragment", "mplsoudp-big", "vxlan-frame-ip", "bridge-flood"):
                write(base / folder, name + "-split", bytes([port, FIX_ALL | SPLIT, 90]) + bytes(frame))
        for name, data in variants(frames_of()):
            write(base / folder, name, data)
    for folder, sequences in (("tenant", tenant_sequences()), ("fabric", fabric_sequences()), ("flow", flow_sequences()), ("vlan", vlans())):
        for name, frames in sequences:
            write(base / folder, name, sequence(frames))
    for folder, inputs in (("translate", translate()), ("mss", mss()), ("vnet", vnet()), ("segment", segments()), ("dhcp4", dhcp4()), ("dhcp6", dhcp6()), ("boot", boots()), ("snoop", memberships()),
                           ("port", ports()), ("flow_filter", flow_filters()),
                           ("capture_filter", capture_filters()), ("options", options()), ("rules", rules()), ("api", requests()), ("vhost_control", vhost_control()),
                           ("vhost", vhost()), ("memif", memif())):
        for name, data in inputs:
            write(base / folder, name, data)


main()
