# SPDX-License-Identifier: Apache-2.0
"""Floods for the control plane cost only the port that sends them: the underlay's ARP and the API are answered.

The guest is DPDK's testpmd, which sends a file in a loop into a memif: some million packets per second.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.utils import wrpcap

from daemon import PR_SET_PDEATHSIG, libc
from router import GATEWAY_MAC
from test_neighbors import BROADCAST, FAMILIES, advert, answer, ask, unknown_remote
from topology import FAB0, FAB0_MAC, GATEWAY
from waiting import PATIENCE, wait_until

FLOODER = {4: "10.1.0.66", 6: "fd00:1::66", "mac": "02:00:00:00:01:66"}
ASKER = {4: "192.0.2.80", 6: "2001:db8::80"}
ASKER_MAC = "02:00:00:00:f0:80"
ASKED = 50
REMOTE = "192.0.2.90"
REFUSED = 100_000  # packets of a flood: fifty times what the ring of their class holds
# What the control plane takes: packets per second, and at once.
DISCOVERY = 1000, 256  # of a tenant port
UNRESOLVED = 100, 64  # for a next hop that is not resolved


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def gratuitous():
    mac, own = FLOODER["mac"], FLOODER[4]
    return [Ether(src=mac, dst=BROADCAST) / ARP(op=op, hwsrc=mac, psrc=own, hwdst=BROADCAST, pdst=own) for op in (1, 2)]


def adverts():
    return [advert(FLOODER["mac"], FLOODER[6], "33:33:00:00:00:01", "ff02::1", solicited=0)]


def guest_packets(dst):
    return [Ether(src=FLOODER["mac"], dst=GATEWAY_MAC) / IP(src=FLOODER[4], dst=dst) / UDP(sport=s, dport=9) / bytes(18)
            for s in range(1000, 1032)]


@contextlib.contextmanager
def playing(path, socket):
    """Sends the file's packets into the memif in a loop, with the lowest priority, on a CPU that no worker has."""
    cpu = min(os.sched_getaffinity(0))
    command = ["nice", "-n", "19", "dpdk-testpmd", "--lcores", f"0@{cpu},1@{cpu}", "--no-huge", "-m", "128", "--no-pci", "--no-telemetry",
               f"--file-prefix=flood{os.getpid()}", "--vdev", f"net_pcap0,rx_pcap={path},infinite_rx=1", "--vdev",
               f"net_memif0,role=client,id=0,socket={socket},socket-abstract=no", "--", "--forward-mode=io", "--no-lsc-interrupt",
               "--total-num-mbufs=16384"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=die_with_parent) as p:
        try:
            yield
            assert p.poll() is None, "testpmd has ended"
        finally:
            p.kill()
            p.wait()
            shutil.rmtree(f"/run/dpdk/flood{os.getpid()}", ignore_errors=True)


def most_passed(seconds, rate, burst):
    """By a token bucket in this time."""
    return rate * seconds + burst


@contextlib.contextmanager
def flood(router, frames):
    """A guest of VRF red that sends only these frames, without pause. Yields a function that ends it."""
    path = os.path.join(router.daemon.dir, "flood.pcap")
    socket = os.path.join(router.daemon.dir, "flood.sock")
    wrpcap(path, [bytes(f) for f in frames] * 64, linktype=1)
    router.cli("port", "add", "flood", "tenant", "memif", "--socket", socket, "--vrf", "red", "--gateway",
               f"{GATEWAY[4]}/24,{GATEWAY[6]}/64", "--guest-address", f"{FLOODER[4]},{FLOODER[6]}", "--guest-mac", FLOODER["mac"])
    try:
        with contextlib.ExitStack() as player:
            player.enter_context(playing(path, socket))
            yield player.close
    finally:
        router.cli("port", "del", "flood")
        router.fence("t1")


def long_turns(router):
    return int(router.cli("status")[0]["master"]["long_turns"])


def drops_of(router, port):
    return {d["reason"]: int(d["packets"]) for d in router.cli("drops", "--by-port") if d.get("port") == port}


def received_by(router, port):
    return int(router.cli("port", "show", port)[0]["state"]["counters"]["rx_packets"])


def wait_for_drops(router, reason, number):
    wait_until(f"{number} drops for {reason}", lambda: drops_of(router, "flood"), lambda drops: drops.get(reason, 0) >= number)


def answered(router, family, patience=PATIENCE):
    """A host of the fabric asks for the router's address ASKED times, one after the other. Returns how many are answered."""
    expected = answer(family, FAB0_MAC, FAB0[family], ASKER_MAC, ASKER[family], **({"router": 1} if family == 6 else {}))
    layer = ARP if family == 4 else IPv6
    n, reached = 0, True
    while reached and n < ASKED:
        router.taps["fab0"].send(ask(family, ASKER_MAC, ASKER[family], FAB0[family]))
        _, reached = router.wait(patience, lambda fs: any(f.port == "fab0" and bytes(f.packet[layer]) == bytes(expected[layer])
                                                          for f in fs))
        n += reached
    router.cli("neighbor", "del", "fab0", ASKER[family])
    return n


def runs_of_master(router):
    return {w["name"]: int(w["runs"]) for w in router.cli("status")[0]["master"]["work"]}


OTHER_WORK = "punt_poll", "worker_poll", "neighbor_poll", "System.GetStatus"


def assert_unharmed(router):
    """The fabric has lost nothing, the API answers, and the master does all of its other work."""
    before = runs_of_master(router)
    wait_until("the master's other work", lambda: runs_of_master(router),
               lambda now: all(now.get(name, 0) > before.get(name, 0) for name in OTHER_WORK))
    for reason in ("punt_rate", "punt_full", "neighbor_rate", "neighbor_queue_full"):
        assert drops_of(router, "fab0").get(reason, 0) == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("frames", [gratuitous, adverts])
def test_flood_of_neighbour_discovery(router, family, frames):
    before, begin = drops_of(router, "fab0"), time.monotonic()
    with flood(router, frames()) as end:
        wait_for_drops(router, "punt_rate", REFUSED)
        assert answered(router, family) == ASKED
        assert_unharmed(router)
        end()
        most = most_passed(time.monotonic() - begin, *DISCOVERY)
        wait_until(f"all but {most} packets to be refused", lambda: (received_by(router, "flood"), drops_of(router, "flood")),
                   lambda seen: seen[0] - sum(seen[1].values()) <= most)
    assert drops_of(router, "fab0") == before


def test_dead_remote(network, router):
    """Neighbours are still resolved while a guest sends at full rate to a host that does not answer."""
    begin = time.monotonic()
    with unknown_remote(network, REMOTE) as dst, flood(router, guest_packets(dst[4])):
        wait_for_drops(router, "neighbor_rate", REFUSED)
        assert answered(router, 4) == ASKED
        assert_unharmed(router)
        with unknown_remote(network, "192.0.2.91"):
            router.expect("fab0", lambda p: ARP in p and p[ARP].pdst == "192.0.2.91")
        # The control plane got few packets of the flood; each waited for an answer until later ones displaced it.
        drops = wait_until("a packet that was displaced or given up", lambda: drops_of(router, "flood"),
                           lambda drops: drops.get("neighbor_queue_full", 0) + drops.get("neighbor_unresolved", 0) > 0)
        others = sum(drops.get(r, 0) for r in ("neighbor_queue_full", "neighbor_unresolved", "punt_full"))
        assert others <= most_passed(time.monotonic() - begin, *UNRESOLVED)


@pytest.mark.measure
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("frames", [gratuitous, adverts])
def test_a_flood_delays_nobody(router, family, frames):
    """The figures on a machine with nothing else to do: no long turn of the master, and soon an answer to each."""
    with flood(router, frames()):
        before = long_turns(router)
        wait_for_drops(router, "punt_rate", REFUSED)
        assert answered(router, family, patience=2) == ASKED
        begin = time.monotonic()
        for _ in range(10):
            router.cli("status")
        seconds = time.monotonic() - begin  # 0.1 s are usual
        print(f"measured: ten calls {seconds:.2f} s, at most 10 s")
        assert seconds < 10
        assert long_turns(router) == before
        assert "punt_full" not in drops_of(router, "flood")
