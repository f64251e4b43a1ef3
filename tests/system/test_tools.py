# SPDX-License-Identifier: Apache-2.0
"""The tools that developers run: fuzz.py, coverage.py and analyze.py."""
import datetime
import pathlib
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import analyze  # noqa: E402
import coverage  # noqa: E402
import fuzz  # noqa: E402


def test_fuzz_until_is_the_next_time_that_the_clock_shows():
    evening = datetime.datetime(2024, 12, 31, 22, 30, 15)
    assert fuzz.next_time("23:45", evening) == datetime.datetime(2024, 12, 31, 23, 45)
    assert fuzz.next_time("06:00", evening) == datetime.datetime(2025, 1, 1, 6, 0)
    assert fuzz.next_time("22:30", evening) == datetime.datetime(2025, 1, 1, 22, 30)


def test_fuzz_counts_executions_of_both_stages(tmp_path):
    counts = fuzz.add_counts({"api": (1, 20)}, {"api": (300, 4000), "internal/plan:FuzzMake": (5, 0)})
    fuzz.write_counts(tmp_path / "counts", counts, fuzz.HEAD)
    assert fuzz.read_counts(tmp_path / "counts") == {"api": (301, 4020), "internal/plan:FuzzMake": (5, 0)}


def test_fuzz_ends_its_turn_when_the_pause_file_appears(tmp_path):
    pause = tmp_path / "pause"
    timer = threading.Timer(0.5, pause.touch)
    timer.start()
    command = ["bash", "-c", "trap 'echo asked to end; exit 3' USR1; echo begun; while :; do sleep 0.1; done"]
    code, text = fuzz.until_paused(command, tmp_path / "log", pause, signal.SIGUSR1)
    timer.join()
    assert code == 0 and "begun" in text and "asked to end" in text


def test_fuzz_returns_what_a_program_that_ends_by_itself_said(tmp_path):
    assert fuzz.until_paused(["bash", "-c", "echo done; exit 7"], tmp_path / "log", tmp_path / "pause", signal.SIGUSR1) == (7, "done\n")


def test_fuzz_kills_its_program_when_it_is_interrupted(tmp_path):
    code = f"import pathlib, signal, sys; sys.path.insert(0, {str(fuzz.ROOT / 'tools')!r}); import fuzz; " \
        f"fuzz.until_paused(['bash', '-c', 'echo $$; exec sleep 100'], pathlib.Path({str(tmp_path / 'log')!r}), None, signal.SIGUSR1)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as tool:
        while not (tmp_path / "log").exists() or not (tmp_path / "log").read_text():
            assert tool.poll() is None
        tool.send_signal(signal.SIGINT)
        tool.wait(10)
    assert not pathlib.Path("/proc", (tmp_path / "log").read_text().strip()).exists()


def test_analyzer_is_answered_for_one_checker_on_the_path_of_its_report(tmp_path):
    source = tmp_path / "x.c"
    source.write_text("int f(int *p)\n{\n\t// analyzer: core.NullDereference unix.Malloc: p is set\n\treturn *p;\n}\nint g;\n")

    def report(line, checker):
        return [f"{source}:{line}:2: warning: wrong [{checker}]", "\treturn *p;", f"{source}:{line}:2: note: here"]

    assert analyze.explained(report(4, "core.NullDereference")) and analyze.explained(report(3, "unix.Malloc"))
    assert not analyze.explained(report(4, "core.CallAndMessage"))
    assert not analyze.explained(report(6, "core.NullDereference"))


def test_coverage_records_the_parsers_that_it_measured():
    names = [s.name for s in coverage.parsers([])]
    old = [f"| {name} | old |" for name in names[:2]]
    assert coverage.merged([f"| {names[1]} | new |", f"| {names[3]} | new |"], [*old, "| gone | old |"]) == \
        [old[0], f"| {names[1]} | new |", f"| {names[3]} | new |"]
