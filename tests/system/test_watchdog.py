# SPDX-License-Identifier: Apache-2.0
"""The daemon notifies systemd's watchdog while its master and all its workers run. The test plays systemd."""
import os
import signal
import socket
import sys
import tempfile
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "packet"))
from daemon import Daemon  # noqa: E402

TIMEOUT_US = 800_000  # WatchdogSec=; a notification is due four times in it
QUIET_S = 2
PATIENCE_S = 60
DELAY_US = 60_000_000  # of each loop, until it is ended


@pytest.fixture
def notified(monkeypatch):
    """The socket that gets the notifications; any user may send."""
    with tempfile.TemporaryDirectory(prefix=f"corelane-watchdog-{os.getpid()}-") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        path = os.path.join(folder, "notify")
        s.bind(path)
        os.chmod(folder, 0o755)
        os.chmod(path, 0o777)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", str(TIMEOUT_US))
        yield s


@pytest.fixture
def daemon(notified):
    d = Daemon("--allow-debug", "--user", "nobody")
    try:
        yield d
    finally:
        assert d.stop() == 0


def wait_for(s, text):
    s.settimeout(PATIENCE_S)
    while s.recv(100) != text:
        pass


def is_quiet(s):
    """Nothing is sent for QUIET_S after what was sent before."""
    s.settimeout(QUIET_S)  # timed: it is to pass, and wait_for_quiet tries again
    try:
        s.recv(100)
        return False
    except TimeoutError:
        return True


def wait_for_quiet(s, runs=lambda: True):
    """Nothing is sent any more, although the master runs. A worker that has hardly had its CPU yet does not count as hanging."""
    deadline = time.monotonic() + PATIENCE_S
    while not (is_quiet(s) and runs() and is_quiet(s)):
        assert time.monotonic() < deadline, f"there was no pause of {QUIET_S} s in {PATIENCE_S} s"


def wait_for_event(d, kind):
    deadline = time.monotonic() + PATIENCE_S
    while not any(e["kind"] == kind for e in d.cli("event", "list")):
        assert time.monotonic() < deadline, f"no {kind} within {PATIENCE_S} s"
        time.sleep(0.05)


def test_stalled_worker(notified, daemon):
    wait_for(notified, b"READY=1")
    wait_for(notified, b"WATCHDOG=1")
    daemon.cli("debug", "delay", "--worker", 0, "--us", DELAY_US)
    wait_for_event(daemon, "worker_stalled")
    wait_for_quiet(notified, lambda: daemon.cli("status"))
    daemon.cli("debug", "delay", "--worker", 0, "--us", 0)
    wait_for(notified, b"WATCHDOG=1")


def test_stop_with_a_stalled_worker(notified):
    """The worker goes on while its daemon stops, so that the daemon ends without freeing what it uses."""
    d = Daemon("--allow-debug", "--user", "nobody")
    try:
        d.cli("debug", "delay", "--worker", 0, "--us", DELAY_US)
        wait_for_event(d, "worker_stalled")
        d.process.terminate()
        code = d.process.wait(PATIENCE_S)
        assert "worker 0 has not ended: its loop is stalled" in d.log()
        assert code == 1
    finally:
        d.stop()


def test_stopped_daemon(notified, daemon):
    wait_for(notified, b"WATCHDOG=1")
    os.kill(daemon.process.pid, signal.SIGSTOP)
    while True:
        with open(f"/proc/{daemon.process.pid}/stat", encoding="ascii") as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "T":
                break
        time.sleep(0.01)
    wait_for_quiet(notified)
    os.kill(daemon.process.pid, signal.SIGCONT)
    wait_for(notified, b"WATCHDOG=1")


def test_end(notified, daemon):
    wait_for(notified, b"READY=1")
    daemon.process.terminate()
    wait_for(notified, b"STOPPING=1")
