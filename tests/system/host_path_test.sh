#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The host's own traffic with real kernels: a corelaned, the kernel behind its host port, and a peer on the wire. Both families, both
# directions, fragments, TCP; with and without a host-path worker and steering; deletion of the interface by hand.
# Usage: host_path_test.sh   (CORELANED and CORELANE name other programs than those of this checkout)
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
daemon=${CORELANED:-$root/build/dataplane/corelaned}
command=${CORELANE:-$root/bin/corelane}
dir=$(mktemp -d /tmp/host_path.XXXXXX)
id=hp$$
pid=
server=

finish() {
	code=$?
	[ $code = 0 ] || tail -n 20 "$dir/log" | sed 's/^/  corelaned: /'
	for p in $server $pid; do
		kill "$p" 2>/dev/null && wait "$p" 2>/dev/null || true
	done
	for n in fabric kernel peer; do ip netns del "$id-$n" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap finish EXIT

for tool in ip ping iperf3 ethtool; do
	command -v $tool >/dev/null || { echo "SKIP: $tool is not installed"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root"; exit 77; }

corelane() { "$command" --socket "$dir/corelaned.sock" "$@"; }
in_kernel() { ip netns exec "$id-kernel" "$@"; }
in_peer() { ip netns exec "$id-peer" "$@"; }
fail() { echo "FAIL: $case: $*"; exit 1; }
PATIENCE=60 # seconds

# WHAT COMMAND...: waits until the command succeeds.
wait_until() {
	local what=$1 end=$((SECONDS + PATIENCE))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "$what"
		sleep 0.1
	done
}

wire() {
	for n in fabric kernel peer; do
		ip netns add "$id-$n"
		ip netns exec "$id-$n" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0
		ip -n "$id-$n" link set lo up
	done
	ip -n "$id-fabric" link add br0 type bridge
	ip netns exec "$id-fabric" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
	ip -n "$id-fabric" link add wire type veth peer name eth0 netns "$id-peer"
	in_peer ethtool -K eth0 tx off gso off tso off gro off >/dev/null
	ip -n "$id-fabric" link set wire master br0 up
	ip -n "$id-fabric" link set br0 up
	ip -n "$id-peer" addr add 192.0.2.2/24 dev eth0
	ip -n "$id-peer" addr add 2001:db8::2/64 dev eth0 nodad
	ip -n "$id-peer" link set eth0 up
}

start() {
	local options=(--run-dir "$dir" --no-huge --memory 256 --worker-cpus 0 --idle sleep)
	ip netns exec "$id-fabric" "$daemon" "${options[@]}" >"$dir/log" 2>&1 &
	pid=$!
	wait_until "corelaned does not start" has_started
	[ -S "$dir/corelaned.sock" ]
}

has_started() { [ -S "$dir/corelaned.sock" ] || ! kill -0 $pid; }

# The same addresses as Corelane has, and some of its own.
give_addresses() {
	ip -n "$id-kernel" addr add 192.0.2.1/24 dev host0
	ip -n "$id-kernel" addr add 192.0.2.77/24 dev host0
	ip -n "$id-kernel" addr add 2001:db8::1/64 dev host0 nodad
	ip -n "$id-kernel" addr add 2001:db8::77/64 dev host0 nodad
	ip -n "$id-kernel" link set host0 up
}

is_up() { # PORT
	wait_until "port $1 does not come up" shows "$1" 'link_up: true'
}

is_there() { ip -n "$id-kernel" link show host0 >/dev/null 2>&1; }

shows() { corelane port show "$1" | grep -q "$2"; } # PORT TEXT

# NETNS-FUNCTION ADDRESS [OPTIONS]: every echo comes back. A kernel's queue may lose one while others have the CPUs; what is
# lost otherwise is lost each time. The kernel behind the host port asks for the address anew, and the answer comes back to it.
echoes() {
	wait_until "an echo is missing" all_come_back "$@"
}

all_come_back() {
	local from=$1 to=$2
	shift 2
	[ "$from" != in_kernel ] || ip -n "$id-kernel" neigh flush dev host0
	"$from" ping -n -q -c 10 -i 0.02 -W 3 "$@" "$to" >"$dir/ping" && grep -q ' 10 received' "$dir/ping" && return
	echo "ping $to from ${from#in_} $*: $(tail -n 2 "$dir/ping")"
	return 1
}

# SERVER-FUNCTION CLIENT-FUNCTION ADDRESS
transfers() {
	"$1" iperf3 -s -1 >"$dir/server" 2>&1 &
	server=$!
	wait_until "the server of iperf3 does not listen" is_transferred "$2" "$3"
	wait $server || fail "iperf3 -s: $(tail -n 1 "$dir/server")"
	server=
	grep -q receiver "$dir/client" || fail "iperf3 to $3 from ${2#in_}: $(tail -n 1 "$dir/client")"
}

is_transferred() { # CLIENT-FUNCTION ADDRESS
	"$1" iperf3 -c "$2" -n 4M >"$dir/client" 2>&1 && return
	grep -q refused "$dir/client" || fail "iperf3 to $2: $(tail -n 1 "$dir/client")"
	return 1
}

everything() {
	case=$1
	for address in 192.0.2.1 192.0.2.77 2001:db8::1 2001:db8::77; do
		echoes in_peer $address
		echoes in_peer $address -s 4000 # in fragments
		transfers in_kernel in_peer $address
	done
	for address in 192.0.2.2 2001:db8::2; do
		echoes in_kernel $address
		echoes in_kernel $address -s 4000
		transfers in_peer in_kernel $address
	done
	echo "ok: $case"
}

case=setup
wire
start || fail "corelaned does not start"
# Not with net_af_packet, which reassembles fragments and truncates what does not fit its buffers.
corelane port add fab0 fabric tap --address 192.0.2.1/24,2001:db8::1/64
ip -n "$id-fabric" link set fab0 master br0
is_up fab0
case="without host port"
echoes in_peer 192.0.2.1 # Corelane answers itself
corelane port add host0 host tap --netns "$id-kernel" --fabric fab0
is_up host0
give_addresses
everything "no host-path worker"
corelane worker add 5 --role host-path --cpu 0 --idle sleep
everything "host-path worker"
corelane host steer add 192.0.2.1
corelane host steer add 2001:db8::1
everything "host-path worker and steering"
corelane host steer list
[ "$(corelane --no-headers host steer list | awk '$6 > 0' | wc -l)" = 2 ] || fail "steered packets are not counted"

case="interface deleted by hand"
ip -n "$id-kernel" link del host0
wait_until "nothing says so" shows host0 'last_error: somebody deleted'
wait_until "there is no new interface" is_there
give_addresses
is_up host0
everything "after the interface was deleted"

corelane host steer del 192.0.2.1
corelane host steer del 2001:db8::1
corelane worker del 5
everything "worker gone again"
corelane port del host0
case="host port gone again"
echoes in_peer 192.0.2.1
echo "ok: $case"
