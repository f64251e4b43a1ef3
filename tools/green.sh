#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The last whole test run on this machine that was green.
#   green.sh changed   prints the files that changed since then, a line each
#   green.sh note      a run of what is checked out has just been green; files that are not committed are no part of it
# Without such a run, or where the sources are no git clone, nothing is printed or noted.
set -u
green=${XDG_STATE_HOME:-$HOME/.local/state}/corelane/green

git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || exit 0
case ${1:-} in
  changed)
    [ -e "$green" ] || exit 0
    git rev-parse --verify --quiet "$(<"$green")^{commit}" >/dev/null || exit 0
    git diff --name-only "$(<"$green")" -- && git ls-files --others --exclude-standard
    ;;
  note)
    [ -z "$(git status --porcelain)" ] || exit 0
    mkdir -p "$(dirname "$green")"
    git rev-parse HEAD >"$green"
    ;;
  *)
    echo "green.sh: ${1:-nothing}: valid are changed, note" >&2
    exit 2
    ;;
esac
