# SPDX-License-Identifier: Apache-2.0
"""docs/packet-path.* is drawn from the graph of a running corelaned, and is current.

`make graph` makes it anew; it runs this file as a program.
"""
import html
import os
import re
import subprocess
import sys

from daemon import ROOT, Daemon

DOT = os.path.join(ROOT, "docs", "packet-path.dot")
SVG = os.path.join(ROOT, "docs", "packet-path.svg")


def graph_of(daemon):
    return subprocess.run([daemon.cli_path, "--socket", daemon.socket, "graph", "--dot", "--fold"], check=True,
                          capture_output=True, text=True, timeout=60).stdout


def edges_of_dot(text):
    return set(re.findall(r'"([^"]+)" -> "([^"]+)"', text))


def edges_of_svg(text):
    titles = (html.unescape(t) for t in re.findall(r"<title>([^<]*)</title>", text))
    return {tuple(t.split("->")) for t in titles if "->" in t}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_picture_is_current(router):
    drawn, real = edges_of_dot(read(DOT)), edges_of_dot(graph_of(router.daemon))
    assert real, "the graph has no edges"
    assert drawn == real, "docs/packet-path.dot is old: run 'sudo make graph'"
    assert edges_of_svg(read(SVG)) == real, "docs/packet-path.svg is old: run 'sudo make graph'"


def draw():
    daemon = Daemon()
    try:
        text = graph_of(daemon)
    finally:
        daemon.stop()
    with open(DOT, "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["dot", "-Tsvg", "-o", SVG, DOT], check=True)


if __name__ == "__main__":
    sys.exit(draw())
