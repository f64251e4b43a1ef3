#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prints which lines of each parser the fuzz targets reach with their committed corpora, and which ones unit tests reach besides.

coverage.py [--lines] [--record] [WORD...]      tests/fuzz/parsers.ini says what a parser is

Words choose parsers by name. --lines shows the lines that the corpora do not reach. --record writes the table into
docs/security.md; with words, only the rows of these parsers.
"""
import argparse
import configparser
import os
import re
import subprocess
import sys

import fuzz

ROOT = fuzz.ROOT
BUILD = ROOT / "build-coverage"
PROFILES = BUILD / "profiles"
FLAGS = ["-Dfuzz=true", "-Doptimization=1", "-Db_lundef=false", "-Dc_args=-fprofile-instr-generate -fcoverage-mapping",
         "-Dc_link_args=-fprofile-instr-generate -fsanitize=fuzzer-no-link"]


def command(*words, **options):
    return subprocess.run([str(w) for w in words], check=True, cwd=ROOT, **options)


def parsers(words):
    ini = configparser.ConfigParser(default_section=None)
    ini.read(ROOT / "tests/fuzz/parsers.ini")
    return [ini[name] for name in ini.sections() if not words or any(w in name for w in words)]


def listed(sections, key):
    return sorted({word for s in sections for word in s.get(key, "").split()})


# --- Lines: {file: {line: reached}}. ---

def run_program(program, profile, *arguments):
    profile.unlink(missing_ok=True)
    subprocess.run([program, *arguments], env={**os.environ, "LLVM_PROFILE_FILE": str(profile)}, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    return profile.exists()


def c_lines(programs, profiles):
    if not profiles:
        return {}
    merged = PROFILES / "merged.profdata"
    command("llvm-profdata", "merge", "-sparse", *profiles, "-o", merged)
    objects = [programs[0]] + [word for p in programs[1:] for word in ("-object", p)]
    export = command("llvm-cov", "export", "-format=lcov", *objects, f"-instr-profile={merged}", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines, current = {}, {}
    for line in export.stdout.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            current = lines.setdefault(os.path.relpath(os.path.normpath(rest), ROOT), {})
        elif kind == "DA":
            n, count = rest.split(",")[:2]
            current[int(n)] = current.get(int(n), False) or count != "0"
    return lines


def go_lines(targets, files, everything):
    lines = {}
    by_package = {}
    for target in targets:
        package, name = target.split(":")
        by_package.setdefault(package, []).append(name)
    for package, names in by_package.items():
        profile = PROFILES / "go.cover"
        run = "." if everything else "^(" + "|".join(names) + ")$"
        covered = ",".join(sorted({f"./{os.path.dirname(f)}" for f in files}))
        profile.unlink(missing_ok=True)
        words = ["tools/go.sh", "test", f"./{package}", "-run", run, f"-coverpkg={covered}", f"-coverprofile={profile}"]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if done.returncode != 0:
            print(f"{package}: a test fails:\n{done.stdout}", file=sys.stderr)
        if not profile.exists():
            continue
        for line in profile.read_text().splitlines()[1:]:
            at, first, last, count = re.match(r"[^/]+/[^/]+/[^/]+/(.*):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)", line).groups()
            if at in files:
                for n in range(int(first), int(last) + 1):
                    file = lines.setdefault(at, {})
                    file[n] = file.get(n, False) or count != "0"
    return lines


def functions_of(path):
    """Line ranges of the functions of a C or Go file, by name."""
    ranges, name, first = {}, None, 0
    for n, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        start = re.match(r"func (?:\([^)]*\) )?(\w+)", line) or re.match(r"[a-z].*?\**(\w+)\([^;]*$", line)
        if start and (name is None or path.endswith(".go")):
            name, first = start[1], n
        if name and (line == "}" or (first == n and line.endswith(" }"))):
            ranges[name] = range(first, n + 1)
            name = None
        elif line == "};":
            name = None
    return ranges


def without(lines, section):
    """Without the functions that nobody outside drives, or only those that read the input, where a section names them."""
    names, only = set(section.get("not", "").split()), set(section.get("only", "").split())
    result = {}
    for path in section["files"].split():
        skipped = {n for name, r in functions_of(path).items() if name in names or (only and name not in only) for n in r}
        result[path] = {n: hit for n, hit in lines.get(path, {}).items() if n not in skipped}
    return result


def build(sections):
    PROFILES.mkdir(parents=True, exist_ok=True)
    if all(":" in t for t in listed(sections, "targets")):
        return [], []
    if not (BUILD / "build.ninja").exists():
        command("meson", "setup", BUILD, *FLAGS, env={**os.environ, "CC": "clang"}, stdout=subprocess.DEVNULL)
    targets = [BUILD / f"tests/fuzz/fuzz_{t}" for t in listed(sections, "targets") if ":" not in t]
    tests = [BUILD / f"dataplane/{t}_test" for t in listed(sections, "tests")]
    command("ninja", "-C", BUILD, *(p.relative_to(BUILD) for p in targets + tests), stdout=subprocess.DEVNULL)
    return targets, tests


def measure(sections):
    """Lines by the corpora, and by corpora and tests."""
    targets, tests = build(sections)
    profiles = []
    for kind, programs in (("corpus", targets), ("test", tests)):
        for p in programs:
            profile = PROFILES / f"{p.name}.profraw"
            arguments = ["-runs=0", fuzz.CORPUS / p.name.removeprefix("fuzz_")] if kind == "corpus" else []
            if run_program(p, profile, *arguments):
                profiles.append((kind, profile))
    go = [t for t in listed(sections, "targets") if ":" in t]
    files = listed(sections, "files")
    go_files = [f for f in files if f.endswith(".go")]
    by_corpus = c_lines(targets, [p for kind, p in profiles if kind == "corpus"])
    by_all = c_lines(targets + tests, [p for _, p in profiles])
    by_corpus.update(go_lines(go, go_files, False))
    by_all.update(go_lines(go, go_files, True))
    return by_corpus, by_all


def share(lines):
    hits = [hit for file in lines.values() for hit in file.values()]
    return sum(hits), len(hits)


def percent(lines):
    reached, count = share(lines)
    return f"{100 * reached / count:.1f}" if count else "-"


def print_lines(path, lines):
    text = (ROOT / path).read_text().splitlines()
    for n in sorted(n for n, hit in lines.items() if not hit):
        if text[n - 1].strip() not in ("}", ""):
            print(f"    {n:5} {text[n - 1].expandtabs(4)}")


def merged(new, old):
    """The rows of all parsers, in the order of parsers.ini; those that were not measured now stay as they were."""
    rows = {row.split(" | ")[0]: row for row in old + new}
    names = [f"| {s.name}" for s in parsers([])]
    return [rows[name] for name in names if name in rows]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lines", action="store_true")
    arguments.add_argument("--record", action="store_true")
    arguments.add_argument("words", nargs="*")
    args = arguments.parse_args()
    sections = parsers(args.words)
    by_corpus, by_all = measure(sections)
    rows = ["| parser | targets | files | lines | by corpora, % | least of a file | with unit tests, % |", "|---|---|---|---|---|---|---|"]
    for s in sections:
        corpus, everything = without(by_corpus, s), without(by_all, s)
        print(f"{s.name}: {percent(corpus)} % by corpora, {percent(everything)} % with unit tests")
        for path in corpus:
            print(f"  {percent({path: corpus[path]}):>5} {percent({path: everything[path]}):>5}  {share({path: corpus[path]})[1]:4}  {path}")
            if args.lines:
                print_lines(path, corpus[path])
        least = min((percent({path: lines}) for path, lines in corpus.items() if lines), key=float)
        rows.append(f"| {s.name} | {', '.join(f'`{t}`' for t in s['targets'].split())} | {len(corpus)} | {share(corpus)[1]} | {percent(corpus)} | {least} | "
                    f"{percent(everything)} |")
    if args.record:
        fuzz.write_table("make fuzz-coverage", rows[:2] + merged(rows[2:], fuzz.read_table("make fuzz-coverage")[2:]))


if __name__ == "__main__":
    sys.exit(main())
