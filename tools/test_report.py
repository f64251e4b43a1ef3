#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what the test runners reported.

test_report.py DIRECTORY       prints a table of all parts; fails if one failed
test_report.py --go-progress N reads `go test -json` of N packages, prints a line of each and the output of failed tests
"""
import glob
import json
import os
import sys
import xml.etree.ElementTree as ET

MOST_SECOND_TRIES = 3  # in a run


class Count:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = []
        self.failures = []


def count_junit(path, count):
    for case in ET.parse(path).iter("testcase"):
        name = f"{case.get('classname', '')} {case.get('name', '')}".strip()
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed += 1
            count.failures.append(name)
        elif skipped is not None:
            count.skipped.append((name, skipped.get("message") or (skipped.text or "").strip() or "no reason given"))
        else:
            count.passed += 1


def count_crashes(path, count):
    """meson's log: a test program that died or hung without naming a failed case."""
    with open(path, encoding="utf-8") as f:
        for test in map(json.loads, f):
            if test["result"] in ("ERROR", "TIMEOUT", "INTERRUPT") and "not ok" not in test.get("stdout", ""):
                count.failed += 1
                count.failures.append(f"{test['name']}: {test['result'].lower()}")


def go_events(lines):
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            print(line, end="")  # the compiler's own words


def count_go(path, count):
    said = {}
    with open(path, encoding="utf-8") as f:
        for e in go_events(f):
            key = (e.get("Package"), e.get("Test"))
            if e["Action"] == "output":
                said.setdefault(key, []).append(e["Output"].strip())
            if "Test" not in e:
                continue
            name = f"{e['Package']} {e['Test']}"
            if e["Action"] == "pass":
                count.passed += 1
            elif e["Action"] == "fail":
                count.failed += 1
                count.failures.append(name)
            elif e["Action"] == "skip":
                words = [w for w in said.get(key, []) if w and not w.startswith(("===", "---"))]
                count.skipped.append((name, words[-1] if words else "no reason given"))


def go_progress(packages):
    output, ended = {}, 0
    for e in go_events(sys.stdin):
        package, action = e.get("Package", e.get("ImportPath", "")), e["Action"]
        key = (package, e.get("Test"))
        if action in ("output", "build-output"):
            output.setdefault(key, []).append(e["Output"])
        if action == "build-output":
            print(e["Output"], end="", flush=True)
        elif action == "fail":
            print("".join(output.get(key, [])), end="", flush=True)
        if action in ("pass", "fail", "skip") and "Test" not in e:
            ended += 1
            word = {"pass": "ok", "fail": "FAIL", "skip": "no tests"}[action]
            print(f"[{ended}/{packages}] {word} {package} {e.get('Elapsed', 0):.1f} s", flush=True)


def second_tries(directory):
    """What tools/second_try.py recorded: part and name of each test that failed once and then passed."""
    try:
        with open(os.path.join(directory, "second-tries"), encoding="utf-8") as f:
            return [tuple(line.rstrip("\n").split("\t", 1)) for line in f]
    except FileNotFoundError:
        return []


def parts_of(directory):
    """Each part of a run: its name, what its runners counted, and the seconds that it took, and those of its CPU time."""
    again = second_tries(directory)
    with open(os.path.join(directory, "parts"), encoding="utf-8") as f:
        parts = [line.split() for line in f]
    for part, status, *seconds in parts:
        count = Count()
        for path in sorted(glob.glob(os.path.join(directory, f"{part}.xml")) + glob.glob(os.path.join(directory, f"{part}.*.xml"))):
            count_junit(path, count)
        for path in glob.glob(os.path.join(directory, f"{part}.meson.json")):
            count_crashes(path, count)
        for path in glob.glob(os.path.join(directory, f"{part}.go.json")) + glob.glob(os.path.join(directory, f"{part}.*.go.json")):
            count_go(path, count)
        passed_again = [name for name in count.failures if (part, name) in again]
        count.passed += len(passed_again)
        count.failed -= len(passed_again)
        count.failures = [name for name in count.failures if name not in passed_again]
        # A runner that failed, or counted nothing, is a failure even when no single test says so.
        if count.failed == 0 and (status != "0" or count.passed == 0):
            count.failed = 1
            count.failures.append("the runner itself failed" if status != "0" else "nothing ran")
        yield part, count, seconds


def report(directory):
    total = Count()
    again = second_tries(directory)
    rows = list(parts_of(directory))
    for part, count, _ in rows:
        total.passed += count.passed
        total.failed += count.failed
        total.skipped += [(f"{part}: {name}", why) for name, why in count.skipped]
        total.failures += [f"{part}: {name}" for name in count.failures]

    print(f"\n{'part':10} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8} {'CPU':>6}")
    for part, count, (seconds, cpu) in rows:
        print(f"{part:10} {count.passed:7} {count.failed:7} {len(count.skipped):8} {seconds:>8} {cpu:>6}")
    for name, why in total.skipped:
        print(f"skipped  {name}: {why}")
    for part, name in again:
        print(f"passed at the second try  {part}: {name}")
    if len(again) > MOST_SECOND_TRIES:
        total.failed += 1
        total.failures.append(f"{len(again)} tests passed only at the second try, and {MOST_SECOND_TRIES} may")
    for name in total.failures:
        print(f"FAILED   {name}")
    print(f"{total.passed} passed, {total.failed} failed, {len(total.skipped)} skipped", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--go-progress":
        go_progress(sys.argv[2])
    elif len(sys.argv) != 2:
        sys.exit(__doc__)
    else:
        sys.exit(report(sys.argv[1]))
