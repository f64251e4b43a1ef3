# SPDX-License-Identifier: Apache-2.0
"""The tools that developers run: fuzz.py, coverage.py, analyze.py, and measure.py, and what test.sh does about a test that failed."""
import datetime
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import analyze  # noqa: E402
import coverage  # noqa: E402
import fuzz  # noqa: E402
import left_over  # noqa: E402
import measure  # noqa: E402
import timed  # noqa: E402


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


def test_analyzer_remembers_what_it_found_clean_until_a_file_changes(tmp_path, monkeypatch):
    header, source, depfile = tmp_path / "f.h", tmp_path / "my f.c", tmp_path / "f.d"
    command = ["clang", "--analyze", "--analyzer-output", "text", source, "-o", "/dev/null", "-MD", "-MF", depfile, "-MT", "f.done"]
    command = [str(word) for word in command]
    monkeypatch.setattr(analyze, "CACHE", tmp_path / "cache")
    runs, analyzed = [], analyze.analyzed
    monkeypatch.setattr(analyze, "analyzed", lambda command: runs.append(1) or analyzed(command))
    def write(file, text):
        file.write_text(text)
        os.utime(file, (1e9, 1e9))

    write(source, '#include "f.h"\nint f(void) { int *p = WHERE; return *p; }\n')
    write(header, "#define WHERE &(int){1}\n")
    assert [analyze.one(command) for _ in range(3)] == [0, 0, 0] and len(runs) == 1
    remembered = depfile.read_text()
    assert remembered.startswith("f.done: ") and str(header) in remembered and str(source).replace(" ", "\\ ") in remembered
    write(header, "#define WHERE 0\n")
    assert [analyze.one(command) for _ in range(2)] == [1, 1] and len(runs) == 3  # a finding is not remembered
    write(header, "#define WHERE &(int){1}\n")
    assert analyze.one(command) == 0 and len(runs) == 3
    assert analyze.one([*command, "-DX"]) == 0 and len(runs) == 4
    header.write_text("#define WHERE &(int){2}\n")  # as if saved while the analyzer ran
    assert [analyze.one(command) for _ in range(2)] == [0, 0] and len(runs) == 6


def test_coverage_records_the_parsers_that_it_measured():
    names = [s.name for s in coverage.parsers([])]
    old = [f"| {name} | old |" for name in names[:2]]
    assert coverage.merged([f"| {names[1]} | new |", f"| {names[3]} | new |"], [*old, "| gone | old |"]) == \
        [old[0], f"| {names[1]} | new |", f"| {names[3]} | new |"]


ONCE = """
import pathlib
import re
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
    (folder / "parts").write_text(f"packet {again} 1 1\n")
    table = subprocess.run([sys.executable, fuzz.ROOT / "tools/test_report.py", folder], capture_output=True, text=True)
    return again, table.returncode, table.stdout


def test_what_changed_runs_first():
    changed = os.environ | {"CORELANE_CHANGED": "README.md\ntests/packet/test_vlan.py\ninternal/cli/cli.go\n"}
    packet = subprocess.run([sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "tests/packet/test_mss.py",
                             "tests/packet/test_vlan.py"], cwd=fuzz.ROOT, env=changed, capture_output=True, text=True)
    files = [line.split("::")[0] for line in packet.stdout.splitlines() if "::" in line]
    assert files and files == sorted(files, reverse=True) and len(set(files)) == 2
    function = re.search(r"^changed_first\(\) .*?^}$", (fuzz.ROOT / "tools/test.sh").read_text(), re.MULTILINE | re.DOTALL)
    packages = subprocess.run(["bash", "-c", f"{function[0]}\nchanged_first m"], env=changed, input="m/a\nm/internal/cli\nm/b\n",
                              capture_output=True, text=True, check=True)
    assert packages.stdout == "m/internal/cli\nm/a\nm/b\n"


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
    (tmp_path / "parts").write_text("unit 0 1 1\n")
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


def fake(name, script, read=measure.printed):
    return measure.Case(name, ["bash", "-c", script], read)


def test_measure_runs_in_turns_and_judges_each_promise_by_all_runs(tmp_path, capsys):
    """Each fake counts its runs in a file, and fails or shows another figure by that number."""
    n = f"n=$(cat {tmp_path}/{{0}} 2>/dev/null || echo 0); echo $((n + 1)) >{tmp_path}/{{0}}; echo {{0}} >>{tmp_path}/order; "
    table = measure.measure([
        fake("calm", n.format("calm") + "echo 'measured: turn '$((10 + n))' ms, at most 12 ms'"),
        fake("slow", n.format("slow") + "echo 'measured: rate '$((40 + n))' paths/s, at least 50 paths/s'; exit 1"),
        fake("moody", n.format("moody") + "[ $n != 1 ]"),
        fake("crash", n.format("crash") + "echo 'measured: turn 1 ms, at most 12 ms'; exit 139"),
        fake("unable", n.format("unable") + "echo 'SKIP: needs two CPUs'; exit 77"),
        fake("c", n.format("c") + "echo 'ok 1 - quick'; echo 'not ok 2 - sharp'; echo 'ok 3 - rare # SKIP'; exit 1", measure.tap)], 3, tmp_path / "logs")
    assert (tmp_path / "order").read_text().split() == ["calm", "slow", "moody", "crash", "unable", "c"] * 3
    assert list(table.lines())[1:] == [
        ("calm: turn", "at most 12 ms", "11 ms", "10 to 12", "holds"),
        ("slow: rate", "at least 50 paths/s", "41 paths/s", "40 to 42", "misses"),
        ("moody", "-", "-", "-", "too noisy to say"),
        ("crash: turn", "at most 12 ms", "1 ms", "1 to 1", "holds"),
        ("crash", "-", "-", "-", "misses"),
        ("c: quick", "-", "-", "-", "holds"),
        ("c: sharp", "-", "-", "-", "misses"),
        ("unable", "-", "-", "-", "not measured: needs two CPUs")]
    assert table.status() == 1
    capsys.readouterr()
    table.show()
    head, first = capsys.readouterr().out.splitlines()[:2]
    assert head.index("verdict") == first.index("holds")


def test_measure_reads_the_figures_of_each_benchmark():
    restart = '{"rows": [{"event": "kill -9", "kind": "tap", "outage_ms": 545, "outage_at_most": 1000, "lost": 9, "survived": 99, "connections": 100}]}'
    assert list(measure.of_json(measure.restart_figures)("r", "  working\n" + restart)) == [
        ("r: kill -9, tap: outage", True, 545, "ms", "at most 1000 ms"),
        ("r: kill -9, tap: surviving", False, 99, "connections", "at least 100 connections")]
    fleet = '{"rows": [{"what": "received to FIB", "value": 14900, "unit": "paths/s", "limit": 50000, "least": true}]}'
    assert list(measure.of_json(measure.fleet_figures)("f", fleet)) == [("f: received to FIB", False, 14900, "paths/s", "at least 50000 paths/s")]
    pairs = [{"with": {"delivered": d}, "without": {"delivered": 1.0}} for d in (0.9, 0.95, 1.0)]
    neighbor = measure.json.dumps({"rows": [{"attack": "syn", "port": "tap", "pairs": pairs, "within_noise": ["p99"]}]})
    (seen,) = measure.of_json(measure.neighbor_figures)("n", neighbor)
    assert seen.kept and seen.value == 0.95
    assert list(measure.tcp_figures("t", """TARGET: ONE CONNECTION, MTU 1500  IN COMPARISON WITH  RATIO                AT LEAST  AIM
tap to tap                        kernel bridge       0.85 (0.80 to 0.91)  0.9       1    misses
""")) == [("t: tap to tap / kernel bridge", False, 0.85, "", "at least 0.9")]
    outcomes = '{"case": "hog", "passed": true, "seconds": 3.5}\n{"case": "perf", "passed": false, "seconds": 0, "skipped": "no perf"}\n'
    assert [f.name for f in measure.of_json(measure.matrix_figures)("m", outcomes)] == ["m: hog"]


def test_measure_finds_its_cases():
    names = {c.name.split()[0] for c in [*measure.go_cases(), *measure.script_cases(), *measure.bench_cases()]}
    assert {"script", "bench", "lab"} <= names
    assert not list(measure.pytest_cases("tests/system/test_tools.py"))
    nodes = [c.name for c in measure.pytest_cases("tests/packet/test_interrupt.py")]
    assert any(n.startswith("pytest packet/test_interrupt.py::test_packets_wake_soon[") for n in nodes) and len(nodes) == len(set(nodes))


TIMED_PYTHON = """import time
SHORT = 2
def wait_for(look, seconds=3):
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline                      # found: patience
def patient(look, until=None):
    deadline = time.monotonic() + 60
    assert time.monotonic() < deadline
def test_fast(daemon, s, p):
    begun, n = time.monotonic(), 1
    assert time.monotonic() - begun < 0.5                       # found
    took = time.time() - begun
    assert n == 1 and 10 > took                                 # found
    assert took > 2 and n <= 16 * (time.monotonic() - begun) + 1
    assert int(daemon["p50_ns"]) <= 1000                        # found
    assert sum(x["loop_ns"] > 5 for x in daemon) <= 1
    s.settimeout(SHORT)                                         # found: patience
    p.wait(timeout=5)                                           # found: patience
    p.wait(timeout=60)
    s.settimeout(0.5)  # timed: it is to pass
@pytest.mark.measure
def test_measured(s):
    assert time.monotonic() - s < 0.5
"""
TIMED_C = """#define WAIT_MS 3000
static void f(void) {
	uint64_t begin = rte_rdtsc(), end = rte_rdtsc() + rte_get_tsc_hz() / 1000 * WAIT_MS; // found: patience
	assert_true(n == 1 && rte_rdtsc() - begin < 100 * us); // found
	assert_true(rte_rdtsc() - begin > 6 * us);
	assert_in_range(l->longest_ns, 1, 5000); // found
	assert_true(5 >
		    turn_ms); // found above
	assert_true(p->len < 100 && elapsed_names(3) < 4);
	for (i = 0; i < 2000 && !done; i++) // found: patience
		usleep(100);
	for (i = 0; i < 60000 && !done; i++)
		usleep(1000);
	// timed: the window is nominal
	assert_true(w->seconds < 0.021);
}
"""
TIMED_GO = """package x
func TestFast(t *testing.T) {
	began := time.Now()
	if d := time.Since(began); d > limit { // found
		t.Errorf("%v", d)
	}
	d := time.Since(began)
	if d < stall-100*time.Millisecond {
		t.Error(d)
	}
	if n > 3 || time.Second < d { // found
		t.Fatal(d)
	}
	if d > time.Minute {
		return
	}
	select {
	case <-time.After(2 * time.Second): // found: patience
	case <-time.After(wait.Patience):
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // found: patience
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
}
"""


def test_limits_on_time_are_found():
    for name, text in (("tests/packet/test_x.py", TIMED_PYTHON), ("dataplane/x/x_test.c", TIMED_C), ("internal/x/x_test.go", TIMED_GO)):
        found = {line: "patience" if what.startswith("a patience") else "limit" for line, what in timed.findings(name, text)}
        lines = enumerate(text.splitlines(), 1)
        wanted = {n: "patience" if "patience" in line else "limit" for n, line in lines if "// found" in line or "# found" in line}
        if name.endswith(".c"):
            wanted = {n - 1 if n == 8 else n: what for n, what in wanted.items()}
        assert found == wanted, name
    assert not list(timed.findings("internal/x/x_test.go", "//go:build measure\n\n" + TIMED_GO))


def test_no_test_has_a_limit_on_time():
    assert subprocess.run([timed.ROOT / "tools/timed.py"]).returncode == 0


def green(command, tmp_path):
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state"), "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    done = subprocess.run([fuzz.ROOT / "tools/green.sh", command], cwd=tmp_path / "clone", env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_what_changed_since_the_last_green_run_is_known(tmp_path):
    clone = tmp_path / "clone"
    git = ["git", "-C", clone, "-c", "user.name=x", "-c", "user.email=x@example.com"]
    clone.mkdir()
    (clone / "a").write_text("1")
    assert green("note", tmp_path) == green("changed", tmp_path) == []  # no clone of anything
    subprocess.run([*git, "init", "-q"], check=True)
    assert green("note", tmp_path) == green("changed", tmp_path) == []  # no commit
    subprocess.run([*git, "add", "a"], check=True)
    subprocess.run([*git, "commit", "-qm", "a"], check=True)
    assert green("changed", tmp_path) == []  # no run
    green("note", tmp_path)
    (clone / "a").write_text("2")
    (clone / "b").write_text("new")
    assert green("changed", tmp_path) == ["a", "b"]
    green("note", tmp_path)  # of something that no commit has
    assert green("changed", tmp_path) == ["a", "b"]
    (tmp_path / "state/corelane/green").write_text("0" * 40)  # a commit that is gone
    assert green("changed", tmp_path) == []


SUITE = """mkdir -p $FLAKY_RESULTS; n=$(cat {0}/n 2>/dev/null || echo 0); echo $((n + 1)) >{0}/n
ls {0}/beside >>{0}/seen 2>&1
[ $n != 4 ] || {{ echo killed; exit 137; }}
red=; [ $n != 1 ] || red="<failure/>"; weak=; [ $n != 2 ] || weak="<failure/>"
echo "<t><testcase name='sound'/><testcase name='moody'>$red</testcase><testcase name='luck'>$weak</testcase></t>" >$FLAKY_RESULTS/unit.xml
[ -z "$weak" ] || printf 'unit\\tluck\\n' >$FLAKY_RESULTS/second-tries
[ -z "$red" ]; status=$?
echo "unit $status 1 1" >$FLAKY_RESULTS/parts
exit $status
"""


def test_flaky_runs_the_tests_and_names_what_was_not_green_each_time(tmp_path):
    """Of five runs of a fake suite, the second is red, the third has a second try, and the fifth is killed. What is beside the
    second and the fourth is ended with all that it has started."""
    beside = f"trap 'rm {tmp_path}/beside' EXIT; sleep 1000 & echo $! >>{tmp_path}/sleepers; touch {tmp_path}/beside; wait"
    wait = f"[ $(($(cat {tmp_path}/n 2>/dev/null || echo 0) % 2)) = 0 ] || until [ -e {tmp_path}/beside ]; do sleep 0.01; done; "
    environment = os.environ | {"FLAKY_SUITE": wait + SUITE.format(tmp_path), "FLAKY_RESULTS": str(tmp_path / "results"), "FLAKY_BESIDE": beside}
    done = subprocess.run([fuzz.ROOT / "tools/flaky.sh", "5"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("==> flaky: run 5")] == ["run 5 of 5 (alone)"]
    table = done.stdout[done.stdout.index("2 of 5 runs had a failure, and 1 more"):].splitlines()
    assert [line.split(None, 4) for line in table[2:]] == [
        ["1", "1", "0", "0", f"-: the run left no reports: [Errno 2] No such file or directory: '{tmp_path}/results/parts'"],
        ["1", "0", "1", "0", "unit: luck"], ["1", "1", "0", "1", "unit: moody"]]
    assert sum(line.endswith("/beside") for line in (tmp_path / "seen").read_text().splitlines()) == 2
    sleepers = (tmp_path / "sleepers").read_text().split()
    assert len(sleepers) == 2 and not any(pathlib.Path("/proc", pid, "cmdline").exists() and
                                          b"sleep" in pathlib.Path("/proc", pid, "cmdline").read_bytes() for pid in sleepers)


def test_flaky_is_content_with_a_suite_that_is_green_each_time(tmp_path):
    suite = "mkdir -p $FLAKY_RESULTS; echo \"<t><testcase name='sound'/></t>\" >$FLAKY_RESULTS/unit.xml; echo 'unit 0 1 1' >$FLAKY_RESULTS/parts"
    environment = os.environ | {"FLAKY_SUITE": suite, "FLAKY_RESULTS": str(tmp_path / "results"), "FLAKY_BESIDE": "sleep 1000"}
    done = subprocess.run([fuzz.ROOT / "tools/flaky.sh", "2"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("0 of 2 runs had a failure, and 0 more a test that passed at the second try\n")


def asleep(run):
    """A process of a test run; its program is the same in all of them."""
    return subprocess.Popen(["sleep", "1000"], env=os.environ | {left_over.VARIABLE: run})


def ended_run():
    """The id of a run that has ended, and its process id."""
    with subprocess.Popen(["sleep", "1000"]) as p:
        run = left_over.id_of(p.pid)
        p.kill()
    return run, p.pid


def test_processes_of_a_run_that_was_killed_are_ended_and_no_others():
    run, _ = ended_run()
    other_namespace = "pid:[1]" + run[run.rindex("]") + 1:]
    left, others = asleep(run), [asleep(r) for r in (left_over.id_of(os.getpid()), other_namespace, "")]
    try:
        found = left_over.processes()
        assert left.pid in found and not {p.pid for p in others} & set(found) and os.getpid() not in found
        left_over.end([left.pid])
        assert left.wait() == -signal.SIGKILL and all(p.poll() is None for p in others)
    finally:
        for p in (left, *others):
            p.kill()
            p.wait()


def test_a_run_names_its_own_processes_at_its_end_only(monkeypatch):
    monkeypatch.setenv(left_over.VARIABLE, left_over.id_of(os.getpid()))
    mine = asleep(os.environ[left_over.VARIABLE])
    try:
        assert mine.pid not in left_over.processes()
        at_end = left_over.processes(at_end=True)
        assert mine.pid in at_end and os.getpid() not in at_end
    finally:
        mine.kill()
        mine.wait()


def test_the_id_of_a_run_is_that_of_the_shell_that_asks():
    said = subprocess.run(["bash", "-c", f"id=$({fuzz.ROOT}/tools/left_over.py --id $$); {fuzz.ROOT}/tools/left_over.py --id $$; echo $id"],
                          capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == said[1] and not said[0].endswith(":")


def test_only_what_an_ended_process_owns_by_its_name_is_left_over():
    _, dead = ended_run()
    live = os.getpid()
    ours = [f"corelane-test-{dead}-guest", f"corelane-bench-{dead}-ovs1", f"corelane-restart{dead}-taps", f"cl-intrude-{dead}-to", f"hp{dead}-peer"]
    others = [n.replace(str(dead), str(live)) for n in ours] + [f"hp{dead}", f"blue-{dead}", "corelane-test-x", f"my-corelane-test-{dead}-guest"]
    assert left_over.stale(ours + others, left_over.NAMESPACES) == ours
    assert left_over.stale([f"cl{dead}-0", f"cl{live}-0", f"cl{dead}"], left_over.LINKS) == [f"cl{dead}-0"]


def test_groups_and_folders_of_an_ended_process_are_removed(tmp_path):
    _, dead = ended_run()
    for pid in (dead, os.getpid()):
        (tmp_path / f"cgroup/freezer/corelane-test-{pid}").mkdir(parents=True)
        (tmp_path / f"tmp/corelane-packet-{pid}-x7_f/state").mkdir(parents=True)
    (group,) = left_over.groups(tmp_path / "cgroup")
    assert group == f"{tmp_path}/cgroup/freezer/corelane-test-{dead}"
    pathlib.Path(group, "freezer.state").write_text("FROZEN")
    left_over.thaw(group)
    assert pathlib.Path(group, "freezer.state").read_text() == "THAWED"
    (tmp_path / "precious").write_text("")
    (folder,) = left_over.folders({str(tmp_path / "tmp"): left_over.FOLDERS["/tmp"]})
    pathlib.Path(folder, "state/link").symlink_to(tmp_path / "precious")
    left_over.remove_folder(folder)
    assert [p.name for p in (tmp_path / "tmp").iterdir()] == [f"corelane-packet-{os.getpid()}-x7_f"] and (tmp_path / "precious").exists()
    (tmp_path / "mounts").write_text(f"none {folder}/state tmpfs\nnone {folder}/state/inner tmpfs\nnone {folder}2 tmpfs\n")
    assert left_over.mounts(folder, tmp_path / "mounts") == [f"{folder}/state/inner", f"{folder}/state"]


def test_hugepages_are_asked_for_after_memory_was_compacted(tmp_path):
    """The kernel's files are those of a machine that has no contiguous memory."""
    (tmp_path / "nr_hugepages").write_text("3\n")
    (tmp_path / "meminfo").write_text("MemAvailable: 8192000 kB\nHugePages_Free: 2\nHugepagesize: 2048 kB\n")
    environment = os.environ | {"CORELANE_VM": str(tmp_path), "CORELANE_MEMINFO": str(tmp_path / "meminfo"), "CORELANE_HUGEPAGES": str(tmp_path / "state")}
    command = [fuzz.ROOT / "tools/with-hugepages.sh", "64", "--", "cat", tmp_path / "nr_hugepages", tmp_path / "compact_memory"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-4:] == [
        "==> hugepages: 2 free before, 2 free now, 32 wanted (given back at the end)",
        "==> hugepages: the kernel has no more: 8000 MB are available, not all of it contiguous", "33", "1"]
    assert (tmp_path / "nr_hugepages").read_text() == "3\n" and not (tmp_path / "state").exists()


def test_progress_of_go_tests_counts_packages_and_shows_what_failed():
    events = [("output", "a", "TestX", "not so\n"), ("fail", "a", "TestX", None), ("output", "a", None, "FAIL\ta\n"), ("fail", "a", None, None),
              ("output", "b", "TestY", "all well\n"), ("pass", "b", "TestY", None), ("pass", "b", None, None), ("skip", "c", None, None)]
    lines = [measure.json.dumps({"Action": action, "Package": package, "Elapsed": 1.5} | ({"Test": test} if test else {}) |
                                ({"Output": output} if output else {})) for action, package, test, output in events]
    shown = subprocess.run([sys.executable, fuzz.ROOT / "tools/test_report.py", "--go-progress", "3"], input="\n".join(lines), capture_output=True,
                           text=True, check=True).stdout
    assert shown.splitlines() == ["not so", "FAIL\ta", "[1/3] FAIL a 1.5 s", "[2/3] ok b 1.5 s", "[3/3] no tests c 1.5 s"]
