# SPDX-License-Identifier: Apache-2.0
"""Packets that are too large for their path: ICMP with the right MTU, or fragments."""
import pytest
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, UDP, IPOption, IPOption_Router_Alert, defragment
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from packets import assert_out, forwarded, from_guest, from_host, to_guest, to_host, udp_packet
from topology import FAMILIES, GATEWAY, T1

OVERHEAD = {("mplsoudp", 4): 20 + 8 + 4, ("mplsogre", 4): 20 + 4 + 4, ("vxlan", 4): 20 + 8 + 8 + 14,
            ("mplsoudp", 6): 40 + 8 + 4, ("mplsogre", 6): 40 + 4 + 4, ("vxlan", 6): 40 + 8 + 8 + 14,
            ("geneve", 4): 20 + 8 + 8 + 14, ("geneve", 6): 40 + 8 + 8 + 14}
outsides = pytest.mark.parametrize("encap,under", OVERHEAD)


def sized(family, dst, size, **fields):
    """A packet of this size, IP header included."""
    header = 28 if family == 4 else 48
    return udp_packet(family, T1, dst, payload=bytes(i * 13 & 0xff for i in range(size - header)), **fields)


def too_big(packet, mtu, quoted=None):
    quoted = bytes(quoted or forwarded(packet))
    if isinstance(packet, IP):
        return IP(src=GATEWAY[4], dst=packet.src, id=0, tos=0xc0) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(quoted[:548])
    return IPv6(src=GATEWAY[6], dst=packet.src) / ICMPv6PacketTooBig(mtu=mtu) / Raw(quoted[:1232])


def inner_of(out):
    p = out.packet
    for header in (VXLAN, GENEVE):
        if header in p:
            return p[header].payload.payload
    return p[MPLS].payload


@outsides
@pytest.mark.parametrize("inner", FAMILIES)
def test_largest_and_one_more(network, router, encap, under, inner):
    mtu = 1500 - OVERHEAD[encap, under]
    dst = network.tunnel(encap, under)
    assert router.cli("nexthop", "show", dst["id"])[0]["state"]["mtu"] == mtu
    fits = sized(inner, dst, mtu)
    larger = sized(inner, dst, mtu + 1)
    if inner == 4:
        fits.flags = larger.flags = "DF"
    with router.drops(ip_too_big=1):
        out = router.run("t1", from_guest(T1, fits), from_guest(T1, larger))
    fabric = next(o for o in out if o.port == "fab0")
    assert len(fabric.data) == 14 + 1500
    assert_out(out, ("fab0", to_host(encap, under, forwarded(fits), fabric.data)), ("t1", to_guest(T1, too_big(larger, mtu))))


def test_gre_key_counts(network, router):
    dst = network.tunnel("mplsogre", 4, "--gre-key", 5)
    packet = sized(4, dst, 1500 - 32 + 1, flags="DF")
    with router.drops(ip_too_big=1):
        assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, too_big(packet, 1500 - 32))))


@outsides
def test_fragments(network, router, encap, under):
    """Without DF, fragments fit, each with the packet's entropy, and scapy reassembles them."""
    mtu = 1500 - OVERHEAD[encap, under]
    packet = sized(4, network.tunnel(encap, under), 1500, id=4711, tos=0x29)
    with router.drops():
        out = router.run("t1", from_guest(T1, packet))
    parts = [inner_of(o).__class__(bytes(inner_of(o))) for o in out]
    assert_out(out, *(("fab0", to_host(encap, under, p, o.data, tos=0x29)) for p, o in zip(parts, out)))
    assert len(parts) == 2 and all(len(p) <= mtu for p in parts)
    assert len(parts[0]) == 20 + (mtu - 20) // 8 * 8  # as large as possible
    whole = defragment([IP(bytes(p)) for p in parts])[0]
    assert bytes(whole)[20:] == bytes(packet)[20:] and whole.id == 4711 and whole.ttl == packet.ttl - 1
    if encap != "mplsogre":
        assert len({o.packet[UDP].sport for o in out}) == 1


def test_fragments_of_fragments(network, router):
    """RFC 791: offsets continue from that of the packet, and MF stays set."""
    dst = network.tunnel("mplsoudp", 4)
    packet = sized(4, dst, 1500, id=5, flags="MF", frag=100)
    last = sized(4, dst, 1500, id=5, frag=8000)
    first = sized(4, dst, 100, id=5, flags="MF")  # stateful ports need it first
    out = router.run("t1", from_guest(T1, first), from_guest(T1, packet), from_guest(T1, last))[1:]
    parts = [inner_of(o) for o in out]
    step = len(parts[0]) - 20 >> 3
    assert [(p.frag, str(p.flags)) for p in parts] == [(100, "MF"), (100 + step, "MF"), (8000, "MF"), (8000 + step, "")]
    assert bytes(parts[0])[20:] + bytes(parts[1])[20:] == bytes(packet)[20:]
    assert bytes(parts[2])[20:] + bytes(parts[3])[20:] == bytes(last)[20:]
    assert all(IP(bytes(p)).chksum == IP(bytes(forwarded(p, ttl=p.ttl))).chksum for p in parts)


def test_fragments_with_options(network, router):
    """RFC 791: options with the copied bit are in all fragments, others only in the first."""
    dst = network.tunnel("mplsoudp", 4)
    options = [IPOption_Router_Alert(), IPOption(copy_flag=0, optclass=2, option=4, length=8, value=b"\x05\0\0\0\0\0")]
    packet = IP(src=T1[4], dst=dst[4], id=6, options=options) / UDP() / Raw(bytes(1500 - 32 - 8))
    assert len(packet) == 1500
    out = router.run("t1", from_guest(T1, packet))
    parts = [inner_of(o) for o in out]
    assert len(parts) == 2
    assert bytes(parts[0])[20:32] == bytes(packet)[20:32]
    assert bytes(parts[1])[20:24] == bytes(packet)[20:24] and b"\x44\x08" not in bytes(parts[1])[20:parts[1].ihl * 4]
    data = b"".join(bytes(p)[p.ihl * 4:] for p in parts)
    assert data == bytes(packet)[32:]


@pytest.mark.parametrize("family", FAMILIES)
def test_between_guests_of_different_mtu(network, router, family):
    """The MTU of the receiving guest's port applies, to packets of other guests and from a tunnel."""
    router.cli("port", "set", "t2", "--mtu", 1300)
    t2 = {4: "10.1.0.12", 6: "fd00:1::12"}
    try:
        packet = sized(family, t2, 1301, **({"flags": "DF"} if family == 4 else {}))
        with router.drops(ip_too_big=2):
            out = router.run("t1", from_guest(T1, packet))
            assert_out(out, ("t1", to_guest(T1, too_big(packet, 1300))))
            sender = network.tunnel("mplsoudp", 4)
            arriving = udp_packet(family, sender, t2, payload=bytes(1301), **({"flags": "DF"} if family == 4 else {}))
            out = router.run("fab0", from_host("mplsoudp", 4, arriving))
        error = too_big(arriving, 1300)
        error.dst = sender[family]
        assert_out(out, ("fab0", to_host("mplsoudp", 4, error, out[0].data, tos=0xc0 if family == 4 else 0)))
    finally:
        router.cli("port", "set", "t2", "--mtu", 1500)


def test_mtu_of_the_underlay_changes(network, router):
    dst = network.tunnel("vxlan", 4)
    router.cli("port", "set", "fab0", "--mtu", 1400)
    try:
        packet = sized(4, dst, 1400, flags="DF")
        with router.drops(ip_too_big=1):
            assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, too_big(packet, 1350))))
    finally:
        router.cli("port", "set", "fab0", "--mtu", 1500)
    with router.drops():
        assert len(router.run("t1", from_guest(T1, packet))) == 1


J1 = {4: "10.3.0.11", 6: "fd00:3::11", "mac": "02:00:00:00:03:11"}
J2 = {4: "10.3.0.12", 6: "fd00:3::12", "mac": "02:00:00:00:03:12"}


@pytest.fixture(scope="module")
def jumbo(network):
    """Guests whose frames take several buffers."""
    r = network.router
    for name, g in (("j1", J1), ("j2", J2)):
        r.add_tenant(name, "--mtu", 9000, vrf="red", gateway=("10.3.0.1/24", "fd00:3::1/64"), guest=(g[4], g[6]),
                     guest_mac=g["mac"])
    yield r
    for name in ("j1", "j2"):
        r.del_port(name)


def jumbo_packet(family, dst, size, **fields):
    p = sized(family, dst, size, **fields)
    p.src = J1[family]
    return p


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1920, 1921, 2034, 2048, 2049, 4000, 8999, 9000])
def test_jumbo_between_guests(jumbo, family, size):
    packet = jumbo_packet(family, J2, size)
    with jumbo.drops():
        assert_out(jumbo.run("j1", from_guest(J1, packet)), ("j2", to_guest(J2, forwarded(packet))))


@outsides
@pytest.mark.parametrize("inner", FAMILIES)
def test_jumbo_through_tunnels(network, jumbo, encap, under, inner):
    mtu = 9000 - OVERHEAD[encap, under]
    options = ("--udp6-checksum", "on") if under == 6 and encap != "mplsogre" else ()
    dst = network.tunnel(encap, under, *options)
    jumbo.cli("port", "set", "fab0", "--mtu", 9000)
    try:
        packet = jumbo_packet(inner, dst, mtu)
        with jumbo.drops():
            out = jumbo.run("j1", from_guest(J1, packet))
        assert_out(out, ("fab0", to_host(encap, under, forwarded(packet), out[0].data, **({"checksum": None} if options else {}))))
        back = udp_packet(inner, dst, J2, payload=bytes(mtu - 48))
        with jumbo.drops():
            out = jumbo.run("fab0", from_host(encap, under, back))
        assert_out(out, ("j2", to_guest(J2, forwarded(back))))
    finally:
        jumbo.cli("port", "set", "fab0", "--mtu", 1500)


@pytest.mark.parametrize("family", FAMILIES)
def test_jumbo_guest_learns_the_mtu(network, jumbo, family):
    """An error about a packet that takes several buffers."""
    packet = jumbo_packet(family, network.tunnel("mplsoudp", 4), 8000, **({"flags": "DF"} if family == 4 else {}))
    error = too_big(packet, 1468)
    error.src = {4: "10.3.0.1", 6: "fd00:3::1"}[family]
    with jumbo.drops(ip_too_big=1):
        assert_out(jumbo.run("j1", from_guest(J1, packet)), ("j1", to_guest(J1, error)))


def test_jumbo_fragments(network, jumbo):
    packet = jumbo_packet(4, network.tunnel("vxlan", 6), 8000, id=4712)
    with jumbo.drops():
        out = jumbo.run("j1", from_guest(J1, packet))
    parts = [IP(bytes(inner_of(o))) for o in out]
    assert len(parts) == 6 and all(len(p) <= 1430 for p in parts)
    assert bytes(defragment(parts)[0])[20:] == bytes(packet)[20:]
    assert_out(out, *(("fab0", to_host("vxlan", 6, p, o.data)) for p, o in zip(parts, out)))
