# SPDX-License-Identifier: Apache-2.0
"""VRFs over VXLAN: two nodes that get nothing but intent files, and a host with FRR over the kernel's VXLAN device, exchange IP
prefixes by EVPN (type 5, RFC 9136, the model without an interface) through an FRR route reflector.

  guest -- corelaned -- fab0 --+-- bridge of the fabric -- reflector
                     agent ----+
  guest -- VRF -- vxlan -------+
        zebra, bgpd
"""
import contextlib
import os

import pytest

from fabric import BGPD, Fabric, RoutedVtep, complete, guest, in_step
from namespaces import answers, wait, wait_for_all_answers

pytestmark = pytest.mark.skipif(not os.path.exists(BGPD), reason="frr is not installed")

VNI = 200
INSTANCE = f"""
instances:
  - vrf: red
    vni: {VNI}
"""
NEAR, FAR, FOREIGN = "10.1.1.11", "10.1.2.12", "10.1.3.13"
FOREIGN_NET = "10.1.3.0/24"


class Lab:
    def __init__(self, stack):
        self.fabric = Fabric(stack, [1, 2], others=["192.0.2.3"])
        self.one, self.two = self.fabric.nodes[1], self.fabric.nodes[2]
        self.vtep = RoutedVtep(self.fabric.space, 3, VNI, FOREIGN)
        stack.callback(self.vtep.close)
        for n in (self.one, self.two):
            n.tell("red", INSTANCE)
        self.near, self.far = guest(stack, self.one, "vm1", NEAR), guest(stack, self.two, "vm2", FAR)

    def logs(self):
        return f"{self.one.log()}\n{self.one.ask('bgp', 'paths')}\n{self.vtep.vtysh('show bgp l2vpn evpn route')}"


@pytest.fixture(scope="module")
def lab():
    with contextlib.ExitStack() as stack:
        yield Lab(stack)


def tunnels(node):
    """The tunnel of each remote prefix of the VRF."""
    hops = {n["id"]: n["tunnel"] for n in node.daemon.cli("nexthop", "list") if "tunnel" in n}
    return {r["prefix"]: hops[r["nexthop"]] for r in node.daemon.cli("route", "list", "--vrf", "red") if r["nexthop"] in hops}


def test_prefixes_lead_to_other_hosts(lab):
    try:
        wait(lambda: answers(lab.near, FAR), f"answer of {FAR}", 60)
        wait(lambda: answers(lab.near, FOREIGN), f"answer of {FOREIGN}", 60)
    except AssertionError as e:
        raise AssertionError(f"{e}\n{lab.logs()}") from e
    for space, address in ((lab.near, FAR), (lab.near, FOREIGN), (lab.vtep.guest, NEAR), (lab.vtep.guest, FAR)):
        wait_for_all_answers(space, address, [lab.one.daemon, lab.two.daemon])
    found = tunnels(lab.one)
    router = lab.two.daemon.cli("vrf", "show", "red")[0]["router_mac"]
    for prefix, remote, mac in ((FAR + "/32", lab.two.address, router), (FOREIGN_NET, lab.vtep.address, lab.vtep.router_mac)):
        t = found[prefix]
        assert (t["remote"], t["encap"], t["vni"], t["router_mac"]) == (remote, "ENCAP_VXLAN", VNI, mac), prefix
    assert "label" not in lab.one.ask("instance", "list")[0] or not lab.one.ask("instance", "list")[0]["label"]


def test_what_frr_has(lab):
    """Its text shows the route, the target that follows from asn and vni, the encapsulation and the router MAC."""
    wait(lambda: answers(lab.near, FOREIGN), "answer", 60)
    mine = lab.one.daemon.cli("vrf", "show", "red")[0]["router_mac"]
    paths = [p for route, list_ in lab.vtep.routes().items() if route.startswith("[5]") and f"[32]:[{NEAR}]" in route
             for entry in list_ for p in (entry if isinstance(entry, list) else [entry])]
    assert paths, lab.vtep.routes()
    said = paths[0]["extendedCommunity"]["string"]
    assert f"RT:65000:{VNI}" in said and "ET:8" in said and f"Rmac:{mine}" in said, said
    assert f"{NEAR} " in lab.vtep.tenant.ip("route") or f"{NEAR}/32" in lab.vtep.tenant.ip("route")


def test_each_path_has_a_verdict(lab):
    wait(lambda: answers(lab.near, FOREIGN), "answer", 60)
    used = {p["prefix"]: p for p in lab.one.ask("bgp", "paths", "--vrf", "red") if p["verdict"] == "used"}
    p = used[FOREIGN_NET]
    assert (p["kind"], p["vni"], p["router_mac"]) == ("prefix", VNI, lab.vtep.router_mac)
    assert all(s["ok"] for s in lab.one.ask("why-not", FOREIGN_NET, "--vrf", "red"))


def test_a_restarted_agent_changes_nothing(lab):
    """Packets of others to this host are not counted: FRR before 10.6 withdraws the paths of EVPN when a session ends."""
    wait(lambda: answers(lab.near, FOREIGN) and in_step(lab.one) and complete(lab.one), "answer", 60)
    before = tunnels(lab.one), lab.one.daemon.cli("vni", "list")
    lab.one.kill_agent()
    assert (tunnels(lab.one), lab.one.daemon.cli("vni", "list")) == before
    lab.one.start_agent()
    wait(lambda: complete(lab.one), f"state in step\n{lab.one.log()}", 60)
    assert int(lab.one.ask("bgp", "show")[0]["sync"]["changes"]) == 0, "a restart changed objects"
    assert (tunnels(lab.one), lab.one.daemon.cli("vni", "list")) == before
    wait(lambda: answers(lab.near, FOREIGN) and answers(lab.vtep.guest, NEAR), "answer after the restart", 60)


def test_a_prefix_is_withdrawn(lab):
    wait(lambda: FOREIGN_NET in tunnels(lab.one), "prefix of FRR", 60)
    lab.vtep.tenant.ip("link", "set", "p0", "down")
    wait(lambda: FOREIGN_NET not in tunnels(lab.one), "end of the prefix")
    assert [s["name"] for s in lab.one.ask("why-not", FOREIGN_NET, "--vrf", "red") if not s["ok"]] == ["received"]
