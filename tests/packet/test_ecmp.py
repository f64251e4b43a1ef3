# SPDX-License-Identifier: Apache-2.0
"""ECMP over two fabric ports and over groups of tunnels. A flow keeps its path when another path fails."""
import ipaddress
import struct

import pytest

from packets import assert_nothing, from_guest, udp_packet
from topology import FAMILIES, HOST, OVERLAYS, T1, WITH_VNI

FAR = {4: "203.0.113.9", 6: "2001:db8:99::9"}
FLOWS = 600


@pytest.fixture(scope="module")
def fabric(network):
    """A second link; the prefix of FAR is behind both."""
    r = network.router
    r.add_fabric("fab1", address=("198.51.100.1/24", "2001:db8:1::1/64"), host=("198.51.100.2", "2001:db8:1::2"),
                 host_mac="02:00:00:00:f1:02", mac="02:00:00:00:f1:01")
    group = {}
    for family, prefix, over in ((4, "203.0.113.0/24", "198.51.100.2"), (6, "2001:db8:99::/64", "2001:db8:1::2")):
        a, b, group[family] = network.new_id(), network.new_id(), network.new_id()
        r.cli("nexthop", "add", a, "port", "fab0", "--address", HOST[family])
        r.cli("nexthop", "add", b, "port", "fab1", "--address", over)
        r.cli("nexthop", "add", group[family], "group", f"{a}:1", f"{b}:1")
        r.cli("route", "add", prefix, "--vrf", "fabric", "--nexthop", group[family])
        group[family, "members"] = a, b
    yield group
    for prefix in ("203.0.113.0/24", "2001:db8:99::/64"):
        r.cli("route", "del", prefix, "--vrf", "fabric")


def tunnel(network, encap, under, remote=None, tag=300):
    nexthop = network.new_id()
    ids = ("--vni", tag) if encap in WITH_VNI else ("--label", tag)
    network.router.cli("nexthop", "add", nexthop, "tunnel", "--encap", encap, "--remote", remote or FAR[under], *ids)
    return nexthop


def ways(router, dst, family=4, flows=FLOWS):
    """Sends one packet of each flow; returns the path of each: (port, outer destination). Built by hand, because scapy is slow."""
    template = bytes(from_guest(T1, udp_packet(family, T1, dst, payload=bytes(8))))
    udp = 14 + (20 if family == 4 else 40)
    frames = [template[:udp] + struct.pack("!H", 2000 + i) + template[udp + 2:-4] + struct.pack("!I", i) for i in range(flows)]
    way = {}
    router.settle()
    for start in range(0, flows, 200):
        for port, data, _ in router.run("t1", *frames[start:start + 200]):
            number = struct.unpack("!I", data[-4:])[0]
            assert number not in way
            raw = data[30:34] if data[12:14] == b"\x08\0" else data[38:54]
            way[number] = port, str(ipaddress.ip_address(raw))
    return [way.get(i) for i in range(flows)]


def share(way, of):
    return sum(w is not None and of in w for w in way) / len(way)


@pytest.mark.parametrize("encap", OVERLAYS)
@pytest.mark.parametrize("under", FAMILIES)
def test_two_links(network, router, fabric, encap, under):
    dst = network.route_to(tunnel(network, encap, under))
    for inner in FAMILIES:
        way = ways(router, dst, inner, 400)
        assert None not in way and 0.35 < share(way, "fab0") < 0.65
        assert ways(router, dst, inner, 400) == way


def test_link_loss(network, router, fabric):
    """All flows continue over the other link. Half of them return when the link is back, and no other flow moves."""
    dst = network.route_to(tunnel(network, "mplsoudp", 4))
    before = ways(router, dst)
    router.cli("port", "set", "fab1", "--disabled")
    try:
        with router.drops():
            during = ways(router, dst)
        assert {w[0] for w in during} == {"fab0"}
    finally:
        router.cli("port", "set", "fab1", "--disabled=false")
        router.wait_up("fab1")
    after = ways(router, dst)
    assert 0.35 < share(before, "fab0") < 0.65 and 0.35 < share(after, "fab0") < 0.65
    assert ways(router, dst) == after


def test_weights_of_links(network, router, fabric):
    a, b = fabric[4, "members"]
    router.cli("nexthop", "add", fabric[4], "group", f"{a}:1", f"{b}:3", "--replace")
    try:
        way = ways(router, network.route_to(tunnel(network, "mplsoudp", 4)))
        assert 0.17 < share(way, "fab0") < 0.33
    finally:
        router.cli("nexthop", "add", fabric[4], "group", f"{a}:1", f"{b}:1", "--replace")


def test_group_of_tunnels(network, router, fabric):
    """Weights 1, 2 and 5; a member that loses its route and gets it back."""
    remotes = ["203.0.113.21", "203.0.113.22", "203.0.113.25"]
    via = fabric[4, "members"][0]
    router.cli("route", "add", *(f"{a}/32" for a in remotes), "--vrf", "fabric", "--nexthop", via)
    members = [tunnel(network, e, 4, remote=a) for e, a in zip(OVERLAYS, remotes)]
    group = network.new_id()
    router.cli("nexthop", "add", group, "group", *(f"{m}:{w}" for m, w in zip(members, (1, 2, 5))))
    dst = network.route_to(group)
    for inner in FAMILIES:
        way = ways(router, dst, inner)
        assert None not in way
        for remote, weight in zip(remotes, (1, 2, 5)):
            assert abs(share(way, remote) - weight / 8) < 0.06
    before = ways(router, dst)
    # 203.0.113.25 has the most flows. Its host route is replaced; without one the prefix's route would still lead there.
    discard = network.new_id()
    router.cli("nexthop", "add", discard, "discard")
    router.cli("route", "add", "203.0.113.25/32", "--vrf", "fabric", "--nexthop", discard)
    with router.drops():
        during = ways(router, dst)
    assert None not in during and share(during, remotes[2]) == 0
    assert all(b == d for b, d in zip(before, during) if b[1] != remotes[2])
    router.cli("route", "add", "203.0.113.25/32", "--vrf", "fabric", "--nexthop", via)
    after = ways(router, dst)
    for remote, weight in zip(remotes, (1, 2, 5)):
        assert abs(share(after, remote) - weight / 8) < 0.06
    # A new weight moves no more flows than it must: from 2 of 8 to 2 of 4.
    router.cli("nexthop", "add", group, "group", f"{members[0]}:1", f"{members[1]}:2", f"{members[2]}:1", "--replace")
    changed = ways(router, dst)
    assert abs(share(changed, remotes[1]) - 0.5) < 0.08
    assert sum(a != c for a, c in zip(after, changed)) < 0.5 * FLOWS


def test_group_without_a_way(network, router, fabric):
    group, member = network.new_id(), network.new_id()
    router.cli("nexthop", "add", member, "tunnel", "--encap", "mplsoudp", "--remote", "198.18.7.7", "--label", 99)
    router.cli("nexthop", "add", group, "group", f"{member}:1")
    packet = udp_packet(4, T1, network.route_to(group))
    with router.drops(nexthop_unresolved=1):
        out = router.run("t1", from_guest(T1, packet))
    assert [o.port for o in out] == ["t1"]  # ICMP
    with router.drops():
        assert_nothing(router.run("t1"))


def test_group_of_guests(network, router):
    """Anycast among local guests is distributed by flow, too."""
    t2, b = network.new_id(), network.new_id()
    router.cli("nexthop", "add", t2, "port", "t2", "--mac", "02:00:00:00:01:12")
    router.cli("nexthop", "add", b, "port", "b1", "--mac", "02:00:00:00:02:11")
    group = network.new_id()
    router.cli("nexthop", "add", group, "group", t2, b)
    way = ways(router, network.route_to(group), flows=300)
    assert None not in way and 0.4 < share(way, "t2") < 0.6
