# SPDX-License-Identifier: Apache-2.0
"""GoBGP as the route reflector, with TCP MD5 (RFC 2385) on all sessions and RT constraint (RFC 4684) on those of the nodes, which FRR
does not know: the checks of test_evpn.py and test_fabric.py in one fabric. 'make fleet' also runs them without RT constraint.
GoBGP keeps the paths of EVPN, too, while an agent is away, so that packets between bridges are counted as well."""
import contextlib
import os

import pytest

import test_evpn
import test_fabric
from fabric import BGPD, GobgpReflector, guest
from namespaces import answers, wait
from test_evpn import settled, test_a_guest_moves_between_nodes, test_guests_reach_each_other

__all__ = ["test_a_guest_moves_between_nodes", "test_guests_reach_each_other"]
pytestmark = pytest.mark.skipif(not os.path.exists(BGPD), reason="frr is not installed")

PASSWORD = "fabric"


class Reflector(GobgpReflector):
    options = ("--password", PASSWORD)


class Constrained(Reflector):
    options = ("--rtc", "--llgr", "3600", *Reflector.options)


@pytest.fixture(scope="module", params=[Constrained, Reflector] if os.environ.get("CORELANE_FLEET") else [Constrained],
                ids=lambda r: r.__name__.lower())
def lab(request):
    with contextlib.ExitStack() as stack:
        yield test_evpn.Lab(stack, PASSWORD, reflector=request.param)


@pytest.fixture(scope="module")
def red(lab):
    return test_fabric.Lab(lab.stack, fabric=lab.fabric)


def test_tenants_of_vrfs_reach_each_other(red):
    test_fabric.test_tenants_reach_each_other(red)
    test_fabric.test_own_routes_come_back_from_the_reflector_and_are_not_used(red)


@pytest.mark.parametrize("who", test_fabric.KILLED_ELSEWHERE)
def test_nothing_stops_when_it_is_killed(lab, red, who):
    wait(lambda: settled(lab), f"answer\n{lab.logs()}", 60)
    test_fabric.kill_and_count(red, who, (lab.near, test_evpn.FAR))


def test_paths_of_a_node_whose_agent_stays_away(lab, red):
    """LLGR (RFC 9494): after the restart time the paths are used where there is nothing better."""
    if not isinstance(lab.fabric.reflector, Constrained):
        pytest.skip("this reflector has no LLGR")

    def of_one():
        return [(p["stale"], p["verdict"]) for p in lab.two.ask("bgp", "paths", "--vrf", "red") if p["prefix"] == test_fabric.NEAR + "/32"]

    def peer():
        return lab.one.ask("bgp", "show")[0]["peers"][0]

    def heard():
        """The session after the one that ends when the restart time is another: the reflector knows that time only from its OPEN."""
        now = peer()
        return now["state"] == "established" and now["end_of_rib"] and int(now["since_ns"]) > before

    wait(lambda: of_one() == [(False, "used")], "path of the first node")
    before = int(peer()["since_ns"])
    lab.one.tell_bgp(f"password: {PASSWORD}", "restart_seconds: 1")
    try:
        wait(heard, f"session with the other restart time, but {peer()}")
        lab.one.kill_agent()
        wait(lambda: of_one() == [(True, "used")], "mark of the path as long-lived and stale")
        wait(lambda: answers(red.far, test_fabric.NEAR), "answer by the stale path")
    finally:
        lab.one.tell_bgp(f"password: {PASSWORD}")
        if lab.one.agent.poll() is not None:
            lab.one.start_agent()
    wait(lambda: of_one() == [(False, "used")], "path without the mark")


def test_no_other_host_hears_who_is_asked_for(lab):
    """Neighbor suppression: the address of a guest that is away is resolved all the same."""
    def known():
        return next((m["addresses"] for m in lab.one.daemon.cli("mac", "list", "--bridge", "lan") if m["mac"] == test_evpn.FAR_MAC), [])

    for n in (lab.one, lab.two):
        n.tell("lan", test_evpn.SEGMENT + "    neighbor_suppression: true\n")
    wait(lambda: known() == [test_evpn.FAR], f"address of the other node's guest\n{lab.logs()}")
    lab.far.ip("link", "set", "vm2", "down")
    try:
        lab.near.ip("neighbor", "flush", "all")
        assert not answers(lab.near, test_evpn.FAR)
        assert test_evpn.FAR_MAC in lab.near.ip("neighbor", "show", "to", test_evpn.FAR)
    finally:
        lab.far.ip("link", "set", "vm2", "up")
    wait(lambda: answers(lab.near, test_evpn.FAR), "answer of the guest that is back")


def test_only_routes_of_own_vrfs_come(lab, red):
    """Without RT constraint those of others come, too, and are not imported."""
    prefix = "10.1.9.1/32"

    def instance(vrf, number):
        return test_fabric.INSTANCE.replace("red", vrf).replace("65000:100", f"65000:{number}")

    def verdicts():
        return sorted(p["verdict"] for p in lab.two.ask("bgp", "paths") if p["prefix"] == prefix)

    foreign = [] if isinstance(lab.fabric.reflector, Constrained) else ["not imported"]
    with contextlib.ExitStack() as stack:
        for vrf, number in (("blue", 200), ("green", 300)):
            lab.one.tell(vrf, instance(vrf, number))
            stack.callback(lab.one.forget, vrf)
        for vrf in ("blue", "red"):  # what has come of red has come after blue
            guest(stack, lab.one, vrf + "9", prefix[:-3], vrf)
            stack.callback(lab.one.forget, vrf + "9")
        wait(lambda: verdicts() == foreign + ["used"], f"path of red at the other node, which has {verdicts()}")
        lab.two.tell("green", instance("green", 300))
        stack.callback(lab.two.forget, "green")
        guest(stack, lab.one, "green9", prefix[:-3], "green")
        stack.callback(lab.one.forget, "green9")
        wait(lambda: verdicts() == foreign + ["used", "used"], f"path of green at the other node, which has {verdicts()}")
    wait(lambda: not verdicts(), f"end of the paths; there are {verdicts()}")


def test_a_wrong_password_ends_a_session_and_no_traffic(lab):
    def refused():
        return int(lab.fabric.space.run("nstat", "-asz", "TcpExtTCPMD5Failure").splitlines()[1].split()[1])

    def peer():
        return lab.one.ask("bgp", "show")[0]["peers"][0]

    wait(lambda: settled(lab), f"answer\n{lab.logs()}", 60)
    before = refused()
    lab.one.tell_bgp("password: wrong")
    try:
        wait(lambda: refused() > before, "segment that the reflector's kernel refuses")
        assert peer()["state"] != "established"
        wait(lambda: int(peer()["stale"]) > 0, "stale paths")
        wait(lambda: answers(lab.near, test_evpn.FAR), "answer without the session")
    finally:
        lab.one.tell_bgp(f"password: {PASSWORD}")
    wait(lambda: settled(lab), f"state in step\n{lab.logs()}", 60)
