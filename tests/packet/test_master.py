# SPDX-License-Identifier: Apache-2.0
"""The master's turns: whatever is asked of it, and whatever guests send, it returns to its loop within 100 ms.

The time that it waits for a CPU does not count, so the figures hold on a busy machine too. Time that it waits in the kernel
counts: no test here measures while a tap is made, because the kernel makes it wait for the network namespaces that other
processes create and delete. `-s` shows the figures.
"""
import contextlib
import os
import select
import socket
import struct
import subprocess
import time

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from daemon import Daemon, Refused
from router import GATEWAY_MAC
from test_punt import playing

ROUTES = 300_000
RULES = 60_000


@pytest.fixture
def daemon():
    d = Daemon("--memory", "512")
    yield d
    assert d.stop() == 0


def turns(daemon):
    status, = daemon.cli("status")
    return status["master"]


def assert_short_turns(daemon, what, before=0):
    m = turns(daemon)
    work = ", ".join(f"{w['name']} {int(w['longest_ns']) / 1e6:.0f}" for w in m["work"][:4])
    print(f"{what}: longest turn {int(m['own_ns']) / 1e6:.0f} ms ({m['own_work']}); with waits for a CPU "
          f"{int(m['times']['max_ns']) / 1e6:.0f} ms; longest work in ms: {work}")
    assert int(m["long_turns"]) == before, (what, m["own_work"], m["own_ns"])


def run(daemon, *args):
    subprocess.run([daemon.cli_path, "--socket", daemon.socket, *args], check=True, timeout=120, stdout=subprocess.DEVNULL)


def lines(daemon, name, texts):
    path = os.path.join(daemon.dir, name)
    with open(path, "w", encoding="ascii") as f:
        f.writelines(t + "\n" for t in texts)
    return path


def prefix(i):
    return f"{16 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24"


def add_routes(daemon):
    daemon.cli("vrf", "add", "red")
    daemon.cli("nexthop", "add", 77, "discard")
    run(daemon, "route", "add", "--vrf", "red", "--nexthop", "77", "--file", lines(daemon, "routes", (prefix(i) for i in range(ROUTES))))


def test_routes(daemon):
    add_routes(daemon)
    assert_short_turns(daemon, f"{ROUTES} routes")
    daemon.cli("nexthop", "add", 77, "reject", "--replace")
    run(daemon, "route", "list", "--vrf", "red")
    run(daemon, "drops", "--all", "--by-port", "--by-worker")
    assert_short_turns(daemon, "their next hop replaced, and lists")


def test_rules(daemon):
    """A list is compiled by another thread; the master expands it and publishes it."""
    daemon.cli("vrf", "add", "red")
    daemon.cli("rule-list", "add", "web")
    memif = os.path.join(daemon.dir, "t1.sock")
    daemon.cli("port", "add", "t1", "tenant", "memif", "--socket", memif, "--vrf", "red", "--gateway", "10.1.0.1/24", "--stateful",
               "--ingress-rules", "web")
    assert_short_turns(daemon, "the first port that keeps flows")
    rules = (f"{i + 1} allow --protocol tcp --source {prefix(i)} --destination-ports {1 + i % 1000}" for i in range(RULES))
    run(daemon, "rule", "load", "web", lines(daemon, "rules", rules))
    daemon.cli("rule", "add", "web", RULES + 1, "allow", "--protocol", "udp")
    daemon.cli("rule", "del", "web", 5)
    run(daemon, "rule", "list", "--list", "web")
    assert_short_turns(daemon, f"{RULES} rules")
    daemon.cli("port", "del", "t1")
    daemon.cli("rule-list", "del", "web")
    assert_short_turns(daemon, "the list deleted")


def list_request(stream, vrf):
    """The frame of a Routes.List."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    request = field(1, b"corelane.v1.Routes") + field(2, b"List") + field(3, field(1, vrf))
    return struct.pack(">IIBB", len(request), stream, 1, 1) + request


@contextlib.contextmanager
def readers(daemon, clients, streams):
    """Connections that each read some lists of routes."""
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(clients)]
        for c in all_of_them:
            c.connect(daemon.socket)
            for stream in range(1, 2 * streams, 2):
                c.sendall(list_request(stream, b"red"))
            c.setblocking(False)
        yield all_of_them


def read_until(clients, done):
    while not done():
        for c in select.select(clients, [], [], 0.05)[0]:
            with contextlib.suppress(BlockingIOError):
                c.recv(1 << 20)


def test_clients(daemon):
    """However many clients read, the master's rings are served, and a request is answered."""
    add_routes(daemon)
    with readers(daemon, 100, 5) as clients:
        command = [daemon.cli_path, "--socket", daemon.socket, "vrf", "list"]
        for _ in range(5):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as p:
                read_until(clients, lambda p=p: p.poll() is not None)
                assert p.returncode == 0
    assert_short_turns(daemon, "100 clients with 5 streams each")


def new_flows():
    """Every second packet is another flow to a guest, the others are for hosts that do not exist."""
    for i in range(8_000):
        dst = "10.2.0.2" if i % 2 else f"10.1.{i >> 8 & 255}.{i & 255}"
        yield Ether(src="02:00:00:00:01:66", dst=GATEWAY_MAC) / IP(src="10.1.0.66", dst=dst) / UDP(sport=1024 + i, dport=9) / bytes(18)


def write_pcap(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for p in packets:
            data = bytes(p)
            f.write(struct.pack("<IIII", 0, 0, len(data), len(data)) + data)


def wait_for_flows(daemon, number):
    deadline = time.monotonic() + 20
    while int(daemon.cli("flow", "count")[0]["flows"]) < number:
        assert time.monotonic() < deadline, (daemon.cli("flow", "count"), daemon.cli("port", "list"), daemon.cli("drops"))
        time.sleep(0.1)


def test_flood_of_flows(daemon):
    """A guest floods with flows to addresses that must be resolved, while an operator looks at the flows and ends them."""
    memif, path = os.path.join(daemon.dir, "flood.sock"), os.path.join(daemon.dir, "flood.pcap")
    write_pcap(path, new_flows())
    daemon.cli("vrf", "add", "red")
    daemon.cli("port", "add", "flood", "tenant", "memif", "--socket", memif, "--vrf", "red", "--gateway", "10.1.0.1/16", "--stateful")
    daemon.cli("port", "add", "t1", "tenant", "tap", "--vrf", "red", "--gateway", "10.2.0.1/24", "--guest-address", "10.2.0.2", "--guest-mac",
               "02:00:00:00:01:77", "--stateful")
    before = int(turns(daemon)["long_turns"])  # of adding the ports
    with playing(path, memif):
        for _ in range(5):
            wait_for_flows(daemon, 2_000)
            daemon.cli("flow", "count")
            run(daemon, "flow", "list", "--protocol", "sctp")
            daemon.cli("neighbor", "list")
            daemon.cli("flow", "flush", "--all")
    assert_short_turns(daemon, "a flood of new flows", before)


def test_filter_with_a_name_asks_no_name_server():
    """The master compiles filters; a name server that does not answer would hold it for seconds."""
    with open("/etc/resolv.conf", encoding="utf-8") as f:
        server = next((line.split()[1] for line in f if line.startswith("nameserver ") and "." in line), "127.0.0.1")
    daemon = Daemon()
    try:
        with daemon.namespace(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            if not server.startswith("127."):
                subprocess.run(["ip", "address", "add", f"{server}/32", "dev", "lo"], check=True)
            silent.bind((server, 53))
            silent.setblocking(False)
            with pytest.raises(Refused, match="unknown host 'corelane.invalid'"):
                daemon.cli("capture", "--filter", "host corelane.invalid", "--count", "1")
            with pytest.raises(BlockingIOError):
                silent.recv(512)
    finally:
        daemon.stop()
