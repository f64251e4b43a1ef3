# SPDX-License-Identifier: Apache-2.0
"""The Debian package under a systemd that is process 1: a container on a copy of this machine's file system, with the units as they
are installed."""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "packet"))
from daemon import PR_SET_PDEATHSIG, checked, libc  # noqa: E402

PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
NET_ADMIN, NET_RAW, SYS_ADMIN = 1 << 12, 1 << 13, 1 << 21
PATIENCE_S = 120
OPTIONS = "--idle sleep --memory 256"
RUN_DIR = "/run/corelane"

# Its own mounts hide what systemd-nspawn keeps in /run, and end with it. /sys/module: DPDK looks there for drivers.
BOOT = """set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
exec systemd-nspawn --directory="$1/root" --boot --register=no --keep-unit --private-network --machine=corelane-test \\
  --link-journal=no --console=pipe --bind=/dev/net/tun --bind-ro=/sys/module systemd.unit=basic.target
"""


def missing():
    if os.geteuid() != 0:
        return "a container needs root"
    for program, package in [("systemd-nspawn", "systemd-container"), ("dpkg-shlibdeps", "dpkg-dev"), ("help2man", "help2man")]:
        if shutil.which(program) is None:
            return f"{program} is not installed (package {package})"
    if not os.path.exists("/lib/systemd/systemd"):
        return "this machine has no systemd to boot"
    return "/dev/net/tun is missing" if not os.path.exists("/dev/net/tun") else None


pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Machine:
    def __init__(self, folder):
        self.log = folder / "console"
        mount = folder / "mount"
        mount.mkdir()
        with open(self.log, "wb") as log:
            self.nspawn = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", BOOT, "boot", mount],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent)
        try:
            init = self.wait_for(self.find_init)
            self.inside = ["nsenter", "--target", init, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"]
            self.wait_for(lambda: self.run("systemctl", "is-system-running", check=False).strip() in ("running", "degraded"))
        except BaseException:
            self.stop()
            raise

    def wait_for(self, found):
        deadline = time.monotonic() + PATIENCE_S
        while not (result := found()):
            assert self.nspawn.poll() is None and time.monotonic() < deadline, self.log.read_text(errors="replace")
            time.sleep(0.1)
        return result

    def find_init(self):
        """The child of systemd-nspawn that is process 1 of a namespace."""
        for path in glob.glob("/proc/[0-9]*/status"):
            with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as f:
                s = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
                if s["PPid"] == str(self.nspawn.pid) and s["NSpid"].split()[1:] == ["1"] and s["Name"] == "systemd":
                    return s["Pid"]
        return None

    def run(self, *command, check=True):
        done = subprocess.run([*self.inside, *(str(c) for c in command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=PATIENCE_S)
        assert done.returncode == 0 or not check, f"{command}: {done.stdout}"
        return done.stdout

    def install(self, folder):
        """The container's /tmp is its own: the package comes through standard input."""
        path, = folder.glob("*.deb")
        with open(path, "rb") as f:
            subprocess.run([*self.inside, "sh", "-c", "cat >/root/corelane.deb && dpkg --install /root/corelane.deb"], stdin=f, check=True,
                           stdout=subprocess.DEVNULL, timeout=PATIENCE_S)

    def options(self, *more):
        """Those of the service, from its next start on."""
        options = " ".join([OPTIONS, *more])
        self.run("sh", "-c", f"printf 'HUGEPAGES_MB=0\\nCORELANED_OPTIONS={options}\\n' >/etc/default/corelane")

    def property(self, name, unit="corelaned"):
        return self.run("systemctl", "show", "--property", name, "--value", unit).strip()

    def status(self, pid):
        lines = self.run("cat", f"/proc/{pid}/status").splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)

    def journal(self):
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit=corelaned")

    def stop(self):
        self.nspawn.terminate()  # powers the container off
        try:
            self.nspawn.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    env = dict(os.environ, DPKG_DEB_COMPRESSOR_TYPE="none")  # xz takes half a minute
    done = subprocess.run(["tools/deb.sh", folder], cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def machine(package, tmp_path_factory):
    m = Machine(tmp_path_factory.mktemp("machine"))
    try:
        m.run("rm", "-f", "/usr/sbin/policy-rc.d")  # this machine's, which may be a container itself
        m.install(package)
        m.options()
        m.run("systemctl", "start", "corelaned", check=False)
        assert m.property("ActiveState") == "active", m.journal()
        yield m
        assert m.property("ActiveState") == "active", m.journal()
        m.run("systemctl", "stop", "corelaned")
        assert m.property("Result") == "success", m.journal()
        m.run("test", "!", "-e", RUN_DIR)
        assert m.run("pgrep", "corelaned", check=False) == ""
    finally:
        m.stop()


def test_package_makes_the_user(machine):
    assert {"corelane", "kvm"} <= set(machine.run("id", "-nG", "corelane").split())
    rule, = [r for r in machine.run("cat", "/usr/lib/udev/rules.d/60-corelane.rules").splitlines() if not r.startswith("#")]
    assert rule == 'SUBSYSTEM=="vfio", GROUP="corelane", MODE="0660"'


def test_rights(machine):
    uid = machine.run("id", "-u", "corelane").strip()
    daemon = machine.status(machine.property("MainPID"))
    assert daemon["Name"] == "corelaned"
    helper, = [machine.status(pid) for pid in machine.run("pgrep", "--parent", machine.property("MainPID")).split()]
    assert helper["Name"] == "corelane-helper"
    for process, permitted, effective in [(daemon, NET_ADMIN | NET_RAW, 0), (helper, NET_ADMIN | SYS_ADMIN, NET_ADMIN | SYS_ADMIN)]:
        assert process["Uid"].split() == [uid] * 4
        assert (process["NoNewPrivs"], process["Seccomp"]) == ("1", "2")
        assert (int(process["CapPrm"], 16), int(process["CapEff"], 16), int(process["CapAmb"], 16)) == (permitted, effective, 0)
        assert int(process["CapBnd"], 16) == NET_ADMIN | NET_RAW | SYS_ADMIN
    limits = machine.run("cat", f"/proc/{machine.property('MainPID')}/limits").splitlines()
    assert next(line for line in limits if line.startswith("Max core file size")).split()[4:6] == ["0", "0"]


def test_ping_between_taps(machine):
    """Network namespaces that are made after the service has started are seen by it."""
    machine.run("corelane", "bridge", "add", "lan")
    for n in (1, 2):
        machine.run("ip", "netns", "add", f"guest{n}")
        machine.run("corelane", "port", "add", f"tap{n}", "tenant", "tap", "--netns", f"guest{n}", "--bridge", "lan")
        machine.run("ip", "-n", f"guest{n}", "address", "add", f"10.9.0.{n}/24", "dev", f"tap{n}")
    ping = ("ip", "netns", "exec", "guest1", "ping", "-c", 3, "-i", 0.2, "-W", 1, "10.9.0.2")
    machine.wait_for(lambda: " 0% packet loss" in machine.run(*ping, check=False))


def test_af_packet(machine):
    machine.run("ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1")
    machine.run("ip", "link", "set", "wire1", "up")
    machine.run("corelane", "port", "add", "wire", "fabric", "dpdk", "net_af_packet0,iface=wire0")
    machine.run("corelane", "port", "set", "wire", "--mtu", 1400)
    assert " mtu 1400 " in machine.run("ip", "link", "show", "wire0")


def test_sockets(machine):
    machine.run("corelane", "bridge", "add", "guests")
    machine.run("corelane", "port", "add", "vm", "tenant", "vhost", "--socket", f"{RUN_DIR}/vm.sock", "--bridge", "guests")
    machine.run("corelane", "port", "add", "peer", "tenant", "memif", "--socket", f"{RUN_DIR}/peer.sock", "--bridge", "guests")
    for name, group in [("vm", "kvm"), ("peer", "corelane")]:
        assert machine.run("stat", "--format=%U %G %A", f"{RUN_DIR}/{name}.sock").strip() == f"corelane {group} srw-rw----"
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{RUN_DIR}/vm.sock')"
    for groups, refused in [("--groups=kvm", ""), ("--clear-groups", "PermissionError")]:  # QEMU, and anybody else
        said = machine.run("setpriv", "--reuid=nobody", "--regid=nogroup", groups, "/usr/bin/python3", "-c", connect, check=False)
        assert refused in said if refused else said == ""


def test_agent(machine):
    machine.run("systemctl", "start", "corelane-agent")
    assert machine.property("ActiveState", "corelane-agent") == "active"
    machine.run("systemctl", "stop", "corelane-agent")
    assert machine.property("Result", "corelane-agent") == "success"


def test_root_if_asked_for(machine):
    drop_in = "/etc/systemd/system/corelaned.service.d/root.conf"
    machine.run("install", "-D", "/usr/share/doc/corelane/corelaned-root.conf", drop_in)
    machine.run("systemctl", "daemon-reload")
    try:
        machine.run("systemctl", "restart", "corelaned")
        daemon = machine.status(machine.property("MainPID"))
        assert daemon["Uid"].split() == ["0"] * 4
        assert int(daemon["CapEff"], 16) & (NET_ADMIN | SYS_ADMIN) == NET_ADMIN | SYS_ADMIN
        machine.run("corelane", "bridge", "add", "rooted")
        machine.run("corelane", "port", "add", "tap3", "tenant", "tap", "--bridge", "rooted")
    finally:
        machine.run("rm", drop_in)
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "restart", "corelaned")


def test_upgrade_keeps_the_service(machine):
    """The new daemon takes over from the old one: for systemd it is the same service with another main process."""
    machine.run("systemctl", "start", "corelaned")
    old, restarts = machine.property("MainPID"), machine.property("NRestarts")
    machine.run("corelane", "vrf", "add", "upgraded")
    machine.run("corelane", "upgrade")
    new = machine.property("MainPID")
    assert new not in (old, "0") and machine.status(new)["Name"] == "corelaned"
    assert machine.status(new)["PPid"] == "1"  # systemd notices its end
    assert (machine.property("ActiveState"), machine.property("NRestarts")) == ("active", restarts)
    assert "upgraded" in machine.run("corelane", "vrf", "list")
    machine.run("test", "!", "-e", f"/proc/{old}")
    for _ in range(2):  # systemd hears from it: else its watchdog would end the service
        notified = machine.property("WatchdogTimestampMonotonic")
        machine.wait_for(lambda: machine.property("WatchdogTimestampMonotonic") != notified)
    # One that cannot start leaves the old one where it is.
    machine.options("--no-such-option")
    try:
        assert "journalctl" in machine.run("corelane", "upgrade", check=False)
        assert (machine.property("MainPID"), machine.property("ActiveState")) == (new, "active")
    finally:
        machine.options()
    # One that ends later is started again.
    machine.run("kill", "-KILL", new)
    machine.wait_for(lambda: machine.property("MainPID") not in (new, "0") and machine.property("ActiveState") == "active")
    assert machine.property("NRestarts") == str(int(restarts) + 1)
    assert "upgraded" in machine.run("corelane", "vrf", "list")
    machine.run("corelane", "vrf", "del", "upgraded")


@contextlib.contextmanager
def restart_on_hold(machine):
    """A restart whose old main process has ended. The new one starts when the function is called."""
    drop_in, path = "/etc/systemd/system/corelaned.service.d/hold.conf", "/run/corelaned-go-on"
    machine.run("rm", "-f", path)
    machine.run("install", "-d", os.path.dirname(drop_in))
    machine.run("sh", "-c", 'printf "%s\\n" "$@" >"$0"', drop_in,
                "[Service]", f"ExecStartPre=/bin/sh -c 'until [ -e {path} ]; do sleep 0.1; done'")
    machine.run("systemctl", "daemon-reload")
    try:
        machine.run("systemctl", "restart", "--no-block", "corelaned")
        machine.wait_for(lambda: machine.property("SubState") == "start-pre")
        yield lambda: machine.run("touch", path)
    finally:
        machine.run("touch", path)
        machine.run("rm", drop_in)
        machine.run("systemctl", "daemon-reload")


def test_restart_keeps_forwarding(machine):
    """systemd ends a service before it starts it again: a standby forwards meanwhile, and the guests' interfaces stay."""
    machine.run("systemctl", "start", "corelaned")
    machine.run("corelane", "bridge", "add", "calm")
    for n in (5, 6):
        machine.run("ip", "netns", "add", f"guest{n}")
        machine.run("corelane", "port", "add", f"tap{n}", "tenant", "tap", "--netns", f"guest{n}", "--bridge", "calm")
        machine.run("ip", "-n", f"guest{n}", "address", "add", f"10.8.0.{n}/24", "dev", f"tap{n}")

    def pings():
        machine.run("ip", "netns", "exec", "guest5", "ping", "-c", 1, "-w", 20, "10.8.0.6")

    def interfaces():
        """With the index of each, which a new interface would not have, and its addresses."""
        return [machine.run("ip", "-n", f"guest{n}", "-o", "-4", "address", "show", f"tap{n}") for n in (5, 6)]
    pings()
    old, takeovers, before = machine.property("MainPID"), machine.journal().count("took over"), interfaces()
    with restart_on_hold(machine) as go_on:
        machine.run("test", "!", "-e", f"/proc/{old}")
        pings()
        go_on()
        machine.wait_for(lambda: machine.property("ActiveState") == "active")
    pings()
    assert interfaces() == before
    new = machine.property("MainPID")
    machine.wait_for(lambda: machine.journal().count("took over") == takeovers + 2)
    assert new not in (old, "0") and machine.run("pgrep", "--exact", "corelaned").split() == [new]
    assert (machine.property("ActiveState"), machine.property("Result")) == ("active", "success")


def test_stop_during_a_restart(machine):
    """It ends the standby, too, and the next start finds nothing in its way."""
    machine.run("systemctl", "start", "corelaned")
    with restart_on_hold(machine):
        machine.run("pgrep", "--exact", "corelaned")
        machine.run("systemctl", "stop", "corelaned")
        machine.run("test", "!", "-e", RUN_DIR)
        machine.wait_for(lambda: machine.run("pgrep", "--exact", "corelaned", check=False) == "")
    machine.wait_for(lambda: "the service was stopped" in machine.journal())
    machine.run("systemctl", "start", "corelaned")
    assert machine.property("ActiveState") == "active"


def test_package_upgrade_keeps_forwarding(machine):
    """The installed daemon takes over from the one that runs; neither is stopped, and guests' interfaces stay."""
    machine.run("systemctl", "start", "corelaned", "corelane-agent")
    machine.run("corelane", "bridge", "add", "busy")
    for n in (7, 8):
        machine.run("ip", "netns", "add", f"guest{n}")
        machine.run("corelane", "port", "add", f"tap{n}", "tenant", "tap", "--netns", f"guest{n}", "--bridge", "busy")
        machine.run("ip", "-n", f"guest{n}", "address", "add", f"10.7.0.{n}/24", "dev", f"tap{n}")
    link = machine.run("ip", "-n", "guest7", "-o", "-4", "address", "show", "tap7")
    old, agent, restarts = machine.property("MainPID"), machine.property("MainPID", "corelane-agent"), machine.property("NRestarts")
    started, takeovers = machine.property("ActiveEnterTimestampMonotonic"), machine.journal().count("took over")
    assert "has taken over from process" in machine.run("dpkg", "--install", "/root/corelane.deb")
    new = machine.property("MainPID")
    assert new not in (old, "0") and machine.property("NRestarts") == restarts
    assert machine.property("ActiveEnterTimestampMonotonic") == started  # systemd never saw it stop
    assert machine.run("readlink", f"/proc/{new}/exe").strip() == "/usr/bin/corelaned"  # and not the deleted one
    assert machine.journal().count("took over") == takeovers + 1
    machine.run("ip", "netns", "exec", "guest7", "ping", "-c", 1, "-w", 20, "10.7.0.8")
    assert machine.run("ip", "-n", "guest7", "-o", "-4", "address", "show", "tap7") == link
    assert machine.property("MainPID", "corelane-agent") not in (agent, "0")
    machine.run("systemctl", "stop", "corelane-agent")


def test_package_upgrade_that_may_not_or_cannot(machine):
    """dpkg goes on, and so does the daemon that runs; what was stopped stays stopped."""
    def configure():
        return machine.run("/var/lib/dpkg/info/corelane.postinst", "configure", "0.1")
    machine.run("systemctl", "start", "corelaned")
    old = machine.property("MainPID")
    machine.run("sh", "-c", "printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d")
    try:
        assert "policy-rc.d" in configure()
    finally:
        machine.run("rm", "/usr/sbin/policy-rc.d")
    machine.options("--no-such-option")
    try:
        assert "the corelaned that runs goes on" in configure()
    finally:
        machine.options()
    assert (machine.property("MainPID"), machine.property("ActiveState")) == (old, "active")
    machine.run("systemctl", "stop", "corelaned", "corelane-agent")
    configure()
    assert machine.property("ActiveState") == machine.property("ActiveState", "corelane-agent") == "inactive"
    machine.run("systemctl", "start", "corelaned")


def worker_thread(machine):
    """The id of worker 0's thread, here and not in the container."""
    for path in glob.glob("/proc/[0-9]*/task/*/status"):
        with contextlib.suppress(OSError), open(path, encoding="ascii", errors="replace") as f:
            s = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            if s["Name"] == "pmd-fwd-0" and s["NStgid"].split()[1:] == [machine.property("MainPID")]:
                return int(s["Pid"])
    return None


def stop_until_the_end(machine, tid):
    """Stops one thread as a debugger does, while the others of its process run. The end of the process waits for the debugger, too."""
    checked(libc.ptrace(PTRACE_SEIZE, tid, None, None))
    checked(libc.ptrace(PTRACE_INTERRUPT, tid, None, None))

    def ended():
        pid, code = os.waitpid(tid, os.WNOHANG | WALL)
        return pid == tid and os.WIFSIGNALED(code)
    machine.wait_for(ended)


@pytest.mark.parametrize("what", ["daemon", "worker"])
def test_watchdog_ends_what_hangs(machine, what):
    before, restarts, timeouts = machine.property("MainPID"), int(machine.property("NRestarts")), machine.journal().count("Watchdog timeout")
    if what == "daemon":
        machine.run("kill", "-STOP", before)
    else:
        stop_until_the_end(machine, machine.wait_for(lambda: worker_thread(machine)))
    machine.wait_for(lambda: machine.property("MainPID") not in (before, "0") and machine.property("ActiveState") == "active")
    assert machine.property("NRestarts") == str(restarts + 1)
    assert machine.journal().count("Watchdog timeout") == timeouts + 1
    if what == "worker":
        assert "worker_stalled: worker 0 thread pmd-fwd-0" in machine.journal()
    machine.run("corelane", "status")
