# SPDX-License-Identifier: Apache-2.0
"""Threads that are moved, stopped, starved or killed from outside are reported and, where possible, repaired. How soon is not
judged: on a busy machine the daemon itself waits for a CPU, and may find its worker stalled before a test stops it."""
import contextlib
import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon, Refused  # noqa: E402

PATIENCE = 60.0  # seconds
STOPPED = 1.5  # seconds
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


def wait(condition, what):
    deadline = time.monotonic() + PATIENCE
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE} s"
        time.sleep(0.05)


def thread(d, name):
    return next(t for t in d.cli("thread", "list") if t["name"] == name)


def events(d, kind, subject=None):
    return [e for e in d.cli("event", "list", "--kind", kind) if subject in (None, e["subject"])]


def only(d, kind, subject=None):
    """Waits for an event, asserts that it is the only one of its kind and subject, and returns it."""
    [event] = wait(lambda: events(d, kind, subject), kind)
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
    wait(lambda: os.sched_getaffinity(t["tid"]) != {cpu}, "move back")
    event = only(router, "thread_stray", subject)
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


def stalls(d):
    """The events of worker 0 that begin and end a stall. They alternate: each stall is reported once, and each end."""
    found = [e for e in d.cli("event", "list") if e["kind"] in ("worker_stalled", "worker_resumed") and e["subject"] == "worker 0"]
    kinds = [e["kind"] for e in found]
    assert kinds == (["worker_stalled", "worker_resumed"] * len(kinds))[:len(kinds)], found
    return found


def resumed(d):
    """Waits until worker 0 is not reported as stalled, and returns how many events said so."""
    return len(wait(lambda: [found] if len(found := stalls(d)) % 2 == 0 else None, "worker_resumed")[0])


def stalls_and_resumes(d, why, begin):
    """Asserts that worker 0 is reported as stalled from the call of begin() until the call of the function that it returns. The
    report has another reason if others had the worker's CPU just then, so it may take several attempts."""
    deadline = time.monotonic() + PATIENCE
    while True:
        before = resumed(d)
        end = begin()
        try:
            event = wait(lambda: stalls(d)[before:], "worker_stalled")[0]
            wait(lambda: thread(d, "pmd-fwd-0")["stalled_ms"] > 400, "stalled")
            assert d.cli("status")  # the master does not wait for the worker
        finally:
            end()
        assert resumed(d) > before
        wait(lambda: thread(d, "pmd-fwd-0")["stalled_ms"] == 0, "end of the stall")
        if why in event["text"]:
            return
        assert time.monotonic() < deadline, event


def stop_thread(tid):
    """A debugger stops a single thread. Returns the function that lets it continue."""
    assert libc.ptrace(PTRACE_SEIZE, tid, None, None) == 0, os.strerror(ctypes.get_errno())
    assert libc.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
    os.waitpid(tid, WALL)
    return lambda: libc.ptrace(PTRACE_DETACH, tid, None, None)


@contextlib.contextmanager
def stopped(tid):
    go_on = stop_thread(tid)
    try:
        yield
    finally:
        go_on()


def test_debugger(router):
    tid = thread(router, "pmd-fwd-0")["tid"]
    stalls_and_resumes(router, "stopped by a debugger", lambda: stop_thread(tid))


@contextlib.contextmanager
def captured(d, port):
    """A running 'corelane capture': it has had a packet."""
    with subprocess.Popen([d.cli_path, "--socket", d.socket, "capture", "--port", port, "-o", "json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as capture:
        try:
            with d.namespace(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
                s.bind((port, 0))

                def has_packet():
                    with contextlib.suppress(OSError):  # the link is not up yet
                        s.send(bytes(60))
                    return select.select([capture.stdout], [], [], 0.1)[0]

                wait(has_packet, "captured packet")
            yield capture
        finally:
            capture.kill()


def requests_beside_a_stopped_worker(d):
    """Memory that a stalled worker may still use is freed later; meanwhile all requests are answered."""
    d.cli("vrf", "add", "red")
    d.cli("port", "add", "t0", "tenant", "tap", "--vrf", "red")
    before = resumed(d)
    with captured(d, "t0") as capture, stopped(thread(d, "pmd-fwd-0")["tid"]):
        capture.send_signal(signal.SIGINT)
        assert capture.wait(PATIENCE) == 0
        with pytest.raises(Refused, match="no matching packet came in"):
            d.cli("trace", "--port", "t0", "--timeout", "100ms")
        d.cli("nexthop", "add", 1, "discard")
        d.cli("route", "add", "10.0.0.0/8", "--vrf", "red", "--nexthop", 1)
        d.cli("route", "del", "10.0.0.0/8", "--vrf", "red")
        wait(lambda: len(stalls(d)) > before, "worker_stalled")
    assert resumed(d) > before


def test_master_does_not_wait(router):
    requests_beside_a_stopped_worker(router)


@pytest.mark.measure
def test_master_does_not_stall(router):
    requests_beside_a_stopped_worker(router)
    assert not events(router, "master_stalled")


def put(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


def removed(group):
    """Removes a group of which the last thread may just have left."""
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return not os.path.exists(group)


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
        wait(lambda: removed(group), f"end of {group}")


def test_freezer(router):
    tid = thread(router, "pmd-fwd-0")["tid"]
    with cgroup("freezer", tid) as group:
        def freeze():
            put(group + "/freezer.state", "FROZEN")
            return lambda: put(group + "/freezer.state", "THAWED")

        put(group + "/tasks", tid)
        stalls_and_resumes(router, "frozen by its cgroup", freeze)


def test_cpuset(router):
    """The worker's CPU is removed from its cpuset and added again."""
    t = thread(router, "pmd-fwd-0")
    cpu = other_cpu(int(t["planned"]))
    with cgroup("cpuset", t["tid"]) as group:
        put(group + "/cpuset.mems", 0)
        put(group + "/cpuset.cpus", cpu)
        put(group + "/tasks", t["tid"])
        event = only(router, "thread_displaced", "worker 0")
        assert f"may run on CPUs {cpu} and belongs to {t['planned']}, but the cpuset does not allow it" in event["text"]
        now = thread(router, "pmd-fwd-0")
        assert now["displaced"] and now["allowed"] == str(cpu)
        put(group + "/cpuset.cpus", f"{cpu},{t['planned']}")
        only(router, "thread_returned", "worker 0")
        now = thread(router, "pmd-fwd-0")
        assert not now["displaced"] and now["allowed"] == t["planned"]
        assert len(events(router, "thread_displaced")) == 1


# Has a CPU until its input ends. The kernel may give other tasks a twentieth of it.
HOG = """
import os, select, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    pass
"""


def test_starved_by_a_real_time_task(router):
    cpu = thread(router, "pmd-fwd-0")["planned"]
    other_cpu(int(cpu))  # the master needs another CPU
    before = resumed(router)
    with subprocess.Popen([sys.executable, "-c", HOG, cpu], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as hog:
        try:
            if hog.stdout.readline() != b"ready\n":
                pytest.skip("SCHED_FIFO is not permitted here")
            event = wait(lambda: stalls(router)[before:], "worker_stalled")[0]
        finally:
            hog.kill()
    assert f"could run on CPU {cpu}, but others have it" in event["text"]
    assert resumed(router) > before


def test_whole_process_stopped(router):
    """No piece of work is to blame, unless the process was stopped just in one; then it is stopped again."""
    def stop():
        router.process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        router.process.send_signal(signal.SIGCONT)
        router.cli("status")
        return [e for e in events(router, "master_stalled")
                if int(re.search(r" for (\d+) ms", e["text"])[1]) >= 1000 * STOPPED and " took " not in e["text"]]

    wait(stop, "master_stalled without a piece of work")
    # The worker alone did not stall. One that others keep from its CPU is reported before it is late by as much as that.
    late = [float(re.search(r" ended a loop for ([0-9.]+) s", e["text"])[1]) for e in stalls(router) if e["kind"] == "worker_stalled"]
    assert all(seconds < STOPPED for seconds in late), late


def test_crash_of_a_worker_ends_the_process(router):
    """The whole process ends, so that the service manager restarts it (Restart= in corelaned.service)."""
    tid = thread(router, "pmd-fwd-0")["tid"]
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    assert libc.syscall(tgkill, router.process.pid, tid, signal.SIGSEGV) == 0
    assert router.process.wait(PATIENCE) == -signal.SIGSEGV


def test_follow(router):
    """Events are printed as they happen."""
    t = thread(router, "pmd-fwd-0")
    cpu = other_cpu(int(t["planned"]))
    command = [router.cli_path, "--socket", router.socket, "event", "list", "--follow", "--kind", "thread_stray"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follow:
        try:
            subprocess.run(["taskset", "-p", "-c", str(cpu), str(t["tid"])], check=True, stdout=subprocess.DEVNULL)
            assert "warning thread_stray worker 0: thread pmd-fwd-0" in follow.stdout.readline()
        finally:
            follow.kill()
