#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The intruder lab, in short: a run with a thread that takes the worker's CPU is interrupted, which must leave nothing behind. With
# CORELANE_MEASURE=1, explain must first find such a thread and name it, and find nothing where nothing is wrong: that judges what the
# machine did meanwhile, which others disturb. It asserts ranks, not rates.
# Usage: intrude_test.sh   (CORELANE names another program than bin/corelane; corelaned and corelane-gen are beside it)
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
command=${CORELANE:-$root/bin/corelane}
dir=$(mktemp -d /tmp/intrude.XXXXXX)
pid=
finish() {
	code=$?
	[ $code = 0 ] || sed 's/^/  /' "$dir"/* 2>/dev/null
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT

[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }
[ "$(nproc --all)" -ge 2 ] || { echo "SKIP: needs two CPUs"; exit 77; }
taskset -c 0,1 true 2>/dev/null || { echo "SKIP: CPUs 0 and 1 may not be used here"; exit 77; }

ours() { find /tmp -maxdepth 1 -name "corelane-intrude-*" | sort; }
before=$(ours)

# A busy machine may disturb a run, too, so one of three must be right.
found() { # CASE
	for try in 1 2 3; do
		if taskset -c 0,1 "$command" lab intrude matrix --case "$1" --runs 1 --window 3s --ranks >"$dir/$1-$try" 2>&1; then
			echo "ok: $1, at try $try"
			return 0
		fi
		grep -q 'runs failed' "$dir/$1-$try" || break # it is no question of ranks
	done
	echo "FAIL: $1"
	return 1
}
if [ "${CORELANE_MEASURE-}" = 1 ]; then
	found hog
	found nothing
fi

# Is true when a run was interrupted while its hog was there; false when it came to its end before.
interrupted() {
	local deadline=$((SECONDS + 120)) code=0
	taskset -c 0,1 "$command" lab intrude matrix --case hog --runs 1 --window 10s >"$dir/interrupted" 2>&1 &
	pid=$!
	hog=
	until [ -n "$hog" ] || [ -z "$(jobs -rp)" ]; do
		[ $SECONDS -lt $deadline ] || { echo "FAIL: no hog is there to interrupt"; exit 1; }
		sleep 0.1
		hog=$(grep -lx cl-hog /proc/[0-9]*/comm 2>/dev/null | head -n 1) || true
	done
	kill -INT $pid 2>/dev/null || true
	wait $pid || code=$?
	pid=
	[ -n "$hog" ] && [ $code != 0 ] && ! grep -q 'runs failed' "$dir/interrupted"
}
deadline=$((SECONDS + 120))
until interrupted; do
	[ $SECONDS -lt $deadline ] || { echo "FAIL: an interrupted run ends as any other"; exit 1; }
done
[ ! -e "$hog" ] || { echo "FAIL: ${hog%/comm} outlives its lab"; exit 1; }
[ "$(ours)" = "$before" ] || { echo "FAIL: left behind: $(ours)"; exit 1; }
echo "ok: interrupted, and nothing is left"
