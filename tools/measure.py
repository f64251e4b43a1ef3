#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures everything that Corelane promises about times and rates, several times in turns, and prints a table.

measure.py [--only NAME] [--repeat N] [--list]   --only: the cases whose name contains NAME

The cases are the meson suite `measure`, the Go tests behind the build tag `measure`, the pytest tests marked `measure`, the
scripts that heed CORELANE_MEASURE, and `corelane bench --check`. A test shows a figure by a line of its output,
"measured: WHAT VALUE UNIT, at most BOUND UNIT" (or "at least"), or without a bound. What they say is in build/measure/.

Verdicts: a promise that each run kept `holds`, one that no run kept `misses`, and `too noisy to say` is the rest. Exit
status 1: a promise misses, or was not measured.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from typing import Callable, NamedTuple

import left_over

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "measure"
PROGRAMS = {"CORELANED": str(ROOT / "bin" / "corelaned"), "CORELANE": str(ROOT / "bin" / "corelane"), "PYTHONDONTWRITEBYTECODE": "1",
            left_over.VARIABLE: left_over.id_of(os.getpid())}
SKIP = 77
FIGURE = re.compile(r"^(?:# |\s+\S+_test\.go:\d+: )?measured: (.+?) (-?[\d.]+) ?([^\s,]*?)(?:, (at most|at least) (-?[\d.]+)(?: \S+)?)?$", re.MULTILINE)
SKIPPED = re.compile(r"^(?:SKIPPED \[\d+\] \S+|\s*--- SKIP:|SKIP:|ok \d+ - .* # SKIP) ?(.*)", re.MULTILINE)


class Figure(NamedTuple):
    """A row of the table in one run. Without a value it only says whether the promise was kept."""
    name: str
    kept: bool
    value: float | None = None
    unit: str = ""
    bound: str = "-"


def bounded(name, value, unit, relation, bound):
    kept = value <= bound if relation == "at most" else value >= bound
    return Figure(name, kept, value, unit, f"{relation} {bound:g} {unit}".strip())


def printed(name, text):
    """The figures that a test prints."""
    for what, value, unit, relation, bound in FIGURE.findall(text):
        if relation:
            yield bounded(f"{name}: {what}", float(value), unit, relation, float(bound))
        else:
            yield Figure(f"{name}: {what}", True, float(value), unit)


def tap(name, text):
    """The cases of a C test, and the figures that it prints."""
    for wrong, what in re.findall(r"^(not )?ok \d+ - ([^#\n]+?)(?! *# SKIP)$", text, re.MULTILINE):
        yield Figure(f"{name}: {what}", not wrong)
    yield from printed(name, text)


def of_json(figures):
    """Reads the figures from each line of JSON that a command prints."""
    def read(name, text):
        for line in text.splitlines():
            if line.startswith("{"):
                yield from figures(name, json.loads(line))
    return read


def restart_figures(name, result):
    for row in result["rows"]:
        what = f"{name}: {row['event']}, {row['kind']}"
        if row["outage_at_most"]:
            yield bounded(f"{what}: outage", row["outage_ms"], "ms", "at most", row["outage_at_most"])
        else:
            yield bounded(f"{what}: lost", row["lost"], "packets", "at most", 0)
        yield bounded(f"{what}: surviving", row["survived"], "connections", "at least", row["connections"])


def fleet_figures(name, result):
    for row in result["rows"]:
        yield bounded(f"{name}: {row['what']}", row["value"], row["unit"], "at least" if row["least"] else "at most", row["limit"])


def neighbor_figures(name, result):
    """A row misses only what it misses by more than the noise of its trials."""
    for row in result["rows"]:
        kept = statistics.median(p["with"]["delivered"] / max(p["without"]["delivered"], 1e-9) for p in row["pairs"])
        yield Figure(f"{name}: {row['attack']}, {row['port']}: rate kept, and all targets", not row.get("missed"), kept, "", "at least 0.9")


def matrix_figures(name, outcome):
    if not outcome.get("skipped"):
        yield Figure(f"{name}: {outcome['case']}", outcome["passed"], outcome["seconds"], "s")


def tcp_figures(name, text):
    """The rows of the table of comparisons: of, to, ratio (range), least, aim, verdict."""
    for of, to, ratio, least in re.findall(r"^(\S.*?) {2,}(\S.*?) {2,}([\d.]+) \([^)]*\) {2,}([\d.]+) .*(?:holds|misses)$", text, re.MULTILINE):
        yield bounded(f"{name}: {of} / {to}", float(ratio), "", "at least", float(least))


class Case(NamedTuple):
    name: str
    command: list
    read: Callable = printed
    env: dict = {}


def c_cases():
    shown = subprocess.run(["meson", "introspect", "--tests", "build"], cwd=ROOT, capture_output=True, text=True, check=True)
    for test in json.loads(shown.stdout):
        if any(suite.endswith(":measure") for suite in test["suite"]):
            yield Case(f"unit {test['name']}", test["cmd"], tap, test["env"])


def go_cases():
    for path in sorted(ROOT.glob("**/*_test.go")):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^//go:build .*\bmeasure\b", text, re.MULTILINE):
            package = f"./{path.parent.relative_to(ROOT)}"
            for test in re.findall(r"^func (Test\w+)", text, re.MULTILINE):
                yield Case(f"go {package[2:]} {test}", ["tools/go.sh", "test", "-count=1", "-v", "-tags=measure", f"-run=^{test}$", package])


def pytest_cases(files="tests/*/test_*.py"):
    pytest, env = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"], {"CORELANE_MEASURE": "1"}
    for path in sorted(ROOT.glob(files)):
        if "mark.measure" not in path.read_text(encoding="utf-8"):
            continue
        shown = subprocess.run([*pytest, "--collect-only", "-m", "measure", path.relative_to(ROOT)], cwd=ROOT, capture_output=True, text=True,
                               check=False, env=os.environ | env)
        assert shown.returncode in (0, 5), shown.stdout + shown.stderr  # 5: the file only speaks of the mark
        for node in re.findall(r"^tests/\S+::.*", shown.stdout, re.MULTILINE):
            yield Case(f"pytest {node.removeprefix('tests/')}", [*pytest, "-s", "-rs", node], printed, env)


def script_cases():
    for path in sorted(ROOT.glob("tests/system/*_test.sh")):
        if "CORELANE_MEASURE" in path.read_text(encoding="utf-8"):
            yield Case(f"script {path.name}", [str(path)], printed, {"CORELANE_MEASURE": "1"})


def bench_cases():
    for arguments, read in (("bench neighbor", of_json(neighbor_figures)), ("bench restart", of_json(restart_figures)),
                            ("bench fleet", of_json(fleet_figures)), ("bench tcp", tcp_figures), ("bench peers", printed),
                            ("lab intrude matrix", of_json(matrix_figures))):
        command = ["bin/corelane", *arguments.split()]
        command += ["--runs", "1"] if "intrude" in arguments else ["--check"]
        command += ["--out", str(LOGS)] if arguments.endswith(("neighbor", "peers")) else []
        command += ["-o", "json"] if read not in (printed, tcp_figures) else []
        yield Case(arguments, command, read)


def all_cases():
    return [*c_cases(), *go_cases(), *pytest_cases(), *script_cases(), *bench_cases()]


def figures_of(case, code, text):
    """A run's rows. One for the case itself, if it shows none, or if it failed although all that it shows is kept."""
    figures = list(case.read(case.name, text))
    if not figures or (code != 0 and all(f.kept for f in figures)):
        figures.append(Figure(case.name, code == 0))
    return figures


class Table:
    """The figures of all runs, by the name of the row."""
    def __init__(self):
        self.rows = collections.defaultdict(list)
        self.case_of = {}
        self.runs = collections.Counter()
        self.skipped = {}

    def add(self, case, code, text):
        skipped = SKIPPED.search(text)
        figures = [] if code == SKIP else figures_of(case, code, text)
        if code in (0, SKIP) and skipped and all(f.name == case.name for f in figures):
            self.skipped[case.name] = skipped.group(1)
            return
        self.runs[case.name] += 1
        for f in figures:
            self.rows[f.name].append(f)
            self.case_of[f.name] = case.name

    def verdict(self, name):
        broken = sum(not f.kept for f in self.rows[name])
        if broken == 0:
            return "holds"
        return "misses" if broken >= self.runs[self.case_of[name]] else "too noisy to say"

    def lines(self):
        yield ("name", "bound", "measured", "spread", "verdict")
        for name, figures in self.rows.items():
            values = sorted(f.value for f in figures if f.value is not None)
            unit = f" {figures[0].unit}" if figures[0].unit else ""
            middle = f"{statistics.median(values):g}{unit}" if values else "-"
            spread = f"{values[0]:g} to {values[-1]:g}" if len(values) > 1 else "-"
            yield (name, figures[0].bound, middle, spread, self.verdict(name))
        for name, why in self.skipped.items():
            yield (name, "-", "-", "-", f"not measured: {why or 'no reason given'}")

    def show(self):
        rows = list(self.lines())
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[4]]))

    def status(self):
        return 1 if self.skipped or any(self.verdict(name) == "misses" for name in self.rows) else 0


def run(case, log):
    """Runs a case once. What it says is in the log; the figures are read from there."""
    with open(log, "w", encoding="utf-8") as f:
        code = subprocess.run(case.command, cwd=ROOT, env=os.environ | PROGRAMS | case.env, stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT,
                              check=False).returncode
    return code, log.read_text(encoding="utf-8", errors="replace")


def measure(cases, repeat, logs):
    """All cases in turns, so that a slow minute of the machine meets one run of each, and not all runs of one."""
    logs.mkdir(parents=True, exist_ok=True)
    table = Table()
    for n in range(1, repeat + 1):
        for i, case in enumerate(cases, 1):
            log = logs / f"{re.sub('[^a-zA-Z0-9._-]+', '-', case.name)}.{n}.log"
            begun = time.monotonic()
            code, text = run(case, log)
            print(f"==> measure: run {n} of {repeat}, case {i} of {len(cases)}: {case.name}: exit {code} after {time.monotonic() - begun:.0f} s", flush=True)
            table.add(case, code, text)
    return table


def machine():
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.findall(r"^model name\s*: (.*)", f.read(), re.MULTILINE)
    return f"commit {commit or '-'}, {time.strftime('%F')}, {os.cpu_count()} CPUs ({model[0] if model else 'unknown'}), load average {os.getloadavg()[0]:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    cases = [c for c in all_cases() if options.only in c.name]
    if options.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not cases or options.repeat < 1:
        parser.error(f"no case has '{options.only}' in its name; --list shows them" if not cases else "--repeat is 1 at least")
    print(f"==> measure: {machine()}", flush=True)
    table = measure(cases, options.repeat, LOGS)
    print()
    table.show()
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
