#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that failed once more, alone, and records what passes then.

second_try.py KIND REPORT COMMAND...   KIND: meson, go or pytest, the runner that wrote REPORT; COMMAND runs what is added to it

Exit status 0: all of them passed now, and test_report.py counts them as passed at the second try. 1: one failed again, or
there was no second try, because too many failed or because what happened is no matter of chance: a crash, or a report of
a sanitizer or of the race detector.
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import test_report

AT_ONCE = 8  # so many failures of one runner, a test's parts among them, are not looked at again
# The words of whoever saw memory, threads or a process go wrong.
NO_CHANCE = re.compile(r"(Address|Thread|UndefinedBehavior|Leak)Sanitizer|runtime error: |WARNING: DATA RACE|^(panic|fatal error): |"
                       r"\bSIG(SEGV|BUS|ABRT|ILL|FPE)\b|[Ss]egmentation fault|assert -(6|7|11) == ", re.MULTILINE)


def meson_failures(report):
    """Names as test_report.py gives them, what makes meson run them, and what they said. REPORT is PART.meson.json."""
    count, programs, said = test_report.Count(), [], []
    test_report.count_junit(report.replace(".meson.json", ".xml"), count)
    test_report.count_crashes(report, count)
    with open(report, encoding="utf-8") as f:
        for test in map(json.loads, f):
            if test["result"] in ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS"):
                programs.append(test["name"].split(" / ")[-1])
                said += [test.get("stdout", ""), test.get("stderr", "")]
                if test["returncode"] < 0 and test["result"] != "TIMEOUT":
                    said.append(signal.Signals(-test["returncode"]).name)
    return count.failures, [programs] if programs else [], said


def go_failures(report):
    count, tests, output, said = test_report.Count(), collections.defaultdict(set), collections.defaultdict(str), []
    test_report.count_go(report, count)
    with open(report, encoding="utf-8") as f:
        for event in test_report.go_events(f):
            package, test = event.get("Package", event.get("ImportPath")), event.get("Test", "").split("/")[0]
            if event["Action"] in ("output", "build-output"):
                output[package, test] += event["Output"]
            elif event["Action"] == "fail" and test:
                tests[package].add(test)
                said.append(output[package, test])
            elif event["Action"] in ("fail", "build-fail"):
                said.append(output[package, ""] if tests[package] else "panic: a package failed, and none of its tests")
    return count.failures, [["-run", f"^({'|'.join(sorted(names))})$", package] for package, names in tests.items()], said


def pytest_failures(report):
    count, nodes, said = test_report.Count(), [], []
    test_report.count_junit(report, count)
    for case in ET.parse(report).iter("testcase"):
        wrong = [w for w in (case.find("failure"), case.find("error")) if w is not None]
        if wrong:
            nodes.append(f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}")
            # Without the source, which may speak of signals.
            said += [re.sub(r"^(    |>).*$", "", w.text or "", flags=re.MULTILINE) for w in wrong]
    return count.failures, [nodes] if nodes else [], said


FAILURES = {"meson": meson_failures, "go": go_failures, "pytest": pytest_failures}


def refusal(failures, tests, said):
    """Why there is no second try, or None."""
    if not tests:
        return "the runner failed, and no test of it"
    if len(failures) > AT_ONCE:
        return f"{len(failures)} failed"
    chance = NO_CHANCE.search("\n".join(said))
    return f"this is no chance: {chance.group()!r}" if chance else None


def second_try(kind, report, command):
    failures, tests, said = FAILURES[kind](report)
    why = refusal(failures, tests, said)
    if why:
        print(f"==> no second try: {why}", flush=True)
        return 1
    for arguments in tests:
        print(f"==> second try: {' '.join(arguments)}", flush=True)
        if subprocess.run(command + arguments, check=False).returncode != 0:
            return 1
    with open(os.path.join(os.path.dirname(report), "second-tries"), "a", encoding="utf-8") as f:
        f.writelines(f"{os.path.basename(report).split('.')[0]}\t{name}\n" for name in failures)
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] in FAILURES:
        sys.exit(second_try(sys.argv[1], sys.argv[2], sys.argv[3:]))
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
