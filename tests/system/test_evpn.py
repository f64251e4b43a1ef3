# SPDX-License-Identifier: Apache-2.0
"""Two nodes that get nothing but intent files, and a host with FRR over the kernel's VXLAN device, share an Ethernet segment over
EVPN (RFC 7432, RFC 8365) through an FRR route reflector: guests reach each other, and one moves.

  guest -- corelaned -- fab0 --+-- bridge of the fabric -- reflector
                     agent ----+
  guest -- bridge -- vxlan ----+
           zebra, bgpd
"""
import contextlib
import os

import pytest

from fabric import BGPD, MTU, Fabric, Flow, Vtep, bridged, complete, in_step
from namespaces import Namespace, answers, wait, wait_for_all_answers

pytestmark = pytest.mark.skipif(not os.path.exists(BGPD), reason="frr is not installed")

VNI = 100
SEGMENT = f"""
segments:
  - bridge: lan
    vni: {VNI}
"""
NEAR, FAR, FOREIGN = "10.9.0.1", "10.9.0.2", "10.9.0.3"
NEAR_MAC, FAR_MAC = "02:00:00:00:09:01", "02:00:00:00:09:02"


class Lab:
    def __init__(self, stack, password="", **options):
        self.stack = stack
        self.fabric = Fabric(stack, [1, 2], others=["192.0.2.3"], peer=password and f"password: {password}", **options)
        self.one, self.two = self.fabric.nodes[1], self.fabric.nodes[2]
        self.vtep = Vtep(self.fabric.space, 3, VNI, FOREIGN, password)
        stack.callback(self.vtep.close)
        for n in (self.one, self.two):
            n.tell("lan", SEGMENT)
        self.near = bridged(stack, self.one, "vm1", "lan", NEAR_MAC, NEAR)
        self.far = bridged(stack, self.two, "vm2", "lan", FAR_MAC, FAR)

    def move_to_vtep(self, stack, mac, address):
        space = Namespace("moved", MTU - 100)
        stack.callback(space.close)
        self.vtep.space.ip("link", "add", "p1", "type", "veth", "peer", "name", "eth0", "netns", space.name)
        self.vtep.space.ip("link", "set", "p1", "master", "br0", "up")
        stack.callback(self.vtep.space.ip, "link", "del", "p1")
        space.device("eth0", f"{address}/24", mac=mac)
        answers(space, NEAR)  # the guest is seen
        return space

    def logs(self):
        return f"{self.one.log()}\n{self.two.log()}\n{self.one.ask('bgp', 'paths')}\n{self.vtep.vtysh('show bgp l2vpn evpn route')}"


@pytest.fixture(scope="module")
def lab():
    with contextlib.ExitStack() as stack:
        yield Lab(stack)


def macs(node):
    """Where the bridge of a node has addresses that were given: a port, or the remote end of a tunnel."""
    tunnels = {n["id"]: n["tunnel"]["remote"] for n in node.daemon.cli("nexthop", "list") if "tunnel" in n}
    return {m["mac"]: m.get("port") or tunnels[m["nexthop"]] for m in node.daemon.cli("mac", "list", "--bridge", "lan")
            if not m.get("learnt")}


def sequence_at_vtep(lab, mac):
    """The sequence numbers of a MAC address by the host that announces it, as FRR has them."""
    found = {}
    for text, paths in lab.vtep.routes().items():
        if text.startswith("[2]") and f"[{mac}]" in text:
            for p in paths:
                for one in p if isinstance(p, list) else [p]:
                    if one.get("valid"):
                        mobility = one.get("extendedCommunity", {}).get("string", "")
                        number = int(mobility.split("MM:")[1].split()[0].rstrip(",")) if "MM:" in mobility else 0
                        found[one["nexthops"][0]["ip"]] = number
    return found


def test_guests_reach_each_other(lab):
    try:
        wait(lambda: answers(lab.near, FAR), f"answer of {FAR}", 60)
        wait(lambda: answers(lab.near, FOREIGN), f"answer of {FOREIGN}", 60)
    except AssertionError as e:
        raise AssertionError(f"{e}\n{lab.logs()}") from e
    want = {NEAR_MAC: "vm1", FAR_MAC: lab.two.address, lab.vtep.mac: lab.vtep.address}
    wait(lambda: macs(lab.one) == want, f"given addresses {want}; there are {macs(lab.one)}")
    wait(lambda: sequence_at_vtep(lab, NEAR_MAC) and sequence_at_vtep(lab, FAR_MAC), "paths of both nodes at FRR")
    for space, address in ((lab.near, FAR), (lab.far, NEAR), (lab.near, FOREIGN), (lab.vtep.guest, NEAR), (lab.vtep.guest, FAR)):
        wait_for_all_answers(space, address, [lab.one.daemon, lab.two.daemon])
    ends = {n["id"]: n["tunnel"]["remote"] for n in lab.one.daemon.cli("nexthop", "list") if "tunnel" in n}
    wait(lambda: {ends[i] for i in lab.one.daemon.cli("bridge", "show", "lan")[0]["flood"]} == {lab.two.address, lab.vtep.address},
         "list of the hosts that get floods")


def pause(space, interface):
    """The guest sends nothing more, not even answers to ARP."""
    space.run("sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1")
    space.ip("address", "flush", "dev", interface)


def test_a_guest_moves_between_nodes(lab):
    wait(lambda: answers(lab.vtep.guest, FAR), "answer before the move", 60)
    mac, address = "02:00:00:00:09:0a", "10.9.0.10"
    with contextlib.ExitStack() as stack:
        old = bridged(stack, lab.two, "vm10", "lan", mac, address)
        wait(lambda: sequence_at_vtep(lab, mac) == {lab.two.address: 0}, f"path at FRR, which has {lab.vtep.routes()}")
        wait(lambda: macs(lab.one).get(mac) == lab.two.address, "address at its host")
        pause(old, "vm10")  # with another frame it would take its address back
        space = bridged(stack, lab.one, "vm10", "lan", mac, address)  # the old host still has it, and gives it up
        wait(lambda: sequence_at_vtep(lab, mac) == {lab.one.address: 1}, f"sequence 1 at FRR, which has {lab.vtep.routes()}")
        wait(lambda: macs(lab.two).get(mac) == lab.one.address, "address at its new host")
        wait(lambda: "elsewhere: 192.0.2.1 with sequence 1" in lab.two.ask("attachment", "show", "vm10")[0]["error"], "error of the old port")
        wait(lambda: answers(lab.vtep.guest, address) and answers(lab.far, address), "answer of the guest that has moved")
        lab.two.forget("vm10")
        pause(space, "vm10")
        moved = lab.move_to_vtep(stack, mac, address)
        space.ip("link", "set", "vm10", "down")
        wait(lambda: answers(lab.near, address) and answers(lab.far, address), f"answer of the guest with FRR\n{lab.logs()}")
        wait(lambda: sequence_at_vtep(lab, mac) == {lab.vtep.address: 2}, f"end of the older path at FRR, which has {lab.vtep.routes()}")
        wait(lambda: macs(lab.one).get(mac) == macs(lab.two).get(mac) == lab.vtep.address, "address at the host with FRR")
        lab.one.forget("vm10")
        pause(moved, "eth0")
        bridged(stack, lab.two, "vm10", "lan", mac, address)  # it comes back
        wait(lambda: sequence_at_vtep(lab, mac) == {lab.two.address: 3}, f"sequence 3 at FRR, which has {lab.vtep.routes()}")
        wait(lambda: answers(lab.vtep.guest, address) and answers(lab.near, address), "answer of the guest that came back")
        lab.two.forget("vm10")
    wait(lambda: mac not in macs(lab.one) and mac not in macs(lab.two), "end of the address")


def everything(node):
    return [node.daemon.cli(*what) for what in (("bridge", "list"), ("nexthop", "list"), ("vni", "list"))], macs(node)


def settled(lab):
    return (answers(lab.near, FAR) and in_step(lab.one) and in_step(lab.two) and complete(lab.one) and complete(lab.two)
            and FAR_MAC in macs(lab.one) and NEAR_MAC in macs(lab.two))


def test_the_reflector_is_killed(lab):
    wait(lambda: settled(lab), "answer", 60)
    given = {n: macs(n) for n in (lab.one, lab.two)}
    flow = Flow(lab.near, FAR)
    lab.fabric.reflector.kill()
    wait(lambda: all(int(n.ask("bgp", "show")[0]["peers"][0]["stale"]) > 0 for n in (lab.one, lab.two)), "stale paths")
    assert {n: macs(n) for n in given} == given, "the end of a session was taken for withdrawals"
    lab.fabric.reflector.start()
    wait(lambda: settled(lab), f"state in step without anything stale\n{lab.logs()}", 60)
    sent, lost = flow.stop()
    assert lost == 0, f"{lost} of {sent} packets were lost"


def test_a_restarted_agent_changes_nothing(lab):
    """Packets of others to this host are not counted: FRR before 10.6 withdraws the paths of EVPN when a session ends."""
    wait(lambda: settled(lab), "answer", 60)
    before = everything(lab.one)
    lab.one.kill_agent()
    assert everything(lab.one) == before
    lab.one.start_agent()
    wait(lambda: complete(lab.one), f"state in step\n{lab.one.log()}", 60)
    assert int(lab.one.ask("bgp", "show")[0]["sync"]["changes"]) == 0, "a restart changed objects"
    assert everything(lab.one) == before
    wait(lambda: settled(lab), "answer after the restart", 60)
