# SPDX-License-Identifier: Apache-2.0
"""From a guest into a tunnel: every byte of the frame on the underlay."""
import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from packets import assert_nothing, assert_out, assert_same, checksum_ok, forwarded, from_guest, to_host, udp_packet
from topology import FAMILIES, IN_UDP, OVERLAYS, T1

combinations = pytest.mark.parametrize("encap,under,inner", [(e, u, i) for e in OVERLAYS for u in FAMILIES for i in FAMILIES])
outsides = pytest.mark.parametrize("encap,under", [(e, u) for e in OVERLAYS for u in FAMILIES])


@combinations
def test_every_byte(network, router, encap, under, inner):
    packet = udp_packet(inner, T1, network.tunnel(encap, under), ttl=33, tos=0)
    with router.drops():
        out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host(encap, under, forwarded(packet), out[0].data)))


@combinations
def test_dscp_and_ecn_are_copied(network, router, encap, under, inner):
    dst = network.tunnel(encap, under)
    packets = [udp_packet(inner, T1, dst, tos=tos) for tos in (0, 1, 2, 3, 0x28, 0xb8, 0xb9, 0xba, 0xbb, 0xff)]
    out = router.run("t1", *(from_guest(T1, p) for p in packets))
    assert_out(out, *(("fab0", to_host(encap, under, forwarded(p), o.data, tos=p.tos if inner == 4 else p.tc)) for p,
                      o in zip(packets, out)))


@combinations
def test_fixed_dscp_keeps_ecn(network, router, encap, under, inner):
    dst = network.tunnel(encap, under, "--dscp", 26)
    packets = [udp_packet(inner, T1, dst, tos=0xb8 | ecn) for ecn in range(4)]
    out = router.run("t1", *(from_guest(T1, p) for p in packets))
    assert_out(out, *(("fab0", to_host(encap, under, forwarded(p), o.data, tos=26 << 2 | i)) for i,
                      (p, o) in enumerate(zip(packets, out))))


@outsides
def test_pipe_mode_has_its_own_ttl(network, router, encap, under):
    dst = network.tunnel(encap, under, "--ttl", 17)
    packet = udp_packet(4, T1, dst, ttl=200)
    out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host(encap, under, forwarded(packet), out[0].data, ttl=17, label_ttl=17)))


@combinations
def test_uniform_mode_copies_the_ttl(network, router, encap, under, inner):
    dst = network.tunnel(encap, under, "--uniform")
    ttls = [2, 63, 64, 65, 255]
    packets = [udp_packet(inner, T1, dst, ttl=ttl, tos=0x2a) for ttl in ttls]
    out = router.run("t1", *(from_guest(T1, p) for p in packets))
    assert_out(out, *(("fab0", to_host(encap, under, forwarded(p), o.data, ttl=t - 1, label_ttl=t - 1, tos=0x2a))
                      for p, o, t in zip(packets, out, ttls)))


@pytest.mark.parametrize("encap", IN_UDP)
@pytest.mark.parametrize("under", FAMILIES)
@pytest.mark.parametrize("inner", FAMILIES)
def test_entropy(network, router, encap, under, inner):
    """RFC 7510, RFC 7348: the source port is in the dynamic range, equal for all packets of a flow, and differs between flows."""
    dst = network.tunnel(encap, under)
    flows = [udp_packet(inner, T1, dst, sport=1000 + i) for i in range(32)]
    out = router.run("t1", *(from_guest(T1, p) for p in flows + flows))
    assert len(out) == 64
    ports = [Ether(o.data)[UDP].sport for o in out]
    assert all(49152 <= p <= 65535 for p in ports)
    # Packets of known flows may overtake those of new ones, so the order between flows is not compared.
    assert all(ports.count(p) % 2 == 0 for p in ports) and len(set(ports)) > 28


@pytest.mark.parametrize("encap", OVERLAYS)
def test_flow_label_is_entropy_too(network, router, encap):
    """RFC 6438: the flow label is the entropy."""
    dst = network.tunnel(encap, 6)
    flows = [udp_packet(4, T1, dst, sport=1000 + i) for i in range(32)]
    out = router.run("t1", *(from_guest(T1, p) for p in flows + flows))
    labels = [Ether(o.data)[IPv6].fl for o in out]
    assert len(labels) == 64 and all(labels.count(x) % 2 == 0 for x in labels) and len(set(labels)) > 28 and 0 not in labels


@pytest.mark.parametrize("encap", IN_UDP)
@pytest.mark.parametrize("inner", FAMILIES)
@pytest.mark.parametrize("size", [0, 1, 63, 1000])
def test_udp6_checksum(network, router, encap, inner, size):
    dst = network.tunnel(encap, 6, "--udp6-checksum", "on")
    packet = udp_packet(inner, T1, dst, payload=bytes(i * 7 & 0xff for i in range(size)))
    out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host(encap, 6, forwarded(packet), out[0].data, checksum=None)))
    assert Ether(out[0].data)[UDP].chksum != 0 and checksum_ok(Ether(out[0].data), UDP)


@pytest.mark.parametrize("encap", IN_UDP)
@pytest.mark.parametrize("value", ["on", "off", "default"])
def test_udp6_checksum_of_a_next_hop(network, router, encap, value):
    dst = network.tunnel(encap, 6, "--udp6-checksum", value)
    packet = udp_packet(4, T1, dst)
    out = router.run("t1", from_guest(T1, packet))
    expected = {"on": {"checksum": None}, "off": {"checksum": 0}, "default": {}}[value]
    assert_out(out, ("fab0", to_host(encap, 6, forwarded(packet), out[0].data, **expected)))
    shown = router.cli("nexthop", "show", dst["id"])[0]["tunnel"]["udp6_checksum"]
    assert shown == f"UDP6_CHECKSUM_{value.upper()}"


@pytest.mark.parametrize("under", FAMILIES)
@pytest.mark.parametrize("inner", FAMILIES)
@pytest.mark.parametrize("key", [0, 1, 0xdeadbeef])
def test_gre_key(network, router, under, inner, key):
    dst = network.tunnel("mplsogre", under, "--gre-key", key)
    packet = udp_packet(inner, T1, dst)
    out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host("mplsogre", under, forwarded(packet), out[0].data, key_present=1, key=key)))


@outsides
def test_local_address_is_the_source(network, router, encap, under):
    """A configured source need not be an address of the port."""
    local = {4: "192.0.2.77", 6: "2001:db8::77"}[under]
    dst = network.tunnel(encap, under, "--local", local)
    packet = udp_packet(4, T1, dst)
    out = router.run("t1", from_guest(T1, packet))
    assert len(out) == 1 and out[0].packet[1].src == local
    expected = to_host(encap, under, forwarded(packet), out[0].data)
    expected[1].src = local
    assert_same(expected, out[0].data)


def test_unknown_remote(network, router):
    """A tunnel whose remote has no route drops its packets with an ICMP error."""
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "tunnel", "--encap", "mplsoudp", "--remote", "198.18.5.5", "--label", 99)
    dst = network.route_to(nexthop)
    packet = udp_packet(6, T1, dst)
    with router.drops(nexthop_unresolved=1):
        out = router.run("t1", from_guest(T1, packet))
    assert len(out) == 1 and out[0].port == "t1"  # ICMP: address unreachable
    with router.drops():
        assert_nothing(router.run("t1"))


@combinations
def test_any_payload_goes_through(network, router, encap, under, inner):
    """Bytes behind the inner IP header are not checked: they belong to the tenant."""
    packet = udp_packet(inner, T1, network.tunnel(encap, under), payload=b"")
    packet[UDP].len, packet[UDP].chksum = 3, 1
    out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host(encap, under, forwarded(packet), out[0].data)))
