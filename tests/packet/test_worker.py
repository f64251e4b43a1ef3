# SPDX-License-Identifier: Apache-2.0
"""What workers report: how long their loops take and why, which time other threads took, and their system calls."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from daemon import Daemon, Refused
from waiting import wait_until


@pytest.fixture(scope="module")
def daemon():
    d = Daemon("--allow-debug")
    try:
        yield d
        d.check_alive()
    finally:
        d.stop()


@pytest.fixture(autouse=True)
def undisturbed(daemon):
    yield
    daemon.cli("debug", "delay", "--worker", 0, "--us", 0)
    daemon.cli("worker", "set", 0, "--idle", "sleep", "--sleep-max-us", 50, "--loop-threshold-us", 100)


def worker(daemon):
    return daemon.cli("worker", "show", 0)[0]


def wait_for(daemon, what, true_of):
    """Waits, because the daemon asks the kernel once a second."""
    return wait_until(what, lambda: worker(daemon)["state"], true_of)


def latency(daemon, *options):
    return daemon.cli("worker", "latency", 0, *options)[0]


def observe(daemon, loops=10, done=lambda seen: True):
    """So many loops from now on, at least, and what was recorded of them."""
    latency(daemon, "--reset")
    return wait_until(f"{loops} loops", lambda: latency(daemon), lambda seen: int(seen["empty"]["loops"]) >= loops and done(seen))


def wait_for_loops(daemon, loops=10):
    """What the worker was told before holds in all of its next loops."""
    before = int(worker(daemon)["state"]["loops"])
    wait_for(daemon, f"{loops} loops", lambda s: int(s["loops"]) >= before + loops)


@contextlib.contextmanager
def competitor(cpu):
    """A process that uses this CPU without pause."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {cpu})) as p:
        try:
            yield
        finally:
            p.kill()


def interrupts(name):
    """The number of interrupts of a kind, on all CPUs."""
    with open("/proc/interrupts", encoding="ascii") as f:
        return sum(int(n) for n in next(line for line in f if line.strip().startswith(name + ":")).split()[1:] if n.isdigit())


def test_shootdowns(daemon):
    """A thread of the daemon causes TLB shootdowns on the workers' CPUs until it is ended."""
    def debugger():
        return [t for t in daemon.cli("thread", "list") if t["name"] == "svc-debug"]

    assert not debugger()
    if os.uname().machine == "x86_64" and len(os.sched_getaffinity(0)) > 1:
        daemon.cli("worker", "set", 0, "--idle", "spin")  # the kernel sends no shootdowns to sleeping CPUs
    before = interrupts("TLB") if os.uname().machine == "x86_64" else 0
    daemon.cli("debug", "shootdowns", "--per-second", 20000)
    try:
        wait_until("the thread", debugger, lambda found: [t["role"] for t in found] == ["THREAD_ROLE_SERVICE"])
        if os.uname().machine == "x86_64" and len(os.sched_getaffinity(0)) > 1:
            wait_until("1,000 shootdowns", lambda: interrupts("TLB") - before, lambda n: n > 1000)
    finally:
        daemon.cli("debug", "shootdowns", "--per-second", 0)
    assert not debugger()
    with pytest.raises(Refused, match="--per-second '2000000': is out of range; valid: 0 to 1000000"):
        daemon.cli("debug", "shootdowns", "--per-second", 2000000)


def parts_of(loop):
    return sum(int(loop[stage + "_ns"]) for stage in ("receive", "graph", "messages", "idle", "delay"))


def without_delay(seen):
    return sum(int(loop["delay_ns"]) < 999_000 for loop in seen["longest"])


def test_delay_shows_in_latency(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 1000)
    seen = observe(daemon, 12, lambda seen: len(seen["longest"]) >= 10)
    assert int(seen["empty"]["p50_ns"]) >= 1_000_000
    assert without_delay(seen) <= 1  # the loop in which the delay began
    assert all(abs(parts_of(loop) - int(loop["ns"])) < 10 for loop in seen["longest"])
    assert worker(daemon)["state"]["debug_delay_us"] in (999, 1000)
    daemon.cli("debug", "delay", "--worker", 0, "--us", 0)
    daemon.cli("worker", "set", 0, "--loop-threshold-us", 1)  # all loops are recorded
    seen = observe(daemon, 12, lambda seen: len(seen["longest"]) >= 10)
    assert sum(int(loop["delay_ns"]) > 0 for loop in seen["longest"]) <= 1  # the one that ran when the delay ended


def test_the_longest_loop_is_the_first(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 100_000)
    # A loop that ends between two lines of the answer is in one of them only.
    observe(daemon, 2, lambda seen: seen["longest"] and
            max(int(seen["empty"]["max_ns"]), int(seen["busy"]["max_ns"])) == int(seen["longest"][0]["ns"]))


def test_when_is_the_time_of_the_clock(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 5000)
    before = time.time()

    def ended(seen):
        """The first one ended while the test ran, by the clock of both."""
        return seen["longest"] and before - 0.1 <= int(seen["longest"][0]["time_ns"]) / 1e9 <= time.time() + 0.1

    observe(daemon, 1, ended)


def test_threshold_is_live(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 1000)
    latency(daemon, "--threshold", 10_000_000, "--reset")
    seen = observe(daemon, 20)
    assert seen["threshold_us"] == 10_000_000
    assert seen["longest"] == []
    latency(daemon, "--threshold", 500, "--reset")
    wait_until("a long loop", lambda: latency(daemon)["longest"])


@pytest.mark.measure
def test_an_empty_loop_is_short(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 1000)
    assert int(observe(daemon, 100)["empty"]["p50_ns"]) < 20_000_000
    daemon.cli("debug", "delay", "--worker", 0, "--us", 0)
    shortly = int(observe(daemon, 1000)["empty"]["p50_ns"])
    print(f"measured: median of empty loops {shortly / 1e3:.1f} us, at most 1000 us")
    assert shortly < 1_000_000


def taken_of(seen):
    return [loop for loop in seen["longest"] if loop["taken"]]


@contextlib.contextmanager
def contended(daemon):
    """The worker never gives up its CPU, and shares it with a process that does not either. Yields the worker before."""
    w = worker(daemon)
    if w["state"]["taken_seen_by"] != "rseq":
        pytest.skip("glibc has not registered rseq")
    daemon.cli("worker", "set", 0, "--idle", "pause", "--loop-threshold-us", 1000)
    with competitor(w["cpu"]):
        yield w


def test_competitor_shows_as_taken(daemon):
    with contended(daemon) as w:
        observe(daemon, 10, lambda seen: int(seen["taken_loops"]) >= 5 and len(taken_of(seen)) >= 5)
        for name in ("waited_ns", "involuntary_switches"):
            wait_for(daemon, f"more {name}", lambda s, n=name: int(s[n]) > int(w["state"][n]))


@pytest.mark.measure
def test_a_long_loop_is_mostly_a_taken_one(daemon):
    with contended(daemon):
        time.sleep(0.3)
        latency(daemon, "--reset")
        time.sleep(1)
        seen = latency(daemon)
    assert int(seen["taken_loops"]) >= 5
    assert len(taken_of(seen)) >= 0.8 * len(seen["longest"]) > 0


def test_kernels_view(daemon):
    w = worker(daemon)
    wait_for(daemon, "the worker's own CPU", lambda s: s["affinity"] == str(w["cpu"]) and s["last_cpu"] == w["cpu"])
    tid = w["state"]["tid"]
    os.sched_setaffinity(tid, os.sched_getaffinity(0))  # the daemon moves the thread back
    wait_for(daemon, "the worker's own CPU again", lambda s: s["affinity"] == str(w["cpu"]))


def calls(daemon):
    return int(worker(daemon)["state"]["system_calls"])


def traced(tid, seconds):
    """System calls of a thread as strace sees them: name -> count."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    done = subprocess.run(["timeout", "-s", "INT", str(seconds), "strace", "-qq", "-p", str(tid)], capture_output=True, text=True,
                          check=False)
    names = re.findall(r"^(\w+)\(", done.stderr, re.MULTILINE)
    if "ptrace" in done.stderr and not names:
        pytest.skip(done.stderr.strip())
    return {name: names.count(name) for name in names}


@pytest.mark.parametrize("idle", ["spin", "pause"])
def test_polling_makes_no_system_call(daemon, idle):
    daemon.cli("worker", "set", 0, "--idle", idle)
    wait_for_loops(daemon)
    before = calls(daemon)
    assert traced(worker(daemon)["state"]["tid"], 0.5) == {}
    wait_for_loops(daemon, 1000)
    assert calls(daemon) == before


@pytest.mark.parametrize("idle, call", [("yield", "sched_yield"), ("sleep", "clock_nanosleep"), ("interrupt", "poll")])
def test_system_calls_are_counted(daemon, idle, call):
    daemon.cli("worker", "set", 0, "--idle", idle)
    wait_for_loops(daemon)
    before = calls(daemon)
    tid = worker(daemon)["state"]["tid"]
    seen = wait_until(f"a call of {call}", lambda: traced(tid, 0.5), lambda seen: seen.get(call, 0) > 0, pause=0)
    assert set(seen) <= {call, "restart_syscall", *(["read"] if idle == "interrupt" else [])}  # resets its doorbell
    assert calls(daemon) - before >= seen[call]


def test_tap_calls_are_counted(network):
    """Each frame read or written and each look at an empty tap is one call."""
    cli = network.router.cli

    def state():
        return cli("worker", "show", 0)[0]["state"]

    before = state()
    after = wait_until("100 loops", state, lambda s: int(s["loops"]) >= int(before["loops"]) + 100)
    loops = int(after["loops"]) - int(before["loops"])
    assert int(after["system_calls"]) - int(before["system_calls"]) >= loops / 2 > 0


def test_late_worker_is_behind(daemon):
    begun = time.monotonic()
    daemon.cli("debug", "delay", "--worker", 0, "--us", 900_000)
    # The daemon still answers.
    state = wait_for(daemon, "a worker that is behind", lambda s: s["behind_us"] >= 300_000)
    assert state["behind_us"] / 1e6 < time.monotonic() - begun + 1


def test_ports_by_worker(router):
    for port in router.cli("port", "list"):
        rows = router.cli("port", "show", port["name"], "--by-worker")
        assert [row["worker"] for row in rows] == [w["id"] for w in router.cli("worker", "list")]
        assert {row["port"] for row in rows} == {port["name"]}
    with pytest.raises(Refused, match="there is no such port"):
        router.cli("port", "show", "nonesuch", "--by-worker")


def test_debug_needs_to_be_allowed(router):
    with pytest.raises(Refused, match="started without debugging.*--allow-debug"):
        router.cli("debug", "delay", "--worker", 0, "--us", 10)


@pytest.mark.parametrize("command, text", [
    (("debug", "delay", "--worker", 0, "--us", 60_000_001), "valid: 0 to 60000000"),
    (("debug", "delay", "--worker", 9, "--us", 1), "there is no such worker"),
    (("worker", "set", 0, "--sleep-max-us", 100_001), "valid: 1 to 100000"),
    (("worker", "set", 0, "--loop-threshold-us", 10_000_001, "--idle", "yield"), "valid: 1 to 10000000"),
    (("worker", "latency", 9), "there is no such worker"),
    (("worker", "add", "--cpu", 0, "--idle", "yield", "--sleep-max-us", 100_001), "valid: 1 to 100000"),
])
def test_refused(daemon, command, text):
    before = daemon.cli("worker", "list")
    with pytest.raises(Refused, match=text):
        daemon.cli(*command)
    after = daemon.cli("worker", "list")
    assert [(w["id"], w["idle"], w["sleep_max_us"], w["loop_threshold_us"]) for w in after] == \
        [(w["id"], w["idle"], w["sleep_max_us"], w["loop_threshold_us"]) for w in before]
