#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of C and Go in turns, and counts their executions.

fuzz.py run [--seconds N | --until HH:MM] [--turn N] [TARGET...]
    One target at a time, for --turn seconds. Targets whose coverage still grows get more turns. Findings are in build-asan/
    (C) and in testdata/fuzz/ of the package (Go). Executions are added to build-asan/executions.
fuzz.py merge [TARGET...]
    Adds the found inputs that reach something new to tests/fuzz/corpus.
fuzz.py record
    Moves the counts of build-asan/executions into tests/fuzz/executions.txt, and writes the table in docs/security.md.
"""
import argparse
import datetime
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-asan"
CORPUS = ROOT / "tests/fuzz/corpus"
COUNTS = ROOT / "tests/fuzz/executions.txt"
PAGE = ROOT / "docs/security.md"
PENDING = BUILD / "executions"
LONGEST_INPUT = 2048  # of a committed input that was found
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def c_targets():
    return sorted(p.name.removeprefix("fuzz_") for p in (BUILD / "tests/fuzz").glob("fuzz_*") if p.is_file() and os.access(p, os.X_OK))


def go_targets():
    found = []
    for path in sorted(ROOT.glob("*/**/*_test.go")):
        for name in re.findall(r"^func (Fuzz\w+)\(f \*testing\.F\)", path.read_text(), re.M):
            found.append(f"{path.parent.relative_to(ROOT)}:{name}")
    return found


def read_counts(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: int(count) for name, count in (line.split() for line in lines if line and line[0] != "#")}


def write_counts(path, counts, head=""):
    new = path.with_suffix(".new")
    new.write_text(head + "".join(f"{name} {n}\n" for name, n in sorted(counts.items())))
    new.replace(path)


class Turn:
    """What one turn of a target has done."""

    def __init__(self, executions=0, grown=0, failed=False, text=""):
        self.executions, self.grown, self.failed, self.text = executions, grown, failed, text


def run_c(name, seconds):
    work = BUILD / "corpus" / f"fuzz_{name}"
    for folder in (work, CORPUS / name):
        folder.mkdir(parents=True, exist_ok=True)
    command = [BUILD / "tests/fuzz" / f"fuzz_{name}", f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=4096", "-print_final_stats=1",
               f"-artifact_prefix={BUILD}/{name}-", f"-use_value_profile={int(random.random() < 0.2)}", work, CORPUS / name]
    log = BUILD / f"fuzz_{name}.log"
    with open(log, "w", errors="replace") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, env=ENVIRONMENT, check=False).returncode
    text = log.read_text(errors="replace")
    units = re.findall(r"stat::number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\t", text, re.M) or ["0"]
    features = [int(n) for n in re.findall(r"cov: \d+ ft: (\d+)", text)]
    return Turn(int(units[-1]), features[-1] - features[0] if features else 0, code != 0, text)


def run_go(name, seconds):
    package, function = name.split(":")
    command = ["tools/go.sh", "test", f"./{package}", "-run", "^$", "-fuzz", f"^{function}$", "-fuzztime", f"{seconds}s", "-parallel", "1"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    executions = re.findall(r"execs: (\d+)", done.stdout)
    grown = re.findall(r"new interesting: (\d+)", done.stdout)
    return Turn(int(executions[-1]) if executions else 0, int(grown[-1]) if grown else 0, done.returncode != 0, done.stdout)


def end_of(args):
    if not args.until:
        return time.time() + args.seconds
    hour, minute = map(int, args.until.split(":"))
    return datetime.datetime.now().replace(hour=hour, minute=minute, second=0).timestamp()


def run(args):
    targets = args.targets or c_targets() + go_targets()
    grown = dict.fromkeys(targets, 100)  # each gets a turn soon
    end = end_of(args)
    status = 0
    while (left := int(end - time.time())) > 3:
        target = random.choices(targets, [1 + grown[t] for t in targets])[0]
        try:
            turn = (run_go if ":" in target else run_c)(target, min(args.turn, left))
        except OSError as e:  # the program is being linked anew
            print(e, flush=True)
            time.sleep(2)
            continue
        grown[target] = (grown[target] + min(turn.grown, 100)) / 4
        counts = read_counts(PENDING)
        counts[target] = counts.get(target, 0) + turn.executions
        write_counts(PENDING, counts)
        print(f"{time.strftime('%H:%M:%S')} {target}: {turn.executions} executions, {turn.grown} new{' FAILED' if turn.failed else ''}", flush=True)
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
        subprocess.run([BUILD / "tests/fuzz" / f"fuzz_{name}", "-merge=1", "-rss_limit_mb=4096", CORPUS / name, short],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, check=True)
        files = list((CORPUS / name).iterdir())
        print(f"{name}: {len(files)} inputs, {sum(p.stat().st_size for p in files)} bytes")
    return 0


def write_table(program, rows):
    """Replaces the rows between the two comments that name the program."""
    begin, end = f"<!-- written by `{program}`: begin -->\n", "<!-- end -->\n"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(before + begin + "".join(f"{row}\n" for row in rows) + end + rest.split(end, 1)[1])


def record(_args):
    counts = read_counts(COUNTS)
    for name, n in read_counts(PENDING).items():
        counts[name] = counts.get(name, 0) + n
    head = "# Executions of each fuzz target so far: `tools/fuzz.py record` adds those of `tools/fuzz.py run`. Not to be edited.\n"
    write_counts(COUNTS, counts, head)
    PENDING.unlink(missing_ok=True)
    write_table("tools/fuzz.py record", ["| target | executions |", "|---|---|", *(f"| `{name}` | {n:,} |" for name, n in sorted(counts.items())),
                                         f"| all | {sum(counts.values()):,} |"])
    print(f"{sum(counts.values())} executions of {len(counts)} targets")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("merge", merge), ("record", record)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("targets", nargs="*", metavar="TARGET")
        if name == "run":
            command.add_argument("--seconds", type=int, default=600)
            command.add_argument("--until", metavar="HH:MM", help="of today, instead of --seconds")
            command.add_argument("--turn", type=int, default=60, metavar="SECONDS")
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
