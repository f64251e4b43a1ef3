#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the links of a folder's pages (*.md) to other files, and to headings of pages, lead somewhere: links.py FOLDER"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def anchors(path):
    """The names of places in a page: those that GitHub gives to headings, and <a id="">."""
    text = FENCED.sub("", open(path, encoding="utf-8").read())
    heads = (re.sub(r"\]\([^)]*\)", "", head) for head in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads} | set(re.findall(r'<a id="([^"]+)">', text))


def broken(folder, page):
    path = os.path.join(folder, page)
    for link in LINK.findall(FENCED.sub("", open(path, encoding="utf-8").read())):
        name, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(to):
            yield f"{page}: link to {link}, which does not exist"
        elif anchor and to.endswith(".md") and anchor not in anchors(to):
            yield f"{page}: link to {link}: {os.path.relpath(to, folder)} has no such place"


def pages(folder):
    if os.path.exists(os.path.join(folder, ".git")):
        out = subprocess.run(["git", "ls-files", "*.md"], cwd=folder, capture_output=True, text=True, check=True).stdout
        return out.split()
    return [os.path.relpath(os.path.join(at, f), folder) for at, _, files in os.walk(folder) for f in files if f.endswith(".md")]


def main():
    wrong = [line for page in sorted(pages(sys.argv[1])) for line in broken(sys.argv[1], page)]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
