#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Instructions per packet of each node, counted by callgrind, against tests/perf/instructions.txt.
# usage: instructions.sh [--store]     fails when a node needs over 10 % more instructions; --store writes the new baseline
#
# The counts depend on the compiler, not on the machine: with another compiler than the baseline's they are shown, not compared.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench=${NODE_BENCH:-build/tests/perf/node_bench}
baseline=tests/perf/instructions.txt
compiler=$(cc --version | head -1)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

command -v valgrind >/dev/null || { echo "valgrind is missing. Run: sudo make deps-test" >&2 && exit 2; }
nodes=$(sed -n 's/^\t{"\([a-z0-9_]*\)", .*/\1/p' tests/perf/node_bench.c)
echo "==> instructions: $(wc -w <<<"$nodes") nodes under callgrind"

# A measured function that is called within another one would end the counting, so loops run apart from their nodes.
count() { # OUT NAME...
  local out=$1
  shift
  valgrind --tool=callgrind --quiet --callgrind-out-file="$tmp/$out" "${@/#/--toggle-collect=}" "$bench" "$@" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log" && exit 1; }
}
mapfile -t loops < <(grep -o '\bloop_[a-z]*' <<<"$nodes")
mapfile -t others < <(tr ' ' '\n' <<<"$nodes" | grep -v '^loop_')
count out.nodes "${others[@]}"
count out.loops "${loops[@]}"

# Each dump says what triggered it, "NODE BATCH", and how many instructions it holds.
awk 'FNR == 1 { name = batch = "" } /^desc: Trigger: Client Request: / { name = $5; batch = $6 } /^(summary|totals):/ { count[name " " batch] = $2 }
  END { for (k in count) if (k != " ") { split(k, f, " "); if (f[2]) printf "%s %d %.1f\n", f[1], f[2], count[k] / f[2] } }' "$tmp"/out* |
  sort -k1,1 -k2,2n >"$tmp/counts"
[ "$(wc -l <"$tmp/counts")" = $(($(wc -w <<<"$nodes") * 4)) ] || { echo "callgrind did not count all nodes:" && cat "$tmp/counts" && exit 1; }

if [ "${1:-}" = --store ]; then
  { echo "# instructions per packet: node, batch, count; written by tests/perf/instructions.sh --store"
    echo "# compiler: $compiler"
    cat "$tmp/counts"; } >"$baseline"
  echo "==> instructions: $baseline written"
  exit
fi
same=yes
grep -qxF "# compiler: $compiler" "$baseline" || same=
[ -n "$same" ] || echo "==> instructions: the baseline is of another compiler ($(sed -n 's/^# compiler: //p' "$baseline")): shown, not compared"
awk -v same="$same" 'NR == FNR { if ($1 != "#") was[$1 " " $2] = $3; next }
  FNR == 1 { printf "%-18s %5s %12s %9s\n", "node", "batch", "instructions", "baseline" }
  { k = $1 " " $2; w = was[k]; note = ""
    if (w == "") note = "new: store it with --store"
    else if ($3 > w * 1.1) { note = "LONGER"; if (same) bad++ }
    else if ($3 < w * 0.9) note = "shorter: store it with --store"
    printf "%-18s %5d %12.1f %9s %s\n", $1, $2, $3, w, note }
  END { if (bad) { printf "%d counts are more than 10 %% above the baseline\n", bad; exit 1 } }' "$baseline" "$tmp/counts"
