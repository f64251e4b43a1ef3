#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that dependencies point one way, as the tables in docs/design.md say.

A table is a fenced block that begins with ```rooms FOLDER. Each line names a module or package and says what it is. It may use itself and
those above its line. "! A -> B" excuses an arrow that points the other way and still exists; what is not needed any more has to go.
Tests may use all of them. A function of dataplane/ is defined in the module whose header declares it.
`layers.py names` instead lists the static functions of dataplane/ whose name two files of a module share, or is one word that is not
the name of the file, and
`layers.py hooks` the variables that hold one callback of another module, where a second one would replace the first, and
`layers.py publish` the pointers that a function of dataplane/ publishes after a call of rcu_defer(). What was deferred might
be freed while readers still find it: first every pointer to it is replaced, then it is deferred.
"""
import collections
import json
import os
import re
import subprocess
import sys

DESIGN = "docs/design.md"
TEST_FILE = re.compile(r"(_test|_fixture|_testlib|/node_test)\.[ch]$|^dataplane/testing/|/api_test\.h$")

ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")

# A variable that is NULL until a module sets it: a function, or the callbacks of one listener. One with an initial value is replaced by tests.
HOOK = re.compile(r"^(?!typedef|extern)[a-z][\w \*]*\(\*(\w+)\)\([^;{=]*\);", re.M)
LISTENER = re.compile(r"^static (?:const )?struct \w*(?:listener|referrer|callbacks|hooks) \*(\w+);", re.M)


def tables():
    text = open(DESIGN, encoding="utf-8").read()
    for folder, body in re.findall(r"^```rooms (\S+)\n(.*?)^```", text, re.M | re.S):
        lines = body.splitlines()
        rooms = [line.split()[0] for line in lines if line and line[0] not in " !"]
        excused = {tuple(re.findall(r"[\w/]+", line.split("#")[0])) for line in lines if line.startswith("!")}
        yield folder, rooms, excused


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split()


def c_uses():
    """Yields where, room and used room for each #include of a file that is no test."""
    for path in tracked("dataplane/*.c", "dataplane/*.h"):
        if TEST_FILE.search(path) or not os.path.exists(path):
            continue
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            found = re.match(r'#include "([a-z0-9_]+)/', line)
            if found:
                yield f"{path}:{number}: {line.strip()}", path.split("/")[1], found[1]


def c_definitions():
    """Yields where, room of the header and room of the definition for each function whose header is in another room."""
    declared, defined = {}, {}
    for path in tracked("dataplane/*.c", "dataplane/*.h"):
        if TEST_FILE.search(path) or not os.path.exists(path):
            continue
        text, room = open(path, encoding="utf-8").read(), path.split("/")[1]
        into, end = (declared, r";") if path.endswith(".h") else (defined, r"\n\{")
        for name in re.findall(r"^(?!static|typedef|#|return)[a-z][\w *]*?\b(\w+)\([^;{]*\)" + end, text, re.M):
            into.setdefault(name, (path, room))
    for name, (path, room) in declared.items():
        if defined.get(name, (path, room))[1] != room:
            yield f"{defined[name][0]}: {name}() is declared in {path}", room, defined[name][1]


def go_uses(rooms):
    def room_of(package):  # the longest one that the table names
        inside = package.partition("/corelane/internal/")[2]
        named = [r for r in rooms if inside == r or inside.startswith(r + "/")]
        return max(named, key=len) if named else inside.split("/")[0]

    out = subprocess.run(["tools/go.sh", "list", "-json=ImportPath,Imports", "./internal/..."], capture_output=True, text=True, check=True)
    at, decoder = 0, json.JSONDecoder()
    while at < len(out.stdout.rstrip()):
        package, at = decoder.raw_decode(out.stdout, at)
        at += 1
        for used in package.get("Imports", []):
            if "/corelane/internal/" in used:
                yield f"{package['ImportPath']}: import {used}", room_of(package["ImportPath"]), room_of(used)


def check(folder, rooms, excused):
    wrong, needed = [], set()
    if folder == "dataplane":  # its users would link with the room that defines it, which no include shows
        wrong += [f"{where}, a header of {room}; declare it in {other}" for where, room, other in c_definitions()]
    for where, room, used in c_uses() if folder == "dataplane" else go_uses(rooms):
        if room == used:
            continue
        if room not in rooms or used not in rooms:
            wrong.append(f"{where}: {DESIGN} lists no module '{room if room not in rooms else used}' of {folder}/")
        elif rooms.index(used) > rooms.index(room):
            needed.add((room, used))
            if (room, used) not in excused:
                allowed = ", ".join(rooms[: rooms.index(room)]) or "nothing"
                wrong.append(f"{where}: {room} may use {allowed}, but not {used} (table of {folder}/ in {DESIGN})")
    wrong += [f"{DESIGN}: '! {a} -> {b}' excuses nothing any more; remove it" for a, b in sorted(excused - needed)]
    if needed & excused:
        print(f"still pointing up in {folder}/: " + ", ".join(f"{a} -> {b}" for a, b in sorted(needed & excused)))
    return wrong


def static_functions(text):
    """The names of the static functions: what stands before a { in the first column, up to the last line that is not indented."""
    lines = [re.sub(r"//.*", "", line) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        begin = number - 1
        while begin > 0 and lines[begin][:1].isspace():
            begin -= 1
        head = ATTRIBUTE.sub("", " ".join(lines[begin:number]))
        found = re.search(r"\bstatic\b.*?\b(\w+)\(", head)
        if found:
            yield found[1]


def static_names():
    files, wrong = collections.defaultdict(set), []
    for path in tracked("dataplane/*.c"):
        if TEST_FILE.search(path):
            continue
        for name in static_functions(open(path, encoding="utf-8").read()):
            files[os.path.dirname(path), name].add(os.path.basename(path))
            if "_" not in name and name != os.path.basename(path)[:-2]:
                wrong.append(f"{path}: static {name}() does not say what it works on: give it its noun")
    return wrong + [f"{room}: static {name}() is in {', '.join(sorted(of))}: give each its noun"
                    for (room, name), of in sorted(files.items()) if len(of) > 1]


def hooks():
    wrong = []
    for path in tracked("dataplane/*.c"):
        if TEST_FILE.search(path):
            continue
        text = open(path, encoding="utf-8").read()
        found = HOOK.findall(text) + [name for name in LISTENER.findall(text) if f"LISTEN({name}, " not in text]
        wrong += [f"{path}: {name} has room for one callback; make it a list of listeners (base/notify.h)" for name in found]
    return wrong


def published_late():
    wrong = []
    for path in tracked("dataplane/*.c"):
        if TEST_FILE.search(path):
            continue
        deferred = None
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            if line.startswith("}"):  # the end of a function
                deferred = None
            elif re.search(r"\brcu_defer\(", line):
                deferred = number
            elif deferred and re.search(r"\brcu_publish\(", line):
                wrong.append(f"{path}:{number}: a pointer is published after rcu_defer() in line {deferred}, whose token is then too old")
    return wrong


def main():
    checks = {"names": static_names, "hooks": hooks, "publish": published_late}
    wrong = checks[sys.argv[1]]() if sys.argv[1:] else [line for table in tables() for line in check(*table)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
