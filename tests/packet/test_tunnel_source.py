# SPDX-License-Identifier: Apache-2.0
"""Labels and VNIs that accept packets only from some tunnel ends."""
import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from daemon import Refused
from packets import assert_nothing, assert_out, forwarded, from_host, to_guest, udp_packet
from topology import FAMILIES, HOST, OVERLAYS, RED, T1, ids_of, vni

FAR = {4: "10.2.0.9", 6: "fd00:2::9"}  # the sender's address inside
STRANGER = {4: "192.0.2.66", 6: "2001:db8::66"}
FILTERED = RED + 100

outsides = pytest.mark.parametrize("encap,under", [(e, u) for e in OVERLAYS for u in FAMILIES])


@pytest.fixture
def hosts(network, router):
    router.cli("address-group", "add", "hosts", f"{HOST[4]}/32", f"{HOST[6]}/128")
    router.cli("label", "add", FILTERED, "vrf", "red", "--sources", "hosts")
    router.cli("vni", "add", vni(FILTERED), "vrf", "red", "--sources", "hosts")
    yield
    router.cli("label", "del", FILTERED)
    router.cli("vni", "del", vni(FILTERED))
    router.cli("address-group", "del", "hosts")


def frame(encap, under, packet, source, tag=FILTERED):
    f = from_host(encap, under, packet, tag=tag)
    f[IP if under == 4 else IPv6].src = source[under]
    return Ether(bytes(f))


@outsides
def test_only_the_listed_ends(hosts, router, encap, under):
    packet = udp_packet(4, FAR, T1)
    with router.drops(tunnel_source=1):
        out = router.run("fab0", frame(encap, under, packet, HOST), frame(encap, under, packet, STRANGER))
    assert_out(out, ("t1", to_guest(T1, forwarded(packet))))


@outsides
def test_without_a_list(network, router, encap, under):
    packet = udp_packet(4, FAR, T1)
    with router.drops():
        out = router.run("fab0", frame(encap, under, packet, STRANGER, tag=RED))
    assert_out(out, ("t1", to_guest(T1, forwarded(packet))))


def test_the_list_changes_at_once(hosts, router):
    packet = udp_packet(4, FAR, T1)
    frames = [frame(e, 4, packet, STRANGER) for e in OVERLAYS]
    router.cli("address-group", "set", "hosts", "192.0.2.64/30")
    with router.drops():
        out = router.run("fab0", *frames)
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * len(frames))
    router.cli("address-group", "set", "hosts", f"{HOST[4]}/32", f"{HOST[6]}/128")
    with router.drops(tunnel_source=len(frames)):
        assert_nothing(router.run("fab0", *frames))


@pytest.fixture
def ends(network, router):
    """A filter of the ends of this node's tunnels. Yields what adds a tunnel to a host."""
    router.cli("label", "add", FILTERED, "vrf", "red", "--tunnel-ends")
    router.cli("vni", "add", vni(FILTERED), "vrf", "red", "--tunnel-ends")
    added = []

    def tunnel(encap, remote):
        router.cli("nexthop", "add", 901, "tunnel", "--encap", encap, "--remote", remote, *ids_of(RED)[encap], "--replace")
        added[:] = [901]
    yield tunnel
    for nexthop in added:
        router.cli("nexthop", "del", nexthop)
    router.cli("label", "del", FILTERED)
    router.cli("vni", "del", vni(FILTERED))


@outsides
def test_only_the_ends_of_tunnels(ends, router, encap, under):
    packet = udp_packet(4, FAR, T1)
    far = {4: "198.18.77.7", 6: "2001:db8:99::77"}  # only this test's tunnel leads there, and no route
    ends(encap, far[under])
    with router.drops(tunnel_source=1):
        out = router.run("fab0", frame(encap, under, packet, far), frame(encap, under, packet, STRANGER))
    assert_out(out, ("t1", to_guest(T1, forwarded(packet))))
    ends(encap, far[10 - under])
    with router.drops(tunnel_source=1):
        assert_nothing(router.run("fab0", frame(encap, under, packet, far)))
    router.cli("address-group", "add", "others", f"{STRANGER[4]}/32", f"{STRANGER[6]}/128")
    router.cli("label", "add", FILTERED, "vrf", "red", "--tunnel-ends", "--sources", "others", "--replace")
    router.cli("vni", "add", vni(FILTERED), "vrf", "red", "--tunnel-ends", "--sources", "others", "--replace")
    ends(encap, far[under])
    with router.drops(tunnel_source=1):
        out = router.run("fab0", *(frame(encap, under, packet, s) for s in (far, STRANGER, {4: "192.0.2.67", 6: "2001:db8::67"})))
    assert_out(out, *[("t1", to_guest(T1, forwarded(packet)))] * 2)
    router.cli("label", "add", FILTERED, "vrf", "red", "--replace")
    router.cli("vni", "add", vni(FILTERED), "vrf", "red", "--replace")
    router.cli("address-group", "del", "others")


def test_replaced_in_place(hosts, router):
    packet = udp_packet(4, FAR, T1)
    router.cli("label", "add", FILTERED, "vrf", "red", "--replace")
    with router.drops():
        out = router.run("fab0", frame("mplsoudp", 4, packet, STRANGER))
    assert_out(out, ("t1", to_guest(T1, forwarded(packet))))
    router.cli("label", "add", FILTERED, "vrf", "red", "--sources", "hosts", "--replace")
    with router.drops(tunnel_source=1):
        assert_nothing(router.run("fab0", frame("mplsoudp", 4, packet, STRANGER)))


def test_the_group_is_in_use(hosts, router):
    with pytest.raises(Refused, match=f"is in use by label {FILTERED} .2 references in all."):
        router.cli("address-group", "del", "hosts")
    want = {"label": FILTERED, "vrf": "red", "uniform": False, "sources": "hosts", "tunnel_ends": False, "owner": "api"}
    assert want in router.cli("label", "list")
