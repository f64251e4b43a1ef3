# SPDX-License-Identifier: Apache-2.0
"""Two nodes that get nothing but intent files exchange routes over an FRR route reflector; tenants on them ping each other, and
go on doing so while the agents and the reflector are killed."""
import contextlib
import os

import pytest

from fabric import BGPD, Fabric, Flow, FrrReflector, complete, guest, in_step
from namespaces import answers, wait, wait_for_all_answers

pytestmark = pytest.mark.skipif(not os.path.exists(BGPD), reason="frr is not installed")

INSTANCE = """
instances:
  - vrf: red
    import_targets: ["65000:100"]
    export_targets: ["65000:100"]
"""
NEAR, FAR = "10.1.1.11", "10.1.2.12"
KILLED = ["agents", "reflector", "all"]
# Over other reflectors than FRR the first two are left to `make fleet`, because they take half a minute.
KILLED_ELSEWHERE = KILLED if os.environ.get("CORELANE_FLEET") else ["all"]


class Lab:
    def __init__(self, stack, reflector=FrrReflector, fabric=None):
        self.fabric = fabric or Fabric(stack, [1, 2], reflector=reflector)
        self.one, self.two = self.fabric.nodes[1], self.fabric.nodes[2]
        for n in (self.one, self.two):
            n.tell("red", INSTANCE)
        self.near, self.far = guest(stack, self.one, "red1", NEAR), guest(stack, self.two, "red2", FAR)


@pytest.fixture(scope="module")
def lab():
    with contextlib.ExitStack() as stack:
        yield Lab(stack)


def test_tenants_reach_each_other(lab):
    wait(lambda: answers(lab.near, FAR), f"answer of {FAR}\n{lab.one.log()}\n{lab.two.log()}", 60)
    wait_for_all_answers(lab.near, FAR, [lab.one.daemon, lab.two.daemon])
    routes = [r for r in lab.one.daemon.cli("route", "list", "--vrf", "red") if r["prefix"] == FAR + "/32"]
    assert [r["origin"] for r in routes] == ["agent"]
    tunnel = lab.one.daemon.cli("nexthop", "show", routes[0]["nexthop"])[0]["tunnel"]
    assert (tunnel["remote"], tunnel["encap"]) == (lab.two.address, "ENCAP_MPLSOUDP")
    used = [p for p in lab.one.ask("bgp", "paths", "--vrf", "red") if p["verdict"] == "used"]
    assert [(p["prefix"], p["label"]) for p in used] == [(FAR + "/32", tunnel["label"])]
    stages = lab.one.ask("why-not", FAR, "--vrf", "red")
    assert all(s["ok"] for s in stages) and stages[-1]["name"] == "forwarding" and "leaves by fab0" in stages[-1]["evidence"], stages


def test_own_routes_come_back_from_the_reflector_and_are_not_used(lab):
    wait(lambda: answers(lab.near, FAR), "answer", 60)
    own = [p for p in lab.one.ask("bgp", "paths") if p["prefix"] == NEAR + "/32"]
    assert {p["verdict"] for p in own} <= {"announced", "own"}


def test_one_bad_object_blocks_no_other(lab):
    lab.one.tell("bad", "attachments:\n  - port: {name: bad, role: PORT_ROLE_TENANT, vrf: red, tap: {netns: /nowhere}}\n"
                        "instances:\n  - vrf: no/name\n")
    try:
        wait(lambda: any(a["error"] for a in lab.one.ask("attachment", "list")), "refusal of the port")
        wrong = [o for o in lab.one.ask("bgp", "show")[0]["objects"] if o["error"]]
        assert [(o["kind"], os.path.basename(o["file"]), o["line"]) for o in wrong] == [("instance", "bad.yaml", 4)]
        wait(lambda: answers(lab.near, FAR), "answer")
        lab.one.tell("more", INSTANCE.replace("red", "green"))
        wait(lambda: any(v["name"] == "green" for v in lab.one.daemon.cli("vrf", "list")), "VRF green beside the bad port")
    finally:
        lab.one.forget("bad")
        lab.one.forget("more")
    wait(lambda: in_step(lab.one), "state in step")


def kill_and_count(lab, who, *others):
    """others: a namespace and an address to which its packets are counted, too."""
    wait(lambda: answers(lab.near, FAR) and in_step(lab.one) and in_step(lab.two), "answer", 60)
    before = {n: n.daemon.cli("route", "list", "--vrf", "red") for n in (lab.one, lab.two)}
    labels = {n: n.ask("instance", "list")[0]["label"] for n in (lab.one, lab.two)}
    flows = [Flow(space, to) for space, to in ((lab.near, FAR), *others)]
    if who in ("agents", "all"):
        for n in (lab.one, lab.two):
            n.kill_agent()
    if who in ("reflector", "all"):
        lab.fabric.reflector.kill()
    wait(lambda: answers(lab.near, FAR), "answer")
    if who in ("reflector", "all"):
        lab.fabric.reflector.start()
    if who in ("agents", "all"):
        for n in (lab.one, lab.two):
            n.start_agent()
    for n in (lab.one, lab.two):
        wait(lambda n=n: complete(n), f"state in step without anything stale\n{n.log()}", 60)
        assert n.daemon.cli("route", "list", "--vrf", "red") == before[n], "a restart changed routes"
        assert n.ask("instance", "list")[0]["label"] == labels[n]
        if who != "reflector":
            assert int(n.ask("bgp", "show")[0]["sync"]["changes"]) == 0, "a restart changed objects"
    counts = [f.stop() for f in flows]
    assert all(lost == 0 for _, lost in counts), f"packets that were sent and lost: {counts}"


@pytest.mark.parametrize("who", KILLED)
def test_nothing_stops_when_it_is_killed(lab, who):
    kill_and_count(lab, who)


def test_a_guest_that_goes_is_withdrawn(lab):
    lab.two.forget("red2")
    try:
        wait(lambda: not [r for r in lab.one.daemon.cli("route", "list", "--vrf", "red") if r["prefix"] == FAR + "/32"],
             "end of the route")
    finally:
        stages = lab.one.ask("why-not", FAR, "--vrf", "red")
    assert [s["name"] for s in stages if not s["ok"]] == ["received"]
