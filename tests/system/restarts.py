# SPDX-License-Identifier: Apache-2.0
"""A daemon that ends and is started again; its network namespaces, taps and directories outlive it."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

from namespaces import Namespace, dies_with_us, wait
from daemon import ROOT

CLI = os.environ.get("CORELANE") or os.path.join(ROOT, "bin", "corelane")
DAEMON = os.environ.get("CORELANED") or os.path.join(ROOT, "build", "dataplane", "corelaned")
USER = "nobody"


class Router:
    def __init__(self, *options):
        self.options = options
        self.memory = ["--no-huge", "--memory", "256"]
        self.dir = tempfile.mkdtemp(prefix=f"corelane-restart-{os.getpid()}-")
        os.chmod(self.dir, 0o755)
        self.state = os.path.join(self.dir, "state")
        self.socket = os.path.join(self.dir, "run", "corelaned.sock")
        self.log_path = os.path.join(self.dir, "log")
        self.spaces = {name: Namespace(name, 1500) for name in ("router", "vm1", "vm2")}
        self.process = None
        self.start()

    def start(self, *options):
        self.launch(*options)
        wait(lambda: self.process.poll() is not None or self.answers(), "answer of the daemon", 60)
        assert self.process.poll() is None, self.log()

    def launch(self, *options):
        command = ["ip", "netns", "exec", self.spaces["router"].name, DAEMON,
                   "--run-dir", os.path.join(self.dir, "run"),
                   "--state-dir", self.state, *self.memory, "--idle", "sleep", "--user", USER,
                   "--worker-cpus", str(max(os.sched_getaffinity(0))), *self.options, *options]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=dies_with_us)

    def answers(self):
        done = subprocess.run([CLI, "--socket", self.socket, "status"], capture_output=True, check=False)
        return done.returncode == 0

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def cli(self, *args):
        command = [CLI, "--socket", self.socket, *(str(a) for a in args), "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{args}: {done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines() if line]

    def export(self):
        return subprocess.run([CLI, "--socket", self.socket, "export"], capture_output=True, text=True, check=True,
                              timeout=60).stdout

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(timeout=60)

    def events(self, kind):
        return [e["text"] for e in self.cli("event", "list") if e["kind"] == kind]

    def close(self):
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        for space in self.spaces.values():
            space.close()
        shutil.rmtree(self.dir)
