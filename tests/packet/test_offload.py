# SPDX-License-Identifier: Apache-2.0
"""Large segments and unfinished checksums, as guests with offloads hand them over and take them. What must come out is said by
pieces(), which cuts a segment as RFC 9293 and Linux do: a port that takes large segments gets them whole, every other one the pieces.
"""
import json
import subprocess

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, ICMPv6TimeExceeded
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import checksum as internet_checksum

from packets import assert_nothing, assert_out, assert_same, forwarded, from_guest, from_host, ip, summary_of, to_guest, to_host
from router import NO_MARKS, Marks
from topology import FAMILIES, GATEWAY, OVERLAYS
from waiting import wait_until
from tshark import assert_sound, numbers, read_frames

NEEDS_CHECKSUM = 1
TCP4, TCP6, UDP_L4, ECN = 1, 4, 5, 0x80
G1 = {4: "10.1.0.51", 6: "fd00:1::51", "mac": "02:00:00:00:06:11"}
G2 = {4: "10.1.0.52", 6: "fd00:1::52", "mac": "02:00:00:00:06:12"}
G3 = {4: "10.1.0.53", 6: "fd00:1::53", "mac": "02:00:00:00:06:13"}
S1 = {4: "10.1.0.54", 6: "fd00:1::54", "mac": "02:00:00:00:06:14"}
S2 = {4: "10.1.0.55", 6: "fd00:1::55", "mac": "02:00:00:00:06:15"}
OUTSIDE = {4: "198.51.100.8", 6: "2001:db8:f::8"}
# Guests g1 and g2 take whatever virtio has, g3 takes nothing; s1 and s2 keep flows.
PORTS = {"g1": (G1, "all", None), "g2": (G2, "all", None), "g3": (G3, "none", None), "s1": (S1, "all", True), "s2": (S2, "all", True)}
LAN = {"lan1": "all", "lan2": "all", "lan3": "none"}
LABEL = 1060
SIZE = 1000  # bytes of a piece
DATA = bytes(i * 7 & 0xff for i in range(3 * SIZE + 500))
KINDS = ("tcp", "udp")


@pytest.fixture(scope="module", name="bulk")
def new_bulk(network):
    r = network.router
    r.cli("vrf", "add", "bulk")
    for name, (g, offload, stateful) in PORTS.items():
        options = {} if stateful is None else {"stateful": stateful}
        r.add_tenant(name, "--offload", offload, vrf="bulk", gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(g[4], g[6]),
                     guest_mac=g["mac"], **options)
        r.taps[name].use_marks()
    r.cli("label", "add", LABEL, "vrf", "bulk")
    r.cli("vni", "add", LABEL + 4000, "vrf", "bulk")
    yield network
    for name in PORTS:
        r.del_port(name)


def large(family, src, dst, kind="tcp", data=DATA, flags="A", **fields):
    """A packet that is larger than any MTU."""
    if family == 4:
        fields = {"id": 65534, "flags": "DF", **fields}
    l4 = UDP(sport=4000, dport=5000) if kind == "udp" else TCP(sport=4000, dport=5000, seq=0xfffff000, ack=7, flags=flags, window=99,
                                                                options=[("NOP", None), ("NOP", None), ("Timestamp", (1, 2))])
    return ip(family, src, dst, **fields) / l4 / Raw(data)


def pieces(packet, size=SIZE):
    """What the sender would have sent without segmentation offload."""
    whole = packet.__class__(bytes(packet))
    l4 = whole.payload
    data, tcp = bytes(l4.payload), isinstance(l4, TCP)
    cut = []
    for i, at in enumerate(range(0, len(data), size)):
        p = whole.copy()
        p.payload.remove_payload()
        p = p / Raw(data[at:at + size])
        if isinstance(p, IP):
            p.id = (p.id + i) & 0xffff
            del p.len, p.chksum
        else:
            del p.plen
        del p.payload.chksum
        if tcp:
            p.payload.seq = (p.payload.seq + at) & 0xffffffff
            without = ("C" if i > 0 else "") + ("FP" if at + size < len(data) else "")
            p.payload.flags = "".join(f for f in str(p.payload.flags) if f not in without)
        else:
            del p.payload.len
        cut.append(p)
    return cut


def unfinished(frame, l3=14):
    """The frame with the sum of the pseudo header where the checksum belongs."""
    data = bytearray(bytes(frame))
    v4 = data[l3] >> 4 == 4
    l4 = l3 + (20 if v4 else 40)
    protocol = data[l3 + (9 if v4 else 6)]
    at = l4 + (16 if protocol == 6 else 6)
    addresses = data[l3 + 12:l4] if v4 else data[l3 + 8:l4]
    pseudo = bytes(addresses) + bytes([0, protocol]) + (len(data) - l4).to_bytes(4, "big")
    data[at:at + 2] = (internet_checksum(pseudo) ^ 0xffff).to_bytes(2, "big")
    return bytes(data)


def marks_of(frame, size=SIZE, l3=14):
    """The marks that belong to an unfinished frame; it is a large segment unless size is 0."""
    v4, l4 = frame[l3] >> 4 == 4, l3 + (20 if frame[l3] >> 4 == 4 else 40)
    tcp = frame[l3 + (9 if v4 else 6)] == 6
    kind = (TCP4 if v4 else TCP6) if tcp else UDP_L4
    if tcp and frame[l4 + 13] & 0x80:
        kind |= ECN
    header = l4 + ((frame[l4 + 12] >> 4) * 4 if tcp else 8)
    return Marks(NEEDS_CHECKSUM, kind if size else 0, header if size else 0, size, l4, 16 if tcp else 6)


def handed_over(frame, size=SIZE, l3=14):
    """The pair that Router.run() takes."""
    data = unfinished(frame, l3)
    return data, marks_of(data, size, l3)


def assert_whole(out, port, frame, size=SIZE, l3=14):
    """One frame came out of the port, with its marks. How long the headers are is only a hint, and the kernel's own."""
    data, marks = handed_over(frame, size, l3)
    got = [o for o in out if o.port == port]
    assert len(got) == 1, f"came out: {summary_of(out)}"
    assert_same(Ether(data), got[0].data)
    assert got[0].marks._replace(header_len=0) == marks._replace(header_len=0)


def assert_pieces(out, port, guest, cut):
    assert_out([o for o in out if o.port == port], *((port, to_guest(guest, p)) for p in cut))
    assert all(o.marks == NO_MARKS for o in out if o.port == port)


def cut_again(out, l3=14):
    """The packets of all frames, large ones cut: how many of a tunnel's packets are joined depends on when they came."""
    return [p for o in out for p in (pieces(o.packet.payload, o.marks.gso_size) if o.marks.gso_size else [finished(o, l3)])]


def finished(o, l3):
    packet = Ether(o.data).payload
    if o.marks.flags & NEEDS_CHECKSUM:
        del packet.payload.chksum
    return packet.__class__(bytes(packet))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_whole_between_ports(bulk, router, family, kind):
    packet = large(family, G1, G2, kind)
    with router.drops():
        out = router.run("g1", handed_over(from_guest(G1, packet)))
    assert len(out) == 1
    assert_whole(out, "g2", to_guest(G2, forwarded(packet)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_cut_for_a_port_without_offloads(bulk, router, family, kind):
    packet = large(family, G1, G3, kind)
    with router.drops():
        out = router.run("g1", handed_over(from_guest(G1, packet)))
    assert len(out) == 4
    assert_pieces(out, "g3", G3, pieces(forwarded(packet)))


@pytest.mark.parametrize("flags", ["SA", "FA", "PA", "FPA", "CA", "CEFPA", "UA"])
@pytest.mark.parametrize("family", FAMILIES)
def test_flags(bulk, router, family, flags):
    """CWR is in the first piece, FIN and PSH are in the last one, everything else is in each."""
    packet = large(family, G1, G3, flags=flags)
    out = router.run("g1", handed_over(from_guest(G1, packet)))
    assert_pieces(out, "g3", G3, pieces(forwarded(packet)))


@pytest.mark.parametrize("n", [1, SIZE + 1, 2 * SIZE, 40 * SIZE + 1, 60000])
def test_lengths(bulk, router, n):
    packet = large(4, G1, G3, data=bytes(range(250)) * 240)
    packet[Raw].load = packet[Raw].load[:n]
    out = router.run("g1", handed_over(from_guest(G1, packet)))
    assert_pieces(out, "g3", G3, pieces(forwarded(packet)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_unfinished_checksum(bulk, router, family, kind):
    """It stays unfinished for who computes checksums, and is computed for who does not."""
    for data in (b"", b"x", b"odd", DATA[:1400]):
        for guest, port in ((G2, "g2"), (G3, "g3")):
            packet = large(family, G1, guest, kind, data=data)
            with router.drops():
                out = router.run("g1", handed_over(from_guest(G1, packet), size=0))
            if port == "g2":
                assert_whole(out, port, to_guest(G2, forwarded(packet)), size=0)
            else:
                assert_out(out, ("g3", to_guest(G3, forwarded(packet))))
                assert out[0].marks == NO_MARKS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", FAMILIES)
@pytest.mark.parametrize("under", FAMILIES)
@pytest.mark.parametrize("encap", OVERLAYS)
def test_cut_for_a_tunnel(bulk, router, encap, under, inner, kind):
    """Each piece has its own outer header, which is that of an ordinary packet."""
    packet = large(inner, G1, bulk.tunnel(encap, under, vrf="bulk", tag=LABEL), kind, flags="CPA", tos=2)
    with router.drops():
        out = router.run("g1", handed_over(from_guest(G1, packet)))
    cut = pieces(forwarded(packet))
    assert len(out) == len(cut)
    assert_out(out, *(("fab0", to_host(encap, under, p, o.data, tag=LABEL, tos=2)) for p, o in zip(cut, out)))
    if encap != "mplsogre":
        assert len({o.packet[UDP].sport for o in out}) == 1  # they take one path


FIRST, MIDDLE, LAST = 0xd0, 0x50, 0x59  # CWR ECE ACK, ECE ACK, ECE ACK PSH FIN


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", FAMILIES)
def test_tshark_agrees(bulk, router, inner, kind, tmp_path):
    """What a tunnel of each kind carries, as somebody else's implementation reads it: that is what a sender without offloads sends."""
    tunnels = [(encap, under) for encap in OVERLAYS for under in FAMILIES]
    frames = []
    for encap, under in tunnels:
        packet = large(inner, G1, bulk.tunnel(encap, under, vrf="bulk", tag=LABEL), kind, flags="CEFPA", tos=2)
        frames += [o.data for o in router.run("g1", handed_over(from_guest(G1, packet)))]
    seen = read_frames(frames, tmp_path / "wire.pcap")
    assert len(seen) == 4 * len(tunnels)
    for i, frame in enumerate(seen):
        encap, under, piece = *tunnels[i // 4], i % 4
        inside = assert_sound(frame, encap, under, inner)
        assert inside == (20 if inner == 4 else 40) + (8 if kind == "udp" else 32) + (500 if piece == 3 else SIZE)
        if under == 4:  # its id means nothing (RFC 6864)
            assert numbers(frame, "ip.id")[0] == 0 and frame["ip.flags.df"][0] == "1"
        if inner == 4:
            assert numbers(frame, "ip.id")[-1] == (65534 + piece) & 0xffff
            assert set(frame["ip.dsfield.ecn"]) == {"2"} and frame["ip.flags.df"][-1] == "1"
        if kind == "tcp":
            assert numbers(frame, "tcp.seq_raw") == [0xfffff000 + piece * SIZE & 0xffffffff]
            assert numbers(frame, "tcp.flags") == [(FIRST, MIDDLE, MIDDLE, LAST)[piece]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", FAMILIES)
@pytest.mark.parametrize("encap", OVERLAYS)
def test_unfinished_checksum_into_a_tunnel(bulk, router, encap, inner, kind):
    packet = large(inner, G1, bulk.tunnel(encap, 4, vrf="bulk", tag=LABEL), kind, data=b"odd")
    out = router.run("g1", handed_over(from_guest(G1, packet), size=0))
    assert_out(out, ("fab0", to_host(encap, 4, forwarded(packet), out[0].data, tag=LABEL)))


@pytest.mark.parametrize("port,guest", [("g2", G2), ("g3", G3)])
@pytest.mark.parametrize("inner", FAMILIES)
@pytest.mark.parametrize("encap", OVERLAYS)
def test_from_a_tunnel(bulk, router, encap, inner, port, guest):
    """Packets of a connection that are joined on their way are the same ones when they are cut again."""
    remote = bulk.tunnel(encap, 4, vrf="bulk", tag=LABEL)
    cut = pieces(large(inner, remote, guest, flags="PA"))
    with router.drops():
        out = router.run("fab0", *(from_host(encap, 4, p, tag=LABEL) for p in cut), fence="t1")
    assert all(o.port == port for o in out)
    assert [bytes(p) for p in cut_again(out)] == [bytes(forwarded(p)) for p in cut]
    assert port == "g2" or all(o.marks == NO_MARKS for o in out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_address_translation(bulk, router, family, kind):
    """Both directions, whole and in pieces: the pseudo header's sum and the finished checksums follow the addresses."""
    remote = bulk.tunnel("mplsoudp", 4, vrf="bulk", tag=LABEL)
    router.cli("nat", "add", 300, "floating", G1[family], OUTSIDE[family], "--vrf", "bulk")
    try:
        packet = large(family, G1, remote, kind, tos=1)
        out = router.run("g1", handed_over(from_guest(G1, packet)))
        cut = pieces(forwarded(packet, src=OUTSIDE[family]))
        assert_out(out, *(("fab0", to_host("mplsoudp", 4, p, o.data, tag=LABEL, tos=1)) for p, o in zip(cut, out)))
        short = large(family, G1, remote, kind, data=b"odd", tos=1)
        out = router.run("g1", handed_over(from_guest(G1, short), size=0))
        p = pieces(forwarded(short, src=OUTSIDE[family]))[0]
        assert_out(out, ("fab0", to_host("mplsoudp", 4, p, out[0].data, tag=LABEL, tos=1)))
        back = pieces(large(family, remote, OUTSIDE, kind))
        for p in back:
            p.payload.sport, p.payload.dport = 5000, 4000
            del p.payload.chksum
        out = router.run("fab0", *(from_host("mplsoudp", 4, p, tag=LABEL) for p in back), fence="t1")
        expected = []
        for p in back:
            e = forwarded(p, dst=G1[family])
            del e.payload.chksum
            expected.append(bytes(e))
        assert [bytes(p) for p in cut_again(out)] == expected and {o.port for o in out} == {"g1"}
        local = large(family, G1, G2, kind)
        out = router.run("g1", handed_over(from_guest(G1, local)))
        assert len(out) == 1 and out[0].port == "g2" and out[0].marks.gso_size == SIZE
        source = G1[family] if out[0].packet.payload.src == G1[family] else OUTSIDE[family]
        assert_whole(out, "g2", to_guest(G2, forwarded(local, src=source)))
    finally:
        router.cli("nat", "del", 300)
        router.cli("flow", "flush", "--all")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_rules(bulk, router, family, kind):
    """A large segment is decided once, as the one packet that it is to its guest; the reply passes."""
    router.cli("rule-list", "add", "some", "--default-action", "deny")
    router.cli("rule", "add", "some", 10, "allow", "--protocol", kind, "--destination-ports", "5000")
    router.cli("port", "set", "s1", "--egress-rules", "some")
    try:
        packet = large(family, S1, S2, kind, flags="A")
        for _ in range(2):
            with router.drops():
                assert_whole(router.run("s1", handed_over(from_guest(S1, packet))), "s2", to_guest(S2, forwarded(packet)))
        back = large(family, S2, S1, kind)
        back.payload.sport, back.payload.dport = 5000, 4000
        with router.drops():
            assert_whole(router.run("s2", handed_over(from_guest(S2, back))), "s1", to_guest(S1, forwarded(back)))
        other = large(family, S1, S2, kind)
        other.payload.dport = 5001
        with router.drops(flow_denied_egress=1):
            assert_nothing(router.run("s1", handed_over(from_guest(S1, other))))
    finally:
        router.cli("port", "set", "s1", "--egress-rules=")
        router.cli("rule-list", "del", "some")
        router.cli("flow", "flush", "--all")


@pytest.mark.parametrize("family", FAMILIES)
def test_meter(bulk, router, family):
    """A segment that is larger than the burst passes whole, and the next ones wait for its tokens."""
    router.cli("meter", "add", "slow", "--bit-rate", 8000, "--burst-bytes", 9600)
    router.cli("port", "set", "s1", "--egress-meter", "slow")
    try:
        packet = large(family, S1, S2, data=bytes(20000))
        with router.drops(meter_exceeded=2):
            out = router.run("s1", *[handed_over(from_guest(S1, packet))] * 3)
        assert_whole(out, "s2", to_guest(S2, forwarded(packet)))
    finally:
        router.cli("port", "set", "s1", "--egress-meter", "")
        router.cli("meter", "del", "slow")
        router.cli("flow", "flush", "--all")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["g2", "g3", "tunnel"])
@pytest.mark.parametrize("family", FAMILIES)
def test_mirror(bulk, router, family, target, kind):
    """The copy is what the target takes; the packet itself stays whole."""
    if target == "tunnel":
        router.cli("mirror", "add", "copies", "--vxlan", "192.0.2.2", "--vni", 77)
    else:
        router.cli("mirror", "add", "copies", "--port", target)
    router.cli("port", "set", "s1", "--mirror", "copies")
    router.settle()
    try:
        for data, size in ((DATA, SIZE), (b"odd", 0)):
            packet = large(family, S1, S2, kind, data=data)
            out = router.run("s1", handed_over(from_guest(S1, packet), size=size))
            assert_whole(out, "s2", to_guest(S2, forwarded(packet)), size=size)
            copies = [o for o in out if o.port != "s2"]
            if target == "g2":
                assert_whole(copies, "g2", from_guest(S1, packet), size=size)
                continue
            inside = [bytes(o.packet[UDP].payload.payload) if target == "tunnel" else o.data for o in copies]
            assert inside == [bytes(from_guest(S1, p)) for p in pieces(packet)]
    finally:
        router.cli("port", "set", "s1", "--mirror", "")
        router.cli("mirror", "del", "copies")
        router.cli("flow", "flush", "--all")


def captured(router, port, points, frame):
    """The first packet that a capture of this port sees while the frame is sent again and again."""
    daemon = router.daemon
    command = [daemon.cli_path, "--socket", daemon.socket, "capture", "--port", port, points, "--count", "1", "-o", "json", "--filter",
               "port 5000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
        try:
            wait_until("a captured packet", lambda: (router.run("g1", frame), p.poll())[1], lambda code: code is not None, pause=0)
        finally:
            p.terminate()
        return json.loads(p.stdout.readline())


@pytest.mark.parametrize("family", FAMILIES)
def test_captures_tell_large_segments(bulk, router, family):
    whole = large(family, G1, G2)
    for port, points in (("g1", "--rx"), ("g2", "--tx")):
        seen = captured(router, port, points, handed_over(from_guest(G1, whole)))
        assert (seen["segment_size"], seen["checksum_unfinished"]) == (SIZE, True)
    small = large(family, G1, G3, data=b"x")
    seen = captured(router, "g1", "--rx", handed_over(from_guest(G1, small), size=0))
    assert (seen["segment_size"], seen["checksum_unfinished"]) == (0, True)
    for packet in (whole, small):  # g3 takes ordinary packets
        seen = captured(router, "g3", "--tx", handed_over(from_guest(G1, large(family, G1, G3, data=bytes(packet[Raw]))),
                                                          size=SIZE if packet is whole else 0))
        assert (seen["segment_size"], seen["checksum_unfinished"]) == (0, False)


LONGER = {"tcp": 1400, "udp": 1430}  # bytes of pieces whose packets are longer than a tunnel's MTU of 1450, and not than their port's


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_above_the_mtu(bulk, router, family, kind):
    """One error with the MTU of the path, however many pieces there are."""
    remote = bulk.tunnel("vxlan", 4, vrf="bulk", tag=LABEL)
    packet = large(family, G1, remote, kind)
    with router.drops(ip_too_big=1):
        out = router.run("g1", handed_over(from_guest(G1, packet), size=LONGER[kind]))
    assert len(out) == 1 and out[0].port == "g1"
    error = out[0].packet.payload
    assert (error.src, error.dst) == (GATEWAY[family], G1[family])
    assert (error[ICMP].nexthopmtu if family == 4 else error[ICMPv6PacketTooBig].mtu) == 1450


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_that_may_be_fragmented(bulk, router, kind):
    """Without DF each piece is fragmented by itself."""
    remote = bulk.tunnel("vxlan", 4, vrf="bulk", tag=LABEL)
    packet = large(4, G1, remote, kind)
    packet.flags = 0
    with router.drops():
        out = router.run("g1", handed_over(from_guest(G1, packet), size=LONGER[kind]))
    inner = [Ether(bytes(o.packet[UDP].payload.payload)).payload for o in out]
    by_id = {}
    for p in inner:
        by_id.setdefault(p.id, []).append(p)
    cut = pieces(forwarded(packet), LONGER[kind])
    assert [len(f) for f in by_id.values()] == [2 if len(p) > 1450 else 1 for p in cut]
    for p in cut:
        got = sorted(by_id[p.id], key=lambda f: f.frag)
        assert b"".join(bytes(f)[20:] for f in got) == bytes(p)[20:]


@pytest.mark.parametrize("family", FAMILIES)
def test_mss_of_an_unfinished_syn(bulk, router, family):
    """A kernel leaves the checksum of its SYN to be computed, too: the smaller MSS is in what is computed."""
    router.cli("port", "set", "g1", "--mss-clamp", 1000)
    try:
        for guest, port in ((G2, "g2"), (G3, "g3")):
            packet = ip(family, G1, guest) / TCP(sport=4000, dport=5000, seq=1, flags="S", options=[("MSS", 1460)])
            with router.drops():
                out = router.run("g1", handed_over(from_guest(G1, packet), size=0))
            expected = forwarded(packet)
            expected[TCP].options = [("MSS", 1000)]
            if port == "g2":
                assert_whole(out, port, to_guest(guest, expected), size=0)
            else:
                assert_out(out, (port, to_guest(guest, expected)))
                assert out[0].marks == NO_MARKS
    finally:
        router.cli("port", "set", "g1", "--mss-clamp", 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_time_exceeded(bulk, router, family):
    packet = large(family, G1, G2, ttl=1)
    with router.drops(ip_ttl_exceeded=1):
        out = router.run("g1", handed_over(from_guest(G1, packet)))
    assert len(out) == 1 and out[0].port == "g1"
    error = out[0].packet.payload
    assert error[ICMP].type == 11 if family == 4 else ICMPv6TimeExceeded in error


@pytest.fixture(name="lan")
def new_lan(bulk, router):
    """A bridge of two ports that take large segments and one that does not, and a remote end."""
    end = bulk.new_id()
    router.cli("nexthop", "add", end, "tunnel", "--encap", "vxlan", "--remote", "192.0.2.2", "--vni", 6060)
    router.cli("bridge", "add", "bulk-lan", "--flood", end)
    for name, offload in LAN.items():
        router.cli("port", "add", name, "tenant", "tap", "--bridge", "bulk-lan", "--offload", offload)
        router.attach(name, None)
        router.taps[name].use_marks()
    yield
    for name in LAN:
        router.del_port(name)
    router.cli("bridge", "del", "bulk-lan")
    router.cli("nexthop", "del", end)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_flood(lan, router, family, kind):
    """Each receiver gets the same segment in the form that it takes, with and without a tag of the guest's own."""
    packet = large(family, {4: "192.168.0.1", 6: "fd77::1"}, {4: "192.168.0.2", 6: "fd77::2"}, kind)
    for tag in ((), (Dot1Q(vlan=9),)):
        link = Ether(src="02:00:00:00:61:01", dst="ff:ff:ff:ff:ff:ff")
        for t in tag:
            link = link / t
        l3 = len(bytes(link))
        out = router.run("lan1", handed_over(link / packet, l3=l3), fence="t1")
        frames = [bytes(link / p) for p in pieces(packet)]
        assert_whole(out, "lan2", link / packet, l3=l3)
        assert [o.data for o in out if o.port == "lan3"] == frames
        assert [bytes(o.packet[UDP].payload.payload) for o in out if o.port == "fab0"] == frames
        assert len(out) == 1 + 2 * len(frames)
