#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names each line of the C and Go files given that is longer than 120 columns. A tab is eight columns in C and four in
Go. Generated files, and raw strings in Go tests (they quote files and other programs), are left alone."""
import sys

LONGEST = 120


def width(line, tab):
    return len(line.expandtabs(tab))


def too_long(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    if any(line.startswith(("// Code generated ", "// Made by `make ")) for line in lines):
        return []
    tab = 4 if path.endswith(".go") else 8
    quotes = path.endswith("_test.go") or "/topologytest/" in path
    found, raw = [], False
    for i, line in enumerate(lines, 1):
        touched = raw or "`" in line
        raw ^= line.count("`") % 2 == 1
        if width(line, tab) > LONGEST and not (quotes and touched):
            found.append((i, width(line, tab)))
    return found


def main():
    wrong = [f"{path}:{line}: {columns} columns" for path in sys.argv[1:] for line, columns in too_long(path)]
    for w in wrong:
        print(w)
    return 1 if wrong else 0


sys.exit(main())
