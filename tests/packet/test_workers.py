# SPDX-License-Identifier: Apache-2.0
"""Workers of all roles and ports of all modes: each packet comes out once and in order of its flow; impossible requests are refused."""
import os
import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from daemon import Daemon, Refused
from topology import GATEWAY
from waiting import PATIENCE

W1 = {4: "10.1.0.41", 6: "fd00:1::41", "mac": "02:00:00:00:05:11"}
W2 = {4: "10.1.0.42", 6: "fd00:1::42", "mac": "02:00:00:00:05:12"}
GATEWAY_MAC = "00:00:5e:00:01:01"
CPU = max(os.sched_getaffinity(0))
FLOWS = 40
EXTRA = (11, 12, 13)  # forwarding workers


@pytest.fixture(scope="module")
def guests(network):
    r = network.router
    r.cli("vrf", "add", "workers")
    for name, g in (("w1", W1), ("w2", W2)):
        r.add_tenant(name, vrf="workers", stateful=False, gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(g[4], g[6]),
                     guest_mac=g["mac"])
    yield r
    for name in ("w1", "w2"):
        r.del_port(name)
    r.cli("vrf", "del", "workers")


@pytest.fixture
def extra(guests):
    for w in EXTRA:
        guests.cli("worker", "add", w, "--cpu", CPU, "--idle", "sleep")
    yield guests
    guests.cli("port", "set", "w1", "--mode", "run_to_completion", "--spread-workers", "", "--ring-full", "drop")
    here = {w["id"] for w in guests.cli("worker", "list")}
    for w in here & set(EXTRA):
        guests.cli("worker", "del", w)


def numbered(flow, number):
    return bytes(Ether(src=W1["mac"], dst=GATEWAY_MAC) / IP(src=W1[4], dst=W2[4]) / UDP(sport=2000 + flow, dport=9) / struct.pack("!II", flow, number))


def stream(router, first, n):
    """Sends a packet of each flow in each of n rounds; yields after each round, so that the caller can make changes."""
    for number in range(first, first + n):
        for flow in range(FLOWS):
            router.taps["w1"].send(numbered(flow, number))
        yield number


def collect(router, n):
    """Returns the packets' numbers by flow, in the order in which they came out."""
    seen = {}

    def is_ours(f):
        return f.port == "w2" and UDP in f.packet and f.packet[UDP].dport == 9

    frames, complete = router.wait(PATIENCE, lambda fs: len([f for f in fs if is_ours(f)]) >= n)
    for f in filter(is_ours, frames):
        flow, number = struct.unpack("!II", bytes(f.packet[UDP].payload)[:8])
        seen.setdefault(flow, []).append(number)
    assert complete, f"{sum(map(len, seen.values()))} of {n} packets came out"
    return seen


def assert_all_in_order(seen, first, n):
    assert set(seen) == set(range(FLOWS))
    for flow, numbers in seen.items():
        assert numbers == list(range(first, first + n)), f"flow {flow}"


def packets_of(router):
    return {w["id"]: int(w["state"]["packets"]) for w in router.cli("worker", "list")}


def test_hybrid_uses_all_workers(extra):
    extra.cli("port", "set", "w1", "--mode", "hybrid")
    before = packets_of(extra)
    for _ in stream(extra, 0, 20):
        pass
    assert_all_in_order(collect(extra, 20 * FLOWS), 0, 20)
    after = packets_of(extra)
    for w in EXTRA:
        assert after[w] > before[w], f"worker {w} has done nothing"
    rings = [r for r in extra.cli("worker", "rings") if r["to"] in EXTRA]
    assert {r["to"] for r in rings} >= set(EXTRA)
    assert sum(int(r["packets"]) for r in rings) > 0
    assert all(int(r.get("refused", 0)) == 0 for r in rings)
    queue = extra.cli("port", "show", "w1")[0]["state"]["queues"][0]
    assert queue["spread"] and not queue.get("moving")


def test_only_named_workers(extra):
    extra.cli("port", "set", "w1", "--mode", "hybrid", "--spread-workers", "12")
    before = packets_of(extra)
    for _ in stream(extra, 0, 10):
        pass
    assert_all_in_order(collect(extra, 10 * FLOWS), 0, 10)
    after = packets_of(extra)
    assert after[12] - before[12] >= 10 * FLOWS
    assert after[11] == before[11] and after[13] == before[13]


@pytest.mark.parametrize("change", ["mode", "queue", "worker", "ring", "role"])
def test_changes_lose_and_reorder_nothing(extra, change):
    poller = extra.cli("port", "show", "w1")[0]["state"]["queues"][0]["worker"]
    if change != "mode":
        extra.cli("port", "set", "w1", "--mode", "hybrid")
    rounds = 30
    for number in stream(extra, 0, rounds):
        i = number // 3
        if number % 3:
            continue
        if change == "mode":
            extra.cli("port", "set", "w1", "--mode", "hybrid" if i % 2 == 0 else "run_to_completion")
        elif change == "queue":
            extra.cli("port", "assign", "w1", "--queue", 0, "--worker", EXTRA[i % 3])
        elif change == "worker" and i % 2 == 0:
            extra.cli("worker", "del", 13)
        elif change == "worker":
            extra.cli("worker", "add", 13, "--cpu", CPU, "--idle", "sleep")
        elif change == "ring":
            extra.cli("worker", "set", 11, "--ring-size", 2048 if i % 2 == 0 else 512)
        else:
            extra.cli("worker", "set", 12, "--role", "isolated_rx" if i % 2 == 0 else "forwarding")
    assert_all_in_order(collect(extra, rounds * FLOWS), 0, rounds)
    extra.cli("port", "assign", "w1", "--queue", 0, "--worker", poller)


def test_isolated_receive(extra):
    extra.cli("worker", "set", 11, "--role", "isolated_rx", "--target", 12)
    poller = extra.cli("port", "show", "w1")[0]["state"]["queues"][0]["worker"]
    extra.cli("port", "assign", "w1", "--queue", 0, "--worker", 11)
    try:
        before = packets_of(extra)
        for _ in stream(extra, 0, 10):
            pass
        assert_all_in_order(collect(extra, 10 * FLOWS), 0, 10)
        after = packets_of(extra)
        assert after[11] - before[11] >= 10 * FLOWS and after[12] - before[12] >= 10 * FLOWS
        w = extra.cli("worker", "show", 11)[0]
        assert w["target"] == "12" and w["state"]["thread"] == "pmd-rx-11"
        extra.cli("worker", "del", 12)  # another worker takes over
        assert extra.cli("worker", "show", 11)[0]["target"] != "12"
        for _ in stream(extra, 10, 5):
            pass
        assert_all_in_order(collect(extra, 5 * FLOWS), 10, 5)
    finally:
        extra.cli("port", "assign", "w1", "--queue", 0, "--worker", poller)


def test_a_queue_stays_with_its_worker(extra):
    def poller():
        return extra.cli("port", "show", "w1")[0]["state"]["queues"][0]["worker"]

    extra.cli("port", "set", "w1", "--polled-by", "0:13")
    try:
        assert poller() == 13
        extra.cli("worker", "del", 13)
        assert poller() != 13
        extra.cli("worker", "add", 13, "--cpu", CPU, "--idle", "sleep")
        assert poller() == 13
    finally:
        extra.cli("port", "set", "w1", "--polled-by", "")


def test_rebalance_says_what_it_finds(extra):
    plan = extra.cli("worker", "rebalance", "--dry-run")[0]
    assert set(plan) >= {"most_before", "most_after", "mean"}
    extra.cli("worker", "rebalance", "--auto", 5)
    assert extra.cli("settings", "show")[0]["rebalance_seconds"] == 5
    extra.cli("worker", "rebalance", "--auto", 0)


@pytest.mark.parametrize("command,says", [
    (("worker", "set", 11, "--target", 12), "forwarding worker"),
    (("worker", "set", 11, "--ring-size", 1000), "power of two"),
    (("worker", "set", 11, "--ring-size", 32), "power of two"),
    (("worker", "add", "--cpu", CPU, "--role", "isolated_rx", "--target", 99), ": --target"),
    (("worker", "add", "--cpu", CPU, "--role", "isolated_rx", "--idle", "yield", "--target", 40), ": --target"),
    (("port", "set", "w1", "--spread-workers", "11,11"), "twice"),
    (("port", "set", "w1", "--spread-workers", "11:0"), ": --spread-workers"),
    (("port", "set", "w1", "--spread-workers", "64"), ": --spread-workers"),
    (("port", "set", "w1", "--polled-by", "0:64"), ": --polled-by"),
    (("port", "set", "w1", "--polled-by", "16:0"), ": --polled-by"),
    (("port", "set", "w1", "--polled-by", "0:11,0:12"), "twice"),
])
def test_refused(extra, command, says):
    before = extra.cli("worker", "list"), extra.cli("port", "show", "w1")[0].get("spread_workers")
    with pytest.raises(Refused, match=says):
        extra.cli(*command)
    after = extra.cli("worker", "list"), extra.cli("port", "show", "w1")[0].get("spread_workers")
    assert [w["id"] for w in before[0]] == [w["id"] for w in after[0]]
    assert before[1] == after[1]


def test_last_forwarding_worker_stays(guests):
    forwarding = [w["id"] for w in guests.cli("worker", "list") if w["role"] == "WORKER_ROLE_FORWARDING"]
    assert len(forwarding) == 1
    with pytest.raises(Refused, match="last forwarding worker"):
        guests.cli("worker", "del", forwarding[0])
    with pytest.raises(Refused, match="last forwarding worker"):
        guests.cli("worker", "set", forwarding[0], "--role", "isolated_rx")


def test_a_daemon_that_never_spreads():
    daemon = Daemon("--vr_no_load_balance", "--vr_dpdk_tx_ring_sz", "2048")
    try:
        daemon.cli("vrf", "add", "red")
        with pytest.raises(Refused, match="--run-to-completion"):
            daemon.cli("port", "add", "p", "tenant", "tap", "--vrf", "red", "--mode", "hybrid")
        assert daemon.cli("port", "list") == []
        daemon.cli("port", "add", "p", "tenant", "tap", "--vrf", "red")
        with pytest.raises(Refused, match="--run-to-completion"):
            daemon.cli("port", "set", "p", "--mode", "auto")
        assert "vr_dpdk_tx_ring_sz has no effect" in daemon.log()
    finally:
        assert daemon.stop() == 0
