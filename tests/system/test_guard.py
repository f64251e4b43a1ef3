# SPDX-License-Identifier: Apache-2.0
"""Real drift on this machine: verify names it and how to fix it, the guard reports it and undoes it."""
import contextlib
import datetime
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

PATIENCE = 60.0  # seconds
OWN_GRACE = 3.0  # seconds that the guard leaves to a corelaned to move its own threads back

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2, reason="needs root and two CPUs")


@pytest.fixture(scope="module")
def router():
    """A daemon whose worker has the last CPU; all other threads have the other CPUs."""
    d = Daemon()
    try:
        wait(lambda: placed(d.cli("thread", "list")), "threads on their CPUs")
        d.plan = os.path.join(d.dir, "plan.json")
        subprocess.run([d.cli_path, "plan", "make", "--forwarding-cpus", str(worker_cpu()), "--out", d.plan], check=True, stdout=subprocess.DEVNULL)
        yield d
    finally:
        d.stop()


def placed(threads):
    return threads and all(t["planned"] == t["allowed"] for t in threads)


def worker_cpu():
    return max(os.sched_getaffinity(0))


def other_cpu():
    return min(os.sched_getaffinity(0))


def wait(condition, what):
    deadline = time.monotonic() + PATIENCE
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE} s"
        time.sleep(0.05)


class Guard:
    """A running `corelane cores guard` and its events."""

    def __init__(self, router, *options):
        self.journal = tempfile.mkdtemp(prefix=f"corelane-guard-{os.getpid()}-", dir="/dev/shm")  # a busy disk would delay repairs
        self.events = []
        self.process = subprocess.Popen(
            ["taskset", "-c", str(other_cpu()), router.cli_path, "--socket", router.socket, "-o", "json", "cores", "guard",
             "--plan", router.plan, "--journal", self.journal, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def find(self, kind, check, subject):
        return [e for e in self.events if (e["kind"], e.get("check"), e.get("subject")) == (kind, check, subject)]

    def wait_for(self, kind, check, subject):
        """The first such event."""
        try:
            return wait(lambda: self.find(kind, check, subject), f"{kind} {check} {subject}")[0]
        except AssertionError as e:
            raise AssertionError(f"{e}, but {[e for e in self.events if e['kind'] != 'initial']}") from e

    def look(self):
        """Returns when the guard has seen all threads that there were at the call, and has done what it does about them."""
        for _ in range(2):  # what it does about one is done before it sees the next one
            with pinned(worker_cpu(), "sleep", "infinity") as p:
                self.wait_for("drift", "threads.foreign", f"thread {p.pid}")

    def seconds_used(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        shutil.rmtree(self.journal, ignore_errors=True)
        return self.process.stderr.read()


@contextlib.contextmanager
def guard(router, *options):
    """A guard that has looked at the machine once."""
    with contextlib.ExitStack() as stack:
        with pinned(worker_cpu(), "sleep", "infinity") as p:
            g = Guard(router, *options)
            stack.callback(g.stop)
            g.wait_for("initial", "threads.foreign", f"thread {p.pid}")
        assert any("watching workers' CPUs" in e["text"] for e in g.events)
        yield g


@contextlib.contextmanager
def pinned(cpu, *command):
    """A program that may run on one CPU."""
    p = subprocess.Popen(["taskset", "-c", str(cpu), *command])
    try:
        wait(lambda: name(p.pid) == command[0], command[0])
        yield p
    finally:
        p.kill()
        p.wait()


def name(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
        return f.read().rstrip("\n")


def hog(cpu):
    """A program on one CPU; it uses all of it if it is the worker's."""
    work = ":" if cpu == worker_cpu() else "sleep 0.1"
    return pinned(cpu, "sh", "-c", f"while :; do {work}; done")


def verify(router, plan=None):
    command = [router.cli_path, "-o", "json", "cores", "verify", "--window", "300ms", "--plan", plan or router.plan]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    findings = {f["id"]: f for f in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == any(f["verdict"] == "FAIL" for f in findings.values())
    return findings


def items(finding, subject):
    return [i for i in finding["evidence"] if i.get("subject") == subject]


def test_verify_finds_a_hog_and_fixes_it(router):
    with hog(worker_cpu()) as p:
        def found():
            """The finding, when the hog has had its CPU during the check."""
            finding = verify(router)["threads.foreign"]
            [item] = items(finding, f"thread {p.pid}")
            assert finding["verdict"] == "FAIL" and item["verdict"] == "FAIL"
            assert f"sh (tid {p.pid}, pid {p.pid}) may run on CPUs {worker_cpu()}" in item["text"]
            return finding if "used" in item["text"] else None

        finding = wait(found, "finding with the CPU time of the hog")
        [command] = [c for c in finding["fix"] if c.endswith(f" {p.pid}")]
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
        assert os.sched_getaffinity(p.pid) == {other_cpu()}
        assert not items(verify(router)["threads.foreign"], f"thread {p.pid}")


def test_verify_against_a_plan(router):
    findings = verify(router)
    for check in ("plan.roles", "plan.machine", "threads.workers"):
        assert findings[check]["verdict"] == "PASS", findings[check]


def test_verify_against_another_plan(router, tmp_path):
    """A worker that is not on its CPU of the plan is a FAIL."""
    with open(router.plan, encoding="utf-8") as f:
        plan = json.load(f)
    for cpu in plan["cpus"]:
        cpu["role"] = "forwarding" if cpu["id"] == other_cpu() else "housekeeping"
    plan["workers"][0]["cpu"] = other_cpu()
    plan["isolated"], plan["irqs"] = str(other_cpu()), str(worker_cpu())
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    finding = verify(router, str(path))["threads.workers"]
    assert finding["verdict"] == "FAIL" and any("pmd-fwd-0 of corelaned" in i["text"] and "not a worker's CPU in the " +
        "plan" in i["text"] for i in finding["evidence"])


def test_reports_a_hog(router):
    """Without --repair the drift is only reported, and reported as cleared when the thread has ended."""
    with guard(router) as g:
        with hog(worker_cpu()) as p:
            event = g.wait_for("drift", "threads.foreign", f"thread {p.pid}")
            assert "started" in event["cause"] and f"({os.getpid()})" in event["cause"], event
            assert event["fix"].startswith("taskset -pc")
            g.look()
            assert os.sched_getaffinity(p.pid) == {worker_cpu()}
        g.wait_for("cleared", "threads.foreign", f"thread {p.pid}")


def test_repairs_a_hog(router):
    with guard(router, "--repair") as g, hog(worker_cpu()) as p:
        g.wait_for("drift", "threads.foreign", f"thread {p.pid}")
        g.wait_for("repaired", "threads.foreign", f"thread {p.pid}")
        assert os.sched_getaffinity(p.pid) == {other_cpu()}


# Does not end when it has done its work: the command line of a program that has ended cannot be read.
MOVER = "taskset -pc $1 $2 >/dev/null && read end"


def test_names_taskset(router, tmp_path):
    """The event names the tool that moved a thread, if the tool was started just before: the last one, where the guard is late."""
    (tmp_path / "taskset").write_text(MOVER, encoding="ascii")
    deadline = time.monotonic() + PATIENCE
    with guard(router) as g:
        while True:
            with hog(other_cpu()) as p:
                g.look()
                command = ["sh", str(tmp_path / "taskset"), str(worker_cpu()), str(p.pid)]
                with subprocess.Popen(command, stdin=subprocess.PIPE):
                    event = g.wait_for("drift", "threads.foreign", f"thread {p.pid}")
            assert f"at the previous look it could run on CPUs {other_cpu()}" in event["cause"]
            if f"taskset {worker_cpu()} {p.pid}" in event["cause"] or f"taskset -pc {worker_cpu()} {p.pid}" in event["cause"]:
                return
            if any("does not report starts of programs" in e["text"] for e in g.events):
                return
            assert time.monotonic() < deadline, event


def seconds(event):
    return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", event["time"])).timestamp()


def test_service_thread_moved(router):
    """corelaned moves its own thread back; the guard passes on its event, and repairs nothing unless corelaned is late."""
    [t] = [t for t in router.cli("thread", "list") if t["name"] == "eal-intr-thread"]
    with guard(router, "--repair") as g:
        subprocess.run(["taskset", "-pc", str(worker_cpu()), str(t["tid"])], check=True, stdout=subprocess.DEVNULL)
        stray = g.wait_for("daemon", "thread_stray", "eal-intr-thread")
        assert "moved back" in stray["text"]
        g.look()
        for repaired in g.find("repaired", "threads.own", f"thread {t['tid']}"):
            [drift, *_] = g.find("drift", "threads.own", f"thread {t['tid']}")
            assert seconds(repaired) - seconds(drift) >= OWN_GRACE - 0.001


def test_rps(router):
    mask = f"{1 << worker_cpu():x}"
    path = "/sys/class/net/clgv0/queues/rx-0/rps_cpus"
    subprocess.run(["ip", "link", "add", "clgv0", "type", "veth", "peer", "name", "clgv1"], check=True)
    try:
        with guard(router, "--repair") as g:
            with open(path, "w", encoding="ascii") as f:
                f.write(mask)
            event = g.wait_for("drift", "net.rps", "rps_cpus clgv0/rx-0")
            assert event["fix"] == f"echo 0 > {path}" and "not known" in event["cause"]
            g.wait_for("repaired", "net.rps", "rps_cpus clgv0/rx-0")
            with open(path, encoding="ascii") as f:
                assert int(f.read().replace(",", ""), 16) == 0
    finally:
        subprocess.run(["ip", "link", "del", "clgv0"], check=True)


@contextlib.contextmanager
def movable_irq():
    """An interrupt that may be moved, on the other CPU; restored afterwards."""
    for n in sorted(int(n) for n in os.listdir("/proc/irq") if n.isdigit()):
        path = f"/proc/irq/{n}/smp_affinity_list"
        with open(path, encoding="ascii") as f:
            before = f.read().strip()
        with contextlib.suppress(OSError):
            with open(path, "w", encoding="ascii") as f:
                f.write(str(other_cpu()))
            try:
                yield n, path
            finally:
                with open(path, "w", encoding="ascii") as f:
                    f.write(before)
            return
    pytest.skip("no interrupt of this machine can be moved")


def test_irq(router):
    with movable_irq() as (n, path), guard(router, "--repair") as g:
        with open(path, "w", encoding="ascii") as f:
            f.write(str(worker_cpu()))
        g.wait_for("drift", "irq.affinity", f"irq {n}")
        g.wait_for("repaired", "irq.affinity", f"irq {n}")
        with open(path, encoding="ascii") as f:
            assert f.read().strip() == str(other_cpu())


@pytest.mark.measure
def test_oscillation(router):
    """Repairs that are undone repeatedly within a minute are reported and paused. internal/guard tests it by steps of its clock."""
    with guard(router, "--repair", "--every", "200ms") as g, hog(other_cpu()) as p:
        deadline = time.time() + PATIENCE
        while not g.find("oscillating", "threads.foreign", f"thread {p.pid}"):
            assert time.time() < deadline, g.events[-5:]
            os.sched_setaffinity(p.pid, {worker_cpu()})
            time.sleep(0.1)
        repaired = len(g.find("repaired", "threads.foreign", f"thread {p.pid}"))
        assert repaired == 5
        os.sched_setaffinity(p.pid, {worker_cpu()})
        g.look()
        assert os.sched_getaffinity(p.pid) == {worker_cpu()}
        assert len(g.find("repaired", "threads.foreign", f"thread {p.pid}")) == repaired


@pytest.mark.measure
def test_costs_little(router):
    with guard(router) as g:
        before, begun = g.seconds_used(), time.time()
        time.sleep(5)
        share = (g.seconds_used() - before) / (time.time() - begun)
        print(f"measured: share of a CPU {100 * share:.2f} %, at most 2 %")
        assert share < 0.02


def test_bad_input(router):
    for arguments, word in ((["guard", "--every", "1us"], "--every"), (["verify", "--plan", "/nonexistent"], "/nonexistent"), (["verify", "--root",
        "/etc/passwd"], "/etc/passwd"),
                            (["verify", "--window", "0s"], "--window")):
        done = subprocess.run([router.cli_path, "cores", *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 2 and word in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def agent_path(router):
    return os.environ.get("CORELANE_AGENT") or os.path.join(os.path.dirname(router.cli_path), "corelane-agent")


def test_agent(router, tmp_path):
    """The agent notifies systemd, applies the node file to the data plane, and ends on SIGTERM."""
    router.cli("vrf", "add", "agent-test")
    node = tmp_path / "node.yaml"
    node.write_text(subprocess.run([router.cli_path, "--socket", router.socket, "export"], check=True, capture_output=True, text=True).stdout, encoding="utf-8")
    router.cli("vrf", "del", "agent-test")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / "notify"))
        s.settimeout(PATIENCE)
        agent = subprocess.Popen(
            ["taskset", "-c", str(other_cpu()), agent_path(router), "--plan", router.plan, "--socket", router.socket, "--journal", str(tmp_path / "journal"),
             "--node-file", str(node), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                 env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")})
        try:
            assert s.recv(1000) == b"READY=1"
            assert s.recv(1000).startswith(b"STATUS=")
            wait(lambda: any(v["name"] == "agent-test" for v in router.cli("vrf", "list")), "vrf")
        finally:
            agent.terminate()
            out, errors = agent.communicate(timeout=PATIENCE)
            router.cli("vrf", "del", "agent-test")
    assert agent.returncode == 0 and not errors, errors
    events = [json.loads(line) for line in out.splitlines()]
    assert any(e["kind"] == "repaired" and "node file" in e["text"] for e in events), events


def test_agent_bad_input(router):
    for arguments, word in ((["--no-such"], "no-such"), (["x"], "'x' is not an option"), (["--plan", "/nonexistent"], "/nonexistent"),
                            (["--node-file", "/nonexistent"], "--node-file"), (["--every", "0s"], "--every")):
        done = subprocess.run([agent_path(router), *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 2 and word in done.stderr and len(done.stderr.splitlines()) == 1, (arguments, done.stderr)
