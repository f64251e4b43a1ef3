# SPDX-License-Identifier: Apache-2.0
"""A corelaned in a network namespace that lives and dies with it, and the command that configures it."""
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from waiting import PATIENCE, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
# Workers of tests are idle nearly always, and several routers share the machine's CPUs: with the default of 50 us the
# worker of an idle router with ten taps takes a third of a CPU, with this 7 %.
PATIENT = ("--idle", "sleep", "--sleep-max-us", 500)

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The daemon refused a command; the text is its error."""


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def own_namespace():
    """Runs in the child: it gets a network namespace of its own, and is killed when this process ends."""
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    checked(libc.unshare(CLONE_NEWNET))


class Daemon:
    def __init__(self, *options):
        options += tuple(os.environ.get("CORELANED_OPTIONS", "").split())
        self.dir = tempfile.mkdtemp(prefix=f"corelane-packet-{os.getpid()}-")
        if "--user" in options:
            shutil.chown(self.dir, options[options.index("--user") + 1])
        self.socket = os.path.join(self.dir, "corelaned.sock")
        self.cli_path = os.environ.get("CORELANE") or os.path.join(ROOT, "bin", "corelane")
        path = os.environ.get("CORELANED") or os.path.join(ROOT, "build", "dataplane", "corelaned")
        self.log_path = os.path.join(self.dir, "log")
        command = [path, "--run-dir", self.dir, "--no-huge", "--memory", "256", "--worker-cpus",
                   str(max(os.sched_getaffinity(0))), *PATIENT[:2], *options]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=own_namespace)
        try:
            self.wait_until_ready()
            if "--idle" not in options:
                self.cli("worker", "set", 0, *PATIENT)
        except BaseException:
            self.stop()
            raise

    def wait_until_ready(self):
        def connects():
            self.check_alive()
            with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
                s.connect(self.socket)
                return True
            return self.log()

        wait_until("corelaned to listen", connects, lambda seen: seen is True, pause=0.02)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def check_alive(self):
        code = self.process.poll()
        if code is not None:
            raise RuntimeError(f"corelaned ended with {code}:\n{self.log()[-8000:]}")

    @contextlib.contextmanager
    def namespace(self):
        """Sockets and files that this thread opens in the block belong to the daemon's network namespace."""
        with open("/proc/thread-self/ns/net", "rb") as own, open(f"/proc/{self.process.pid}/ns/net", "rb") as its:
            checked(libc.setns(its.fileno(), CLONE_NEWNET))
            try:
                yield
            finally:
                checked(libc.setns(own.fileno(), CLONE_NEWNET))

    def cli(self, *args):
        """Runs `corelane`; returns the messages that it printed."""
        command = [self.cli_path, "--socket", self.socket, *(str(a) for a in args), "-o", "json"]
        # A client that has not been greeted gives up after 10 s; it has asked for nothing then.
        done = wait_until("corelaned to greet its client",
                          lambda: subprocess.run(command, capture_output=True, text=True, check=False, timeout=10 * PATIENCE),
                          lambda done: done.returncode == 0 or "no answer within" not in done.stderr)
        if done.returncode != 0:
            self.check_alive()
            raise Refused(f"{' '.join(command[3:-2])}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines() if line]

    def insist(self, *args):
        """As cli(), but repeats what is refused because a worker has not run for some time. Returns what was accepted."""
        def answer():
            try:
                return self.cli(*args), None
            except Refused as e:
                if not re.search("the same request (later|when|a moment)", str(e)):
                    raise
                return None, e

        return wait_until(f"{' '.join(map(str, args))} to be accepted", answer, lambda seen: seen[1] is None)[0]

    def has_worker(self, number):
        return any(w.get("id", 0) == number for w in self.cli("worker", "list"))

    def del_worker(self, number):
        """Removes a worker, however late it ends its last packets."""
        try:
            self.cli("worker", "del", number)
        except Refused as e:
            if "is being removed" not in str(e):
                raise
        wait_until(f"worker {number} to be gone", lambda: self.has_worker(number), lambda has: not has)

    def export(self):
        """The node file that makes the daemon as it is."""
        return subprocess.run([self.cli_path, "--socket", self.socket, "export"], capture_output=True, text=True, check=True,
                              timeout=60).stdout

    def stop(self):
        """Ends the daemon as an operator would; returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        return code
