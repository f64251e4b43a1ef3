#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Our memif against DPDK's net_memif (dpdk-testpmd) in another process: both roles, several queues, chained frames,
# secrets, a peer that is killed. Usage: memif_interop_test.sh [MEMIF_ECHO]   (the program built from memif_echo.c)
set -eu

echo_program=${1:-$(dirname "$0")/../../build/tests/system/memif_echo}
dir=$(mktemp -d /tmp/memif_interop.XXXXXX)
socket=$dir/memif.sock
pids=()
mkfifo "$dir/input" # testpmd ends when its input does
exec 9<>"$dir/input"
trap 'kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

if ! command -v dpdk-testpmd >/dev/null; then
	echo "SKIP: dpdk-testpmd is not installed"
	exit 77
fi

fail() {
	echo "FAIL: $case: $*"
	sed 's/^/  ours: /' "$dir/echo"
	tail -n 20 "$dir/testpmd" | sed 's/^/  dpdk: /'
	exit 1
}

# testpmd VDEV_ARGS TESTPMD_ARGS..: the other end of the socket, in the background, until it gets a signal.
testpmd() {
	local vdev=$1
	shift
	dpdk-testpmd --lcores '0@0,1@0' --no-huge -m 256 --no-pci --no-telemetry --no-shconf \
		--vdev="net_memif0,id=0,socket=$socket,socket-abstract=no,$vdev" \
		-- --total-num-mbufs=8192 --port-topology=loop --auto-start "$@" <&9 >"$dir/testpmd" 2>&1 &
	testpmd_pid=$!
	pids+=("$testpmd_pid")
}

ours() { # FRAMES ROLE QUEUES [SECRET]
	rm -f "$dir/echo"
	"$echo_program" "$2" "$socket" "$3" "$1" "${4-}" >"$dir/echo" 2>&1 &
	echo_pid=$!
	pids+=("$echo_pid")
}

wait_for() { # PATTERN FILE [COUNT]
	local i n
	for ((i = 0; i < 600; i++)); do
		n=$(grep -c "$1" "$2" 2>/dev/null) || true
		[ "${n:-0}" -lt "${3-1}" ] || return 0
		kill -0 "$echo_pid" 2>/dev/null || fail "our side ended"
		sleep 0.1
	done
	fail "no '$1' within 60 s"
}

wait_socket() {
	local i
	for ((i = 0; i < 600; i++)); do
		[ -S "$socket" ] && return
		sleep 0.1
	done
	fail "no socket within 60 s"
}

# testpmd ends first, with its counters: a net_memif server may crash when its peer goes.
end_both() {
	kill -INT "$testpmd_pid"
	wait "$testpmd_pid" || [ $? = 130 ] || fail "testpmd ended with an error" # 130: by the signal
	wait_for "^down" "$dir/echo"
	kill -TERM "$echo_pid"
	wait "$echo_pid" || fail "our side ended with an error"
}

kill_quietly() { # PID
	kill -9 "$1"
	wait "$1" 2>/dev/null || true
}

ours_count() { grep -o "$1 [0-9]*" "$dir/echo" | tail -n 1 | cut -d' ' -f2; }
dpdk_count() { awk -v name="$1-packets:" '$1 == name { n = $2 } END { print n + 0 }' "$dir/testpmd"; }

# Ends both sides when each ring has carried enough frames. Every frame is accounted for, except those that the rings held
# when the connection ended.
check() { # RINGS LONGEST
	local rest
	wait_for "^reached" "$dir/echo"
	end_both
	for rest in $(($(dpdk_count TX) - $(ours_count received))) $(($(ours_count sent) - $(dpdk_count RX))); do
		[ "$rest" -ge 0 ] && [ "$rest" -le $((1024 * $1)) ] || fail "$rest frames are missing"
	done
	[ "$(ours_count bad)" = 0 ] || fail "$(ours_count bad) damaged frames"
	[ "$(ours_count longest)" = "$2" ] || fail "longest frame has $(ours_count longest) bytes, not $2"
	echo "PASS: $case: $(tail -n 1 "$dir/echo")"
}

serve() { # FRAMES QUEUES TESTPMD_ARGS..
	local queues=$2
	rm -f "$socket"
	ours "$1" server "$queues"
	wait_socket
	shift 2
	testpmd role=client --rxq="$queues" --txq="$queues" "$@"
}

case="DPDK client, flood"
serve 1000 1 --forward-mode=flowgen
check 1 60

case="DPDK client, four queues"
serve 1000 4 --forward-mode=flowgen
check 4 60
[ "$(grep -c '^queue . received' "$dir/echo")" = 4 ] || fail "not all queues carried frames"

# testpmd keeps only a few frames in flight: its net_memif overruns the ring when a chain reaches the last free slots.
case="DPDK client, chained frames of 4500 bytes"
serve 100 1 --forward-mode=io --tx-first --txpkts=1500,1500,1500
check 1 4500

case="DPDK server, flood"
rm -f "$socket"
testpmd role=server --forward-mode=flowgen
wait_socket
ours 1000 client 1
check 1 60

case="DPDK server, four queues, chained frames"
rm -f "$socket"
testpmd role=server --forward-mode=io --tx-first --txpkts=1500,1500,1500 --rxq=4 --txq=4
wait_socket
ours 1 client 4
wait_for "^reached" "$dir/echo"
end_both
[ "$(grep -c "^up 4 rx rings, 4 tx rings" "$dir/echo")" = 1 ] || fail "no connection with four queues"
echo "PASS: $case: $(grep ^up "$dir/echo")"

case="secret"
rm -f "$socket"
ours 1 server 1 sesame
wait_socket
testpmd role=client,secret=wrong
wait_for "failed id 0: wrong secret" "$dir/echo"
kill_quietly "$testpmd_pid"
testpmd role=client,secret=sesame
wait_for "^up" "$dir/echo"
kill_quietly "$testpmd_pid"
kill_quietly "$echo_pid"
echo "PASS: $case"

case="DPDK client killed under load five times"
rm -f "$socket"
ours 1000 server 2
wait_socket
for i in 1 2 3 4 5; do
	testpmd role=client --rxq=2 --txq=2 --forward-mode=flowgen
	wait_for "^reached" "$dir/echo" "$i"
	kill_quietly "$testpmd_pid"
	wait_for "^down peer closed the connection" "$dir/echo" "$i"
done
kill -TERM "$echo_pid"
wait "$echo_pid" || fail "our side ended with an error"
[ "$(grep -c ^down "$dir/echo")" = 5 ] || fail "$(grep -c ^down "$dir/echo") disconnections"
[ "$(ours_count bad)" = 0 ] || fail "$(ours_count bad) damaged frames"
echo "PASS: $case: $(tail -n 1 "$dir/echo")"
