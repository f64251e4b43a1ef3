# SPDX-License-Identifier: Apache-2.0
"""A segment whose intent has no MAC addresses: what the bridges of two nodes learn is announced over EVPN (type 2), to each other and
to a host with FRR over the kernel's VXLAN device. A guest moves, and every host hears of it from its first frame."""
import contextlib
import json
import os
import subprocess

import pytest

from fabric import BGPD, Fabric, Vtep, bridged
from namespaces import answers, dies_with_us, wait
from test_evpn import macs, sequence_at_vtep

pytestmark = pytest.mark.skipif(not os.path.exists(BGPD), reason="frr is not installed")

VNI = 100
SEGMENT = f"""
segments:
  - bridge: lan
    vni: {VNI}
    announce_learnt: true
"""
NEAR, FAR, FOREIGN, MOVING = "10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.10"
NEAR_MAC, FAR_MAC, MOVING_MAC = "02:00:00:00:0a:01", "02:00:00:00:0a:02", "02:00:00:00:0a:0a"


class Lab:
    def __init__(self, stack):
        self.fabric = Fabric(stack, [1, 2], others=["192.0.2.3"])
        self.one, self.two = self.fabric.nodes[1], self.fabric.nodes[2]
        self.vtep = Vtep(self.fabric.space, 3, VNI, FOREIGN)
        stack.callback(self.vtep.close)
        for n in (self.one, self.two):
            n.tell("lan", SEGMENT)
        self.near = self.guest(stack, self.one, "vm1", NEAR_MAC, NEAR)
        self.far = self.guest(stack, self.two, "vm2", FAR_MAC, FAR)

    @staticmethod
    def guest(stack, node, name, mac, address):
        return bridged(stack, node, name, "lan", mac, address, given=False)

    def logs(self):
        return f"{self.one.log()}\n{self.one.ask('bgp', 'paths')}\n{self.vtep.vtysh('show bgp l2vpn evpn route')}"


@pytest.fixture(scope="module")
def lab():
    with contextlib.ExitStack() as stack:
        yield Lab(stack)


@contextlib.contextmanager
def watched(node):
    """What 'corelane mac watch' prints meanwhile: the change and the place of the moving guest's address."""
    command = [node.daemon.cli_path, "--socket", node.daemon.socket, "mac", "watch", "--bridge", "lan", "-o", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=dies_with_us)
    seen = []
    try:
        assert json.loads(process.stdout.readline())["change"] == "MAC_CHANGE_MISSED"
        yield seen
    finally:
        process.terminate()
        for line in process.communicate(timeout=60)[0].splitlines():
            event = json.loads(line)
            if event["mac"]["mac"] == MOVING_MAC:
                seen.append((event["change"].removeprefix("MAC_CHANGE_"), event["mac"].get("port", "")))


def learnt_at(node, mac):
    return next((m.get("port") for m in node.daemon.cli("mac", "list", "--bridge", "lan") if m["mac"] == mac and m.get("learnt")), None)


def test_what_is_learnt_is_announced(lab):
    try:
        wait(lambda: answers(lab.near, FAR) and answers(lab.near, FOREIGN), "answers", 60)
        wait(lambda: macs(lab.one).get(FAR_MAC) == lab.two.address and macs(lab.two).get(NEAR_MAC) == lab.one.address,
             "given address of the other node's guest")
        wait(lambda: sequence_at_vtep(lab, NEAR_MAC) == {lab.one.address: 0}, "path at FRR")
    except AssertionError as e:
        raise AssertionError(f"{e}\n{lab.logs()}") from e
    assert NEAR_MAC not in macs(lab.one), "an address that was learnt is given"
    assert lab.one.ask("segment", "show", "lan")[0]["learnt_macs"] >= 1


def test_a_guest_that_nobody_announced_moves(lab):
    with contextlib.ExitStack() as stack:
        old = lab.guest(stack, lab.two, "vm10", MOVING_MAC, MOVING)
        wait(lambda: answers(old, FAR) and sequence_at_vtep(lab, MOVING_MAC) == {lab.two.address: 0}, f"path at FRR\n{lab.logs()}")
        wait(lambda: macs(lab.one).get(MOVING_MAC) == lab.two.address, "address at its host")
        old.ip("link", "set", "vm10", "down")
        with watched(lab.one) as events:
            new = lab.guest(stack, lab.one, "vm11", MOVING_MAC, MOVING)
            wait(lambda: answers(new, NEAR) and sequence_at_vtep(lab, MOVING_MAC) == {lab.one.address: 1},
                 f"sequence 1 at FRR\n{lab.logs()}")
            wait(lambda: answers(new, NEAR) and learnt_at(lab.one, MOVING_MAC) == "vm11", "learnt address")
        assert ("SEEN", "vm11") in events and events[-1] == ("LEARNT", "vm11"), events
        wait(lambda: macs(lab.two).get(MOVING_MAC) == lab.one.address, "address at its new host")
        wait(lambda: answers(lab.vtep.guest, MOVING) and answers(lab.far, MOVING), "answer of the guest that has moved")
        assert lab.one.ask("segment", "show", "lan")[0]["duplicate_macs"] == []
        lab.two.forget("vm10")
        lab.one.forget("vm11")
        wait(lambda: not sequence_at_vtep(lab, MOVING_MAC), f"withdrawal at FRR\n{lab.logs()}")
    wait(lambda: MOVING_MAC not in macs(lab.two), "end of the address")


def test_a_restarted_agent_hears_of_it_again(lab):
    wait(lambda: answers(lab.near, FAR), "answer", 60)
    lab.one.kill_agent()
    lab.one.start_agent()
    wait(lambda: answers(lab.near, FAR) and sequence_at_vtep(lab, NEAR_MAC) == {lab.one.address: 0}, "path at FRR", 60)
