#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command with free hugepages, then puts the host back as it was: with-hugepages.sh MEGABYTES -- COMMAND...
#
# Several may run at once: the first records what the host had, the last to end restores it. One that was killed with
# SIGKILL is noticed by the next. When the kernel cannot give the pages, the command runs all the same: corelaned works
# without them and says what that costs.
set -eu
[ $# -ge 3 ] && [ "$2" = -- ] || { echo "usage: $0 MEGABYTES -- COMMAND..." >&2; exit 2; }
megabytes=$1
shift 2

state=/run/corelane-hugepages
pool=/proc/sys/vm/nr_hugepages
mount_point=/dev/hugepages

meminfo() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" /proc/meminfo; }

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
  local pages free
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
    echo $(($(cat "$pool") + pages - free)) >"$pool" || true
    echo "==> hugepages: $free free before, $(meminfo HugePages_Free) free now, $pages wanted (given back at the end)"
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
