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


def wait_for(daemon, true_of):
    """Waits, because the daemon asks the kernel once a second."""
    deadline = time.monotonic() + 10
    while not true_of(worker(daemon)["state"]):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def latency(daemon, *options):
    return daemon.cli("worker", "latency", 0, *options)[0]


def observe(daemon, seconds):
    """The loops during this time."""
    latency(daemon, "--reset")
    time.sleep(seconds)
    return latency(daemon)


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
        time.sleep(1)
        assert [t["role"] for t in debugger()] == ["THREAD_ROLE_SERVICE"]
        if os.uname().machine == "x86_64" and len(os.sched_getaffinity(0)) > 1:
            assert interrupts("TLB") - before > 1000
    finally:
        daemon.cli("debug", "shootdowns", "--per-second", 0)
    assert not debugger()
    with pytest.raises(Refused, match="--per-second '2000000': is out of range; valid: 0 to 1000000"):
        daemon.cli("debug", "shootdowns", "--per-second", 2000000)


def test_delay_shows_in_latency(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 1000)
    seen = observe(daemon, 0.5)
    assert int(seen["empty"]["loops"]) > 10
    assert 1_000_000 <= int(seen["empty"]["p50_ns"]) < 20_000_000
    assert int(seen["empty"]["max_ns"]) == int(seen["longest"][0]["ns"])
    for loop in seen["longest"][:-1]:
        assert int(loop["delay_ns"]) >= 999_000
        parts = sum(int(loop[stage + "_ns"]) for stage in ("receive", "graph", "messages", "idle", "delay"))
        assert abs(parts - int(loop["ns"])) < 10
    assert worker(daemon)["state"]["debug_delay_us"] in (999, 1000)
    daemon.cli("debug", "delay", "--worker", 0, "--us", 0)
    assert int(observe(daemon, 0.3)["empty"]["p50_ns"]) < 1_000_000


def test_when_is_the_time_of_the_clock(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 5000)
    before = time.time()
    seen = observe(daemon, 0.2)
    assert before - 0.1 <= int(seen["longest"][0]["time_ns"]) / 1e9 <= time.time() + 0.1


def test_threshold_is_live(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 1000)
    latency(daemon, "--threshold", 10_000_000, "--reset")
    time.sleep(0.2)
    seen = latency(daemon)
    assert seen["threshold_us"] == 10_000_000
    assert seen["longest"] == []
    assert int(seen["empty"]["loops"]) > 10
    latency(daemon, "--threshold", 500, "--reset")
    time.sleep(0.2)
    assert latency(daemon)["longest"]


def test_competitor_shows_as_taken(daemon):
    w = worker(daemon)
    if w["state"]["taken_seen_by"] != "rseq":
        pytest.skip("glibc has not registered rseq")
    daemon.cli("worker", "set", 0, "--idle", "pause", "--loop-threshold-us", 1000)
    with competitor(w["cpu"]):
        time.sleep(0.3)
        seen = observe(daemon, 1)
    assert int(seen["taken_loops"]) >= 5
    taken = [loop for loop in seen["longest"] if loop["taken"]]
    assert len(taken) >= 0.8 * len(seen["longest"]) > 0
    for name in ("waited_ns", "involuntary_switches"):
        wait_for(daemon, lambda s, n=name: int(s[n]) > int(w["state"][n]))


def test_kernels_view(daemon):
    w = worker(daemon)
    wait_for(daemon, lambda s: s["affinity"] == str(w["cpu"]) and s["last_cpu"] == w["cpu"])
    tid = w["state"]["tid"]
    os.sched_setaffinity(tid, os.sched_getaffinity(0))  # the daemon moves the thread back
    wait_for(daemon, lambda s: s["affinity"] == str(w["cpu"]))


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
    time.sleep(0.05)
    before = calls(daemon)
    assert traced(worker(daemon)["state"]["tid"], 0.5) == {}
    assert calls(daemon) == before


@pytest.mark.parametrize("idle, call", [("yield", "sched_yield"), ("sleep", "clock_nanosleep"), ("interrupt", "poll")])
def test_system_calls_are_counted(daemon, idle, call):
    daemon.cli("worker", "set", 0, "--idle", idle)
    time.sleep(0.05)
    before = calls(daemon)
    seen = traced(worker(daemon)["state"]["tid"], 0.5)
    assert set(seen) <= {call, "restart_syscall", *(["read"] if idle == "interrupt" else [])}  # resets its doorbell
    assert calls(daemon) - before >= seen[call] > 0


def test_tap_calls_are_counted(network):
    """Each frame read or written and each look at an empty tap is one call."""
    cli = network.router.cli

    def state():
        return cli("worker", "show", 0)[0]["state"]

    before = state()
    time.sleep(0.3)
    after = state()
    loops = int(after["loops"]) - int(before["loops"])
    assert int(after["system_calls"]) - int(before["system_calls"]) >= loops / 2 > 0


def test_late_worker_is_behind(daemon):
    daemon.cli("debug", "delay", "--worker", 0, "--us", 900_000)
    most = 0
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline and most < 300_000:
        most = max(most, worker(daemon)["state"]["behind_us"])  # the daemon still answers
        time.sleep(0.05)
    assert 300_000 <= most < 5_000_000


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
