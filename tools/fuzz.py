#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of C and Go in turns, and counts their executions.

fuzz.py run [--seconds N | --until HH:MM] [--turn N] [--pause FILE] [TARGET...]
    One target at a time, for --turn seconds. Targets whose coverage still grows get more turns. A turn of a C target has
    two stages: the optimised program without sanitizers (build-fuzz/) looks for inputs that reach something new, and the
    program with sanitizers (build-asan/) runs each of them, and fuzzes on by itself for a tenth of the time. Findings are
    in build-asan/ (C) and in testdata/fuzz/ of the package (Go). Executions are added to build-asan/executions, by stage.
    While --pause FILE exists, nothing runs: the turn ends.
fuzz.py merge [TARGET...]
    Adds the found inputs that reach something new to tests/fuzz/corpus, and replays the corpus with sanitizers.
fuzz.py record
    Moves the counts of build-asan/executions into tests/fuzz/executions.txt, and writes the table in docs/security.md.
fuzz.py check
    Fails unless each target has a row in docs/security.md, each row a target, and each target of C a corpus.
fuzz.py plant [--seconds N] [TARGET...]
    Puts each bug of tests/fuzz/planted.ini into a copy of its source, and fails unless the target with this copy finds it
    within N seconds.
"""
import argparse
import configparser
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-asan"
FAST = ROOT / "build-fuzz"
CORPUS = ROOT / "tests/fuzz/corpus"
COUNTS = ROOT / "tests/fuzz/executions.txt"
PAGE = ROOT / "docs/security.md"
PENDING = BUILD / "executions"
LONGEST_INPUT = 2048  # of a committed input that was found
OPTIONS = ["-timeout=10", "-rss_limit_mb=4096", "-print_final_stats=1"]
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
HEAD = """# Executions of each fuzz target so far: with sanitizers (Go: as the tests are built), and without. `tools/fuzz.py record`
# adds those of `tools/fuzz.py run`. Not to be edited.
"""


def c_sources():
    """The targets of C, by their sources."""
    return sorted(p.stem.removeprefix("fuzz_") for p in (ROOT / "tests/fuzz").glob("fuzz_*.c") if "int LLVMFuzzerTestOneInput(" in p.read_text())


def c_targets():
    return sorted(p.name.removeprefix("fuzz_") for p in (BUILD / "tests/fuzz").glob("fuzz_*") if p.is_file() and os.access(p, os.X_OK))


def go_targets():
    found = []
    for path in sorted(ROOT.glob("*/**/*_test.go")):
        for name in re.findall(r"^func (Fuzz\w+)\(f \*testing\.F\)", path.read_text(), re.M):
            found.append(f"{path.parent.relative_to(ROOT)}:{name}")
    return found


def read_counts(path):
    """{target: (executions with sanitizers, executions without)}"""
    lines = path.read_text().splitlines() if path.exists() else []
    words = (line.split() for line in lines if line and line[0] != "#")
    return {name: (int(checked), int(fast)) for name, checked, fast in words}


def add_counts(counts, more):
    for name, (checked, fast) in more.items():
        old = counts.get(name, (0, 0))
        counts[name] = (old[0] + checked, old[1] + fast)
    return counts


def write_counts(path, counts, head=""):
    new = path.with_suffix(".new")
    new.write_text(head + "".join(f"{name} {checked} {fast}\n" for name, (checked, fast) in sorted(counts.items())))
    new.replace(path)


@contextlib.contextmanager
def pending_locked():
    """Several runs may share PENDING, while it is recorded."""
    with open(PENDING.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def count(target, turn):
    """Adds the executions of a turn to PENDING."""
    with pending_locked():
        write_counts(PENDING, add_counts(read_counts(PENDING), {target: (turn.checked, turn.fast)}))


class Turn:
    """What one turn of a target has done."""

    def __init__(self, checked=0, fast=0, grown=0, failed=False, text=""):
        self.checked, self.fast, self.grown, self.failed, self.text = checked, fast, grown, failed, text


def until_paused(command, log, pause, interrupt):
    """Runs a command in a process group of its own, and interrupts it when the file `pause` appears. Returns its exit code
    and its output."""
    with open(log, "w", errors="replace") as out:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # an interrupt waits until the program can be killed
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT, start_new_session=True,
                                   preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            while process.poll() is None:
                if pause and pause.exists():
                    os.killpg(process.pid, interrupt)
                    process.wait()
                    return 0, log.read_text(errors="replace")
                time.sleep(0.1)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    return process.returncode, log.read_text(errors="replace")


def run_program(program, name, seconds, pause, arguments):
    """Returns the executions, the features that were found, whether something failed, and the output."""
    command = [program / "tests/fuzz" / f"fuzz_{name}", *OPTIONS, f"-max_total_time={seconds}", f"-artifact_prefix={BUILD}/{name}-", *arguments]
    code, text = until_paused(command, BUILD / f"fuzz_{name}.log", pause, signal.SIGUSR1)
    units = re.findall(r"stat::number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\t", text, re.M) or ["0"]
    features = [int(n) for n in re.findall(r"cov: \d+ ft: (\d+)", text)]
    return int(units[-1]), features[-1] - features[0] if features else 0, code != 0, text


def run_c(name, seconds, pause=None):
    work = BUILD / "corpus" / f"fuzz_{name}"
    new = BUILD / "corpus" / f"new_{name}"
    for folder in (work, new, CORPUS / name):
        folder.mkdir(parents=True, exist_ok=True)
    fast, grown, failed, text = run_program(FAST, name, seconds, pause, [f"-use_value_profile={int(random.random() < 0.2)}", new, work, CORPUS / name])
    if failed:
        return Turn(0, fast, grown, failed, text)
    replayed, _, failed, text = run_program(BUILD, name, 0, None, ["-runs=0", new])
    if not failed:
        for path in new.iterdir():
            path.replace(work / path.name)
    checked = 0
    if not failed and not (pause and pause.exists()):
        checked, _, failed, text = run_program(BUILD, name, max(1, seconds // 10), pause, [work, CORPUS / name])
    return Turn(replayed + checked, fast, grown, failed, text)


def run_go(name, seconds, pause=None):
    package, function = name.split(":")
    command = ["tools/go.sh", "test", f"./{package}", "-run", "^$", "-fuzz", f"^{function}$", "-fuzztime", f"{seconds}s",
               "-fuzzminimizetime", "100x", "-parallel", "1"]
    code, text = until_paused(command, BUILD / "fuzz_go.log", pause, signal.SIGINT)
    executions = re.findall(r"execs: (\d+)", text)
    grown = re.findall(r"new interesting: (\d+)", text)
    return Turn(int(executions[-1]) if executions else 0, 0, int(grown[-1]) if grown else 0, code != 0, text)


def next_time(clock, now):
    """The next moment at which a clock shows HH:MM."""
    hour, minute = map(int, clock.split(":"))
    at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return at if at > now else at + datetime.timedelta(days=1)


def end_of(args):
    return next_time(args.until, datetime.datetime.now()).timestamp() if args.until else time.time() + args.seconds


BUILDS = {BUILD: ["-Doptimization=1", "-Ddebug=true", "-Db_sanitize=address,undefined", "-Dc_args=-fno-sanitize=alignment"],
          FAST: ["-Doptimization=2"]}


def build(*folders):
    """Builds the targets of C: in BUILD with sanitizers, as tools/test.sh does, in FAST without."""
    for folder in folders:
        if not (folder / "build.ninja").exists():
            subprocess.run(["meson", "setup", folder, "-Dfuzz=true", "-Db_lundef=false", *BUILDS[folder]], cwd=ROOT, check=True, env={**os.environ, "CC": "clang"},
                           stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", folder, "fuzz-targets"], check=True, stdout=subprocess.DEVNULL)


def run(args):
    if any(":" not in t for t in args.targets or [""]):
        build(BUILD, FAST)
    targets = args.targets or c_targets() + go_targets()
    grown = dict.fromkeys(targets, 100)  # each gets a turn soon
    end = end_of(args)
    status = 0
    while (left := int(end - time.time())) > 3:
        if args.pause and args.pause.exists():
            time.sleep(1)
            continue
        target = random.choices(targets, [1 + grown[t] for t in targets])[0]
        try:
            turn = (run_go if ":" in target else run_c)(target, min(args.turn, left), args.pause)
        except OSError as e:  # the program is being linked anew
            print(e, flush=True)
            time.sleep(2)
            continue
        grown[target] = (grown[target] + min(turn.grown, 100)) / 4
        count(target, turn)
        print(f"{time.strftime('%H:%M:%S')} {target}: {turn.checked + turn.fast} executions, {turn.grown} new{' FAILED' if turn.failed else ''}", flush=True)
        if turn.failed:
            status = 1
            print("\n".join(turn.text.splitlines()[-40:]), flush=True)
    return status


def merge(args):
    for name in args.targets or c_targets():
        work = BUILD / "corpus" / f"fuzz_{name}"
        short = BUILD / "corpus" / f"short_{name}"
        shutil.rmtree(short, ignore_errors=True)
        short.mkdir(parents=True)
        for path in work.iterdir() if work.exists() else ():
            if path.stat().st_size <= LONGEST_INPUT:
                shutil.copy(path, short)
        program = BUILD / "tests/fuzz" / f"fuzz_{name}"
        for arguments in (["-merge=1", CORPUS / name, short], ["-runs=0", CORPUS / name]):
            subprocess.run([program, *OPTIONS, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=True)
        files = list((CORPUS / name).iterdir())
        print(f"{name}: {len(files)} inputs, {sum(p.stat().st_size for p in files)} bytes")
    return 0


def marks(program):
    """The two comments around the table that a program writes."""
    return f"<!-- written by `{program}`: begin -->\n", "<!-- end -->\n"


def read_table(program):
    begin, end = marks(program)
    return PAGE.read_text().split(begin)[1].split(end, 1)[0].splitlines()


def write_table(program, rows):
    begin, end = marks(program)
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(before + begin + "".join(f"{row}\n" for row in rows) + end + rest.split(end, 1)[1])


def record(_args):
    counts = add_counts(dict.fromkeys(c_sources() + go_targets(), (0, 0)), read_counts(COUNTS))
    with pending_locked():
        write_counts(COUNTS, add_counts(counts, read_counts(PENDING)), HEAD)
        PENDING.unlink(missing_ok=True)
    checked, fast = (sum(column) for column in zip(*counts.values()))
    rows = [f"| `{name}` | {a:,} | {b:,} | {a + b:,} |" for name, (a, b) in sorted(counts.items())]
    write_table("tools/fuzz.py record", ["| target | with sanitizers, or Go | without | all |", "|---|---|---|---|", *rows,
                                         f"| all | {checked:,} | {fast:,} | {checked + fast:,} |"])
    print(f"{checked + fast} executions of {len(counts)} targets")
    return 0


def check(_args):
    targets = set(c_sources() + go_targets())
    rows = {name for row in read_table("tools/fuzz.py record") for name in re.findall(r"^\| `(.*?)` \|", row)}
    wrong = [f"docs/security.md has no row for the target {name}: tools/fuzz.py record writes it" for name in sorted(targets - rows)]
    wrong += [f"docs/security.md has a row for {name}, which is no target" for name in sorted(rows - targets)]
    wrong += [f"tests/fuzz/corpus/{name}: the target has no inputs" for name in c_sources() if not any((CORPUS / name).glob("*"))]
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


def build_planted(bug, folder):
    """Builds a target with a bug in one source. The linker takes the first definition of a function: the copy's."""
    target, source = f"tests/fuzz/fuzz_{bug['target']}", ROOT / bug["file"]
    text = source.read_text()
    if text.count(bug["old"]) != 1:
        sys.exit(f"tests/fuzz/planted.ini: [{bug.name}]: \"{bug['old']}\" occurs {text.count(bug['old'])} times in {bug['file']}, and has to occur once")
    copy, planted_object, program = folder / source.name, folder / "planted.o", folder / "planted"
    copy.write_text(text.replace(bug["old"], bug["new"]))
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    compiled = next(e for e in entries if (BUILD / e["file"]).resolve() == source)
    words = shlex.split(compiled["command"])
    words[words.index("-o") + 1], words[-1] = planted_object, copy
    subprocess.run([*words, f"-I{source.parent}"], cwd=BUILD, check=True)
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], check=True, stdout=subprocess.PIPE, text=True).stdout
    words = shlex.split(commands.splitlines()[-1])
    at = words.index("-o")
    subprocess.run([*words[:at], "-o", program, "-Wl,-z,muldefs", planted_object, *words[at + 2:]], cwd=BUILD, check=True)
    return program


def plant(args):
    bugs = configparser.ConfigParser(default_section=None, interpolation=None)
    bugs.read(ROOT / "tests/fuzz/planted.ini")
    build(BUILD)
    status = 0
    for name in bugs.sections():
        bug = bugs[name]
        if args.targets and bug["target"] not in args.targets:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            program = build_planted(bug, folder)
            (folder / "corpus").mkdir()
            begin = time.time()
            done = subprocess.run([program, *OPTIONS, "-seed=1", f"-max_total_time={args.seconds}", f"-artifact_prefix={folder}/", folder / "corpus",
                                   CORPUS / bug["target"]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT, check=False)
            found = re.findall(r"SUMMARY: (.*?)(?: /.*)?$", done.stdout.decode(errors="replace"), re.M)
        print(f"{bug['target']}: {name}: " + (f"found after {time.time() - begin:.1f} s: {found[-1]}" if done.returncode and found else "NOT FOUND"), flush=True)
        status |= not (done.returncode and found)
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("merge", merge), ("record", record), ("check", check), ("plant", plant)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("targets", nargs="*", metavar="TARGET")
        if name == "plant":
            command.add_argument("--seconds", type=int, default=60)
        if name == "run":
            command.add_argument("--seconds", type=int, default=600)
            command.add_argument("--until", metavar="HH:MM", help="when the clock shows this next, instead of --seconds")
            command.add_argument("--turn", type=int, default=60, metavar="SECONDS")
            command.add_argument("--pause", type=pathlib.Path, metavar="FILE", help="nothing runs while FILE exists")
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
