# SPDX-License-Identifier: Apache-2.0
"""Packets made with scapy, and their comparison with those that the router sent."""
import difflib
import struct

from scapy.config import conf
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw
from scapy.utils import checksum as internet_checksum

from router import GATEWAY_MAC, ROUTER_MAC
from topology import FAB0, FAB0_MAC, HOST, HOST_MAC, RED, REMOTE_ROUTER_MAC, UDP_PORT, vni

conf.ipv6_enabled = True
PAYLOAD = bytes(range(64))


def ip(family, src, dst, ttl=64, tos=0, **fields):
    """An IP header of either family; src and dst may be given by family."""
    src = src if isinstance(src, str) else src[family]
    dst = dst if isinstance(dst, str) else dst[family]
    if family == 4:
        return IP(src=src, dst=dst, ttl=ttl, tos=tos, **fields)
    return IPv6(src=src, dst=dst, hlim=ttl, tc=tos, **fields)


def udp_packet(family, src, dst, sport=1234, dport=5678, payload=PAYLOAD, **fields):
    return ip(family, src, dst, **fields) / UDP(sport=sport, dport=dport) / Raw(payload)


def from_guest(guest, packet):
    return Ether(src=guest["mac"], dst=GATEWAY_MAC) / packet


def to_guest(guest, packet):
    return Ether(src=GATEWAY_MAC, dst=guest["mac"]) / packet


def forwarded(packet, **changes):
    """The same IP packet one hop later, with new checksums."""
    p = packet.copy()
    if isinstance(p, IP):
        p.ttl -= 1
    else:
        p.hlim -= 1
    for name, value in changes.items():
        setattr(p, name, value)
    if isinstance(p, IP):
        del p.chksum
    return p


def shim(encap, tag, ttl=64, to_router=ROUTER_MAC, from_router=REMOTE_ROUTER_MAC):
    """The headers between the outer UDP or GRE header and the inner IP packet."""
    if encap == "vxlan":
        return VXLAN(flags="Instance", vni=vni(tag)) / Ether(src=from_router, dst=to_router)
    if encap == "geneve":
        return GENEVE(vni=vni(tag), proto=0x6558) / Ether(src=from_router, dst=to_router)
    return MPLS(label=tag, s=1, ttl=ttl)


def carrier(encap, under, sport=50000, checksum=..., dport=None, **gre):
    """The header behind the outer IP header. checksum: None computes it; by default it is as the router sends it."""
    if encap == "mplsogre":
        return GRE(proto=0x8847, **gre)
    if checksum is ...:
        checksum = None if under == 6 else 0
    return UDP(sport=sport, dport=dport or UDP_PORT[encap], chksum=checksum)


def from_host(encap, under, packet, tag=RED, ttl=64, tos=0, label_ttl=64, **carried):
    """A packet as the host on the underlay sends it through a tunnel."""
    if encap != "mplsogre" and under == 6:
        carried.setdefault("checksum", None)
    return (Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0, ttl=ttl, tos=tos) / carrier(encap, under, **carried) /
            shim(encap, tag, ttl=label_ttl) / packet)


def to_host(encap, under, packet, seen, tag=RED, ttl=64, tos=0, label_ttl=64, **carried):
    """The frame that the router should have sent to that host. Its entropy is copied from the frame that was received."""
    got = Ether(seen)
    header = ip(under, FAB0, HOST, ttl=ttl, tos=tos)
    if under == 4:
        header.flags, header.id = "DF", 0
    else:
        header.fl = got[IPv6].fl
    if encap != "mplsogre":
        carried.setdefault("sport", got[UDP].sport)
    return (Ether(src=FAB0_MAC, dst=HOST_MAC) / header / carrier(encap, under, **carried) /
            shim(encap, tag, ttl=label_ttl, to_router=REMOTE_ROUTER_MAC, from_router=ROUTER_MAC) / packet)


def lines(packet):
    return packet.show(dump=True).splitlines()


def assert_same(expected, data):
    """Compares byte for byte; an error names the fields that differ."""
    raw = bytes(expected)
    if raw == data:
        return
    diff = list(difflib.unified_diff(lines(expected.__class__(raw)), lines(expected.__class__(data)), "expected", "got",
                                     lineterm="", n=1))
    raise AssertionError("\n".join(["the frame is not the expected one:", *diff, f"expected {raw.hex()}",
                                    f"got      {data.hex()}"]))


def summary_of(out):
    return f"{len(out)} frames: {[(o.port, o.packet.summary()) for o in out[:8]]}"


def assert_out(out, *expected, ordered=True):
    """Asserts that exactly these (port, packet) came out, those of one port in this order. ordered=False: in any order, because
    IPv4 and IPv6 have separate nodes and may overtake each other."""
    summary = summary_of(out)
    assert len(out) == len(expected), f"came out: {summary}"
    for port in {p for p, _ in expected}:
        frames = [o.data for o in out if o.port == port]
        wanted = [e for p, e in expected if p == port]
        assert len(frames) == len(wanted), f"came out: {summary}"
        if not ordered:
            frames, wanted = sorted(frames), sorted(wanted, key=bytes)
        for w, f in zip(wanted, frames):
            assert_same(w, f)


def assert_nothing(out):
    assert not out, f"came out: {summary_of(out)}"


def checksum_ok(packet, layer):
    """The layer's checksum is the one that scapy computes."""
    p = packet.copy()
    seen = p[layer].chksum
    del p[layer].chksum
    return p.__class__(bytes(p))[layer].chksum == seen


def with_udp6_checksum(frame, l3=14):
    """The frame with the checksum of its outer UDP header computed anew, if that is over IPv6."""
    data, l4 = bytearray(bytes(frame)), l3 + 40
    if data[l3 - 2:l3] != b"\x86\xdd" or len(data) < l4 + 8 or data[l3 + 6] != 17:
        return bytes(data)
    length = int.from_bytes(data[l4 + 4:l4 + 6], "big")
    data[l4 + 6:l4 + 8] = bytes(2)
    struct.pack_into("!H", data, l4 + 6,
                     internet_checksum(bytes(data[l3 + 8:l4]) + struct.pack("!II", length, 17) + bytes(data[l4:l4 + length])) or 0xffff)
    return bytes(data)


def cut(frame, n, l3=14, fix=False):
    """The first n bytes of a frame; `fix` adapts the lengths in the outermost IP header and in a UDP header behind it."""
    data = bytearray(bytes(frame)[:n])
    four = data[l3 - 2:l3] == b"\x08\x00"
    l4 = l3 + (20 if four else 40)
    if not fix or n < l4:
        return bytes(data)
    struct.pack_into("!H", data, l3 + (2 if four else 4), n - l3 if four else n - l4)
    if four:
        header = IP(bytes(data[l3:l4]))
        del header.chksum
        data[l3:l4] = bytes(header)[:20]
    if data[l3 + (9 if four else 6)] == 17 and n >= l4 + 8:
        struct.pack_into("!H", data, l4 + 4, n - l4)
    return with_udp6_checksum(data, l3)
