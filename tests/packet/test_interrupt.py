# SPDX-License-Identifier: Apache-2.0
"""Workers that wait for interrupts: each source wakes them at once, no packet is lost, and ports that cannot wake them are refused."""
import contextlib
import os
import select
import statistics
import struct
import subprocess
import time

import pytest
from scapy.layers.l2 import Ether

from daemon import Daemon, Refused
from router import Tap

CPU = max(os.sched_getaffinity(0))
BOUND = 0.1  # seconds that a worker waits at most
A, B = "02:00:00:00:0a:01", "02:00:00:00:0b:01"
FLOODED = 0x88B5


@pytest.fixture(scope="module")
def daemon():
    d = Daemon("--idle", "interrupt")
    try:
        d.cli("worker", "add", 1, "--cpu", CPU, "--idle", "interrupt")
        yield d
        d.check_alive()
    except BaseException:
        print(d.log())
        raise
    finally:
        assert d.stop() == 0


class Wire:
    """Two taps with the router in between. With a cable, two of its ports connect one bridge to the other."""

    def __init__(self, daemon, near=None, far=None, first=("tap",)):
        self.cli = daemon.cli
        self.ports, self.bridges = [], ["near", "far"] if near else ["near"]
        for b in self.bridges:
            self.cli("bridge", "add", b)
        self.add("a", *first, bridge="near", worker=0)
        if near:
            self.add("x", *near, bridge="near", worker=0)
            self.add("y", *far, bridge="far", worker=1)
        self.add("b", "tap", bridge=self.bridges[-1], worker=1)
        self.taps = [Tap(daemon, n, None) for n in "ab"]
        self.wait_up()

    def add(self, name, *device, bridge, worker):
        self.cli("port", "add", name, "tenant", *device, "--bridge", bridge, "--polled-by", f"0:{worker}")
        self.ports.append(name)

    def wait_up(self):
        deadline = time.monotonic() + 10
        while not all(self.cli("port", "show", p)[0]["state"].get("link_up") for p in self.ports):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def close(self):
        for t in self.taps:
            t.sock.close()
        for p in reversed(self.ports):
            self.cli("port", "del", p)
        for b in self.bridges:
            self.cli("bridge", "del", b)

    def pass_one(self, number, back=False):
        """Seconds that a frame took from one end to the other."""
        src, dst = (self.taps[1], self.taps[0]) if back else self.taps
        frame = bytes(Ether(src=B if back else A, dst=A if back else B, type=FLOODED)) + struct.pack("!I", number) + bytes(46)
        start = time.monotonic()
        src.send(frame)
        while time.monotonic() - start < 5:
            select.select([dst.sock], [], [], 0.5)
            got = dst.recv()
            if got and got.data == frame:
                return time.monotonic() - start
        raise AssertionError(f"frame {number} is lost")


@contextlib.contextmanager
def wire(daemon, *cable, **options):
    w = Wire(daemon, *cable, **options)
    try:
        yield w
    finally:
        w.close()


def cable(kind, path):
    """Two devices that are connected."""
    return {
        "tap": (),
        "memif": (("memif", "--socket", f"{path}/memif"), ("memif", "--client", "--socket", f"{path}/memif")),
        "vhost": (("vhost", "--socket", f"{path}/vhost"), ("dpdk", f"net_virtio_user0,path={path}/vhost,queue_size=256")),
    }[kind]


def waits(daemon):
    return [int(w["state"]["waits"]) for w in daemon.cli("worker", "list")]


@pytest.mark.parametrize("kind", ["tap", "memif", "vhost"])
def test_packets_wake(daemon, kind):
    """A frame after a pause, long or short, arrives much sooner than at the worker's next timeout."""
    with wire(daemon, *cable(kind, daemon.dir)) as w:
        w.pass_one(0)
        before = waits(daemon)
        seconds = []
        for i in range(1, 201):
            seconds.append(w.pass_one(i, back=i % 2 == 0))
            time.sleep((0, 0.0002, 0.003, 0.015)[i % 4])
        assert all(a > b + 20 for a, b in zip(waits(daemon), before))
        assert all(not x["state"]["polled_by_time"] for x in daemon.cli("worker", "list"))
        assert statistics.median(seconds) < BOUND / 10
        assert sum(s > BOUND * 0.9 for s in seconds) <= 2  # the machine may have been busy


def test_net_tap_wakes(daemon):
    """A device of DPDK that has interrupts."""
    with wire(daemon, first=("dpdk", "net_tap0,iface=a")) as w:
        queues = [q for x in daemon.cli("worker", "list") for q in x["state"].get("queues", [])]
        assert not any(q["no_interrupts"] for q in queues)
        w.pass_one(0)
        seconds = []
        for i in range(1, 101):
            seconds.append(w.pass_one(i))
            time.sleep((0, 0.003)[i % 2])
        assert statistics.median(seconds) < BOUND / 10


def test_waiting_is_idle(daemon):
    """A wait is not reported as late, as a stall or as a long loop, and costs few system calls per second."""
    daemon.cli("worker", "latency", 0, "--reset")
    events = daemon.cli("event", "list")
    before = daemon.cli("worker", "show", 0)[0]["state"]
    behind = 0
    start = time.monotonic()
    while time.monotonic() - start < 2:
        behind = max(behind, daemon.cli("worker", "show", 0)[0]["state"]["behind_us"])
        time.sleep(0.1)
    after = daemon.cli("worker", "show", 0)[0]["state"]
    assert behind < 50_000
    assert 10 <= int(after["waits"]) - int(before["waits"]) <= 60
    assert int(after["system_calls"]) - int(before["system_calls"]) <= 120
    idle = int(after["idle_cycles"]) - int(before["idle_cycles"])
    assert idle > 1.5 * int(after["tsc_hz"])
    assert int(after["longest_loop_ns"]) < BOUND * 1e9 / 2
    assert [e for e in daemon.cli("event", "list") if e not in events] == []


def test_ring_wakes(daemon):
    """In hybrid mode a ring wakes the worker that gets the packets, which polls no queue."""
    with wire(daemon) as w:
        daemon.cli("port", "set", "a", "--mode", "hybrid", "--spread-workers", "1")
        daemon.cli("port", "assign", "b", "--queue", 0, "--worker", 0)
        w.pass_one(0)
        seconds = []
        for i in range(1, 101):
            seconds.append(w.pass_one(i))
            time.sleep((0, 0.003)[i % 2])
        assert statistics.median(seconds) < BOUND / 10
        ring = [r for r in daemon.cli("worker", "rings") if r["from"] == 0 and r["to"] == 1]
        assert int(ring[0]["packets"]) >= 100


def seconds_of(command):
    start = time.monotonic()
    command()
    return time.monotonic() - start


def test_changes_take_effect_at_once(daemon):
    """Moving a queue between waiting workers takes no longer than a command that changes nothing."""
    with wire(daemon):
        asking, giving = [], []
        for i in range(20):
            asking.append(seconds_of(lambda: daemon.cli("port", "show", "a")))
            giving.append(seconds_of(lambda n=i: daemon.cli("port", "assign", "a", "--queue", 0, "--worker", (n + 1) % 2)))
            assert not daemon.cli("port", "show", "a")[0]["state"]["queues"][0].get("moving")
        print(statistics.median(asking), statistics.median(giving))
        assert statistics.median(giving) < statistics.median(asking) + BOUND / 2
        assert seconds_of(lambda: daemon.cli("worker", "add", 5, "--cpu", CPU, "--idle", "interrupt")) < 2
        assert seconds_of(lambda: daemon.cli("worker", "del", 5)) < 2


@contextlib.contextmanager
def sender(daemon, source):
    """Sends numbered frames with various pauses from a separate process. Yields a function that ends it and returns their number."""
    code = ("import select, socket, struct, sys, time\n"
            f"s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(({source!r}, 0)); n = 0\n"
            f"head = bytes.fromhex('{B.replace(':', '')}{A.replace(':', '')}88b5')\n"
            "while n % 64 or not select.select([sys.stdin], [], [], 0)[0]:\n"
            "    s.send(head + struct.pack('!I', n) + bytes(46)); n += 1; time.sleep((0, 20e-6, 200e-6, 2e-3)[n // 16 % 4])\n"
            "print(n)\n")
    with daemon.namespace():
        p = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield lambda: int(p.communicate(timeout=10)[0])
    finally:
        p.kill()
        p.wait()


def numbers_from(tap):
    numbers = []
    while (got := tap.recv()) is not None:
        if got.data[12:14] == struct.pack("!H", FLOODED):
            numbers += struct.unpack("!I", got.data[14:18])
    return numbers


def test_policies_switched_under_traffic(daemon):
    """A hundred changes on both workers while frames pass a memif cable: all frames arrive in order."""
    policies = ("interrupt", "sleep", "interrupt", "yield", "interrupt")
    with wire(daemon, *cable("memif", daemon.dir)) as w:
        w.pass_one(0)
        numbers = []
        with sender(daemon, "a") as sent:
            for i in range(100):
                daemon.cli("worker", "set", i % 2, "--idle", policies[i // 2 % len(policies)])
                numbers += numbers_from(w.taps[1])
            n = sent()
        deadline = time.monotonic() + 5
        while len(numbers) < n and time.monotonic() < deadline:
            numbers += numbers_from(w.taps[1])
            time.sleep(0.01)
        for i in range(2):
            daemon.cli("worker", "set", i, "--idle", "interrupt")
        assert n > 1000
        assert numbers == list(range(n))


def test_refused_without_interrupts(daemon):
    """af_packet has no interrupts: its queue and a waiting worker are refused together, whichever comes first."""
    with daemon.namespace():
        subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
    device = ("dpdk", "net_af_packet0,iface=v0")
    daemon.cli("bridge", "add", "lan")
    try:
        with pytest.raises(Refused, match=r"net_af_packet.*gives no interrupts, and all workers wait for them.*another idle policy"):
            daemon.cli("port", "add", "p", "tenant", *device, "--bridge", "lan")
        daemon.cli("worker", "set", 1, "--idle", "yield")
        daemon.cli("port", "add", "p", "tenant", *device, "--bridge", "lan")  # goes to the worker that does not wait
        queue = daemon.cli("worker", "show", 1)[0]["state"]["queues"][0]
        assert (queue["port"], queue["no_interrupts"]) == ("p", True)
        with pytest.raises(Refused, match=r"worker 1 polls queue 0 of port p \(net_af_packet\), which gives no interrupts"):
            daemon.cli("worker", "set", 1, "--idle", "interrupt")
        with pytest.raises(Refused, match=r"waits for interrupts, which queue 0 of port p \(net_af_packet\) does not give"):
            daemon.cli("port", "assign", "p", "--queue", 0, "--worker", 0)
        with pytest.raises(Refused, match=r"waits for interrupts, which queue 0 of port p \(net_af_packet\) does not give"):
            daemon.cli("port", "set", "p", "--polled-by", "0:0")
        with pytest.raises(Refused, match=r"polls queue 0 of port p .*all others wait for them"):
            daemon.cli("worker", "del", 1)
        assert daemon.cli("worker", "show", 1)[0]["idle"] == "IDLE_POLICY_YIELD"
        assert daemon.cli("port", "show", "p")[0]["state"]["queues"][0]["worker"] == 1
    finally:
        for p in [p["name"] for p in daemon.cli("port", "list")]:
            daemon.cli("port", "del", p)
        daemon.cli("worker", "set", 1, "--idle", "interrupt")
        daemon.cli("bridge", "del", "lan")
        with daemon.namespace():
            subprocess.run(["ip", "link", "del", "dev", "v0"], check=True)


def test_interface_comes_and_goes(daemon):
    """A tap that is deleted by hand does not make its worker spin."""
    with wire(daemon) as w:
        w.pass_one(0)
        with daemon.namespace():
            subprocess.run(["ip", "link", "del", "dev", "a"], check=True)
        time.sleep(0.5)
        before = daemon.cli("worker", "show", 0)[0]["state"]
        time.sleep(0.5)
        after = daemon.cli("worker", "show", 0)[0]["state"]
        assert int(after["system_calls"]) - int(before["system_calls"]) < 0.5 / 50e-6 * 6
