# SPDX-License-Identifier: Apache-2.0
"""Threads that are moved, stopped, starved or killed from outside are reported within two seconds and, where possible, repaired."""
import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon, Refused  # noqa: E402

SOON = 2.0  # seconds within which the daemon must notice; the request for its events may take longer on a busy machine
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def router():
    d = Daemon()
    try:
        wait(lambda: d.cli("thread", "list"), "threads")
        yield d
    finally:
        d.stop()


def wait(condition, what, seconds=10.0):
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"no {what} within {seconds} s"
        time.sleep(0.05)


def thread(d, name):
    return next(t for t in d.cli("thread", "list") if t["name"] == name)


def events(d, kind, subject=None):
    return [e for e in d.cli("event", "list", "--kind", kind) if subject in (None, e["subject"])]


def soon(d, kind, subject=None, seconds=SOON):
    """Waits for an event, asserts that it happened soon, and returns it."""
    begin = time.time()
    event, *more = wait(lambda: events(d, kind, subject), kind)
    assert not more
    assert int(event["time_ns"]) / 1e9 - begin < seconds, event
    return event


def other_cpu(cpu):
    rest = os.sched_getaffinity(0) - {cpu}
    if not rest:
        pytest.skip("this machine has one CPU")
    return min(rest)


def test_plan(router):
    """Every thread runs on its CPUs of the plan, and none had to be moved back."""
    threads = router.cli("thread", "list")
    roles = {t["name"]: t["role"] for t in threads}
    assert roles["corelaned"] == "THREAD_ROLE_SERVICE"
    assert roles["eal-intr-thread"] == "THREAD_ROLE_CONTROL"
    assert roles["pmd-fwd-0"] == "THREAD_ROLE_FORWARDING"
    assert all(t["planned"] == t["allowed"] and t["moved_back"] == 0 for t in threads), threads
    assert not events(router, "thread_stray")
    if len(os.sched_getaffinity(0)) > 1:
        worker = thread(router, "pmd-fwd-0")["planned"]
        assert worker == str(max(os.sched_getaffinity(0)))
        assert worker not in thread(router, "corelaned")["planned"].split(",")


@pytest.mark.parametrize("name,subject", [("pmd-fwd-0", "worker 0"), ("eal-intr-thread", "eal-intr-thread")])
def test_taskset(router, name, subject):
    t = thread(router, name)
    cpu = other_cpu(int(t["planned"].split("-")[0]))
    subprocess.run(["taskset", "-p", "-c", str(cpu), str(t["tid"])], check=True, stdout=subprocess.DEVNULL)
    wait(lambda: os.sched_getaffinity(t["tid"]) != {cpu}, "move back", SOON)
    event = soon(router, "thread_stray", subject)
    assert f"thread {name} ({t['tid']}) could run on CPUs {cpu} and belongs to {t['planned']}" in event["text"]
    after = thread(router, name)
    assert after["allowed"] == t["planned"] and after["moved_back"] == 1


def test_worker_on_another_cpu_is_no_stray(router):
    """The plan follows the workers; service threads leave a worker's new CPU."""
    before = thread(router, "pmd-fwd-0")
    cpu = other_cpu(int(before["planned"]))
    router.cli("worker", "set", 0, "--cpu", cpu)
    wait(lambda: thread(router, "pmd-fwd-0")["allowed"] == str(cpu), "move")
    wait(lambda: str(cpu) not in thread(router, "corelaned")["allowed"].split(","), "room")
    assert not events(router, "thread_stray")


def stalls_and_resumes(router, why, end):
    """Asserts that worker 0 is reported as stalled until end() is called."""
    event = soon(router, "worker_stalled", "worker 0")
    assert why in event["text"]
    assert wait(lambda: thread(router, "pmd-fwd-0")["stalled_ms"] > 400, "stalled")
    assert router.cli("status")  # the master does not wait for the worker
    end()
    soon(router, "worker_resumed", "worker 0", SOON + 1)
    assert thread(router, "pmd-fwd-0")["stalled_ms"] == 0
    assert len(events(router, "worker_stalled")) == 1


@contextlib.contextmanager
def stopped(tid):
    """A debugger stops a single thread; yields the function that lets it continue."""
    assert libc.ptrace(PTRACE_SEIZE, tid, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        assert libc.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
        os.waitpid(tid, WALL)
        yield lambda: libc.ptrace(PTRACE_DETACH, tid, None, None)
    finally:
        libc.ptrace(PTRACE_DETACH, tid, None, None)


def test_debugger(router):
    with stopped(thread(router, "pmd-fwd-0")["tid"]) as go_on:
        stalls_and_resumes(router, "stopped by a debugger", go_on)


def test_master_does_not_wait(router):
    """Memory that a stalled worker may still use is freed later; meanwhile all requests are answered."""
    router.cli("vrf", "add", "red")
    router.cli("port", "add", "t0", "tenant", "tap", "--vrf", "red")
    with stopped(thread(router, "pmd-fwd-0")["tid"]), subprocess.Popen(
            [router.cli_path, "--socket", router.socket, "capture", "--port", "t0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as capture:
        time.sleep(0.5)
        capture.send_signal(signal.SIGINT)
        assert capture.wait() == 0
        with pytest.raises(Refused, match="no matching packet came in"):
            router.cli("trace", "--port", "t0", "--timeout", "100ms")
        router.cli("nexthop", "add", 1, "discard")
        router.cli("route", "add", "10.0.0.0/8", "--vrf", "red", "--nexthop", 1)
        router.cli("route", "del", "10.0.0.0/8", "--vrf", "red")
        assert not events(router, "master_stalled")
        wait(lambda: events(router, "worker_stalled", "worker 0"), "worker_stalled")  # takes longer if the master was late
    soon(router, "worker_resumed", "worker 0", SOON + 1)


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


@contextlib.contextmanager
def cgroup(controller, tid):
    """A group of cgroup v1, which may hold single threads; at the end they return to their old group."""
    top = os.path.join("/sys/fs/cgroup", controller)
    if not os.path.exists(os.path.join(top, "tasks")):
        pytest.skip(f"no {controller} controller of cgroup v1, which takes single threads")
    group = os.path.join(top, f"corelane-test-{os.getpid()}")
    os.mkdir(group)
    try:
        yield group
    finally:
        with contextlib.suppress(OSError):
            put(os.path.join(top, "tasks"), tid)
        time.sleep(0.1)
        os.rmdir(group)


def test_freezer(router):
    tid = thread(router, "pmd-fwd-0")["tid"]
    with cgroup("freezer", tid) as group:
        put(group + "/tasks", tid)
        put(group + "/freezer.state", "FROZEN")
        try:
            stalls_and_resumes(router, "frozen by its cgroup", lambda: put(group + "/freezer.state", "THAWED"))
        finally:
            put(group + "/freezer.state", "THAWED")


def test_cpuset(router):
    """The worker's CPU is removed from its cpuset and added again."""
    t = thread(router, "pmd-fwd-0")
    cpu = other_cpu(int(t["planned"]))
    with cgroup("cpuset", t["tid"]) as group:
        put(group + "/cpuset.mems", 0)
        put(group + "/cpuset.cpus", cpu)
        put(group + "/tasks", t["tid"])
        event = soon(router, "thread_displaced", "worker 0")
        assert f"may run on CPUs {cpu} and belongs to {t['planned']}, but the cpuset does not allow it" in event["text"]
        now = thread(router, "pmd-fwd-0")
        assert now["displaced"] and now["allowed"] == str(cpu)
        put(group + "/cpuset.cpus", f"{cpu},{t['planned']}")
        soon(router, "thread_returned", "worker 0")
        now = thread(router, "pmd-fwd-0")
        assert not now["displaced"] and now["allowed"] == t["planned"]
        assert len(events(router, "thread_displaced")) == 1


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""


def test_starved_by_a_real_time_task(router):
    cpu = thread(router, "pmd-fwd-0")["planned"]
    other_cpu(int(cpu))  # the master needs another CPU
    with subprocess.Popen([sys.executable, "-c", HOG, cpu, "2.5"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as hog:
        if hog.stdout.readline() != b"ready\n":
            pytest.skip("SCHED_FIFO is not permitted here")
        event = soon(router, "worker_stalled", "worker 0")
        assert f"could run on CPU {cpu}, but others have it" in event["text"]
        hog.wait()
    soon(router, "worker_resumed", "worker 0", SOON + 1)


def test_whole_process_stopped(router):
    router.process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    router.process.send_signal(signal.SIGCONT)
    event = soon(router, "master_stalled")
    assert int(re.search(r" for (\d+) ms", event["text"])[1]) > 1000
    assert " took " not in event["text"]  # no piece of work is to blame
    assert not events(router, "worker_stalled")  # the worker alone did not stall


def test_crash_of_a_worker_ends_the_process(router):
    """The whole process ends, so that the service manager restarts it (Restart= in corelaned.service)."""
    tid = thread(router, "pmd-fwd-0")["tid"]
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    assert libc.syscall(tgkill, router.process.pid, tid, signal.SIGSEGV) == 0
    assert router.process.wait(SOON) == -signal.SIGSEGV


def test_follow(router):
    """Events are printed as they happen."""
    with subprocess.Popen([router.cli_path, "--socket", router.socket, "event", "list", "--follow", "--kind", "thread_stray"], stdout=subprocess.PIPE, text=True) as follow:
        t = thread(router, "pmd-fwd-0")
        subprocess.run(["taskset", "-p", "-c", str(other_cpu(int(t["planned"]))), str(t["tid"])], check=True, stdout=subprocess.DEVNULL)
        line = follow.stdout.readline()
        follow.terminate()
    assert "warning thread_stray worker 0: thread pmd-fwd-0" in line
