# SPDX-License-Identifier: Apache-2.0
"""`corelane cores apply` and `rollback` on the real kernel: a rollback restores the machine, however apply ended.

Only threads in a PID namespace of the test are moved. Interrupts, workqueues and memory settings are the machine's and change between
apply and rollback. Snapshots before and after are compared. Every test ends with a rollback.
"""
import contextlib
import fcntl
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = os.environ.get("CORELANE", os.path.join(CHECKOUT, "bin", "corelane"))
PATIENCE = 60  # seconds

SETTINGS = [
    "/proc/irq/default_smp_affinity",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/writeback/cpumask",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/vm/stat_interval",
    "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
    "/sys/fs/cgroup/cgroup.subtree_control",
]

DAEMON = os.environ.get("CORELANED", os.path.join(CHECKOUT, "build", "dataplane", "corelaned"))

# A network namespace is seen in a sysfs that was mounted in it; the cgroups below have to be carried over.
# Thread 2 of a host is kthreadd; a namespace without it is a container's.
ENTER = """set -e
%s/kthreadd infinity &
hold=$(mktemp -d)
mount --rbind /sys/fs/cgroup $hold
mount -t sysfs sysfs /sys
mount --rbind $hold /sys/fs/cgroup
umount -R -l $hold
rmdir $hold
ip link add rps0 type veth peer name rps1
echo %s > /sys/class/net/rps0/queues/rx-0/rps_cpus
echo %s > /sys/class/net/rps1/queues/tx-0/xps_cpus || true
echo ready
exec sleep infinity
"""


def read(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return None


def wait(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE} s"
        time.sleep(0.01)
    return result


def status_of(pid):
    return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


class Machine:
    """Namespaces with threads that may be moved."""

    def __init__(self, tmp):
        self.tmp, self.state = str(tmp), str(tmp / "state")
        self.cpus = sorted(os.sched_getaffinity(1))
        mask = f"{sum(1 << c for c in self.cpus):x}"
        os.symlink(shutil.which("sleep"), self.tmp + "/kthreadd")
        command = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "bash", "-c", ENTER % (self.tmp, mask, mask)]
        self.holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=self.everywhere)
        assert self.holder.stdout.readline() == "ready\n"
        children = read(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").split()
        self.inside = ["nsenter", "-t", children[0], "-p", "-m", "-n"]
        self.started = []

    def everywhere(self):
        os.sched_setaffinity(0, self.cpus)

    def start(self, *command, cpus=None):
        """Starts a process that stays; returns its PID outside the namespace."""
        p = subprocess.Popen(self.inside + list(command), preexec_fn=lambda: os.sched_setaffinity(0, cpus or self.cpus))
        self.started.append(p)

        def started():
            children = read(f"/proc/{p.pid}/task/{p.pid}/children").split()
            return int(children[0]) if children and read(f"/proc/{children[0]}/comm") == os.path.basename(command[0])[:15] else None

        return wait(started, command)

    def cores(self, *arguments):
        return subprocess.run(self.inside + [COMMAND, "cores", *arguments], capture_output=True, text=True, check=False)

    def apply(self, *more):
        return self.cores("apply", self.plan(), "--state-dir", self.state, "--reboot-files", self.tmp + "/next-boot", *more)

    def rollback(self):
        return self.cores("rollback", "--state-dir", self.state)

    def plan(self):
        """A worker on the last CPU, everything else on the others."""
        path = self.tmp + "/plan.json"
        if not os.path.exists(path):
            command = [COMMAND, "plan", "make", "--forwarding", "1", "--allow-overlap", "--out", path]
            subprocess.run(self.inside + command, check=True, capture_output=True)
        return path

    def worker_cpu(self):
        with open(self.plan(), encoding="utf-8") as f:
            return json.load(f)["workers"][0]["cpu"]

    def pids(self):
        """All threads of the namespace, with their numbers outside."""
        own = os.stat(f"/proc/{self.inside[2]}/ns/pid").st_ino
        found = []
        for task in glob.glob("/proc/[0-9]*/task/[0-9]*"):
            try:
                if os.stat(task + "/ns/pid").st_ino == own:
                    found.append(int(os.path.basename(task)))
            except OSError:
                pass
        return found

    def snapshot(self):
        now = {path: read(path) for path in SETTINGS + glob.glob("/proc/irq/*/smp_affinity_list")}
        for queue in ("rps0/queues/rx-0/rps_cpus", "rps1/queues/tx-0/xps_cpus"):
            now[queue] = subprocess.run(self.inside + ["cat", "/sys/class/net/" + queue], capture_output=True, text=True, check=False).stdout
        for pid in self.pids():  # other threads of the machine may be moved at any time
            task = f"/proc/{pid}"
            status, group = read(task + "/status"), read(task + "/cgroup")
            if status and group:
                now["thread " + task] = [line for line in status.splitlines() if line.startswith("Cpus_allowed_list")] + [group]
        now["cpusets"] = sorted(glob.glob("/sys/fs/cgroup/cpuset/**/", recursive=True))
        now["next boot"] = os.path.exists(self.tmp + "/next-boot")
        return now

    def stop(self):
        for p in self.started:
            p.kill()
        self.holder.kill()
        for p in self.started + [self.holder]:
            p.wait()


def changed(before, after):
    """The differences between two snapshots, without threads that were started or ended."""
    keys = [k for k in before.keys() | after.keys() if not (k.startswith("thread ") and (k not in before or k not in after))]
    return {k: (before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)}


@pytest.fixture
def machine(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if len(os.sched_getaffinity(1)) < 2:
        pytest.skip("needs two CPUs")
    disturbed = {"/sys/kernel/mm/transparent_hugepage/enabled": "always", "/sys/kernel/mm/ksm/run": "1", "/proc/sys/kernel/timer_migration": "0"}
    old = {path: read(path) for path in disturbed}
    m = Machine(tmp_path)
    untouched = m.snapshot()
    try:
        for path, value in disturbed.items():
            if old[path] is not None:
                write(path, value)
        yield m
    finally:
        last = m.rollback()
        for path, text in old.items():
            if text is not None:
                write(path, text[text.index("[") + 1:text.index("]")] if "[" in text else text)
        after = m.snapshot()
        m.stop()
        assert last.returncode == 0, last.stdout + last.stderr
        assert changed(untouched, after) == {}


def test_applied_and_all_back(machine):
    everywhere = machine.start("sleep", "1000")
    there = machine.start("sleep", "1001", cpus=[machine.worker_cpu()])
    busy = machine.start(sys.executable, "-c", "import threading, time; [threading.Thread(target=time.sleep, args=[1000]).start() for _ in range(5)]")
    shell = machine.start("bash", "-c", "trap 'sleep 1002 &' USR1; while sleep 0.1; do :; done")
    wait(lambda: len(os.listdir(f"/proc/{busy}/task")) == 6, "threads of a busy process")
    wait(lambda: int(status_of(shell)["SigCgt"], 16) >> (signal.SIGUSR1 - 1) & 1, "trap of the shell")
    worker = machine.worker_cpu()
    others = set(machine.cpus) - {worker}
    before = machine.snapshot()

    shown = machine.cores("diff", machine.plan())
    assert shown.returncode == 0 and "sleep" in shown.stdout, shown
    assert changed(before, machine.snapshot()) == {}

    done = machine.apply("-o", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [o for o in outcomes if o.get("result") in ("failed", "refused")]
    assert outcomes[-1]["remains"]["missing_kernel_arguments"]
    for pid in machine.pids():
        assert os.sched_getaffinity(pid) <= others, read(f"/proc/{pid}/comm")
    assert len(os.listdir(f"/proc/{busy}/task")) == 6
    assert read("/sys/kernel/mm/ksm/run") == "0" and "[madvise]" in read("/sys/kernel/mm/transparent_hugepage/enabled")
    managed = {o["name"].split()[1] for o in outcomes if o.get("kind") == "note" and o["name"].startswith("IRQ ")}
    for irq in glob.glob("/proc/irq/[0-9]*"):
        if os.path.basename(irq) not in managed and read(irq + "/smp_affinity_list") and read(f"/sys/kernel/irq/{os.path.basename(irq)}/actions"):
            assert str(worker) not in read(irq + "/smp_affinity_list").split(","), irq
    after = machine.snapshot()
    assert int(after["rps0/queues/rx-0/rps_cpus"].replace(",", ""), 16) == sum(1 << c for c in others)
    if os.path.exists("/sys/fs/cgroup/cpuset/cpuset.cpus"):  # its threads cannot leave it, not even with a system call
        assert machine.start("sleep", "1") and "/corelane-host" in read(f"/proc/{everywhere}/cgroup")
        refused = subprocess.run(["taskset", "-pc", str(worker), str(there)], capture_output=True, text=True, check=False)
        assert refused.returncode != 0, refused

    os.kill(shell, signal.SIGUSR1)  # it starts a process, which has the CPUs that it has now itself
    heir = wait(lambda: next((int(c) for c in read(f"/proc/{shell}/task/{shell}/children").split()
                              if read(f"/proc/{c}/cmdline") == "sleep\x001002\x00"), None), "process of the shell")
    back = machine.rollback()
    assert back.returncode == 0, back.stdout + back.stderr
    assert changed(before, machine.snapshot()) == {}
    assert os.sched_getaffinity(heir) == set(machine.cpus)
    again = machine.rollback()
    assert again.returncode == 0 and again.stdout == "Nothing to put back.\n"


def test_worker_is_told_to_the_daemon(machine):
    """The worker is moved by the daemon, which would undo a move of its thread alone."""
    worker, run = machine.worker_cpu(), machine.tmp + "/run"
    other = next(c for c in machine.cpus if c != worker)
    os.mkdir(run)
    machine.start(DAEMON, "--run-dir", run, "--no-huge", "--memory", "256", "--worker-cpus", str(other), "--service-cpus", str(other),
                  "--allow-overlap", "--idle", "sleep")
    socket = ["--socket", run + "/corelaned.sock"]

    def cpu():
        p = subprocess.run([COMMAND, *socket, "-o", "json", "worker", "list"], capture_output=True, text=True, check=False)
        return p.stdout and json.loads(p.stdout)["cpu"]

    wait(lambda: cpu() == other, "daemon")
    done = machine.apply(*socket)
    assert done.returncode == 0 and "done      worker 0" in done.stdout and cpu() == worker, done.stdout + done.stderr
    back = machine.cores("rollback", "--state-dir", machine.state, *socket)
    assert back.returncode == 0 and "restored  worker 0" in back.stdout and cpu() == other, back.stdout + back.stderr


def test_somebody_else_changed_it(machine):
    pid = machine.start("sleep", "1000")
    before = machine.snapshot()
    assert machine.apply().returncode == 0
    write("/proc/sys/vm/stat_interval", "7")
    back = machine.rollback()
    assert back.returncode == 0 and "somebody had changed it since apply, to '7'" in back.stdout, back
    assert changed(before, machine.snapshot()) == {}
    assert os.sched_getaffinity(pid) == set(machine.cpus)


def kill_inside(process):
    for pid in (read(f"/proc/{process.pid}/task/{process.pid}/children") or "").split():
        with contextlib.suppress(ProcessLookupError):  # it was done
            os.kill(int(pid), signal.SIGKILL)
    process.wait()


def test_killed_at_any_time(machine):
    """internal/cores ends apply at each of its steps, on a copy of a machine; here it is a real one, at any time."""
    for _ in range(20):
        machine.start("sleep", "1000")
    machine.plan()
    before = machine.snapshot()
    journal = machine.state + "/journal"
    cut, rounds, deadline = 0, 0, time.monotonic() + PATIENCE
    while rounds < 16 or cut == 0:
        for what in ("apply", "rollback"):
            arguments = ["apply", machine.plan(), "--reboot-files", machine.tmp + "/next-boot"] if what == "apply" else ["rollback"]
            p = subprocess.Popen(machine.inside + [COMMAND, "cores", *arguments, "--state-dir", machine.state], stdout=subprocess.DEVNULL)
            while what == "apply" and p.poll() is None and not os.path.exists(journal):  # it only reads until then
                time.sleep(0.001)
            time.sleep(random.random() * 0.12)
            kill_inside(p)
        cut += os.path.exists(journal)
        back = machine.rollback()
        assert back.returncode == 0, back.stdout + back.stderr
        assert changed(before, machine.snapshot()) == {}, f"round {rounds}"
        rounds += 1
        assert cut or time.monotonic() < deadline, "no journal was left over: nothing was cut short"


def test_refused_and_nothing_changed(machine):
    machine.start("sleep", "1000")
    plan, before = machine.plan(), machine.snapshot()
    with open(plan, encoding="utf-8") as f:
        other = json.load(f)
    other["layout"][0] = "node 0: cores 0-95"
    other["machine"], other["topology"] = "compute-7", "0123456789abcdef"
    foreign = machine.tmp + "/other.json"
    write(foreign, json.dumps(other))
    os.chmod(machine.tmp, 0o755)
    readonly = "mount -o remount,ro,bind /sys && exec \"$@\""
    for why, command in {
        "it was made for": [COMMAND, "cores", "apply", foreign, "--state-dir", machine.state],
        "root": ["setpriv", "--reuid", "65534", "--clear-groups", COMMAND, "cores", "apply", plan, "--state-dir", machine.state],
        "CAP_SYS_NICE": ["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", COMMAND, "cores", "apply", plan, "--state-dir", machine.state],
        "read-only file system": ["unshare", "-m", "sh", "-c", readonly, "-", COMMAND, "cores", "apply", plan, "--state-dir", machine.state],
    }.items():
        p = subprocess.run(machine.inside + command, capture_output=True, text=True, check=False)
        assert p.returncode == 2 and why in p.stderr and p.stderr.count("\n") == 1 and not p.stdout, p
        assert changed(before, machine.snapshot()) == {}, why
    os.makedirs(machine.state, exist_ok=True)
    with open(machine.state + "/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for p in (machine.apply(), machine.rollback()):
            assert p.returncode == 2 and "another apply or rollback is running" in p.stderr, p
    assert changed(before, machine.snapshot()) == {}
