#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clang's static analyzer over the C sources of dataplane/ and generator/, without their tests.

analyze.py                      what changed since the last run, in parallel (ninja, in build/analyze/)
analyze.py --one COMMAND...     one file: prints each report and fails, unless a line on its path, or the line above it, has
                                the comment "// analyzer: CHECKER: REASON" with the
                                checker that the report names in brackets (more of them, separated by blanks)

What was found clean is remembered in the user's cache directory with the hash of each file that was read, so that a new
checkout analyzes only what differs from all that was analyzed before.
"""
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
WORK = BUILD / "analyze"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "corelane/analyze"
CLOCK_NS = 20_000_000  # files' times are by so much behind the clock at most
REMEMBERED = 8  # states of the files behind one source
LOCATION = re.compile(r"^(\S+?):(\d+):\d+: (warning|note): ")
# States of one function that are followed. Clang's default of 225,000 takes four times as long.
DEPTH = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=30000"]
RULES = """rule analyze
  command = {tool} --one $clang -MD -MF $out.d -MT $out && touch $out
  depfile = $out.d
  deps = gcc
  description = analyze $in
"""


def explained(report):
    checker = re.search(r"\[([\w.]+)\]$", next(line for line in report if " warning: " in line))[1]
    for line in report:
        at = LOCATION.match(line)
        if at and not at[1].startswith("/usr/"):
            text = pathlib.Path(at[1]).read_text().splitlines()
            for excuse in re.findall(r"// analyzer: ([\w. ]+): ", "\n".join(text[max(0, int(at[2]) - 2):int(at[2])])):
                if checker in excuse.split():
                    return True
    return False


def digest(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


class Memory:
    """States of the files that a command reads in which it found nothing: {file: hash of its content} each, the newest first."""

    def __init__(self, command):
        # A checkout's own files are known by their places in it. What clang is, is the environment's ANALYZER.
        relevant = [os.environ.get("ANALYZER", ""), pathlib.Path(__file__).read_text(), *(w.replace(str(ROOT), ".") for w in command)]
        self.file = CACHE / hashlib.sha256("\0".join(relevant).encode()).hexdigest()
        try:
            self.states = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.states = []

    def clean(self):
        """The files, if they are in one of the states."""
        seen = {}
        for state in self.states:
            if all(seen.setdefault(f, digest(ROOT / f)) == h for f, h in state.items()):
                return list(state)
        return None

    def add(self, files, begun):
        """begun: when the analyzer was started, ns. What was written since then may not be what it has read."""
        files = list(files)
        if any(os.stat(f).st_mtime_ns > begun - CLOCK_NS for f in files):
            return
        state = {os.path.relpath(f, ROOT) if os.path.realpath(f).startswith(f"{ROOT}/") else os.path.abspath(f): digest(f)
                 for f in files}
        CACHE.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps([state, *self.states][:REMEMBERED]))
        new.rename(self.file)


def one(command):
    """COMMAND writes the names of the files that it reads to the file behind -MF."""
    depfile = pathlib.Path(command[command.index("-MF") + 1])
    memory = Memory(command)
    files = memory.clean()
    if files:
        target = command[command.index("-MT") + 1]
        depfile.write_text(f"{target}: " + " ".join(str(ROOT / f).replace(" ", "\\ ") for f in files) + "\n")
        return 0
    begun = time.time_ns()
    status = analyzed(command)
    if status == 0:
        _, _, names = depfile.read_text().replace("\\\n", " ").partition(": ")
        memory.add((name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", names)), begun)
    return status


def analyzed(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    reports, failed = [], done.returncode != 0
    for line in done.stdout.splitlines():
        at = LOCATION.match(line)
        if at and at[3] == "warning" or not reports:
            reports.append([])
        reports[-1].append(line)
    for report in reports:
        if failed or any(" warning: " in line for line in report) and not explained(report):
            failed = True
            print("\n".join(report))
    return int(failed)


def wanted(words):
    """The flags of a compiler that say what is compiled."""
    words, kept = iter(words), []
    for word in words:
        if word in ("-MQ", "-MF", "-o", "-c"):
            next(words)
        elif word.startswith(("-I", "-isystem", "-D", "-U", "-std", "-m", "-include")) and not word.startswith("-mno-"):
            kept.append(word)
            if word in ("-include", "-isystem"):
                kept.append(next(words))
    return kept


def targets():
    seen = set()
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        source = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"]))).relative_to(ROOT)
        helper = re.search(r"_(test|testlib|fixture)\.c$|/testing/", str(source))
        if source.parts[0] in ("dataplane", "generator") and not helper and source not in seen:
            seen.add(source)
            words = ["clang", "--analyze", *DEPTH, "--analyzer-output", "text", "-fno-color-diagnostics", "-Wno-everything", *wanted(shlex.split(entry["command"])[1:]),
                     entry["file"], "-o", "/dev/null"]
            yield source, shlex.join(words).replace("$", "$$")


def main():
    if sys.argv[1:2] == ["--one"]:
        return one(sys.argv[2:])
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", BUILD], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], check=True, stdout=subprocess.PIPE, text=True).stdout
    generated = re.findall(r"^(\S+\.h): CUSTOM_COMMAND", listed, re.M)
    subprocess.run(["ninja", "-C", BUILD, *generated], check=True, stdout=subprocess.DEVNULL)
    WORK.mkdir(exist_ok=True)
    rules = RULES.format(tool=ROOT / "tools/analyze.py")
    for source, command in targets():
        rules += f"build analyze/{source}.done: analyze {ROOT / source}\n  clang = {command}\n"
    (WORK / "build.ninja").write_text(rules)
    os.environ["ANALYZER"] = subprocess.run(["clang", "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    quiet = subprocess.run(["ninja", "--quiet", "-k", "0", "-C", BUILD, "-f", "analyze/build.ninja"], check=False)
    return quiet.returncode


if __name__ == "__main__":
    sys.exit(main())
