# SPDX-License-Identifier: Apache-2.0
"""A daemon with --user: what each of its threads may do, and that every kind of port works all the same."""
import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "packet"))
from daemon import CLONE_NEWNET, Daemon, Refused, checked, libc  # noqa: E402
from router import Tap  # noqa: E402
from test_interrupt import Wire, cable, wire  # noqa: E402

USER = "nobody"
UID = str(pwd.getpwnam(USER).pw_uid)
NET_ADMIN, NET_RAW, SYS_ADMIN = 1 << 12, 1 << 13, 1 << 21
NETNS = f"corelane-privilege-{os.getpid()}"
CPU = max(os.sched_getaffinity(0))


def start(*options):
    d = Daemon("--idle", "interrupt", "--user", USER, *options)
    d.cli("worker", "add", 1, "--cpu", CPU, "--idle", "interrupt")
    return d


@pytest.fixture(scope="module")
def daemon():
    d = start()
    try:
        yield d
        d.check_alive()
    except BaseException:
        print(d.log())
        raise
    finally:
        assert d.stop() == 0


@pytest.fixture
def netns():
    subprocess.run(["ip", "netns", "add", NETNS], check=True)
    yield NETNS
    subprocess.run(["ip", "netns", "del", NETNS], check=True)


@contextlib.contextmanager
def inside(name):
    with open("/proc/thread-self/ns/net", "rb") as own, open(f"/run/netns/{name}", "rb") as other:
        checked(libc.setns(other.fileno(), CLONE_NEWNET))
        try:
            yield
        finally:
            checked(libc.setns(own.fileno(), CLONE_NEWNET))


def status(pid, tid=None):
    with open(f"/proc/{pid}/task/{tid or pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def threads(d):
    return [status(d.process.pid, tid) for tid in os.listdir(f"/proc/{d.process.pid}/task")]


def helpers(d):
    pids = [p for p in os.listdir("/proc") if p.isdigit()]
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            s = status(pid)
            if s["PPid"] == str(d.process.pid):
                found.append(s)
    return found


def check_rights(d, drivers):
    """drivers: capabilities that calls into DPDK's drivers may use."""
    all_threads = threads(d)
    names = [t["Name"] for t in all_threads]
    assert {"corelaned", "eal-intr-thread", "pmd-fwd-0", "pmd-fwd-1"} <= set(names)
    for t in all_threads:
        worker = t["Name"].startswith("pmd-")
        assert t["Uid"].split() == [UID] * 4, t
        assert t["Gid"].split() == [str(pwd.getpwnam(USER).pw_gid)] * 4, t
        assert int(t["CapEff"], 16) == int(t["CapInh"], 16) == int(t["CapAmb"], 16) == int(t["CapBnd"], 16) == 0, t
        assert int(t["CapPrm"], 16) == (0 if worker else drivers), t
        assert t["NoNewPrivs"] == "1", t
        assert (t["Seccomp"], t["Seccomp_filters"]) == ("2", "2" if worker else "1"), t


def test_rights(daemon):
    check_rights(daemon, NET_ADMIN | NET_RAW)
    helper, = helpers(daemon)
    assert helper["Name"] == "corelane-helper"
    assert helper["Uid"].split() == [UID] * 4
    assert int(helper["CapEff"], 16) == int(helper["CapPrm"], 16) == NET_ADMIN | SYS_ADMIN
    assert (helper["NoNewPrivs"], helper["Seccomp"]) == ("1", "2")


def test_no_core_file(daemon):
    pid = daemon.process.pid
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        core = next(line for line in f if line.startswith("Max core file size")).split()
    assert core[4:6] == ["0", "0"]
    assert os.stat(f"/proc/{pid}/environ").st_uid == 0  # root's while the process cannot be dumped


@pytest.mark.parametrize("kind", ["tap", "memif", "vhost"])
def test_traffic(daemon, kind):
    with wire(daemon, *cable(kind, daemon.dir)) as w:
        for i in range(20):
            w.pass_one(i, back=i % 2 == 0)
        check_rights(daemon, NET_ADMIN | NET_RAW)


def test_tap_in_a_namespace(daemon, netns):
    w = Wire(daemon)
    try:
        daemon.cli("port", "add", "n", "tenant", "tap", "--bridge", "near", "--netns", netns)
        w.ports.append("n")
        w.wait_up()
        tap = Tap(types.SimpleNamespace(namespace=lambda: inside(netns)), "n", None)
        w.taps[1].sock.close()
        w.taps[1] = tap
        for i in range(20):
            w.pass_one(i, back=i % 2 == 0)
        daemon.cli("port", "set", "n", "--mtu", 1400)
        link = subprocess.run(["ip", "-n", netns, "link", "show", "n"], capture_output=True, text=True, check=True).stdout
        assert "mtu 1400" in link
        with pytest.raises(Refused, match="--ifname 'n': exists already"):
            daemon.cli("port", "add", "m", "tenant", "tap", "--ifname", "n", "--bridge", "near", "--netns", netns)
        with pytest.raises(Refused, match="--netns 'none-such': cannot be opened"):
            daemon.cli("port", "add", "m", "tenant", "tap", "--bridge", "near", "--netns", "none-such")
    finally:
        w.close()


@pytest.mark.parametrize("device", ["net_af_packet0,iface=px0", "net_af_packet0,iface=px0,vnet=1"])
def test_af_packet(daemon, device):
    with daemon.namespace():
        subprocess.run(["ip", "link", "add", "px0", "type", "veth", "peer", "name", "px1"], check=True)
        subprocess.run(["ip", "link", "set", "px1", "up"], check=True)
    w = Wire(daemon)
    try:
        daemon.cli("worker", "set", 0, "--idle", "sleep")  # af_packet has no interrupts
        daemon.cli("port", "add", "p", "tenant", "dpdk", device, "--bridge", "near", "--polled-by", "0:0")
        w.ports.append("p")
        w.wait_up()
        w.taps[1].sock.close()
        w.taps[1] = Tap(daemon, "px1", None)
        for i in range(20):
            w.pass_one(i, back=i % 2 == 0)
        daemon.cli("port", "set", "p", "--mtu", 1400)
        check_rights(daemon, NET_ADMIN | NET_RAW)
    finally:
        w.close()
        with daemon.namespace():
            subprocess.run(["ip", "link", "del", "px0"], check=True)
        daemon.cli("worker", "set", 0, "--idle", "interrupt")


def test_fewer_kinds_need_fewer_rights():
    d = start("--port-kinds", "vhost,memif")
    try:
        check_rights(d, 0)
        assert helpers(d) == []
        d.cli("bridge", "add", "near")
        with pytest.raises(Refused, match="device 'tap': this daemon was started without the rights for such ports"):
            d.cli("port", "add", "t", "tenant", "tap", "--bridge", "near")
    finally:
        assert d.stop() == 0


@pytest.mark.parametrize("kind", ["vhost", "memif"])
def test_socket_of_another_user(daemon, kind):
    daemon.cli("bridge", "add", "near")
    port = ["port", "add", "s", "tenant", kind, "--bridge", "near", "--socket", f"{daemon.dir}/s.sock"]
    try:
        with pytest.raises(Refused) as refused:
            daemon.cli(*port, "--socket-owner", "root")
        assert str(refused.value).endswith(
            "--socket-owner 'root': the daemon, without CAP_CHOWN, cannot give a socket to another user; "
            f"valid: {USER}, the daemon's user")
        with pytest.raises(Refused, match="--socket-group 'root': .* cannot give a socket to a group that it is not in; valid: groups of "):
            daemon.cli(*port, "--socket-group", "root")
        assert not os.path.exists(f"{daemon.dir}/s.sock")
        daemon.cli(*port, "--socket-owner", USER, "--socket-group", str(pwd.getpwnam(USER).pw_gid), "--socket-mode", "0600")
        s = os.stat(f"{daemon.dir}/s.sock")
        assert (str(s.st_uid), s.st_gid, s.st_mode & 0o777) == (UID, pwd.getpwnam(USER).pw_gid, 0o600)
        daemon.cli("port", "del", "s")
    finally:
        daemon.cli("bridge", "del", "near")


def test_helper_ends_with_the_daemon():
    d = start()
    helper, = helpers(d)
    try:
        d.process.kill()
        d.process.wait()
        deadline = time.monotonic() + 60
        while os.path.exists(f"/proc/{helper['Pid']}") and status(helper["Pid"])["State"][0] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        d.stop()


def test_daemon_outlives_its_helper():
    d = start()
    try:
        helper, = helpers(d)
        os.kill(int(helper["Pid"]), signal.SIGKILL)
        d.cli("bridge", "add", "near")
        with pytest.raises(Refused, match="the helper process, which makes taps, has ended"):
            d.cli("port", "add", "t", "tenant", "tap", "--bridge", "near")
        d.check_alive()
    finally:
        assert d.stop() == 0


def test_forbidden_system_call():
    d = start("--allow-debug")
    try:
        with contextlib.suppress(Refused, RuntimeError):  # the daemon may end before it has answered
            d.cli("debug", "forbidden-call", "--worker", 0)
        assert d.process.wait(timeout=60) == -signal.SIGSYS
        assert re.fullmatch(r"corelaned: thread pmd-fwd-0 made system call \d+ \(execve\), which its filter does not allow: the process ends",
                            d.log().splitlines()[-1])
    finally:
        d.stop()


def test_forbidden_system_call_of_the_unfiltered():
    d = start("--allow-debug", "--system-calls", "any")
    try:
        d.cli("debug", "forbidden-call", "--worker", 1)
        loops = d.cli("worker", "show", 1)[0]["state"]["loops"]
        while d.cli("worker", "show", 1)[0]["state"]["loops"] == loops:  # it fails in one loop, and the next ones are as before
            time.sleep(0.02)
    finally:
        assert d.stop() == 0


def test_refusals_name_what_is_possible():
    d = start()
    try:
        d.cli("bridge", "add", "lan")
        with pytest.raises(Refused, match="cannot be bound: Permission denied; valid: a path in a directory that user nobody, the daemon's, "
                                          "may write to"):
            d.cli("port", "add", "vm3", "tenant", "vhost", "--socket", "/root/vm3.sock", "--bridge", "lan")
        with pytest.raises(Refused, match=r"a worker cannot run there: Invalid argument; valid: one of CPUs [0-9,-]+$"):
            d.cli("worker", "add", 9, "--cpu", 16000)
    finally:
        d.stop()


def refused_start(run_dir, *options):
    program = os.environ.get("CORELANED") or os.path.join(ROOT, "build", "dataplane", "corelaned")
    return subprocess.run([program, "--run-dir", str(run_dir), "--no-huge", *options], capture_output=True, text=True, check=False,
                          timeout=60)


def test_lock_of_another_user():
    """The error names the lock that root's daemon has left, and says what to do."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.chown(directory, USER)
        lock = os.path.join(directory, "corelaned.lock")
        os.close(os.open(lock, os.O_CREAT | os.O_WRONLY, 0o640))
        done = refused_start(directory, "--user", USER)
        assert done.returncode == 2
        assert (f"corelaned: --run-dir '{directory}': {lock} cannot be opened by uid {pwd.getpwnam(USER).pw_uid}: "
                "Permission denied; valid: another directory, or this one once corelaned.lock is removed while no corelaned "
                "runs there\n") in done.stderr


@pytest.mark.parametrize("check", [[], ["--check"]])
@pytest.mark.parametrize("user,why", [("root", "has all rights"), ("none-such", "does not exist")])
def test_refused_users(user, why, check):
    with tempfile.TemporaryDirectory() as directory:  # a short name: that of tmp_path may be too long for sockets
        run_dir = os.path.join(directory, "run")
        done = refused_start(run_dir, "--user", user, *check)
        assert done.returncode == 2
        assert done.stderr == f"corelaned: --user '{user}': {why}; valid: a user of this machine other than root\n"
        assert not os.path.exists(run_dir)
