# SPDX-License-Identifier: Apache-2.0
"""The systemd units leave the services few rights, and name what the package installs."""
import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPOSURE = 30  # tenths; systemd calls 10 "dangerous" and less than 4 "ok"

needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def unit(name, folder):
    """The unit as `make install` writes it, with a program that exists."""
    with open(os.path.join(ROOT, "packaging", name), encoding="utf-8") as f:
        text = f.read()
    path = folder / name
    path.write_text(text.replace("@bindir@", os.path.join(ROOT, "bin")))
    return path


def analyze(*arguments):
    done = subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def warnings(path):
    _, said = analyze("verify", "--man=no", path)
    return [line for line in said.splitlines() if line.startswith(f"{path}:")]


@needs_analyze
@pytest.mark.parametrize("service", ["corelaned", "corelane-agent"])
def test_exposure(tmp_path, service):
    code, said = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", unit(f"{service}.service", tmp_path))
    assert "Overall exposure level" in said
    assert code == 0, said
    assert analyze("security", "--offline=true", "--threshold=1", unit(f"{service}.service", tmp_path))[0] != 0  # it does compare


@needs_analyze
@pytest.mark.parametrize("service", ["corelaned", "corelane-agent"])
def test_options_are_known(tmp_path, service):
    """systemd ignores options that it does not know, with a warning."""
    path = unit(f"{service}.service", tmp_path)
    assert warnings(path) == []
    path.write_text(path.read_text() + "\n[Service]\nNoSuchOption=yes\n")
    assert len(warnings(path)) == 1


def filter_sets():
    """The names of systemd's sets of system calls, each with its calls and other sets."""
    sets, name = {}, None
    for line in analyze("syscall-filter")[1].splitlines():
        if line.startswith("@"):
            name = line
            sets[name] = []
        elif line.startswith("#") or not line.strip():
            name = None if line.startswith("#") else name
        elif name and not line.strip().startswith("#"):
            sets[name].append(line.strip())
    return sets


def expand(sets, names):
    calls = set()
    for name in names:
        calls |= expand(sets, sets[name]) if name.startswith("@") else {name}
    return calls


@needs_analyze
def test_filter_allows_what_the_daemon_allows_itself():
    sets = filter_sets()
    allowed = set()
    with open(os.path.join(ROOT, "packaging", "corelaned.service"), encoding="utf-8") as f:
        for value in re.findall("^SystemCallFilter=(.*)$", f.read(), re.M):
            if value.startswith("~"):
                allowed -= expand(sets, value[1:].split())
            else:
                allowed |= expand(sets, value.split())
    with open(os.path.join(ROOT, "dataplane", "privilege", "filter.c"), encoding="utf-8") as f:
        lists = re.findall(r"char \w+_calls\[\] =(.*?);", f.read(), re.S)
    needed = {call for text in lists for literal in re.findall('"(.*?)"', text) for call in literal.split()}
    assert len(lists) == 4 and len(needed) > 150
    assert needed - allowed == set()
    assert {"clone", "execve", "setns"} <= allowed  # restricted by arguments, or only before the daemon's filter
    assert not {"bpf", "mount", "ptrace", "setuid", "keyctl", "init_module", "io_uring_setup"} & allowed
