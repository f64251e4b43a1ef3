#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the linters over what git tracks; each prints only what is wrong. With --slow only those that take minutes in a new
# checkout: they remember what they have looked at.
set -u
cd "$(dirname "$0")/.." || exit
failed=()
mapfile -t c_files < <(git ls-files '*.c' '*.h')
mapfile -t go_files < <(git ls-files '*.go')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
mapfile -t text_files < <(git ls-files ':!LICENSE' ':!go.sum' ':!*.pcap' ':!tests/fuzz/corpus' ':!tests/fixtures')
mapfile -t python_files < <(git ls-files '*.py')

check() { # NAME COMMAND...
  local name=$1
  shift
  echo "==> lint: $name (after $SECONDS s)"
  "$@" || failed+=("$name")
}

c_formatted() {
  local wrong
  wrong=$(clang-format --dry-run "${c_files[@]}" 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning.*/\1/p' | sort | uniq -c)
  [ -z "$wrong" ] || { echo "places that 'make format' changes:" && echo "$wrong" && return 1; }
}

gofmt_clean() {
  local wrong
  wrong=$("$(tools/go.sh env GOROOT)/bin/gofmt" -l "${go_files[@]}")
  [ -z "$wrong" ] || { echo "$wrong" && return 1; }
}

# warning_level and werror of the compiler find most; cppcheck looks across branches. It looks again at files whose content
# has changed since it was last run on this machine, in whichever checkout.
run_cppcheck() {
  local sources status=0 cache=${XDG_CACHE_HOME:-$HOME/.cache}/corelane
  mapfile -t sources < <(git ls-files '*.c' ':!internal/explain/kernel/bpf') # eBPF has macros of its own
  mkdir -p build "$cache"
  [ -e build/cppcheck ] || flock "$cache/lock" cp -r "$cache/cppcheck" build/ 2>/dev/null || mkdir build/cppcheck
  # macros without which cppcheck reads declarations and texts as nonsense
  printf '#include "/usr/include/%s"\n#define RTE_STR(x) #x\n' "$(gcc -dumpmachine)/sys/queue.h" >build/cppcheck/macros.h
  cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c17 --language=c --cppcheck-build-dir=build/cppcheck -j "$(nproc)" \
    --enable=warning,performance,portability --suppressions-list=.cppcheck-suppressions --library=posix --include=build/cppcheck/macros.h -Idataplane \
    "${sources[@]}" || status=1
  flock "$cache/lock" cp -rT build/cppcheck "$cache/cppcheck"
  return $status
}

spdx_present() {
  local f wrong=0
  for f in "${c_files[@]}" "${go_files[@]}" "${scripts[@]}" "${python_files[@]}"; do
    [ -s "$f" ] || continue
    head -3 "$f" | grep -qE 'SPDX-License-Identifier: Apache-2.0|Code generated' || grep -q 'Code generated .* DO NOT EDIT' "$f" ||
      { echo "$f: no SPDX-License-Identifier" && wrong=1; }
  done
  return $wrong
}

check cppcheck run_cppcheck
check "clang's static analyzer (the first run takes minutes, later ones look at what changed)" tools/analyze.py
[ "${1:-}" != --slow ] || exit ${#failed[@]}
check clang-format c_formatted
check gofmt gofmt_clean
check "lines of at most 120 columns" tools/columns.py "${c_files[@]}" "${go_files[@]}"
check "go vet" tools/go.sh vet ./...
check "staticcheck (its first run compiles it)" tools/go.sh tool staticcheck ./...
check codespell codespell "${text_files[@]}" # reads .codespellrc
check shellcheck shellcheck -x "${scripts[@]}"
[ ${#python_files[@]} = 0 ] || check pyflakes pyflakes3 "${python_files[@]}"
check "SPDX lines" spdx_present
check "dependencies of modules" tools/layers.py
check "arrays of nodes" tools/nodes.py
check "names of static functions" tools/layers.py names
check "hooks with room for one callback" tools/layers.py hooks
check "pointers that are published too late" tools/layers.py publish
check "links of pages" tools/links.py .
check "limits on time in tests" tools/timed.py
check "rows of fuzz targets" tools/fuzz.py check

if [ ${#failed[@]} != 0 ]; then
  echo "lint failed: ${failed[*]}" >&2
  exit 1
fi
echo "==> lint: clean"
