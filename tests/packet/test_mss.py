# SPDX-License-Identifier: Apache-2.0
"""TCP MSS clamp: fixed and computed, in both directions of a guest's port, with correct checksums."""
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.packet import Raw

from packets import assert_nothing, assert_out, forwarded, from_guest, from_host, to_guest, to_host
from router import STATEFUL
from topology import FAMILIES, T1, T2

OVERHEAD = {("mplsoudp", 4): 32, ("mplsogre", 6): 48, ("vxlan", 4): 50, ("vxlan", 6): 70}
HEADERS = {4: 40, 6: 60}
PADS = {"even": [], "odd": [("NOP", None)], "behind others": [("Timestamp", (1, 2)), ("NOP", None), ("SAckOK", b"")]}


def syn(family, src, dst, mss, pad="even", flags="S", **fields):
    header = IP(src=src[family], dst=dst[family], **fields) if family == 4 else IPv6(src=src[family], dst=dst[family], **fields)
    options = PADS[pad] + ([("MSS", mss)] if mss is not None else []) + [("WScale", 7)]
    return header / TCP(sport=1000, dport=80, seq=12345, flags=flags, options=options) / Raw(b"")


def clamped(packet, mss):
    """The same packet one hop later with this MSS and a new checksum."""
    p = forwarded(packet)
    p[TCP].options = [(name, mss if name == "MSS" else value) for name, value in p[TCP].options]
    del p[TCP].chksum
    return p


@pytest.fixture
def clamp(router):
    def set_to(port, value):
        router.cli("port", "set", port, "--mss-clamp", value)
        changed.add(port)

    changed = set()
    yield set_to
    for port in changed:
        router.cli("port", "set", port, "--mss-clamp", 0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pad", PADS)
def test_fixed(network, router, clamp, family, pad):
    """The clamp of the sender's port and of the receiver's apply; a smaller MSS is unchanged."""
    cases = [(m, min(m, 1000)) for m in (1, 255, 256, 999, 1000, 1001, 1460, 65535)]
    for port in ("t1", "t2"):
        clamp(port, 1000)
        for flags in ("S", "SA"):
            packets = [syn(family, T1, T2, m, pad, flags) for m, _ in cases]
            out = router.run("t1", *(from_guest(T1, p) for p in packets))
            assert_out(out, *(("t2", to_guest(T2, clamped(p, m))) for p, (_, m) in zip(packets, cases)))
        clamp(port, 0)


def test_the_smaller_of_both_ports(network, router, clamp):
    clamp("t1", 1200)
    clamp("t2", 1100)
    p = syn(4, T1, T2, 1460)
    assert_out(router.run("t1", from_guest(T1, p)), ("t2", to_guest(T2, clamped(p, 1100))))


@pytest.mark.parametrize("encap,under", OVERHEAD)
@pytest.mark.parametrize("family", FAMILIES)
def test_computed(network, router, clamp, encap, under, family):
    """The MSS that fits into the tunnel is written in both directions, so that both ends learn it."""
    clamp("t1", 1)
    dst = network.tunnel(encap, under)
    limit = 1500 - OVERHEAD[encap, under] - HEADERS[family]
    for mss in (1460, limit + 1, limit, limit - 1):
        p = syn(family, T1, dst, mss)
        out = router.run("t1", from_guest(T1, p))
        assert_out(out, ("fab0", to_host(encap, under, clamped(p, min(mss, limit)), out[0].data)))
        p = syn(family, dst, T1, mss, flags="SA")
        assert_out(router.run("fab0", from_host(encap, under, p)), ("t1", to_guest(T1, clamped(p, min(mss, limit)))))


@pytest.mark.parametrize("family", FAMILIES)
def test_computed_between_guests(network, router, clamp, family):
    clamp("t1", 1)
    router.cli("port", "set", "t2", "--mtu", 1400)
    try:
        p = syn(family, T1, T2, 1460)
        assert_out(router.run("t1", from_guest(T1, p)), ("t2", to_guest(T2, clamped(p, 1400 - HEADERS[family]))))
    finally:
        router.cli("port", "set", "t2", "--mtu", 1500)


def untouched():
    """Packets without SYN or without a valid MSS option, which stay unchanged."""
    cut_option = IP(src=T1[4], dst=T2[4]) / TCP(flags="S", dataofs=6) / Raw(b"\x02\x04\x05")
    endless = IP(src=T1[4], dst=T2[4]) / TCP(flags="S", dataofs=7) / Raw(b"\x05\x00\x02\x04\x05\xb4\x01\x01")
    beyond = IP(src=T1[4], dst=T2[4]) / TCP(flags="S", dataofs=6) / Raw(b"\x01\x01\x02\x04" + b"\x05\xb4")
    ended = IP(src=T1[4], dst=T2[4]) / TCP(flags="S", dataofs=7) / Raw(b"\x00\x00\x00\x00\x02\x04\x05\xb4")
    wrong_size = IP(src=T1[4], dst=T2[4]) / TCP(flags="S", dataofs=7) / Raw(b"\x02\x06\x05\xb4\x00\x00\x01\x01")
    return {
        "no syn": syn(4, T1, T2, 1460, flags="A"), "reset": syn(6, T1, T2, 1460, flags="RA"), "no option": syn(4, T1, T2, None),
        "later fragment": syn(4, T1, T2, 1460, frag=1),
        "short header": IP(src=T1[4], dst=T2[4]) / TCP(flags="S", dataofs=4) / Raw(b"\x02\x04\x05\xb4"),
        "cut header": IP(src=T1[4], dst=T2[4],
                         proto=6) / Raw(bytes(TCP(flags="S"))[:19]), "cut option": cut_option, "endless": endless,
        "beyond the header": beyond, "behind the end": ended, "option of another size": wrong_size,
        "behind an extension header": IPv6(src=T1[6], dst=T2[6]) / IPv6ExtHdrDestOpt() / TCP(flags="S", options=[("MSS", 1460)]),
    }


@pytest.mark.parametrize("kind", untouched())
def test_untouched(network, router, clamp, kind):
    clamp("t1", 1000)
    p = untouched()[kind]
    p = p.__class__(bytes(p))
    if STATEFUL and kind == "later fragment":
        with router.drops(flow_no_first_fragment=1):
            assert_nothing(router.run("t1", from_guest(T1, p)))
        return
    assert_out(router.run("t1", from_guest(T1, p)), ("t2", to_guest(T2, forwarded(p))))


def test_first_fragment(network, router, clamp):
    """A first fragment has the whole TCP header, whose checksum also covers the later fragments."""
    clamp("t1", 1000)
    p = syn(4, T1, T2, 1460, flags="S", id=1)
    p.flags = "MF"
    out = router.run("t1", from_guest(T1, p))
    assert_out(out, ("t2", to_guest(T2, clamped(p, 1000))))
