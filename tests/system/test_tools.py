# SPDX-License-Identifier: Apache-2.0
"""The tools that developers run: fuzz.py, coverage.py, analyze.py, and what test.sh does about a test that failed."""
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
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as tool:  # a shell's job may ignore it
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


ONCE = """
import pathlib
def test_luck():
    seen = pathlib.Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    {statement}
def test_sound():
    pass
"""


def two_tries(folder, statement):
    """Runs a file of two tests as test.sh does; returns the status of the second try, and of the report and its text."""
    (folder / "test_once.py").write_text(ONCE.format(statement=statement))
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    report = folder / "packet.xml"
    assert subprocess.run([*pytest, f"--junitxml={report}", "test_once.py"], cwd=folder).returncode == 1
    again = subprocess.run([sys.executable, fuzz.ROOT / "tools/second_try.py", "pytest", report, *pytest], cwd=folder).returncode
    (folder / "parts").write_text(f"packet {again} 1\n")
    table = subprocess.run([sys.executable, fuzz.ROOT / "tools/test_report.py", folder], capture_output=True, text=True)
    return again, table.returncode, table.stdout


def test_a_test_that_fails_once_passes_at_the_second_try_and_is_named(tmp_path):
    again, status, table = two_tries(tmp_path, "assert not first")
    assert (again, status) == (0, 0)
    assert "passed at the second try  packet: test_once test_luck" in table and "2 passed, 0 failed, 0 skipped" in table


def test_a_test_that_fails_twice_is_a_failure(tmp_path):
    again, status, table = two_tries(tmp_path, "assert False")
    assert (again, status) == (1, 1) and "1 passed, 1 failed, 0 skipped" in table


def test_there_is_no_second_try_after_a_crash_or_a_report_of_a_sanitizer(tmp_path):
    for n, statement in enumerate(["returncode = -11 if first else 0; assert returncode == 0",
                                   "assert not first, '==1==ERROR: AddressSanitizer: heap-use-after-free'"]):
        folder = tmp_path / str(n)
        folder.mkdir()
        again, status, _ = two_tries(folder, statement)
        assert (again, status) == (1, 1)


def test_more_than_three_second_tries_in_a_run_are_a_failure(tmp_path):
    names = [f"test_{n}" for n in range(4)]
    (tmp_path / "unit.xml").write_text("<t>" + "".join(f"<testcase name='{n}'><failure/></testcase>" for n in names) + "</t>")
    (tmp_path / "parts").write_text("unit 0 1\n")
    for most, status in ((3, 1), (4, 1)):  # the fourth failed twice, or is one too many
        (tmp_path / "second-tries").write_text("".join(f"unit\t{n}\n" for n in names[:most]))
        table = subprocess.run([sys.executable, fuzz.ROOT / "tools/test_report.py", tmp_path], capture_output=True, text=True)
        assert table.returncode == status and table.stdout.endswith(" 1 failed, 0 skipped\n")


def test_a_go_test_that_fails_once_passes_at_the_second_try(tmp_path):
    (tmp_path / "go.mod").write_text("module once\n\ngo 1.21\n")
    (tmp_path / "once_test.go").write_text("""package once
import ("os"; "testing")
func TestLuck(t *testing.T) { t.Run("part", func(t *testing.T) {
    if _, err := os.Stat("seen"); err != nil { os.WriteFile("seen", nil, 0o600); t.Fatal("first") } }) }
func TestSound(*testing.T) {}
""")
    go = [subprocess.run([fuzz.ROOT / "tools/go.sh", "which"], capture_output=True, text=True).stdout.strip(), "test", "-count=1"]
    with open(tmp_path / "go.1.go.json", "w", encoding="utf-8") as report:
        assert subprocess.run([*go, "-json", "./..."], cwd=tmp_path, stdout=report).returncode == 1
    command = [sys.executable, fuzz.ROOT / "tools/second_try.py", "go", tmp_path / "go.1.go.json", *go]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    assert (tmp_path / "second-tries").read_text() == "go\tonce TestLuck/part\ngo\tonce TestLuck\n"
