# SPDX-License-Identifier: Apache-2.0
"""Routes, their changes, which are in effect when the command returns, and the separation of tenants."""
import pytest

from packets import assert_nothing, assert_out, forwarded, from_guest, from_host, to_guest, to_host, udp_packet
from topology import B1, BLUE, FAMILIES, RED, T1, T2

PREFIXES = {4: ["0.0.0.0/0", "172.16.0.0/12", "172.16.0.0/16", "172.16.5.0/24", "172.16.5.6/32"],
            6: ["::/0", "fdaa::/16", "fdaa:5::/32", "fdaa:5:6::/48", "fdaa:5:6::7/128"]}
# For each prefix, an address whose longest match it is.
WITHIN = {4: ["203.0.113.5", "172.17.0.1", "172.16.4.1", "172.16.5.7", "172.16.5.6"],
          6: ["2001:db8:77::1", "fdaa:1::1", "fdaa:5:1::1", "fdaa:5:6::8", "fdaa:5:6::7"]}


@pytest.mark.parametrize("family", FAMILIES)
def test_longest_match(network, router, family):
    tunnels = [network.tunnel("mplsoudp", 4, tag=5000 + i)["id"] for i in range(5)]
    for prefix, nexthop in zip(PREFIXES[family], tunnels):
        router.cli("route", "add", prefix, "--vrf", "red", "--nexthop", nexthop)
    try:
        packets = [udp_packet(family, T1, {family: a}) for a in WITHIN[family]]

        def check(tags):
            out = router.run("t1", *(from_guest(T1, p) for p in packets))
            assert_out(out, *(("fab0", to_host("mplsoudp", 4, forwarded(p), o.data, tag=5000 + t)) for p, o,
                              t in zip(packets, out, tags)))

        check([0, 1, 2, 3, 4])
        router.cli("route", "del", PREFIXES[family][2], "--vrf", "red")
        check([0, 1, 1, 3, 4])
        router.cli("route", "del", PREFIXES[family][4], "--vrf", "red")
        check([0, 1, 1, 3, 3])
        router.cli("route", "add", PREFIXES[family][2], "--vrf", "red", "--nexthop", tunnels[4])
        check([0, 1, 4, 3, 3])
        router.cli("route", "add", PREFIXES[family][3], "--vrf", "red", "--nexthop", tunnels[0])
        check([0, 1, 4, 0, 0])
        router.cli("route", "add", PREFIXES[family][4], "--vrf", "red", "--nexthop", tunnels[4])
    finally:
        for prefix in PREFIXES[family]:
            router.cli("route", "del", prefix, "--vrf", "red")
    with router.drops(ip_no_route=5):
        assert len(router.run("t1", *(from_guest(T1, p) for p in packets))) == 5  # ICMP


def test_a_next_hop_is_replaced(network, router):
    """A change of a next hop applies to all routes that name it."""
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "tunnel", "--encap", "mplsoudp", "--remote", "192.0.2.2", "--label", RED)
    packet = udp_packet(4, T1, network.route_to(nexthop))
    out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host("mplsoudp", 4, forwarded(packet), out[0].data)))
    router.cli("nexthop", "add", nexthop, "tunnel", "--encap", "vxlan", "--remote", "2001:db8::2", "--vni", 5001, "--router-mac",
               "02:00:00:00:aa:02",
               "--replace")
    out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("fab0", to_host("vxlan", 6, forwarded(packet), out[0].data)))
    router.cli("nexthop", "add", nexthop, "port", "t2", "--mac", T2["mac"], "--replace")
    assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest(T2, forwarded(packet))))


@pytest.mark.parametrize("family", FAMILIES)
def test_tenants_are_apart(network, router, family):
    """The same addresses in two VRFs, and addresses that only one of them has."""
    red, blue = network.tunnel("mplsoudp", 4), network.tunnel("mplsoudp", 4, vrf="blue", tag=BLUE)
    to_each_other = udp_packet(family, B1, T2)  # T2 exists in red only
    with router.drops(ip_no_route=1):
        out = router.run("b1", from_guest(B1, to_each_other))
    assert [o.port for o in out] == ["b1"]  # ICMP
    with router.drops(ip_no_route=2):
        assert {o.port for o in router.run("t1", from_guest(T1, udp_packet(family, T1, blue)))} == {"t1"}
        assert {o.port for o in router.run("b1", from_guest(B1, udp_packet(family, B1, red)))} == {"b1"}
    packet = udp_packet(family, blue, B1)
    with router.drops():
        assert_out(router.run("fab0", from_host("vxlan", 6, packet, tag=BLUE)), ("b1", to_guest(B1, forwarded(packet))))
        assert_out(router.run("fab0", from_host("vxlan", 6, packet, tag=RED)), ("t1", to_guest(T1, forwarded(packet))))
    for guest, port, dst, tag in ((T1, "t1", red, RED), (B1, "b1", blue, BLUE)):
        packet = udp_packet(family, guest, dst)
        out = router.run(port, from_guest(guest, packet))
        assert_out(out, ("fab0", to_host("mplsoudp", 4, forwarded(packet), out[0].data, tag=tag)))


@pytest.mark.parametrize("family", FAMILIES)
def test_from_tunnel_to_tunnel(network, router, family):
    """A packet from a tunnel that leaves by a tunnel loses a hop, so that a loop between two hosts ends."""
    for encap_in, under_in, encap_out, under_out in (("mplsoudp", 4, "mplsoudp", 4), ("vxlan", 6, "mplsogre", 4),
                                                     ("mplsogre", 4, "vxlan", 6)):
        packet = udp_packet(family, {4: "10.2.0.9", 6: "fd00:2::9"}, network.tunnel(encap_out, under_out), ttl=3)
        for _ in range(2):
            with router.drops():
                out = router.run("fab0", from_host(encap_in, under_in, packet))
            packet = forwarded(packet)
            assert_out(out, ("fab0", to_host(encap_out, under_out, packet, out[0].data)))
        with router.drops(ip_ttl_exceeded=1, ip_no_route=1):  # there is no route to the sender either, so the error is dropped
            assert_nothing(router.run("fab0", from_host(encap_in, under_in, packet)))


def test_a_guest_reaches_no_underlay(network, router):
    """No tenant's VRF has a route to the fabric's addresses and hosts."""
    addresses = [{4: a, 6: b} for a, b in (("192.0.2.1", "2001:db8::1"), ("192.0.2.2", "2001:db8::2"))]
    with router.drops(ip_no_route=4):
        out = router.run("t1", *(from_guest(T1, udp_packet(f, T1, a)) for a in addresses for f in FAMILIES))
    assert {o.port for o in out} == {"t1"}


def test_a_vrf_comes_and_goes(network, router):
    guest = {4: "10.1.0.11", 6: "fd00:1::11", "mac": "02:00:00:00:05:11"}
    for _ in range(2):
        router.cli("vrf", "add", "green")
        router.add_tenant("g1", vrf="green", gateway=("10.1.0.1/24", "fd00:1::1/64"), guest=(guest[4], guest[6]),
                          guest_mac=guest["mac"])
        router.cli("label", "add", 1099, "vrf", "green")
        packet = udp_packet(4, {4: "10.2.0.9"}, guest)
        assert_out(router.run("fab0", from_host("mplsoudp", 4, packet, tag=1099)), ("g1", to_guest(guest, forwarded(packet))))
        router.del_port("g1")
        with router.drops(ip_no_route=1):
            assert_nothing(router.run("fab0", from_host("mplsoudp", 4, packet, tag=1099)))
        router.cli("label", "del", 1099)
        router.cli("vrf", "del", "green")
        with router.drops(mpls_unknown_label=1):
            assert_nothing(router.run("fab0", from_host("mplsoudp", 4, packet, tag=1099)))


def test_port_that_is_down(network, router):
    packet = udp_packet(4, T1, T2)
    router.cli("port", "set", "t2", "--disabled")
    try:
        with router.drops(port_down=1):
            assert_nothing(router.run("t1", from_guest(T1, packet)))
    finally:
        router.cli("port", "set", "t2", "--disabled=false")
        router.wait_up("t2")
    assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest(T2, forwarded(packet))))


def test_guest_of_a_disabled_port(network, router):
    """Whoever disables a port does not want the guest's packets any more."""
    packet = udp_packet(4, T1, T2)
    router.cli("port", "set", "t1", "--disabled")
    try:
        with router.drops(port_disabled=1):
            assert_nothing(router.run("t1", from_guest(T1, packet), fence="t2"))
    finally:
        router.cli("port", "set", "t1", "--disabled=false")
        router.wait_up("t1")
    assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest(T2, forwarded(packet))))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prefix_behind_a_guest(network, router, family):
    """A guest that is a router itself gets all packets of its prefix at its MAC."""
    prefix, inside = {4: ("10.66.0.0/16", "10.66.7.8"), 6: ("fd66::/64", "fd66::78")}[family]
    guests = [T2[4], T2[6]]
    router.cli("port", "set", "t2", "--guest-address", ",".join([*guests, prefix]))
    try:
        packet = udp_packet(family, T1, {family: inside})
        assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest(T2, forwarded(packet))))
    finally:
        router.cli("port", "set", "t2", "--guest-address", ",".join(guests))
    with router.drops(ip_no_route=1):
        assert len(router.run("t1", from_guest(T1, packet))) == 1  # ICMP


@pytest.mark.parametrize("family", FAMILIES)
def test_by_way_of_a_guest(network, router, family):
    """A route to a next hop on a guest's port, which is given by its address."""
    via = {4: "10.1.0.40", 6: "fd00:1::40"}[family]
    mac = "02:00:00:00:01:40"
    router.cli("neighbor", "add", "t2", via, mac)
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "port", "t2", "--address", via)
    packet = udp_packet(family, T1, network.route_to(nexthop))
    assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest({"mac": mac}, forwarded(packet))))


def test_several_queues(network, router):
    """A port with several queues: each packet comes out once."""
    guest = {4: "10.1.0.60", 6: "fd00:1::60", "mac": "02:00:00:00:01:60"}
    router.add_tenant("q1", "--queues", 2, vrf="red", gateway="10.1.0.1/24", guest=guest[4], guest_mac=guest["mac"])
    try:
        packets = [udp_packet(4, guest, T1, sport=1000 + i) for i in range(40)]
        out = router.run("q1", *(from_guest(guest, p) for p in packets))
        assert_out(out, *(("t1", to_guest(T1, forwarded(p))) for p in packets), ordered=False)
        back = [udp_packet(4, T1, guest, dport=1000 + i) for i in range(40)]
        out = router.run("t1", *(from_guest(T1, p) for p in back))
        assert_out(out, *(("q1", to_guest(guest, forwarded(p))) for p in back))
    finally:
        router.del_port("q1")
