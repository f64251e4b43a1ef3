# SPDX-License-Identifier: Apache-2.0
"""The programs that are installed are hardened as meson.build says."""
import json
import os
import platform
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
C_PROGRAMS = ["build/dataplane/release/corelaned", "bin/corelane-gen", "bin/corelane-flow-bench", "bin/corelane-scale-bench"]
GO_PROGRAMS = ["bin/corelane", "bin/corelane-agent"]


def readelf(option, program):
    done = subprocess.run(["readelf", "--wide", option, os.path.join(ROOT, program)], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("program", C_PROGRAMS + GO_PROGRAMS)
def test_addresses_are_random_and_tables_read_only(program):
    header, segments, dynamic = (readelf(o, program) for o in ("--file-header", "--segments", "--dynamic"))
    assert "DYN (Position-Independent Executable file)" in header
    flags = [line for line in dynamic.splitlines() if "FLAGS" in line]
    assert any("PIE" in f for f in flags) and any("NOW" in f for f in flags), flags
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    assert " RW " in stack, stack
    assert not any(" RWE " in line for line in segments.splitlines())
    assert "TEXTREL" not in dynamic


@pytest.mark.parametrize("program", C_PROGRAMS)
def test_c_is_checked_at_run_time(program):
    symbols = readelf("--dyn-syms", program)
    assert "GNU_RELRO" in readelf("--segments", program)
    assert "__stack_chk_fail" in symbols
    assert any(f"__{f}_chk" in symbols for f in ("snprintf", "memcpy", "fprintf", "printf"))


def test_flags_that_leave_no_mark():
    """Probes of large frames show only in their code. Checked branches have a mark, but not in programs with Debian's start files."""
    with open(os.path.join(ROOT, "build", "compile_commands.json"), encoding="utf-8") as f:
        commands = [c for c in json.load(f) if c["file"].endswith(".c")]
    assert len(commands) > 100
    flags = ["-fstack-clash-protection", "-D_FORTIFY_SOURCE=3", "-Wvla", "-Walloca"]
    for flag in flags + ["-fcf-protection"] * (platform.machine() == "x86_64"):
        assert [c["file"] for c in commands if flag not in c["command"].split()] == []
