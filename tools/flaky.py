#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tests that passed only at the second try, in the last runs on this machine: each is to be mended.

flaky.py                   prints them, the most frequent first
flaky.py --record RESULTS  adds those of the run whose reports are in RESULTS

tools/flaky.sh runs the tests many times, and calls:
flaky.py --not-green RESULTS STATUS RUN WITH  prints the tests that failed in a run, or passed at the second try
flaky.py --count FILE RUNS                    counts what that has printed; exit status 1: a run was not green
"""
import collections
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import test_report

HISTORY = os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "corelane", "second-tries")


def record(results):
    commit = subprocess.run(["git", "log", "-1", "--format=%h"], capture_output=True, text=True, check=False).stdout.strip() or "-"
    os.makedirs(os.path.dirname(HISTORY), exist_ok=True)
    with open(HISTORY, "a", encoding="utf-8") as f:
        f.writelines(f"{time.strftime('%F %T')}\t{commit}\t{part}\t{name}\n" for part, name in test_report.second_tries(results))


def show():
    try:
        with open(HISTORY, encoding="utf-8") as f:
            rows = [line.rstrip("\n").split("\t", 3) for line in f]
    except FileNotFoundError:
        rows = []
    times = collections.Counter((part, name) for _, _, part, name in rows)
    last = {(part, name): f"{when}  {commit}" for when, commit, part, name in rows}
    for (part, name), n in times.most_common():
        print(f"{n:4}  last {last[part, name]}  {part}: {name}")
    if not rows:
        print("no test passed only at the second try")


def not_green(results, status):
    """Part, name and what happened of each test of a run that was not green at once. A run that failed has one at least."""
    try:
        seen = [(part, name, "failed") for part, count, _ in test_report.parts_of(results) for name in count.failures]
    except (OSError, ValueError, ET.ParseError) as wrong:
        seen = [("-", f"the run left no reports: {wrong}", "failed")]
    seen += [(part, name, "second try") for part, name in test_report.second_tries(results)]
    return seen or ([("-", f"the run itself: exit {status}", "failed")] if status != "0" else [])


def count(path, runs):
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t", 4) for line in f]
    tests = collections.defaultdict(set)
    for run, with_, part, how, name in rows:
        tests[part, name].add((run, with_, how))
    red = {run for run, _, _, how, _ in rows if how == "failed"}
    print(f"{len(red)} of {runs} runs had a failure, and {len({row[0] for row in rows} - red)} more a test that passed at the second try")
    if tests:
        print(f"{'not green':>9} {'failed':>7} {'second try':>11} {'beside a build':>15}  test")
    for (part, name), seen in sorted(tests.items(), key=lambda item: (-len(item[1]), item[0])):
        failed, beside = sum(how == "failed" for _, _, how in seen), sum(with_ == "beside" for _, with_, _ in seen)
        print(f"{len(seen):9} {failed:7} {len(seen) - failed:11} {beside:15}  {part}: {name}")
    return 1 if tests else 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--record":
        record(sys.argv[2])
    elif len(sys.argv) == 6 and sys.argv[1] == "--not-green":
        for test_part, test_name, happened in not_green(sys.argv[2], sys.argv[3]):
            print(*sys.argv[4:], test_part, happened, test_name, sep="\t")
    elif len(sys.argv) == 4 and sys.argv[1] == "--count":
        sys.exit(count(sys.argv[2], sys.argv[3]))
    elif len(sys.argv) == 1:
        show()
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
