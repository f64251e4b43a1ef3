#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests N times, and names each one that was not green each time: flaky.sh N [PART...]
#
# Each second run has another build beside it, at normal priority, as on the laptop of somebody who works meanwhile. What the
# runs said is in build/flaky/. Needs root. FLAKY_SUITE is another command to run instead of the tests, FLAKY_RESULTS
# the directory in which it leaves its reports, and FLAKY_BESIDE another command than the build.
set -u
cd "$(dirname "$0")/.." || exit
[[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || { echo "usage: $0 N [PART...]" >&2; exit 2; }
runs=$1
shift
results=${FLAKY_RESULTS:-$PWD/build/test-results}
logs=$(dirname "$results")/flaky
folder=$(mktemp -d)
beside=

suite() {
  if [ -n "${FLAKY_SUITE:-}" ]; then
    bash -c "$FLAKY_SUITE"
  else
    tools/with-hugepages.sh "${HUGE_MB:-1024}" -- tools/test.sh "$@"
  fi
}

# Compiles a clone from nothing, again and again.
build_beside() {
  git clone -q . "$folder/clone" || exit
  cd "$folder/clone" || exit
  while true; do
    rm -rf build
    CCACHE_DISABLE=1 meson setup build >/dev/null && CCACHE_DISABLE=1 ninja -C build >/dev/null
    sleep 1
  done
}

begin_beside() {
  set -m # a process group of its own
  if [ -n "${FLAKY_BESIDE:-}" ]; then bash -c "$FLAKY_BESIDE" & else build_beside & fi
  beside=$!
  set +m
}

end_beside() {
  [ -z "$beside" ] || { kill -- "-$beside" && wait "$beside"; } 2>/dev/null
  beside=
  rm -rf "$folder/clone"
}
trap 'end_beside; rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[ -n "${FLAKY_SUITE:-}" ] || tools/build.sh || exit
rm -rf "$logs"
mkdir -p "$logs"
for ((n = 1; n <= runs; n++)); do
  with=alone
  if ((n % 2 == 0)); then
    with=beside
    begin_beside
  fi
  rm -f "$results"/{parts,second-tries} # what an earlier run reported is none of this one's
  SECONDS=0
  suite "$@" >"$logs/$n.log" 2>&1
  status=$?
  end_beside
  echo "==> flaky: run $n of $runs ($with): exit $status after $SECONDS s: $(tail -n 1 "$logs/$n.log")"
  /usr/bin/python3 tools/flaky.py --not-green "$results" "$status" "$n" "$with" >>"$logs/not-green"
done
/usr/bin/python3 tools/flaky.py --count "$logs/not-green" "$runs"
