# SPDX-License-Identifier: Apache-2.0
"""Wrong and unusual IP headers of tenants, with the same result from a guest and from a tunnel."""
import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP, IPOption_Router_Alert, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from packets import PAYLOAD, assert_nothing, assert_out, forwarded, from_guest, from_host, to_guest, to_host, udp_packet
from router import GATEWAY_MAC, STATEFUL
from topology import FAMILIES, T1, T2

FAR = {4: "10.2.0.9", 6: "fd00:2::9"}
sides = pytest.mark.parametrize("side", ["guest", "tunnel"])


def arrive(router, side, packets):
    """Packets to T2, from T1 or from a tunnel."""
    frames = [from_guest(T1, p) if side == "guest" else from_host("mplsoudp", 4, p) for p in packets]
    return router.run("t1" if side == "guest" else "fab0", *frames)


def four(**fields):
    p = udp_packet(4, T1, T2)
    for name, value in fields.items():
        setattr(p, name, value)
    return p


def six(**fields):
    p = udp_packet(6, T1, T2)
    for name, value in fields.items():
        setattr(p, name, value)
    return p


CASES = {
    "ip4_bad_header_length": [four(ihl=0), four(ihl=4), IP(src=T1[4], dst=T2[4], ihl=15, len=20)],
    "ip_truncated": [four(len=0), four(len=19), four(len=len(bytes(four())) + 1), four(len=65535), six(plen=len(PAYLOAD) + 9),
                     six(plen=65535)],
    "ip4_bad_checksum": [four(chksum=0), four(chksum=0xffff), four(chksum=0x1234)],
    "ip_martian_source": [four(src=s) for s in ("0.0.0.0", "0.255.0.1", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255")] +
                         [six(src=s) for s in ("::", "::1", "ff02::1", "ff0e::1")],
    "ip_martian_destination": [four(dst=d) for d in ("0.0.0.0", "0.1.2.3", "127.0.0.1",
                                                     "127.255.0.1")] + [six(dst=d) for d in ("::", "::1")],
    "ip_multicast": [four(dst=d) for d in ("224.0.0.1", "239.255.0.1", "240.0.0.1",
                                           "255.255.255.255")] + [six(dst=d) for d in ("ff02::1", "ff0e::5")],
    "ip_link_local": [six(src="fe80::1"), six(dst="fe80::1"), six(src="febf::1")],
}


@sides
@pytest.mark.parametrize("reason", CASES)
def test_dropped(network, router, side, reason):
    """A default route does not match these addresses."""
    nexthop = network.tunnel("mplsoudp", 4)["id"]
    router.cli("route", "add", "0.0.0.0/0", "::/0", "--vrf", "red", "--nexthop", nexthop)
    try:
        with router.drops(**{reason: len(CASES[reason])}):
            assert_nothing(arrive(router, side, CASES[reason]))
    finally:
        router.cli("route", "del", "0.0.0.0/0", "::/0", "--vrf", "red")


@sides
def test_link_local_without_a_route(network, router, side):
    """No error is sent, so the router makes no packet that it would drop itself."""
    with router.drops(ip_link_local=1):
        assert_nothing(arrive(router, side, [six(src="fe80::1", dst="fd99::1")]))


def test_another_version_than_announced(network, router):
    with router.drops(ip_bad_version=2):
        assert_nothing(router.run("t1", from_guest(T1, four(version=6)), from_guest(T1, six(version=4))))


def test_not_for_the_gateway(network, router):
    frames = [Ether(src=T1["mac"], dst=dst) / four() for dst in ("02:00:00:00:99:99", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01")]
    with router.drops(eth_not_for_gateway=1, eth_multicast_ignored=2):
        assert_nothing(router.run("t1", *frames))
    with router.drops(eth_bad_source=2):
        nobody = ("00:00:00:00:00:00", "01:00:5e:00:00:01")
        assert_nothing(router.run("t1", *(Ether(src=s, dst=GATEWAY_MAC) / four() for s in nobody)))
    with router.drops(eth_spoofed_gateway=1):
        assert_nothing(router.run("t1", Ether(src=GATEWAY_MAC, dst=GATEWAY_MAC) / four()))
    tagged = Ether(src=T1["mac"], dst=GATEWAY_MAC)
    with router.drops(eth_vlan_tagged=2):
        assert_nothing(router.run("t1", tagged / Dot1Q(vlan=5) / four(), tagged / Dot1Q(vlan=0) / Dot1Q(vlan=5) / four()))


def test_priority_tags(network, router):
    """A tag with id 0 says a priority and no VLAN."""
    for kind in (0x8100, 0x88a8):
        for p in (four(), six()):
            with router.drops():
                out = router.run("t1", Ether(src=T1["mac"], dst=GATEWAY_MAC, type=kind) / Dot1Q(vlan=0, prio=5) / p)
            assert_out(out, ("t2", to_guest(T2, forwarded(p))))


@sides
def test_padding_is_cut_off(network, router, side):
    for p in (four(), six()):
        assert_out(arrive(router, side, [p / Raw(b"")]), ("t2", to_guest(T2, forwarded(p))))
        padded = p.__class__(bytes(p) + b"\0" * 20)
        assert_out(arrive(router, side, [padded]), ("t2", to_guest(T2, forwarded(p))))


ODD = {
    "options": IP(src=T1[4], dst=T2[4], ttl=9, options=IPOption_Router_Alert()) / UDP() / PAYLOAD,
    "all options": IP(src=T1[4], dst=T2[4], ttl=9, options=[IPOption_NOP()] * 40) / TCP(flags="S") / PAYLOAD,
    "header only": IP(src=T1[4], dst=T2[4], ttl=9, proto=200),
    "header only 6": IPv6(src=T1[6], dst=T2[6], nh=59),
    "unknown protocol": IP(src=T1[4], dst=T2[4], proto=143) / PAYLOAD,
    "hop by hop": IPv6(src=T1[6], dst=T2[6]) / IPv6ExtHdrHopByHop() / UDP() / PAYLOAD,
    "destination options": IPv6(src=T1[6], dst=T2[6]) / IPv6ExtHdrDestOpt() / UDP() / PAYLOAD,
    "routing header": IPv6(src=T1[6], dst=T2[6]) / IPv6ExtHdrRouting(addresses=["fd00::1"]) / UDP() / PAYLOAD,
    "first fragment": four(flags="MF", id=7),
    "middle fragment": four(flags="MF", frag=100, id=7),
    "last fragment": four(frag=8191, id=7),
    "tiny fragment": IP(src=T1[4], dst=T2[4], flags="MF", proto=6, id=8) / Raw(b"\x04\xd2\x16\x2e\0\0\0\0"),
    "fragment over the ports": IP(src=T1[4], dst=T2[4], frag=1, proto=6, id=8) / Raw(b"\xff" * 16),
    "empty fragment": IP(src=T1[4], dst=T2[4], flags="MF", proto=17, id=8),
    "fragment 6": IPv6(src=T1[6], dst=T2[6]) / IPv6ExtHdrFragment(m=1, offset=0, id=5) / UDP() / PAYLOAD,
    "later fragment 6": IPv6(src=T1[6], dst=T2[6]) / IPv6ExtHdrFragment(m=0, offset=185, id=6) / PAYLOAD,
    "reserved flag": four(flags="evil"),
    "udp lies": IP(src=T1[4], dst=T2[4]) / UDP(len=9999, chksum=1),
    "short udp": IP(src=T1[4], dst=T2[4], proto=17) / Raw(b"\0\1\0"),
    "short tcp": IPv6(src=T1[6], dst=T2[6], nh=6) / Raw(b"\0"),
}


# A packet whose ports are not known belongs to no flow. (Some later fragments follow a first one of another test.)
NO_FLOW = {"tiny fragment": "flow_truncated", "fragment over the ports": "flow_no_first_fragment",
           "empty fragment": "flow_truncated", "later fragment 6": "flow_no_first_fragment",
           "short udp": "flow_truncated", "short tcp": "flow_truncated"}


@sides
@pytest.mark.parametrize("kind", ODD)
def test_odd_but_forwarded_as_it_is(network, router, side, kind):
    p = ODD[kind].__class__(bytes(ODD[kind]))
    if STATEFUL and kind in NO_FLOW:
        with router.drops(**{NO_FLOW[kind]: 1}):
            assert_nothing(arrive(router, side, [p]))
        return
    with router.drops():
        assert_out(arrive(router, side, [p]), ("t2", to_guest(T2, forwarded(p))))


@pytest.mark.parametrize("under", FAMILIES)
def test_fragments_of_a_packet_stay_together(network, router, under):
    """All fragments, also overlapping ones, take one path, unchanged and in order."""
    dst = network.tunnel("mplsoudp", under)
    whole = IP(src=T1[4], dst=dst[4], id=99) / UDP(sport=1, dport=2) / Raw(bytes(i & 0xff for i in range(1200)))
    parts = fragment(IP(bytes(whole)), 400)
    overlap = parts[1].copy()
    overlap.frag -= 2
    parts.insert(2, overlap)
    header = IPv6(src=T1[6], dst=dst[6])
    six_parts = [header / IPv6ExtHdrFragment(m=i < 2, offset=i * 8, id=9, nh=17) / Raw(PAYLOAD) for i in range(3)]
    for group in (parts, six_parts):
        out = router.run("t1", *(from_guest(T1, p) for p in group))
        assert_out(out, *(("fab0", to_host("mplsoudp", under, forwarded(p), o.data)) for p, o in zip(group, out)))
        assert len({o.packet[UDP].sport for o in out}) == 1


def test_two_guests_of_one_router(network, router):
    for p in (four(), six()):
        assert_out(router.run("t1", from_guest(T1, p)), ("t2", to_guest(T2, forwarded(p))))


def test_back_to_where_it_came_from(network, router):
    """A packet whose route leads back to its own port is sent there."""
    packet = udp_packet(4, {4: "10.1.0.99"}, T1)
    assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, forwarded(packet))))
