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

# testpmd SECONDS VDEV_ARGS TESTPMD_ARGS..: the other end of the socket, in the background. 0 seconds: until it is killed.
testpmd() {
	local limit=(timeout -s INT "$1") vdev=$2
	[ "$1" != 0 ] || limit=()
	shift 2
	"${limit[@]}" dpdk-testpmd --lcores '0@0,1@0' --no-huge -m 256 --no-pci --no-telemetry --no-shconf \
		--vdev="net_memif0,id=0,socket=$socket,socket-abstract=no,$vdev" \
		-- --total-num-mbufs=8192 --port-topology=loop --auto-start "$@" <&9 >"$dir/testpmd" 2>&1 &
	testpmd_pid=$!
	pids+=("$testpmd_pid")
}

ours() { # SECONDS ROLE QUEUES [SECRET]
	"$echo_program" "$2" "$socket" "$3" "$1" "${4-}" >"$dir/echo" 2>&1 &
	echo_pid=$!
	pids+=("$echo_pid")
}

wait_for() { # PATTERN FILE
	local i
	for ((i = 0; i < 100; i++)); do
		grep -q "$1" "$2" 2>/dev/null && return
		sleep 0.1
	done
	fail "no '$1' within 10 s"
}

wait_socket() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ -S "$socket" ] && return
		sleep 0.1
	done
	fail "no socket within 10 s"
}

ours_count() { grep -o "$1 [0-9]*" "$dir/echo" | tail -n 1 | cut -d' ' -f2; }
dpdk_count() { awk -v name="$1-packets:" '$1 == name { n = $2 } END { print n + 0 }' "$dir/testpmd"; }

# Every frame is accounted for, except those that the rings held when the connection ended.
check() { # RINGS LONGEST MINIMUM
	local rest
	wait "$echo_pid" || fail "our side ended with an error"
	wait "$testpmd_pid" || [ $? = 124 ] || fail "testpmd ended with an error" # 124: of timeout
	for rest in $(($(dpdk_count TX) - $(ours_count received))) $(($(ours_count sent) - $(dpdk_count RX))); do
		[ "$rest" -ge 0 ] && [ "$rest" -le $((1024 * $1)) ] || fail "$rest frames are missing"
	done
	[ "$(ours_count bad)" = 0 ] || fail "$(ours_count bad) damaged frames"
	[ "$(ours_count longest)" = "$2" ] || fail "longest frame has $(ours_count longest) bytes, not $2"
	[ "$(ours_count received)" -ge "$3" ] || fail "only $(ours_count received) frames"
	echo "PASS: $case: $(tail -n 1 "$dir/echo")"
}

serve() { # QUEUES TESTPMD_ARGS..
	local queues=$1
	shift
	rm -f "$socket"
	ours 5 server "$queues"
	wait_socket
	testpmd 3 role=client --rxq="$queues" --txq="$queues" "$@"
}

case="DPDK client, flood"
serve 1 --forward-mode=flowgen
check 1 60 1000

case="DPDK client, four queues"
serve 4 --forward-mode=flowgen
check 4 60 1000
[ "$(grep -c '^queue . received' "$dir/echo")" = 4 ] || fail "not all queues carried frames"

# testpmd keeps only a few frames in flight: its net_memif overruns the ring when a chain reaches the last free slots.
case="DPDK client, chained frames of 4500 bytes"
serve 1 --forward-mode=io --tx-first --txpkts=1500,1500,1500
check 1 4500 100

case="DPDK server, flood"
rm -f "$socket"
testpmd 4 role=server --forward-mode=flowgen # ends first: a net_memif server may crash when its peer goes
wait_socket
ours 6 client 1
check 1 60 1000

case="DPDK server, four queues, chained frames"
rm -f "$socket"
testpmd 4 role=server --forward-mode=io --tx-first --txpkts=1500,1500,1500 --rxq=4 --txq=4
wait_socket
ours 6 client 4
wait "$echo_pid" || fail "our side ended with an error"
wait "$testpmd_pid" || [ $? = 124 ] || fail "testpmd ended with an error"
[ "$(grep -c "^up 4 rx rings, 4 tx rings" "$dir/echo")" = 1 ] || fail "no connection with four queues"
echo "PASS: $case: $(grep ^up "$dir/echo")"

case="secret"
rm -f "$socket"
ours 9 server 1 sesame
wait_socket
testpmd 2 role=client,secret=wrong
wait_for "failed id 0: wrong secret" "$dir/echo"
wait "$testpmd_pid" || true
testpmd 2 role=client,secret=sesame
wait_for "^up" "$dir/echo"
wait "$testpmd_pid" || true
kill -9 "$echo_pid"
wait "$echo_pid" 2>/dev/null || true # quietly
echo "PASS: $case"

case="DPDK client killed under load five times"
rm -f "$socket"
ours 30 server 2
wait_socket
for i in 1 2 3 4 5; do
	testpmd 0 role=client --rxq=2 --txq=2 --forward-mode=flowgen
	while [ "$(grep -c ^up "$dir/echo")" -lt "$i" ]; do
		sleep 0.1
		kill -0 "$echo_pid" 2>/dev/null || fail "our side died or saw only $((i - 1)) connections"
	done
	sleep 0.5
	kill -9 "$testpmd_pid"
	wait "$testpmd_pid" 2>/dev/null || true
	wait_for "down peer closed the connection" "$dir/echo"
done
wait "$echo_pid" || fail "our side ended with an error"
[ "$(grep -c ^down "$dir/echo")" = 5 ] || fail "$(grep -c ^down "$dir/echo") disconnections"
[ "$(ours_count bad)" = 0 ] || fail "$(ours_count bad) damaged frames"
echo "PASS: $case: $(tail -n 1 "$dir/echo")"
