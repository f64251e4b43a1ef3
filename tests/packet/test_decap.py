# SPDX-License-Identifier: Apache-2.0
"""From the underlay to a guest: a packet that scapy encapsulates comes out unchanged."""
import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from packets import (assert_nothing, assert_out, carrier, forwarded, from_guest, from_host, ip, shim, to_guest, to_host, udp_packet,
                     with_udp6_checksum)
from router import GATEWAY_MAC
from topology import (BLUE, B1, FAB0, FAB0_MAC, FAMILIES, GATEWAY, HOST, HOST_MAC, IN_UDP, OVERLAYS, RED, RED_UNIFORM, T1, UDP_PORT,
                      ids_of, vni)

combinations = pytest.mark.parametrize("encap,under,inner", [(e, u, i) for e in OVERLAYS for u in FAMILIES for i in FAMILIES])
outsides = pytest.mark.parametrize("encap,under", [(e, u) for e in OVERLAYS for u in FAMILIES])
FAR = {4: "10.2.0.9", 6: "fd00:2::9"}  # the sender's address inside
OTHER_HOST = "2001:db8:99::1"  # no route leads there: it is not asked for its MAC


def gre_with(under, packet, **bits):
    return Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / GRE(proto=0x8847, **bits) / shim("mplsogre", RED) / packet


@combinations
def test_every_byte(network, router, encap, under, inner):
    packet = udp_packet(inner, FAR, T1, ttl=9, tos=0x28)
    with router.drops():
        out = router.run("fab0", from_host(encap, under, packet, tos=0))
    assert_out(out, ("t1", to_guest(T1, forwarded(packet))))


@outsides
def test_the_tag_chooses_the_vrf(network, router, encap, under):
    """The same addresses in two VRFs."""
    packets = [udp_packet(f, FAR, T1) for f in FAMILIES]
    out = router.run("fab0", *(from_host(encap, under, p, tag=tag) for tag in (RED, BLUE) for p in packets))
    assert_out(out, *(("t1", to_guest(T1, forwarded(p))) for p in packets), *(("b1", to_guest(B1, forwarded(p))) for p in packets),
               ordered=False)


# RFC 6040, figure 4: inner and outer ECN, and the ECN of the forwarded packet; None: it is dropped.
NOT_ECT, ECT1, ECT0, CE = range(4)
ECN = {(NOT_ECT, NOT_ECT): NOT_ECT, (NOT_ECT, ECT0): NOT_ECT, (NOT_ECT, ECT1): NOT_ECT, (NOT_ECT, CE): None,
       (ECT0, NOT_ECT): ECT0, (ECT0, ECT0): ECT0, (ECT0, ECT1): ECT1, (ECT0, CE): CE,
       (ECT1, NOT_ECT): ECT1, (ECT1, ECT0): ECT1, (ECT1, ECT1): ECT1, (ECT1, CE): CE,
       (CE, NOT_ECT): CE, (CE, ECT0): CE, (CE, ECT1): CE, (CE, CE): CE}


@combinations
def test_ecn(network, router, encap, under, inner):
    cases = [(udp_packet(inner, FAR, T1, tos=0x40 | i), o, result) for (i, o), result in ECN.items()]
    with router.drops(tunnel_congested=1):
        out = router.run("fab0", *(from_host(encap, under, p, tos=0xb8 | o) for p, o, _ in cases))
    field = "tos" if inner == 4 else "tc"
    assert_out(out, *(("t1", to_guest(T1, forwarded(p, **{field: 0x40 | r}))) for p, _, r in cases if r is not None))


@combinations
def test_uniform(network, router, encap, under, inner):
    """RFC 3443: the inner packet gets the tunnel's TTL and DSCP; its TTL never grows."""
    ttls = [(64, 10), (10, 64), (255, 255), (2, 3)]  # inner, tunnel
    packets = [udp_packet(inner, FAR, T1, ttl=i, tos=0x41) for i, _ in ttls]
    out = router.run("fab0", *(from_host(encap, under, p, tag=RED_UNIFORM, tos=0xb9, ttl=t, label_ttl=t) for p,
                               (_, t) in zip(packets, ttls)))
    ttl, tos = ("ttl", "tos") if inner == 4 else ("hlim", "tc")
    assert_out(out, *(("t1", to_guest(T1, forwarded(p, **{ttl: min(i, t) - 1, tos: 0xb9}))) for p, (i, t) in zip(packets, ttls)))


@pytest.mark.parametrize("inner", FAMILIES)
def test_pipe_ignores_the_tunnel_ttl(network, router, inner):
    packet = udp_packet(inner, FAR, T1, ttl=30)
    out = router.run("fab0", *(from_host(e, u, packet, ttl=t, label_ttl=t) for e in OVERLAYS for u in FAMILIES for t in (1, 255)))
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * (4 * len(OVERLAYS)))


@pytest.mark.parametrize("encap", IN_UDP)
@pytest.mark.parametrize("under", FAMILIES)
def test_udp_checksum(network, router, encap, under):
    """Correct checksums are accepted, wrong ones are not. Over IPv4 there may be none."""
    packet = udp_packet(4, FAR, T1)
    good = from_host(encap, under, packet, checksum=None)
    wrong = Ether(bytes(good))
    wrong[UDP].chksum ^= 0x0100
    accepted = [good] + [from_host(encap, 4, packet, checksum=0)] * (under == 4)
    with router.drops(tunnel_udp_checksum=1):
        out = router.run("fab0", wrong, *accepted)
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * len(accepted))


@pytest.fixture
def other_host(network, router):
    """A host to which no other test has a tunnel. Yields what adds one, or replaces it."""
    def tunnel(encap, checksum):
        router.cli("nexthop", "add", 900, "tunnel", "--encap", encap, "--remote", OTHER_HOST, *ids_of(RED)[encap], "--udp6-checksum",
                   checksum, "--replace")
    router.cli("nexthop", "add", 900, "discard")
    yield tunnel
    router.cli("nexthop", "del", 900)


@pytest.mark.parametrize("encap", IN_UDP)
def test_udp6_zero(other_host, router, encap):
    """RFC 6936: packets without a checksum are accepted only from ends to which this node sends none either."""
    packet = udp_packet(4, FAR, T1)
    zero, good = (from_host(encap, 6, packet, checksum=c) for c in (0, None))
    for frame in zero, good:
        frame[IPv6].src = OTHER_HOST
    accepted, refused = [("t1", to_guest(T1, forwarded(packet)))] * 2, [("t1", to_guest(T1, forwarded(packet)))]

    def check(expected):
        with router.drops(**({} if expected is accepted else {"fabric_udp6_zero": 1})):
            assert_out(router.run("fab0", zero, good), *expected)

    check(refused)
    other_host(encap, "on")
    check(refused)
    other_host("vxlan" if encap == "geneve" else "geneve", "off")  # another encapsulation
    check(refused)
    other_host(encap, "off")
    check(accepted)
    other_host(encap, "default")
    check(refused)
    other_host(encap, "on")
    router.cli("settings", "set", "--accept-udp6-zero")
    try:
        check(accepted)
    finally:
        router.cli("settings", "set", "--accept-udp6-zero=false")
    check(refused)


@pytest.mark.parametrize("under", FAMILIES)
@pytest.mark.parametrize("checksum", [0, 1])
@pytest.mark.parametrize("key", [0, 1])
@pytest.mark.parametrize("sequence", [0, 1])
def test_gre_bits(network, router, under, checksum, key, sequence):
    bits = {"chksum_present": checksum, "key_present": key, "seqnum_present": sequence}
    packets = [udp_packet(f, FAR, T1) for f in FAMILIES]
    with router.drops():
        out = router.run("fab0", *(gre_with(under, p, **bits) for p in packets))
    assert_out(out, *(("t1", to_guest(T1, forwarded(p))) for p in packets), ordered=False)


@pytest.mark.parametrize("under", FAMILIES)
def test_gre_refused(network, router, under):
    packet = udp_packet(4, FAR, T1)
    wrong = Ether(bytes(gre_with(under, packet, chksum_present=1)))
    wrong[GRE].chksum ^= 1
    with router.drops(gre_checksum=1):
        assert_nothing(router.run("fab0", wrong))
    with router.drops(gre_bad_header=2):
        assert_nothing(router.run("fab0", gre_with(under, packet, version=1), gre_with(under, packet, routing_present=1)))
    ip_in_gre = Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / GRE(proto=0x0800) / packet
    with router.drops(gre_not_mpls=1):
        assert_nothing(router.run("fab0", ip_in_gre))


def stack(encap, under, packet, *labels):
    """Each label is a pair (label, bottom of stack)."""
    p = Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / carrier(encap, under)
    for label, bottom in labels:
        p /= MPLS(label=label, s=bottom, ttl=64)
    return p / Raw(bytes(packet))


@pytest.mark.parametrize("encap", ["mplsoudp", "mplsogre"])
@pytest.mark.parametrize("under", FAMILIES)
def test_label_stacks(network, router, encap, under):
    packet = udp_packet(4, FAR, T1)
    good = [stack(encap, under, packet, (0, 0), (RED, 1)), stack(encap, under, packet, (2, 0), (RED, 1)),
            stack(encap, under, packet, (0, 0), (2, 0), (RED, 1))]
    with router.drops():
        out = router.run("fab0", *good)
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * 3)
    deep = [stack(encap, under, packet, *[(0, 0)] * n, (RED, 1)) for n in (3, 4, 8, 100)]
    with router.drops(mpls_stack_depth=len(deep)):
        assert_nothing(router.run("fab0", *deep))
    with router.drops(mpls_stack_depth=1):
        assert_nothing(router.run("fab0", stack(encap, under, packet, (RED, 0), (RED, 1))))
    with router.drops(mpls_unknown_label=3):
        assert_nothing(router.run("fab0", stack(encap, under, packet, (0, 1)), stack(encap, under, packet, (2, 1)),
                                  stack(encap, under, packet, (999999, 1))))
    with router.drops(mpls_reserved=13):
        assert_nothing(router.run("fab0", *(stack(encap, under, packet, (n, 1)) for n in range(1, 16) if n != 2 and n != 14)))
    with router.drops(mpls_ttl_zero=1):
        p = stack(encap, under, packet, (RED, 1))
        p[MPLS].ttl = 0
        assert_nothing(router.run("fab0", p))


def test_stack_depth_setting(network, router):
    packet = udp_packet(4, FAR, T1)
    router.cli("settings", "set", "--label-stack-depth", 1)
    try:
        with router.drops(mpls_stack_depth=1):
            out = router.run("fab0", stack("mplsoudp", 4, packet, (RED, 1)), stack("mplsoudp", 4, packet, (0, 0), (RED, 1)))
        assert_out(out, ("t1", to_guest(T1, forwarded(packet))))
    finally:
        router.cli("settings", "set", "--label-stack-depth", 3)


@pytest.mark.parametrize("under", FAMILIES)
def test_vxlan_refused(network, router, under):
    packet = udp_packet(4, FAR, T1)

    def vx(flags="Instance", number=vni(RED), dst="02:00:00:00:aa:01", ether_type=0x0800):
        outer = Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / carrier("vxlan", under, checksum=0 if under == 4 else None)
        return outer / VXLAN(flags=flags, vni=number) / Ether(src=HOST_MAC, dst=dst, type=ether_type) / Raw(bytes(packet))

    with router.drops():
        assert_out(router.run("fab0", vx(), vx(dst=GATEWAY_MAC)), *[("t1", to_guest(T1, forwarded(packet)))] * 2)
    with router.drops(vxlan_bad_flags=1):
        assert_nothing(router.run("fab0", vx(flags=0)))
    with router.drops(vxlan_unknown_vni=2):
        assert_nothing(router.run("fab0", vx(number=0), vx(number=0xffffff)))
    with router.drops(vxlan_wrong_router_mac=2):
        assert_nothing(router.run("fab0", vx(dst="02:00:00:00:aa:99"), vx(dst="ff:ff:ff:ff:ff:ff")))
    with router.drops(tunnel_not_ip=2):
        assert_nothing(router.run("fab0", vx(ether_type=0x0806), vx(ether_type=0x8100)))


@outsides
def test_payload_of_another_version(network, router, encap, under):
    """A payload whose IP version is neither 4 nor 6 is dropped, whatever the EtherType of its VXLAN frame says."""
    frame = bytearray(bytes(from_host(encap, under, udp_packet(4, FAR, T1))))
    at = len(frame) - len(bytes(udp_packet(4, FAR, T1)))
    frame[at] = 0x55
    with router.drops(tunnel_not_ip=1):
        assert_nothing(router.run("fab0", with_udp6_checksum(frame)))


@pytest.mark.parametrize("encap", OVERLAYS)
def test_outer_fragments(network, router, encap):
    packet = udp_packet(4, FAR, T1)
    first, later = from_host(encap, 4, packet), from_host(encap, 4, packet)
    first[IP].flags = "MF"
    later[IP].frag = 10
    with router.drops(fabric_fragment=2):
        assert_nothing(router.run("fab0", first, later))


def test_label_of_a_next_hop(network, router):
    """No route is looked up; TTL and header are checked as for a routed packet."""
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "port", "t2", "--mac", "02:00:00:00:77:77")
    router.cli("label", "add", 7001, "nexthop", nexthop)
    router.cli("vni", "add", vni(7001), "nexthop", nexthop)
    packets = [udp_packet(f, FAR, {4: "198.18.0.1", 6: "fd99::1"}) for f in FAMILIES]  # red has no such route
    with router.drops():
        out = router.run("fab0", *(from_host(e, u, p, tag=7001) for e in OVERLAYS for u in FAMILIES for p in packets))
    assert_out(out, *[("t2", Ether(src=GATEWAY_MAC, dst="02:00:00:00:77:77") / forwarded(p)) for p in packets] * (2 * len(OVERLAYS)),
               ordered=False)


def test_label_of_a_discarding_next_hop(network, router):
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "discard")
    router.cli("label", "add", 7002, "nexthop", nexthop)
    with router.drops(route_discard=2):
        assert_nothing(router.run("fab0", *(from_host("mplsoudp", 4, udp_packet(f, FAR, T1), tag=7002) for f in FAMILIES)))


def test_label_that_is_gone(network, router):
    router.cli("label", "add", 7003, "vrf", "red")
    packet = from_host("mplsoudp", 4, udp_packet(4, FAR, T1), tag=7003)
    assert len(router.run("fab0", packet)) == 1
    router.cli("label", "del", 7003)
    with router.drops(mpls_unknown_label=1):
        assert_nothing(router.run("fab0", packet))


@pytest.mark.parametrize("family", FAMILIES)
def test_icmp_error_about_a_label_for_a_next_hop(network, router, family):
    """The error is routed in the guest's VRF; without a guest's port none is sent, in particular not to the underlay."""
    sender = network.tunnel("mplsoudp", 4)
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "port", "t2", "--mac", "02:00:00:00:77:78")
    router.cli("label", "add", 7004, "nexthop", nexthop)
    with router.drops(ip_ttl_exceeded=1):
        out = router.run("fab0", from_host("mplsoudp", 4, udp_packet(family, sender, {4: "198.18.0.2", 6: "fd99::2"}, ttl=1),
                                           tag=7004))
    assert len(out) == 1 and out[0].port == "fab0"
    error = out[0].packet[MPLS].payload
    assert (error.src, error.dst) == (GATEWAY[family], sender[family])
    router.cli("label", "del", 7004)
    reject = network.new_id()
    router.cli("nexthop", "add", reject, "reject")
    router.cli("label", "add", 7004, "nexthop", reject)
    with router.drops(route_reject=1):
        assert_nothing(router.run("fab0", from_host("mplsoudp", 4, udp_packet(family, HOST, T1), tag=7004)))
    router.cli("label", "del", 7004)


def test_every_udp_port_but_the_tunnels(network, router):
    packet = udp_packet(4, FAR, T1)
    with router.drops(fabric_udp_port=3):
        assert_nothing(router.run("fab0", *(from_host("mplsoudp", 4, packet, dport=p) for p in (6634, 51234, 1))))


@pytest.mark.parametrize("encap,option", [(e, f"--{e}-port") for e in IN_UDP])
def test_configured_port(network, router, encap, option):
    """Contrail's old port 51234 beside the standard one: both are accepted, the first is used for sending."""
    standard = UDP_PORT[encap]
    packet = udp_packet(4, FAR, T1)
    dst = network.tunnel(encap, 4)
    router.cli("settings", "set", option, f"51234,{standard}")
    try:
        out = router.run("fab0", *(from_host(encap, u, packet, dport=p) for u in FAMILIES for p in (51234, standard)))
        assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * 4)
        outward = udp_packet(4, T1, dst)
        out = router.run("t1", from_guest(T1, outward))
        assert_out(out, ("fab0", to_host(encap, 4, forwarded(outward), out[0].data, dport=51234)))
    finally:
        router.cli("settings", "set", option, standard)
    with router.drops(fabric_udp_port=1):
        assert_nothing(router.run("fab0", from_host(encap, 4, packet, dport=51234)))
    out = router.run("t1", from_guest(T1, outward))
    assert_out(out, ("fab0", to_host(encap, 4, forwarded(outward), out[0].data)))
