# SPDX-License-Identifier: Apache-2.0
"""A daemon that is killed under traffic comes back as it was, and nobody applies anything."""
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess

import pytest

from fake_systemd import FakeSystemd
from namespaces import Namespace, wait
from restarts import Router, USER

MAC = {"vm1": "02:00:00:00:01:11", "vm2": "02:00:00:00:01:12"}
ADDRESS = {"vm1": "10.1.0.11", "vm2": "10.2.0.12"}
GATEWAY = {"vm1": "10.1.0.1", "vm2": "10.2.0.1"}


@pytest.fixture
def router():
    r = Router()
    try:
        yield r
    except BaseException:
        print(r.log())
        raise
    finally:
        r.close()


def add_guests(r):
    r.cli("vrf", "add", "red")
    r.cli("meter", "add", "slow", "--packet-rate", 100000)
    r.cli("rule-list", "add", "out")
    r.cli("rule", "add", "out", "10", "allow", "--protocol", "icmp")
    for name in ("vm1", "vm2"):
        r.cli("port", "add", name, "tenant", "tap", "--netns", r.spaces[name].name, "--vrf", "red",
              "--gateway", f"{GATEWAY[name]}/24", "--guest-address", ADDRESS[name], "--guest-mac", MAC[name],
              "--stateful", "--egress-rules", "out", "--egress-meter", "slow")
        r.spaces[name].device(name, f"{ADDRESS[name]}/24")
        r.spaces[name].ip("route", "add", "default", "via", GATEWAY[name])
    r.cli("nexthop", "add", 7, "discard")
    r.cli("route", "add", "--vrf", "red", "10.9.0.0/16", "--nexthop", 7)
    r.cli("route", "add", "--vrf", "red", "10.8.0.0/16", "--nexthop", 7)
    r.cli("route", "del", "--vrf", "red", "10.8.0.0/16")
    wait(lambda: ping(r, "-c", "1").returncode == 0, "answer of vm2")


def ping(r, *options):
    command = ["ip", "netns", "exec", r.spaces["vm1"].name, "ping", "-W", "1", *options, ADDRESS["vm2"]]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def interface(r, name):
    """What the kernel knows of a guest's interface."""
    link = json.loads(r.spaces[name].ip("-j", "address", "show", "dev", name))[0]
    routes = json.loads(r.spaces[name].ip("-j", "route", "show", "default"))
    addresses = [a["local"] for a in link["addr_info"] if a["family"] == "inet"]
    return link["ifindex"], link["address"], addresses, routes[0]["gateway"]


def test_traffic_comes_back(router):
    """The guest's interface stays, with its addresses and routes, so its packets flow again with the daemon."""
    add_guests(router)
    before = {name: interface(router, name) for name in MAC}
    for how in (signal.SIGKILL, signal.SIGTERM):
        router.end(how)
        assert {name: interface(router, name) for name in MAC} == before
        router.start()
        assert {name: interface(router, name) for name in MAC} == before
        wait(lambda: ping(router, "-c", "1").returncode == 0, "answer of vm2")
        # So are the rules: they allow ICMP, and nothing else.
        router.spaces["vm1"].run("bash", "-c", f"echo x > /dev/udp/{ADDRESS['vm2']}/9")
        wait(lambda: any(d["reason"] == "flow_denied_egress" for d in router.cli("drops")), "drop by a rule")
    router.cli("port", "del", "vm1")
    assert "vm1" not in router.spaces["vm1"].ip("link", "show")


class Notified:
    """The socket of a service manager."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        os.chmod(path, 0o666)
        self.socket.settimeout(60)

    def next(self):
        """The next notification, but for those of the watchdog."""
        while True:
            text, fds, _, _ = socket.recv_fds(self.socket, 4096, 8)
            for fd in fds:
                os.close(fd)  # the sender of a barrier waits for it
            if text != b"WATCHDOG=1":
                return text.decode().splitlines()


def process_status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def test_reload_by_a_service_manager(router, monkeypatch):
    """The process that was started names the daemon that goes on, and ends when that one has taken over."""
    path = os.path.join(router.dir, "notify")
    manager, pid = Notified(path), None
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    router.cli("vrf", "add", "red")
    old = router.process
    try:
        router.launch("--takeover", "--detach")
        key, pid = manager.next()[0].split("=")
        assert key == "MAINPID" and process_status(pid)["Name"] == "corelaned"
        assert manager.next() == ["BARRIER=1"]
        assert manager.next() == ["READY=1"]
        assert router.process.wait(timeout=60) == 0
        assert old.wait(timeout=60) == 0
        assert pid != str(router.process.pid) and process_status(pid)["PPid"] != str(router.process.pid)
        assert "name: red" in router.export()
        assert router.cli("status")
    finally:
        manager.socket.close()
        if old.poll() is None:
            old.kill()
            old.wait()
        if pid:
            os.kill(int(pid), signal.SIGTERM)
            wait(lambda: not os.path.exists(f"/proc/{pid}"), "end of the daemon")


def test_reload_that_cannot_start(router):
    """The old daemon stays."""
    old = router.process
    router.launch("--takeover", "--detach", "--", "--no-such-argument")
    started, router.process = router.process, old
    assert started.wait(timeout=60) == 1
    assert router.answers() and old.poll() is None


def test_reload_of_a_stranger(router, monkeypatch):
    """A process that the service manager does not know as the service is not taken over."""
    monkeypatch.setenv("MAINPID", "1")
    old = router.process
    router.launch("--takeover", "--detach")
    started, router.process = router.process, old
    assert started.wait(timeout=60) == 1
    assert f"process {old.pid} answers there, and the service manager knows process 1 as the service" in router.log()
    assert router.answers() and old.poll() is None


@pytest.fixture
def systemd(router, monkeypatch):
    s = FakeSystemd(os.path.join(router.dir, "bus"), "restart")
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", s.address)
    yield s
    s.close()


def daemon_of(socket_path):
    """A reference to the process that listens there."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(socket_path)
        pid, _, _ = struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return os.pidfd_open(pid)


def has_ended(process):
    return bool(select.select([process], [], [], 60)[0])


@contextlib.contextmanager
def standby(r):
    """The first half of a restart: the service's process has ended, and a standby does its work."""
    old = r.process
    r.launch("--standby")
    started, r.process = r.process, old
    assert started.wait(timeout=60) == 0 and old.wait(timeout=60) == 0, r.log()
    process = daemon_of(r.socket)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)


def test_restart_by_a_service_manager(router, systemd):
    """Between the end of the one process and the start of the next one a standby forwards, however long that takes."""
    add_guests(router)
    before = router.export(), {name: interface(router, name) for name in MAC}
    with standby(router) as process:
        wait(lambda: ping(router, "-c", "1").returncode == 0, "answer of vm2")
        router.start()
        assert has_ended(process)
    wait(lambda: ping(router, "-c", "1").returncode == 0, "answer of vm2")
    assert router.log().count("took over") == 2
    assert (router.export(), {name: interface(router, name) for name in MAC}) == before


def test_stop_by_a_service_manager(router, systemd):
    """A stop starts no standby. During a restart it ends the standby, which systemd does not know."""
    systemd.job = b"stop"
    old = router.process
    router.launch("--standby")
    started, router.process = router.process, old
    assert started.wait(timeout=60) == 0
    assert router.answers() and old.poll() is None
    systemd.job = b"restart"
    router.cli("vrf", "add", "red")
    with standby(router) as process:
        shutil.rmtree(os.path.join(router.dir, "run"))  # as systemd does for a service that was stopped
        assert has_ended(process)
        assert "the service was stopped" in router.log()
        router.start()
    assert "name: red" in router.export()


def test_start_that_outlasts_its_standby(router):
    """It begins with a standby and ends without: a cold start. Who asks for a takeover gets none."""
    router.cli("vrf", "add", "red")
    path = os.path.join(router.dir, "run", "corelaned.standby")
    with open(path, "wb") as f:
        shutil.chown(path, USER)
        fcntl.flock(f, fcntl.LOCK_EX)
        for how in (signal.SIGTERM, signal.SIGKILL):  # without and with a socket where nobody listens
            router.end(how)
            router.start()
            assert "name: red" in router.export()
    assert router.log().count("the standby has ended") == 2 and "took over" not in router.log()
    router.end(signal.SIGTERM)
    router.launch("--takeover")
    assert router.process.wait(timeout=60) == 2
    assert "no corelaned answers there" in router.log()


def test_takeover_of_a_state_that_cannot_be_read(router):
    """Another version's: the old daemon stays, with what it has."""
    router.cli("vrf", "add", "red")
    old = router.process
    with open(os.path.join(router.state, "state"), "r+b") as f:
        f.write(b"another version")
    router.launch("--takeover")
    started, router.process = router.process, old
    assert started.wait(timeout=60) == 2
    assert "does not begin with" in router.log() and "valid: a restart" in router.log()
    assert "name: red" in router.export() and old.poll() is None


def test_state_comes_back(router):
    add_guests(router)
    before = router.export()
    assert "10.9.0.0/16" in before and "10.8.0.0/16" not in before and "vm2" in before
    router.end(signal.SIGKILL)
    router.start()
    assert router.export() == before
    assert router.events("state_restored") and not router.events("state_partly_restored")
    kept = router.cli("status")[0]["kept"]
    assert int(kept["restored"]) > 0 and kept["refused"] == "0" and not kept.get("problem")
    # A second time, from the file that the first start has continued.
    router.cli("route", "add", "--vrf", "red", "10.7.0.0/16", "--nexthop", 7)
    before = router.export()
    assert router.end(signal.SIGTERM) == 0
    router.start()
    assert router.export() == before and "10.7.0.0/16" in before


def test_history_does_not_come_back(router):
    """A start makes what there is, not what there was, such as a port whose namespace is gone."""
    gone = Namespace("gone", 1500)
    try:
        router.cli("vrf", "add", "red")
        router.cli("port", "add", "lost", "tenant", "tap", "--netns", gone.name, "--vrf", "red",
                   "--gateway", "10.5.0.1/24")
        router.cli("port", "add", "m", "tenant", "memif", "--socket", os.path.join(router.dir, "run", "m.sock"),
                   "--vrf", "red", "--gateway", "10.6.0.1/24")
        router.cli("vrf", "add", "blue")
        router.cli("port", "set", "m", "--vrf", "blue")
        router.cli("port", "del", "lost")
        router.cli("vrf", "del", "red")
        router.cli("settings", "set", "--mac-age", 77)
    finally:
        gone.close()
    before = router.export()
    assert "name: red" not in before and "name: blue" in before and "77" in before
    router.end(signal.SIGKILL)
    router.start()
    assert router.export() == before
    assert router.events("state_restored") and not router.events("state_partly_restored")
    assert router.cli("status")[0]["kept"]["refused"] == "0"


def test_crash_in_a_loop(router):
    """After three crashes by the same state a start leaves out the last change, which is the cause here."""
    router.end(signal.SIGTERM)
    router.start("--allow-debug")
    router.cli("vrf", "add", "red")
    router.cli("port", "add", "debug-crash", "tenant", "memif", "--socket", os.path.join(router.dir, "run", "m.sock"),
               "--vrf", "red", "--gateway", "10.6.0.1/24")
    before = router.export()
    router.cli("port", "set", "debug-crash", "--mtu", 1400)  # each start that repeats it crashes
    router.end(signal.SIGKILL)
    for _ in range(2):
        router.launch("--allow-debug")
        assert router.process.wait(timeout=60) == -signal.SIGABRT
    router.start("--allow-debug")
    assert router.export() == before
    text, = router.events("state_change_left_out")
    assert "crashed 3 times" in text and "Ports.Set" in text and "debug-crash" in text


def test_disk_full(router):
    """Without room for its state the daemon goes on as it is, says so, and comes back as it was before."""
    router.end(signal.SIGTERM)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "none", router.state], check=True)
    try:
        shutil.chown(router.state, USER)
        router.start()
        add_guests(router)
        before = router.export()
        with open(os.path.join(router.state, "fill"), "wb", buffering=0) as f:
            with pytest.raises(OSError):
                while True:
                    f.write(bytes(4096))
        routes = [f"10.200.{i}.0/24" for i in range(256)]  # more than the rest of the last page
        router.cli("route", "add", "--vrf", "red", *routes, "--nexthop", 7)
        assert ping(router, "-c", "1").returncode == 0
        assert "10.200.255.0/24" in router.export()
        text, = router.events("state_not_kept")
        assert "No space left on device" in text and text == router.cli("status")[0]["kept"]["problem"]
        router.end(signal.SIGKILL)
        router.start()
        assert router.export() == before
        wait(lambda: ping(router, "-c", "1").returncode == 0, "answer of vm2")
        router.end(signal.SIGKILL)
    finally:
        subprocess.run(["umount", "--lazy", router.state], check=True)


def forwards_meanwhile(r, old):
    """Whether guests reach each other while a successor, which is stopped for that, prepares itself. False: it is further on."""
    begin = len(r.log())
    r.launch("--takeover")
    wait(lambda: len(r.log()) > begin, "first line of the successor")
    r.process.send_signal(signal.SIGSTOP)
    done = []

    def answered_or_ended():
        done.append(ping(r, "-c", "1").returncode == 0)
        return done[-1] or old.poll() is not None or "stopping" in r.log()[begin:]

    try:
        wait(answered_or_ended, "answer of vm2 while a successor prepares itself")
    finally:
        r.process.send_signal(signal.SIGCONT)
    return done[-1] and old.poll() is None


def test_takeover(router):
    """A successor prepares itself while its predecessor forwards, and then continues its work."""
    add_guests(router)
    before = router.export()
    forwarded, attempts = False, 0
    while not forwarded:
        assert attempts < 20, "each successor was too fast to be stopped"
        attempts += 1
        old = router.process
        forwarded = forwards_meanwhile(router, old)
        assert old.wait(timeout=60) == 0
        wait(lambda: router.process.poll() is not None or router.answers(), "answer of the daemon", 60)
        assert router.process.poll() is None, router.log()
        wait(lambda: ping(router, "-c", "1").returncode == 0, "answer of vm2")
    assert router.export() == before
    assert router.events("state_restored")
    # The one after it, with what was changed meanwhile.
    router.cli("route", "add", "--vrf", "red", "10.7.0.0/16", "--nexthop", 7)
    router.end(signal.SIGKILL)
    router.start()
    assert "10.7.0.0/16" in router.export()


def test_no_hugepages_left(router):
    """A start without enough hugepages says so, and serves from ordinary pages."""
    add_guests(router)
    before = router.export()
    router.end(signal.SIGKILL)
    with open("/proc/meminfo", encoding="ascii") as f:
        info = {line.split(":")[0]: int(line.split()[1]) for line in f}
    router.memory = ["--memory", str(256 + info["HugePages_Free"] * info["Hugepagesize"] // 1024)]
    router.start()
    assert "running without hugepages" in router.log()
    assert router.export() == before
    wait(lambda: ping(router, "-c", "1").returncode == 0, "answer of vm2")
