# SPDX-License-Identifier: Apache-2.0
"""Packets of a fabric port wait in a long ring of a slow worker until they hold all buffers. The router counts polls that find
none, reports it, and `corelane explain` names the port and a command that mends it."""
import threading
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from router import Router
from waiting import wait_until

HOST, OWN, HOST_MAC, OWN_MAC = "192.0.2.2", "192.0.2.1", "02:00:00:00:06:02", "02:00:00:00:06:01"
SLOW = 1  # worker


@pytest.fixture(scope="module")
def router():
    r = Router("--mbufs", "1024", "--allow-debug")
    r.cli("vrf", "add", "red")
    r.add_fabric("fab0", address=f"{OWN}/24", host=HOST, host_mac=HOST_MAC, mac=OWN_MAC)
    r.add_tenant("vm1", vrf="red", gateway="10.1.0.1/24", guest="10.1.0.11", guest_mac="02:00:00:00:06:11")
    if SLOW not in {w["id"] for w in r.cli("worker", "list")}:
        r.cli("worker", "add", SLOW, "--cpu", r.cli("worker", "list")[0]["cpu"], "--idle", "sleep")
    yield r
    assert r.close() == 0


class Flood:
    """Sends into the fabric port as fast as the kernel takes it."""

    def __init__(self, tap):
        self.tap, self.ends = tap, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        frame = bytes(Ether(src=HOST_MAC, dst=OWN_MAC) / IP(src=HOST, dst=OWN) / UDP(dport=9) / bytes(18))
        while not self.ends.is_set():
            try:
                self.tap.send(frame)
            except (BlockingIOError, OSError):
                time.sleep(0.001)  # the interface's queue is full

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()


def polls_in_vain(router):
    return sum(int(d["packets"]) for d in router.cli("drops") if d["reason"] == "port_no_buffer")


def cause(router):
    (report,) = router.cli("explain", "--no-trace", "--window", "1s")
    return next((c for c in report["causes"] if c["kind"] == "no-buffers"), None)


def test_ring_that_holds_all_buffers(router):
    router.cli("worker", "set", SLOW, "--ring-size", 4096)
    router.cli("port", "set", "fab0", "--mode", "hybrid", "--spread-workers", SLOW)
    router.cli("debug", "delay", "--worker", SLOW, "--us", 100000)
    with Flood(router.taps["fab0"]):
        wait_until("a poll in vain", lambda: polls_in_vain(router))
        wait_until("the event", lambda: router.cli("event", "list"), lambda events: any(e["kind"] == "buffers_exhausted" for e in events))
        event = next(e for e in router.cli("event", "list") if e["kind"] == "buffers_exhausted")
        assert event["subject"] == "port fab0", event
        found = cause(router)
        assert found and found["port"] == "fab0" and not found.get("minor"), found
        assert found["fix"] == f"corelane worker set {SLOW} --ring-size 128", found
        router.cli(*found["fix"].split()[1:])
        wait_until("the end of the shortage", lambda: cause(router), lambda c: c is None)
        router.fence("vm1")
    router.cli("debug", "delay", "--worker", SLOW, "--us", 0)
