# SPDX-License-Identifier: Apache-2.0
"""The tools that developers run: fuzz.py."""
import datetime
import pathlib
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
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
