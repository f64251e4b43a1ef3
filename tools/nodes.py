#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that nodes of NODE_EACH() have no array of their own on the stack, which the compiler would not check.

It compiles each file that has such nodes with NODE_CHECK (dataplane/graph/node.h): a node then checks its stack exactly when
its function for a packet has an array, also in what the compiler inlines into it.
usage: nodes.py [BUILDDIR]
"""
import json
import os
import re
import shlex
import subprocess
import sys

NODE = re.compile(r"^NODE_EACH\((\w+),", re.M)
CHECK = re.compile(r"__stack_chk|%fs:40\b")  # the latter loads the canary: x86-64's call may stand in another section
FUNCTION = re.compile(r"^(\w+):\n(.*?)^\t\.size\t\1, ", re.M | re.S)


def unchecked(entry, names):
    """Nodes of a file whose stack would be checked, and those that the compiler's output does not have."""
    command = shlex.split(entry["command"])
    for option in ("-o", "-MQ", "-MF"):
        at = command.index(option)
        del command[at : at + 2]
    command = [c for c in command if c not in ("-c", "-MD", "-flto")] + ["-DNODE_CHECK", "-S", "-o", "-"]
    text = subprocess.run(command, cwd=entry["directory"], check=True, capture_output=True, text=True).stdout
    functions = dict(FUNCTION.findall(text))
    for name in names:
        if name not in functions:
            yield f"{name} is not in the compiler's output: {sys.argv[0]} does not understand it"
        elif CHECK.search(functions[name]):
            yield f"{name} has an array on the stack; valid: a process function that calls node_each()"


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = {os.path.realpath(os.path.join(e["directory"], e["file"])): e for e in json.load(f)}
    bad = nodes = 0
    for path, entry in sorted(entries.items()):
        if not path.endswith(".c") or path.endswith("_test.c"):
            continue
        with open(path, encoding="utf-8") as f:
            names = NODE.findall(f.read())
        nodes += len(names)
        for message in unchecked(entry, names) if names else ():
            print(f"{os.path.relpath(path)}: {message}")
            bad += 1
    if nodes == 0:
        sys.exit(f"{build} compiles no node of NODE_EACH()")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
