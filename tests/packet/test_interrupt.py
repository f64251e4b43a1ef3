# SPDX-License-Identifier: Apache-2.0
"""Workers that wait for interrupts: each source wakes them, no packet is lost, and ports that cannot wake them are refused."""
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
from waiting import PATIENCE, wait_until

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
        wait_until("the links of all ports", lambda: [self.cli("port", "show", p)[0]["state"] for p in self.ports],
                   lambda states: all(s.get("link_up") for s in states))

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
        while time.monotonic() - start < PATIENCE:
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


class Waits:
    """How often workers waited, and for how long, since the object was made.

    A wait that nothing ends lasts BOUND. So many waits that together were shorter show how many were ended before.
    """

    def __init__(self, daemon, *workers):
        self.daemon, self.workers = daemon, workers
        idle = self.read("idle_cycles")  # first, and last in ended_early(): the time of all waits that are counted
        self.begun = list(zip(self.read("waits"), idle))

    def read(self, field):
        state = [self.daemon.cli("worker", "show", w)[0]["state"] for w in self.workers]
        return [int(s[field]) / (float(s["tsc_hz"]) if field == "idle_cycles" else 1) for s in state]

    def ended_early(self):
        """At least so many waits of each of the workers."""
        now = list(zip(self.read("waits"), self.read("idle_cycles")))
        return [w - then_w - (i - then_i) / (BOUND * 0.99) for (w, i), (then_w, then_i) in zip(now, self.begun)]


def wait_until_woken(what, daemon, workers, act, enough=20):
    """Acts until that has woken each of the workers often. A busy machine hides some, for it makes waits longer."""
    woken = [0.0] * len(workers)

    def go_on():
        waits = Waits(daemon, *workers)
        act()
        for i, n in enumerate(waits.ended_early()):
            woken[i] += max(n, 0)
        return woken

    wait_until(what, go_on, lambda counts: min(counts) >= enough, pause=0)


def pass_some(w, pauses, back=False):
    """Returns a function that passes frames one by one, and the list to which it adds how long each took."""
    numbers = iter(range(1, 1 << 32))
    seconds = []

    def pass_them():
        for i in range(20):
            seconds.append(w.pass_one(next(numbers), back))
            time.sleep(pauses[i % len(pauses)])

    return pass_them, seconds


ALL_PAUSES = (0, 0.0002, 0.003, 0.015)


@pytest.mark.parametrize("kind", ["tap", "memif", "vhost"])
def test_packets_wake(daemon, kind):
    """A frame after a pause, long or short, ends a worker's wait."""
    with wire(daemon, *cable(kind, daemon.dir)) as w:
        w.pass_one(0)
        # One way at a time: the worker that they come to first is woken by its tap, the other one only by the cable.
        for first in (0, 1):
            pass_them, _ = pass_some(w, ALL_PAUSES, back=first == 1)
            wait_until_woken("frames that wake", daemon, (first,) if kind == "tap" else (0, 1), pass_them, enough=50)
        assert all(not x["state"]["polled_by_time"] for x in daemon.cli("worker", "list"))


@pytest.mark.measure
@pytest.mark.parametrize("kind", ["tap", "memif", "vhost"])
def test_packets_wake_soon(daemon, kind):
    """A frame arrives much sooner than at the worker's next timeout."""
    with wire(daemon, *cable(kind, daemon.dir)) as w:
        w.pass_one(0)
        seconds = []
        for back in (False, True) * 5:
            pass_them, some = pass_some(w, ALL_PAUSES, back)
            pass_them()
            seconds += some
        print(f"measured: median until a frame passes {statistics.median(seconds) * 1e3:.2f} ms, at most {BOUND * 100:g} ms")
        assert statistics.median(seconds) < BOUND / 10
        assert sum(s > BOUND * 0.9 for s in seconds) <= 2  # the machine may have been busy


def test_net_tap_wakes(daemon):
    """A device of DPDK that has interrupts."""
    with wire(daemon, first=("dpdk", "net_tap0,iface=a")) as w:
        queues = [q for x in daemon.cli("worker", "list") for q in x["state"].get("queues", [])]
        assert not any(q["no_interrupts"] for q in queues)
        w.pass_one(0)
        wait_until_woken("frames that wake", daemon, (0,), pass_some(w, (0, 0.003))[0])


def test_waiting_is_idle(daemon):
    """A wait is idle time and no part of a loop, nothing but changes ends it early, and it costs few system calls."""
    daemon.cli("worker", "latency", 0, "--reset")
    begun = time.monotonic()
    waits = Waits(daemon, 0)
    before, asked = daemon.cli("worker", "show", 0)[0]["state"], 0

    def ask():
        nonlocal asked
        asked += 1
        return daemon.cli("worker", "show", 0)[0]["state"]

    after = wait_until("20 waits", ask, lambda s: int(s["waits"]) - int(before["waits"]) >= 20, pause=0.5)
    n = int(after["waits"]) - int(before["waits"])
    # Each question of this test may have been a change for the worker, which wakes it once.
    most_rung = asked + 4
    assert n <= (time.monotonic() - begun) / (BOUND * 0.99) + most_rung
    assert waits.ended_early()[0] <= most_rung
    assert int(after["system_calls"]) - int(before["system_calls"]) <= 2 * n + 2 * most_rung
    assert int(after["busy_cycles"]) == int(before["busy_cycles"])
    empty = daemon.cli("worker", "latency", 0)[0]["empty"]
    assert sum(int(b["loops"]) for b in empty["buckets"] if int(b["from_ns"]) > BOUND * 0.8e9) < n / 2


@pytest.mark.measure
def test_waiting_is_not_late(daemon):
    """A wait is not reported as late, as a stall or as a long loop."""
    daemon.cli("worker", "latency", 0, "--reset")
    events = daemon.cli("event", "list")
    behind, start = 0, time.monotonic()
    while time.monotonic() - start < 2:
        state = daemon.cli("worker", "show", 0)[0]["state"]
        behind = max(behind, state["behind_us"])
        time.sleep(0.1)
    assert behind < 50_000
    assert int(state["longest_loop_ns"]) < BOUND * 1e9 / 2
    assert [e for e in daemon.cli("event", "list") if e not in events] == []


def test_ring_wakes(daemon):
    """In hybrid mode a ring wakes the worker that gets the packets, which polls no queue."""
    with wire(daemon) as w:
        daemon.cli("port", "set", "a", "--mode", "hybrid", "--spread-workers", "1")
        daemon.cli("port", "assign", "b", "--queue", 0, "--worker", 0)
        w.pass_one(0)
        pass_them, seconds = pass_some(w, (0, 0.003))
        wait_until_woken("frames that wake", daemon, (1,), pass_them)
        ring = [r for r in daemon.cli("worker", "rings") if r["from"] == 0 and r["to"] == 1]
        assert int(ring[0]["packets"]) >= len(seconds)


def seconds_of(command):
    start = time.monotonic()
    command()
    return time.monotonic() - start


def test_changes_wake(daemon):
    """Moving a queue wakes the worker that has it and the one that gets it."""
    with wire(daemon):
        def move():
            for worker in (1, 0) * 5:
                daemon.cli("port", "assign", "a", "--queue", 0, "--worker", worker)
                assert not daemon.cli("port", "show", "a")[0]["state"]["queues"][0].get("moving")

        wait_until_woken("moves that wake", daemon, (0, 1), move, enough=5)
        daemon.insist("worker", "add", 5, "--cpu", CPU, "--idle", "interrupt")
        daemon.del_worker(5)


@pytest.mark.measure
def test_changes_take_effect_at_once(daemon):
    """Moving a queue between waiting workers takes no longer than a command that changes nothing."""
    with wire(daemon):
        asking, giving = [], []
        for i in range(20):
            asking.append(seconds_of(lambda: daemon.cli("port", "show", "a")))
            giving.append(seconds_of(lambda n=i: daemon.cli("port", "assign", "a", "--queue", 0, "--worker", (n + 1) % 2)))
        longer = statistics.median(giving) - statistics.median(asking)
        print(f"measured: move beyond a question {longer * 1e3:.1f} ms, at most {BOUND * 500:g} ms")
        assert longer < BOUND / 2
        assert seconds_of(lambda: daemon.cli("worker", "add", 5, "--cpu", CPU, "--idle", "interrupt")) < 2
        assert seconds_of(lambda: daemon.cli("worker", "del", 5)) < 2


WINDOW, STEP = 400, 50  # frames that are on their way at once, and that an answer stands for


@contextlib.contextmanager
def sender(daemon, source):
    """Sends numbered frames with various pauses from a separate process, at most WINDOW ahead of the answers.

    Yields a function that answers STEP frames, and one that ends the process and returns how many it has sent.
    """
    code = ("import select, socket, struct, sys, time\n"
            f"s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(({source!r}, 0)); n, most = 0, {WINDOW}\n"
            f"head = bytes.fromhex('{B.replace(':', '')}{A.replace(':', '')}88b5')\n"
            "while True:\n"
            "    if n == most or select.select([sys.stdin], [], [], 0)[0]:\n"
            "        if not sys.stdin.buffer.raw.read(1): break\n"
            f"        most += {STEP}\n"
            "        continue\n"
            "    s.send(head + struct.pack('!I', n) + bytes(46)); n += 1; time.sleep((0, 20e-6, 200e-6, 2e-3)[n // 16 % 4])\n"
            "print(n)\n")
    with daemon.namespace():
        p = subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        yield lambda: p.stdin.write(b"+"), lambda: int(p.communicate(timeout=PATIENCE)[0])
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
        answered = 0

        def receive():
            nonlocal answered
            numbers.extend(numbers_from(w.taps[1]))
            while answered + STEP <= len(numbers):
                answer()
                answered += STEP
            return len(numbers)

        def change(i):
            daemon.cli("worker", "set", i % 2, "--idle", policies[i // 2 % len(policies)])
            return receive()

        with sender(daemon, "a") as (answer, sent):
            for i in range(100):
                change(i)
            changes = iter(range(100, 1 << 32))
            wait_until("1,000 frames", lambda: change(next(changes)), lambda n: n > 1000, pause=0)
            n = sent()
        wait_until(f"all of {n} frames", lambda: numbers.extend(numbers_from(w.taps[1])) or len(numbers), lambda got: got >= n)
        for i in range(2):
            daemon.cli("worker", "set", i, "--idle", "interrupt")
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
        begun = time.monotonic()
        before = daemon.cli("worker", "show", 0)[0]["state"]
        time.sleep(0.5)
        after = daemon.cli("worker", "show", 0)[0]["state"]
        seconds = time.monotonic() - begun
        assert int(after["system_calls"]) - int(before["system_calls"]) < seconds / 50e-6 * 6
