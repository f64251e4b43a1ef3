#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command with free hugepages, then puts the host back as it was: with-hugepages.sh MEGABYTES -- COMMAND...
#
# Several may run at once: the first records what the host had, the last to end restores it. One that was killed with
# SIGKILL is noticed by the next, which also removes what tests have left that were killed (tools/left_over.py). When the
# kernel cannot give the pages, the command runs all the same: corelaned works without them and says what that costs.
set -eu
[ $# -ge 3 ] && [ "$2" = -- ] || { echo "usage: $0 MEGABYTES -- COMMAND..." >&2; exit 2; }
megabytes=$1
shift 2

vm=${CORELANE_VM:-/proc/sys/vm} # CORELANE_VM, CORELANE_MEMINFO and CORELANE_HUGEPAGES are other ones in the test of this script
memory=${CORELANE_MEMINFO:-/proc/meminfo}
state=${CORELANE_HUGEPAGES:-/run/corelane-hugepages}
pool=$vm/nr_hugepages
mount_point=/dev/hugepages

meminfo() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$memory"; }

locked() { # runs a function while no other instance changes the pool
  exec 9>/run/lock/corelane-hugepages
  flock 9
  "$@"
  exec 9>&-
}

others_alive() {
  local user pid alive=1
  for user in "$state"/user.*; do
    pid=${user##*.}
    [ -e "$user" ] && [ "$pid" != $$ ] || continue
    if [ -d "/proc/$pid" ]; then alive=0; else rm -f "$user"; fi
  done
  return "$alive"
}

acquire() {
  local pages free now
  mkdir -p "$state"
  if ! others_alive && [ -e "$state/pages" ]; then
    restore # left by an instance that was killed
  fi
  mkdir -p "$state"
  [ -e "$state/pages" ] || cat "$pool" >"$state/pages"
  touch "$state/user.$$"
  pages=$(((megabytes * 1024 + $(meminfo Hugepagesize) - 1) / $(meminfo Hugepagesize)))
  free=$(meminfo HugePages_Free)
  if [ "$free" -lt "$pages" ]; then
    # A hugepage is contiguous memory, of which there may be none after hours of work, although most memory is free.
    echo 1 >"$vm/compact_memory" || true
    echo $(($(cat "$pool") + pages - free)) >"$pool" || true
    now=$(meminfo HugePages_Free)
    echo "==> hugepages: $free free before, $now free now, $pages wanted (given back at the end)"
    [ "$now" -ge "$pages" ] ||
      echo "==> hugepages: the kernel has no more: $(($(meminfo MemAvailable) / 1024)) MB are available, not all of it contiguous"
  fi
  if ! grep -q '^[^ ]* [^ ]* hugetlbfs ' /proc/mounts; then
    mkdir -p "$mount_point"
    mount -t hugetlbfs hugetlbfs "$mount_point" && touch "$state/mounted"
  fi
}

restore() {
  cat "$state/pages" >"$pool"
  [ ! -e "$state/mounted" ] || umount "$mount_point" || true
  rm -rf "$state"
}

release() {
  rm -f "$state/user.$$"
  others_alive || restore
}

[ -w "$pool" ] || { echo "==> hugepages: $pool is not writable; going on without" >&2; exec "$@"; }
"$(dirname "$0")/left_over.py" --clean || true
trap 'locked release' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
locked acquire

# In the background, so that the traps above run at once; with the terminal's input and signals as in the foreground.
(trap - INT && exec "$@") <&0 &
child=$!
forward() { kill -s "$1" "$child" 2>/dev/null || true; }
trap : INT # a terminal's Ctrl-C reaches the command by itself
trap 'forward TERM' TERM
trap 'forward HUP' HUP
status=0
while true; do
  wait "$child" && status=0 || status=$?
  [ -d "/proc/$child" ] || break
done
exit $status
