#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tests that passed only at the second try, in the last runs on this machine: each is to be mended.

flaky.py                   prints them, the most frequent first
flaky.py --record RESULTS  adds those of the run whose reports are in RESULTS
"""
import collections
import os
import subprocess
import sys
import time

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


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--record":
        record(sys.argv[2])
    elif len(sys.argv) == 1:
        show()
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
