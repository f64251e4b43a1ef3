# SPDX-License-Identifier: Apache-2.0
"""Every command of the guide and of README.md, in the order of the page and word for word, as root on a node of its own.

The node is a network namespace with its own /run, so the names of the guide (guest1, fab0, the default socket) are free.
Only what the machine decides is replaced: NICs by taps, and CPUs that it does not have.
"""
import os
import re
import shlex
import subprocess

import pytest

from namespaces import dies_with_us, wait

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = ("yaml", "ini", "text")  # what a block with this language holds, instead of commands
CPUS = sorted(os.sched_getaffinity(0))
LACKS = re.compile(r"--cpu '\d+'|worker\S* '\d+'|--target '\d+'")


def blocks(page):
    """(line, section, commands) of each block of commands."""
    found, section, begun, language, lines = [], "", 0, "", []
    with open(os.path.join(ROOT, page), encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if line.startswith("```"):
                if begun and language not in FILES:
                    found.append((begun, section, commands(lines)))
                language = language if begun else line[3:].strip()
                begun, lines = (0, []) if begun else (number, [])
            elif begun:
                lines.append(line)
            elif line.startswith("## "):
                section = line[3:].strip()
    return found


def commands(lines):
    """Lines that end with a backslash continue; after a prompt only the prompt's lines are commands."""
    joined = "".join(lines).replace("\\\n", " ").splitlines()
    prompted = [line[2:] for line in joined if line.startswith("$ ")]
    return prompted or [line for line in joined if line.strip()]


class Node:
    def __init__(self, directory):
        self.directory, self.daemon = directory, None
        sudo = directory / "bin" / "sudo"
        sudo.parent.mkdir()
        sudo.write_text('#!/bin/sh\nexec "$@"\n', encoding="utf-8")
        sudo.chmod(0o755)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("CORELANE")}
        programs = os.path.dirname(os.environ.get("CORELANE", os.path.join(ROOT, "bin", "corelane")))
        os.symlink(programs, directory / "programs")  # README.md calls them bin/corelane; bin has sudo
        self.environment["PATH"] = f"{sudo.parent}:{programs}:{os.environ['PATH']}"
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c",
             "mount -t tmpfs tmpfs /run && mkdir -p /run/netns /run/lock && ip link set lo up && echo ready && exec sleep infinity"],
            stdout=subprocess.PIPE, text=True, preexec_fn=dies_with_us)
        assert self.holder.stdout.readline() == "ready\n"

    def command(self, line):
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--mount", "bash", "-c", f"cd {shlex.quote(str(self.directory))} && {line}"]

    def run(self, line):
        return subprocess.run(self.command(line), capture_output=True, text=True, check=False, timeout=60, env=self.environment)

    def start(self, line):
        """The daemon in the foreground: the guide types the commands that follow in a second terminal."""
        self.stop()
        if not has_cpus(line):
            line = re.sub(r"--(service|control)-cpus \S+ ?", "", re.sub(r"--worker-cpus \S+", f"--worker-cpus {CPUS[-1]}", line))
        with open(self.directory / "log", "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen(self.command("exec " + line), stdout=log, stderr=log, preexec_fn=dies_with_us, env=self.environment)
        wait(lambda: self.daemon.poll() is not None or self.run("corelane status").returncode == 0, "answer of corelaned")
        assert self.daemon.poll() is None, (self.directory / "log").read_text(encoding="utf-8")
        if (self.directory / "node.yaml").exists():  # what the guide exported before: a daemon starts empty
            done = self.run("corelane apply -f node.yaml")
            assert done.returncode == 0, done.stderr

    def stop(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait(timeout=60)
        self.daemon = None

    def close(self):
        self.stop()
        self.holder.kill()
        self.holder.wait()


def has_cpus(line):
    """Are there all CPUs that the command names?"""
    return all(int(n) in CPUS for option in re.findall(r"--(?:[a-z]+-cpus|cpu) (\S+)", line) for n in re.findall(r"\d+", option))


@pytest.fixture(scope="module", name="node")
def node_fixture(tmp_path_factory):
    node = Node(tmp_path_factory.mktemp("guide"))
    yield node
    node.close()


@pytest.mark.parametrize("line,section,lines", [pytest.param(*b, id=f"{b[1]}-line-{b[0]}".replace(" ", "-")) for b in blocks("docs/guide.md")])
def test_block(node, line, section, lines):
    for command in lines:
        if command.startswith("sudo corelaned"):
            node.start(command)
            continue
        typed = command
        command = re.sub(r"dpdk 0000:\S+", "tap", command)
        if re.search(r"--watch|--follow", command):
            command = f"timeout --signal=INT 1 {command}"
        done = node.run(command)
        watched = command.startswith("timeout") and done.returncode == 124
        lacks = len(CPUS) < 10 and LACKS.search(done.stderr)  # a CPU, or the worker that would be on it
        assert done.returncode == 0 or watched or lacks, \
            f"docs/guide.md:{line} ({section}): {typed}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module", name="host")
def host_fixture(tmp_path_factory):
    node = Node(tmp_path_factory.mktemp("readme"))
    yield node
    node.close()


PREPARE = re.compile(r"sudo apt-get install |git clone ")  # a checkout: the tests are in one already
FINDS = re.compile(r"cores verify ")  # exit code 1: the host does not meet the plan


@pytest.mark.parametrize("line,section,lines", [pytest.param(*b, id=f"README-line-{b[0]}") for b in blocks("README.md")])
def test_readme(host, line, section, lines):
    """make's targets exist (other parts of the tests run what they do); the commands of the router run."""
    for command in lines:
        if PREPARE.match(command):
            continue
        if command.startswith("sudo make "):
            done = subprocess.run(["make", "-n", "-C", ROOT, *shlex.split(command)[2:]], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"README.md:{line}: {command}\n{done.stderr}"
            continue
        if "corelane explain" in command:
            host.start(f"corelaned --worker-cpus {CPUS[-1]} --no-huge --memory 256")
        done = host.run(command.replace("bin/corelane ", "programs/corelane "))
        found = FINDS.search(command) and done.returncode == 1 and "FAIL" in done.stdout
        assert done.returncode == 0 or found, \
            f"README.md:{line} ({section}): {command}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
