# SPDX-License-Identifier: Apache-2.0
"""A guest fills the flow table while another one uses it. `corelane explain` names the guest and what it sends, and the
command that it prints gives the other guest its flows back. A guest that sends to nobody is named, too, and so is one
that sends with ever new source MACs.

  attacker (testpmd) -- memif tenant0 -- corelaned -- tap tenant1 -- victim
"""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapWriter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon, PR_SET_PDEATHSIG, libc  # noqa: E402
from namespaces import wait  # noqa: E402

GATEWAY_MAC = "00:00:5e:00:01:01"
ATTACKER, VICTIM, ROUTED, NOBODY = "10.0.0.2", "10.0.0.3", "10.9.0.1", "10.0.0.99"
ATTACKER_MAC, VICTIM_MAC, SINK_MAC = "02:00:00:00:00:02", "02:00:00:00:00:03", "02:00:00:00:00:09"
TABLE = 1 << 16  # flows
ATTACK = 1 << 16
NEEDED = 40000  # flows of the victim: they fit the table, but are more than the half of it that is left beside the attacker
MACS = 1 << 12  # of the attacker: several times as many as may be reported in the 0.1 s in which one is reported once
PATIENCE = 60  # seconds: others may have the attacker's CPU
SINK, ABSENT = 7, 8  # next hops


def frames(mac, source, destination, flows):
    """One frame for each flow."""
    frame = bytearray(bytes(Ether(src=mac, dst=GATEWAY_MAC) / IP(src=source, dst=destination) / UDP(chksum=0) / bytes(18)))
    for flow in range(flows):
        frame[34:36] = flow.to_bytes(2, "big")
        frame[40:42] = b"\0\0"
        yield bytes(frame)


def frames_of_macs(macs):
    """One frame from each of this many MACs, to a guest of the same bridge."""
    frame = bytearray(bytes(Ether(src=ATTACKER_MAC, dst=SINK_MAC) / IP(src=ATTACKER, dst=ROUTED) / UDP(chksum=0) / bytes(18)))
    for mac in range(macs):
        frame[8:10] = mac.to_bytes(2, "big")
        yield bytes(frame)


@contextlib.contextmanager
def flood(daemon, what):
    """The attacker sends these frames one after the other, without end."""
    path, what = os.path.join(daemon.dir, "flood.pcap"), list(what)
    with RawPcapWriter(path, linktype=1) as pcap:
        for frame in what:
            pcap.write(frame)
    cpu = min(os.sched_getaffinity(0))
    command = ["dpdk-testpmd", "--lcores", f"0@{cpu},1@{cpu}", "--no-huge", "-m", "512", "--no-pci", "--no-telemetry",
               f"--file-prefix=noisy{os.getpid()}", "--vdev", f"net_pcap0,rx_pcap={path},infinite_rx=1", "--vdev",
               f"net_memif0,role=client,id=0,socket={daemon.dir}/tenant0.sock,socket-abstract=no", "--", "--forward-mode=io",
               "--no-lsc-interrupt", f"--total-num-mbufs={len(what) + 16384}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)) as p:
        try:
            wait(lambda: p.poll() is not None or received(daemon, "tenant0") >= ATTACK, "packets of the attacker", 2 * PATIENCE)
            assert p.poll() is None, "the attacker does not send"
            yield
            assert p.poll() is None, "the attacker has ended"
        finally:
            p.kill()
            p.wait()
            shutil.rmtree(f"/run/dpdk/noisy{os.getpid()}", ignore_errors=True)


def dropped(daemon, port):
    return {d["reason"]: int(d["packets"]) for d in daemon.cli("drops", "--by-port") if d.get("port") == port}


def received(daemon, port):
    return int(daemon.cli("port", "show", port)[0]["state"]["counters"].get("rx_packets", 0))


class Victim:
    """A guest that sends packets of its flows in turn. Its tap has room for one of each, so that none is lost before the router."""

    def __init__(self, daemon):
        self.daemon, self.frames = daemon, list(frames(VICTIM_MAC, VICTIM, ROUTED, NEEDED))
        with daemon.namespace():
            with open("/proc/sys/net/ipv6/conf/tenant1/disable_ipv6", "w", encoding="ascii") as f:  # the kernel sends nothing
                f.write("1")
            subprocess.run(["ip", "link", "set", "tenant1", "txqueuelen", str(NEEDED)], check=True)
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.socket.bind(("tenant1", 0))

    def refused(self):
        """Sends a packet of each flow. Returns how many found no room in the flow table."""
        before, arrived = dropped(self.daemon, "tenant1"), received(self.daemon, "tenant1")
        for frame in self.frames:
            self.socket.send(frame)
        wait(lambda: received(self.daemon, "tenant1") >= arrived + NEEDED, "packets of the victim", PATIENCE)
        after = dropped(self.daemon, "tenant1")
        return sum(after.get(r, 0) - before.get(r, 0) for r in ("flow_quota_share", "flow_table_full"))


@pytest.fixture
def daemon():
    d = Daemon("--flows", str(TABLE))
    for vrf in ("red", "blue"):
        d.cli("vrf", "add", vrf)
    d.cli("port", "add", "tenant0", "tenant", "memif", "--socket", f"{d.dir}/tenant0.sock", "--vrf", "red", "--gateway",
          "10.0.0.1/24", "--guest-address", ATTACKER, "--guest-mac", ATTACKER_MAC, "--stateful")
    d.cli("port", "add", "tenant1", "tenant", "tap", "--vrf", "blue", "--gateway", "10.0.0.1/24", "--guest-address", VICTIM,
          "--guest-mac", VICTIM_MAC, "--stateful")
    d.cli("port", "add", "sink", "tenant", "tap", "--vrf", "red")
    d.cli("nexthop", "add", SINK, "port", "sink", "--mac", SINK_MAC)
    for vrf in ("red", "blue"):
        d.cli("route", "add", f"{ROUTED}/32", "--vrf", vrf, "--nexthop", SINK)
    d.cli("nexthop", "add", ABSENT, "port", "tenant0", "--address", NOBODY)
    d.cli("route", "add", f"{NOBODY}/32", "--vrf", "red", "--nexthop", ABSENT)
    yield d
    assert d.stop() == 0


def explained(daemon, reason):
    """The cause that concerns tenant0 and this drop reason; None if there is none."""
    (report,) = daemon.cli("explain", "--no-trace", "--window", "1s")
    found = [c for c in report["causes"] if c["kind"] == "noisy-port" and c["name"] == reason]
    assert all(c["port"] == "tenant0" for c in found), found
    return found[0] if found else None


def blamed(daemon, reason):
    """As explained(); looks again when others have taken the attacker's CPU for so long that it was not noisy."""
    deadline = time.monotonic() + PATIENCE
    while True:
        if cause := explained(daemon, reason):
            return cause
        assert time.monotonic() < deadline, f"explain does not name the attacker, whose drops are {dropped(daemon, 'tenant0')}"


def carry_out(daemon, command):
    subprocess.run(command, shell=True, check=True, timeout=PATIENCE, env={
        **os.environ, "CORELANE_SOCKET": daemon.socket, "PATH": f"{os.path.dirname(daemon.cli_path)}:{os.environ['PATH']}"})


def test_command_limits_the_attacker(daemon):
    victim = Victim(daemon)
    victim.refused()
    assert victim.refused() == 0, "the victim's flows do not fit the table"
    with flood(daemon, frames(ATTACKER_MAC, ATTACKER, ROUTED, ATTACK)):
        wait(lambda: victim.refused() > NEEDED // 20, "refusal of the victim's flows", PATIENCE)
        cause = blamed(daemon, "flow_quota_share")
        assert cause["title"].startswith("port tenant0 sends ") and cause["title"].endswith(" packets of new flows per second")
        carry_out(daemon, cause["fix"])
        # The flows that the attacker has end by their age.
        wait(lambda: victim.refused() == 0, f"room for the victim's flows after {cause['fix']}", PATIENCE)
        wait(lambda: explained(daemon, "flow_quota_share") is None, "end of the attack", PATIENCE)


def test_sender_to_nobody_is_named(daemon):
    with flood(daemon, frames(ATTACKER_MAC, ATTACKER, NOBODY, 32)):
        cause = blamed(daemon, "neighbor_rate")
        assert cause["title"].startswith("port tenant0 sends ") and cause["title"].endswith(" unresolved packets per second")
        assert cause["fix"] == "corelane port set tenant0 --unresolved-rate 100"
        carry_out(daemon, cause["fix"])
        (port,) = daemon.cli("port", "show", "tenant0")
        assert port["unresolved_rate"] == 100
        cause = blamed(daemon, "neighbor_rate")
        assert not cause.get("fix") and "no option limits them further" in cause["fix_note"]


def test_sender_with_ever_new_macs_is_named(daemon):
    """The bridge may learn 16 addresses, so that the others stay new however often they are sent."""
    daemon.cli("bridge", "add", "lan", "--mac-limit", 16)
    daemon.cli("port", "add", "member", "tenant", "tap", "--bridge", "lan")
    daemon.cli("mac", "add", "lan", SINK_MAC, "port", "member")
    daemon.cli("port", "set", "tenant0", "--bridge", "lan", "--source-check", "none")
    with flood(daemon, frames_of_macs(MACS)):
        cause = blamed(daemon, "learn_too_many")
        assert cause["title"].startswith("port tenant0 sends ")
        assert cause["title"].endswith(" frames with new source MACs per second")
        assert cause["fix"] == "corelane port set tenant0 --source-check strict"
        carry_out(daemon, cause["fix"])
        cause = blamed(daemon, "source_mac")
        assert not cause.get("fix") and "no option limits them further" in cause["fix_note"]
        assert explained(daemon, "learn_too_many") is None
