# SPDX-License-Identifier: Apache-2.0
"""What `make install` installs: a corelaned that cannot inject faults and does not list the options for it, and pages whose links lead
somewhere."""
import os
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "packet"))
from daemon import Daemon, Refused  # noqa: E402


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    stage = tmp_path_factory.mktemp("installed")
    env = dict(os.environ, DESTDIR=str(stage), PREFIX="/usr")
    subprocess.run(["tools/install.sh", "install"], cwd=ROOT, env=env, check=True, capture_output=True, timeout=120)
    return stage / "usr"


def run(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True, check=False, timeout=60)


def test_links_of_pages(installed):
    done = run(os.path.join(ROOT, "tools", "links.py"), str(installed / "share" / "doc" / "corelane"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_uninstall_leaves_nothing(installed, tmp_path):
    shutil.copytree(installed, tmp_path / "usr")
    env = dict(os.environ, DESTDIR=str(tmp_path), PREFIX="/usr")
    subprocess.run(["tools/install.sh", "uninstall"], cwd=ROOT, env=env, check=True, capture_output=True, timeout=120)
    assert [str(p) for p in tmp_path.rglob("*") if not p.is_dir()] == []
    assert not list(tmp_path.rglob("corelane"))


def test_option_is_refused(installed):
    done = run(installed / "bin" / "corelaned", "--allow-debug", "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("corelaned: --allow-debug: this corelaned cannot inject faults")
    assert done.stderr.count("\n") == 1
    assert run(installed / "bin" / "corelaned", "--check").returncode == 0
    built = run(os.path.join(ROOT, "bin", "corelaned"), "--allow-debug", "--check")
    assert built.returncode == 0, built.stderr  # the corelaned of tests and labs can


def test_option_is_not_offered(installed):
    usage = run(installed / "bin" / "corelaned", "--help").stdout
    page = (installed / "share" / "man" / "man8" / "corelaned.8").read_text()
    assert "worker-cpus" in usage and "allow-debug" not in usage
    assert "worker\\-cpus" in page and "allow\\-debug" not in page


@pytest.mark.parametrize("command", [
    ("delay", "--worker", 0, "--us", 0), ("forbidden-call", "--worker", 0), ("shootdowns", "--per-second", 0), ("faults", "--per-second", 0)])
def test_no_debug_service(installed, monkeypatch, command):
    monkeypatch.setenv("CORELANED", str(installed / "bin" / "corelaned"))
    daemon = Daemon()
    try:
        with pytest.raises(Refused) as refused:
            daemon.cli("debug", *command)
        said = str(refused.value)
        assert "this corelaned is built without fault injection; valid: bin/corelaned of a build tree" in said
        assert "\n" not in said
        assert daemon.cli("worker", "show", 0)[0]["state"]["debug_delay_us"] == 0
    finally:
        assert daemon.stop() == 0
