#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses limits on time in the tests of `make test`: their verdict depends on the code alone, and not on the machine.

timed.py        looks at the tests that git tracks

It finds an assertion that a time is short, and a wait that gives up within less than 10 s. Tests that are marked `measure`
may have both. A comment `timed: REASON` on the line, or above it, says why something that looks so is none.
"""
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEAST = 10  # seconds that a wait takes before it gives up
NOT_RUN = ("tests/perf/", "tests/fuzz/", "tests/system/soak.py")  # by `make test`
DURATION = re.compile(r"(^|_)(elapsed|took|latency|outage|duration)$|_(ms|us|ns)$")
EXPLAINED = re.compile(r"(#|//) timed: \w")


class Python(ast.NodeVisitor):
    """Findings of a Python file: line and what is wrong with it."""
    def __init__(self, tree):
        self.found = []
        self.constants, self.deadlines, self.durations = {}, {}, set()
        self.visit(tree)

    def number(self, node):
        """What a constant expression is, None if it is no constant of this file."""
        if isinstance(node, ast.Name):
            return self.constants.get(node.id)
        try:
            return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}, dict(self.constants))  # pylint: disable=eval-used
        except Exception:  # pylint: disable=broad-exception-caught
            return None

    def visit_Assign(self, node):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts)
            for name, value in pairs:
                if isinstance(name, ast.Name):
                    self.assign(name.id, value)
        self.generic_visit(node)

    def assign(self, name, value):
        number = self.number(value)
        if isinstance(number, (int, float)):
            self.constants[name] = number
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and is_clock(value.left):
            self.deadlines[name] = self.number(value.right)
        elif is_duration(value, self.durations):
            self.durations.add(name)

    def visit_FunctionDef(self, node):
        if any("measure" in ast.unparse(d) for d in node.decorator_list):
            return
        before = dict(self.constants), dict(self.deadlines), set(self.durations)
        names = [a.arg for a in node.args.args]
        for name, default in zip(names[len(names) - len(node.args.defaults):], node.args.defaults):
            self.assign(name, default)
            if name in ("timeout", "patience"):
                self.patience(node, self.number(default))
        self.generic_visit(node)
        self.constants, self.deadlines, self.durations = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assert(self, node):
        for compare in [n for n in ast.walk(node.test) if isinstance(n, ast.Compare)]:
            terms = [compare.left, *compare.comparators]
            for left, op, right in zip(terms, compare.ops, terms[1:]):
                if isinstance(op, (ast.Gt, ast.GtE)):
                    left, right = right, left
                elif not isinstance(op, (ast.Lt, ast.LtE)):
                    continue
                if is_clock(left) and isinstance(right, ast.Name):
                    self.patience(node, self.deadlines.get(right.id))
                elif is_duration(left, self.durations) and not is_duration(right, self.durations) and not any(map(is_clock, ast.walk(right))):
                    self.found.append((node.lineno, f"a limit on a time: {ast.unparse(compare)}"))
        self.generic_visit(node)

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in ("settimeout", "wait", "join") and len(node.args) == 1:
            self.patience(node, self.number(node.args[0]))
        for keyword in node.keywords:
            if keyword.arg in ("timeout", "patience"):
                self.patience(node, self.number(keyword.value))
        self.generic_visit(node)

    def patience(self, node, seconds):
        if isinstance(seconds, (int, float)) and 0 < seconds < LEAST:
            self.found.append((node.lineno, f"a patience of {seconds:g} s"))


def is_clock(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.time", "time.monotonic", "time.perf_counter", "monotonic", "perf_counter")


def is_duration(node, names):
    """Is a time in this expression that somebody has measured?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):  # what is left of a limit is none
        return any(map(is_clock, ast.walk(node.left))) or is_duration(node.left, names)
    word = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        word = str(node.slice.value)
    if word in names or DURATION.search(word):
        return True
    parts = [] if isinstance(node, ast.Compare) else ast.iter_child_nodes(node)  # how often something was so is a count
    return any(is_duration(n, names) for n in parts)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


C_MEASURED = re.compile(r"rte_rdtsc(_precise)?\(\) *- |\belapsed\b")
C_NAMED = re.compile(r"\b(\w*(_ms|_us|_ns|_cycles|seconds)|took|latency|outage)\b(?! *\()")
C_STEPPED = re.compile(r"\bclock_(stopped|now)\b|\w+_clock\b")  # the tests of these files set the clock
C_DEADLINE = re.compile(r"\w+ = (?:rte_rdtsc|rte_get_tsc_cycles)\(\) \+ ([^;,]+)[;,]")
C_NAPS = re.compile(r"for \([^;]*; *\w+ < (\d+) && [^;]*;[^;{]*\)\s*\{?\s*(?:[^;{}]*;\s*)??usleep\((\d+)\)")


def closing(text, at):
    """The end of the parenthesis that begins at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def c_limits(text):
    named = not C_STEPPED.search(text)

    def is_time(expression):
        return C_MEASURED.search(expression) or (named and C_NAMED.search(expression))

    for call in re.finditer(r"\b(assert_true|assert_in_range|TEST_ASSERT\w*|check)\(", text):
        inside = text[call.end():closing(text, call.end() - 1)].replace("->", ".").replace("<<", "").replace(">>", "")
        if call.group(1) == "assert_in_range":
            value, _, most = (inside.split(",", 2) + ["", ""])[:3]
            pairs = [(value, most)]
        else:
            pairs = []
            for term in re.split(r"&&|\|\|", inside):
                sides = re.fullmatch(r"([^<>]*)([<>])=?([^<>]*)", term, re.DOTALL)
                if sides:
                    pairs.append(sides.group(1, 3) if sides.group(2) == "<" else sides.group(3, 1))
        for small, big in pairs:
            if is_time(small) and not is_time(big):
                yield line_of(text, call.start()), f"a limit on a time: {' '.join(small.split())} < {' '.join(big.split())}"


def c_patience(text):
    defines = dict(re.findall(r"^#define (\w+) (\d+)", text, re.MULTILINE))
    for found in C_DEADLINE.finditer(text):
        sum_ = re.sub(r"\b[A-Z_]+\b", lambda m: defines.get(m.group(), m.group()), found.group(1).replace("rte_get_tsc_hz()", "1.0"))
        if re.fullmatch(r"[\d.\s*/+()]+", sum_) and eval(sum_) < LEAST:  # pylint: disable=eval-used
            yield line_of(text, found.start()), f"a patience of {eval(sum_):g} s"  # pylint: disable=eval-used
    for found in C_NAPS.finditer(text):
        seconds = int(found.group(1)) * int(found.group(2)) / 1e6
        if seconds < LEAST:
            yield line_of(text, found.start()), f"a patience of {seconds:g} s"


def c_findings(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: "\n" * m.group().count("\n"), text, flags=re.DOTALL)
    return [*c_limits(text), *c_patience(text)]


GO_UNITS = {"Second": 1, "Millisecond": 1e-3, "Microsecond": 1e-6, "Minute": 60, "Hour": 3600}
GO_WAIT = re.compile(r"(?:time\.After\(|WithTimeout(?:Cause)?\([^,\n]*, |time\.Now\(\)\.Add\()(?:(\d+) ?\* ?)?time\.(Second|Millisecond|Microsecond)[,)]")
GO_SINCE = r"time\.Since\([^()\n]*\)"


def go_findings(text):
    if re.search(r"^//go:build .*\bmeasure\b", text, re.MULTILINE):
        return
    for function in re.finditer(r"^func .*?^}", text, re.MULTILINE | re.DOTALL):
        body = function.group()
        times = "|".join([GO_SINCE, *(rf"\b{n}\b" for n in re.findall(rf"\b(\w+) :?= (?:{GO_SINCE}|[\w.]+\.Sub\()", body))])
        limit = rf"((?:{times}) >=? [^{{\n]+|[^{{\n;&|]+ <=? (?:{times})[^{{\n]*)"
        failing = r"\{[^\n]*\n(?:(?!\s*\})[^\n]*\n){0,3}?[^\n]*\bt\.(?:Fatal|Error)"
        for found in re.finditer(rf"^\s*if (?:[^{{\n]*\W)?{limit}{failing}", body, re.MULTILINE):
            yield line_of(text, function.start() + found.start(1)), f"a limit on a time: {found.group(1).strip()}"
    for found in GO_WAIT.finditer(text):
        seconds = int(found.group(1) or 1) * GO_UNITS[found.group(2)]
        if seconds < LEAST:
            yield line_of(text, found.start()), f"a patience of {seconds:g} s"


def findings(path, text):
    """Line and text of each finding that no comment explains."""
    if path.endswith(".py"):
        found = Python(ast.parse(text)).found
    else:
        found = c_findings(text) if path.endswith(".c") else go_findings(text)
    lines = ["", *text.split("\n")]
    return [(n, what) for n, what in sorted(set(found)) if not EXPLAINED.search(lines[n]) and not EXPLAINED.search(lines[n - 1])]


def measured_c():
    """The C files of the meson suite `measure`."""
    for path in [*ROOT.glob("*/meson.build"), *ROOT.glob("*/*/meson.build")]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if "'suite': 'measure'" in line:
                yield from (str(path.parent.relative_to(ROOT) / name) for name in re.findall(r"'(\w+\.c)'", line))


def tests():
    tracked = subprocess.run(["git", "ls-files", "tests/*.py", "*_test.c", "*_test.go", "dataplane/testing/*"], cwd=ROOT, capture_output=True,
                             text=True, check=True).stdout.split()
    apart = set(measured_c())
    return [p for p in tracked if p.endswith((".py", ".c", ".go")) and not p.startswith(NOT_RUN) and p not in apart]


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    wrong = [f"{path}:{line}: {what}" for path in tests() for line, what in findings(path, (ROOT / path).read_text(encoding="utf-8"))]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
