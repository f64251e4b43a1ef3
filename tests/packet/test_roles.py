# SPDX-License-Identifier: Apache-2.0
"""Users of the API: each may do what the groups of its process allow, and a refusal says what is missing."""
import os
import shutil
import subprocess

import pytest

from daemon import Daemon

USER = 54321  # neither root nor the user that the daemon runs as
GIDS = {"read": 1, "operate": 2, "administer": 3}  # daemon, bin, sys: groups of every Debian
OPTIONS = ["--read-group", "daemon", "--operate-group", "bin", "--admin-group", "sys"]


def let_others_in(d):
    """Other users may not be able to reach the checkout, so they get a `corelane` of their own."""
    os.chmod(d.dir, 0o711)
    d.cli_path = shutil.copy(d.cli_path, d.dir)


@pytest.fixture(scope="module")
def daemon():
    d = Daemon(*OPTIONS)
    let_others_in(d)
    yield d
    assert d.stop() == 0


def run(daemon, groups, *args):
    """Runs `corelane` as a user with these supplementary groups; returns exit code, output and errors."""
    done = subprocess.run([daemon.cli_path, "--socket", daemon.socket, *args], capture_output=True, text=True, check=False, timeout=60,
                          user=USER, group=USER, extra_groups=groups)
    return done.returncode, done.stdout, done.stderr.strip()


def refusal(method, needs, group, has):
    return f"{method} needs role '{needs}', which root and the members of group {group} have; uid {USER} has role '{has}'"


def test_others_cannot_connect(daemon):
    code, _, error = run(daemon, [], "status")
    assert code == 2
    assert error == (f"no permission to talk to corelaned on {daemon.socket}: root and the members of its groups have it, usually "
                     "corelane-read, corelane-operate and corelane-admin")


def test_readers(daemon):
    groups = [GIDS["read"]]
    assert run(daemon, groups, "status")[0] == 0
    assert run(daemon, groups, "vrf", "list")[0] == 0
    assert run(daemon, groups, "worker", "latency")[0] == 0
    assert run(daemon, groups, "vrf", "add", "red") == (2, "", refusal("Vrfs.Add", "administer", "sys", "read"))
    assert run(daemon, groups, "flow", "flush", "--all") == (2, "", refusal("Flows.Flush", "operate", "bin", "read"))
    assert run(daemon, groups, "capture", "--count", "1") == (2, "", refusal("Capture.Packets", "operate", "bin", "read"))
    code, _, error = run(daemon, groups, "worker", "latency", "--reset")
    assert (code, error) == (2, refusal("Workers.ResetLatency", "operate", "bin", "read"))


def test_operators(daemon):
    groups = [GIDS["operate"]]
    assert run(daemon, groups, "flow", "flush", "--all")[0] == 0
    assert run(daemon, groups, "worker", "latency", "--reset")[0] == 0
    assert run(daemon, groups, "vrf", "add", "red") == (2, "", refusal("Vrfs.Add", "administer", "sys", "operate"))


def test_administrators(daemon):
    groups = [GIDS["read"], GIDS["administer"], GIDS["operate"]]  # the highest role counts
    assert run(daemon, groups, "vrf", "add", "red")[0] == 0
    assert [v["name"] for v in daemon.cli("vrf", "list")] == ["fabric", "red"]
    assert run(daemon, groups, "vrf", "del", "red")[0] == 0


def calls_of(daemon, kind):
    return [e["text"].split(" ", 2)[2] for e in daemon.cli("event", "list", "--kind", kind) if e["subject"] == f"uid {USER}"]


def test_calls_are_events(daemon):
    before = calls_of(daemon, "api_call")
    refused = calls_of(daemon, "api_refused")
    run(daemon, [GIDS["administer"]], "vrf", "add", "green")
    run(daemon, [GIDS["read"]], "vrf", "del", "green")
    run(daemon, [GIDS["read"]], "vrf", "list")
    run(daemon, [GIDS["operate"]], "flow", "flush", "--all")
    run(daemon, [GIDS["operate"]], "vrf", "del", "missing\nforged")
    run(daemon, [GIDS["administer"]], "vrf", "del", "green")
    assert calls_of(daemon, "api_call")[len(before):] == ["called Vrfs.Add green", "called Flows.Flush", "called Vrfs.Del green"]
    assert calls_of(daemon, "api_refused")[len(refused):] == ["was refused Vrfs.Del", "was refused Vrfs.Del"]
    event = daemon.cli("event", "list", "--kind", "api_call")[-1]
    assert int(event["text"].split()[1]) > 1
    assert f"api_call: uid {USER} {event['text']}" in daemon.log()
    status, = daemon.cli("status")
    assert {limit["name"] for limit in status["api_limits"]} == {"role"}


def test_secrets(daemon):
    socket = os.path.join(daemon.dir, "memif.sock")
    daemon.cli("vrf", "add", "blue")
    daemon.cli("port", "add", "m1", "tenant", "memif", "--socket", socket, "--secret", "hush", "--vrf", "blue")
    try:
        assert "hush" not in run(daemon, [GIDS["operate"]], "port", "list", "-o", "json")[1]
        assert "hush" in run(daemon, [GIDS["administer"]], "port", "list", "-o", "json")[1]
    finally:
        daemon.cli("port", "del", "m1")


def test_group_that_does_not_exist():
    """Its role is root's alone."""
    d = Daemon("--read-group", "daemon")
    let_others_in(d)
    try:
        code, _, error = run(d, [GIDS["read"]], "vrf", "add", "red")
        assert (code, error) == (2, "Vrfs.Add needs role 'administer', which only root has, because there is no group corelane-admin; "
                                    f"uid {USER} has role 'read'")
    finally:
        assert d.stop() == 0
