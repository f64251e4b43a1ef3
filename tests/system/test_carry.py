# SPDX-License-Identifier: Apache-2.0
"""Flows with their NAT bindings, and counters, go on after a restart. TCP is strict here: no flow, no connection."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from namespaces import dies_with_us, wait
from restarts import Router, USER

SERVER = """
import socket, threading
def echo(c):
    while data := c.recv(4096):
        c.sendall(data)
s = socket.create_server(("10.2.0.12", 7), backlog=256)
print("listens", flush=True)
while True:
    threading.Thread(target=echo, args=(s.accept()[0],), daemon=True).start()
"""
CLIENT = """
import select, socket, sys, time
list = [socket.create_connection(("10.2.0.12", 7), 60) for _ in range(%d)]
print("connected", flush=True)
for line in sys.stdin:
    end = time.monotonic() + float(line)
    for c in list:
        c.send(b"x", socket.MSG_DONTWAIT)
    waiting, alive = set(list), 0
    while waiting and (ready := select.select(waiting, [], [], max(0, end - time.monotonic()))[0]):
        for c in ready:
            waiting.remove(c)
            try:
                alive += c.recv(64) != b""
            except OSError:
                pass
    print(alive, flush=True)
"""
CONNECTIONS = 100


class Talk:
    """TCP connections from vm1 to vm2."""

    def __init__(self, r):
        self.server = self.python(r.spaces["vm2"], SERVER)
        assert self.server.stdout.readline() == "listens\n"
        self.client = self.python(r.spaces["vm1"], CLIENT % CONNECTIONS)
        assert self.client.stdout.readline() == "connected\n"

    @staticmethod
    def python(space, text):
        return subprocess.Popen(["ip", "netns", "exec", space.name, "/usr/bin/python3", "-c", text], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=dies_with_us)

    def alive(self, seconds=60.0):
        """How many connections echo within a time."""
        self.client.stdin.write(f"{seconds}\n")
        self.client.stdin.flush()
        return int(self.client.stdout.readline())

    def close(self):
        for p in (self.client, self.server):
            p.kill()
            p.communicate()


@pytest.fixture(name="router", scope="module")
def module_router():
    r = Router()
    try:
        configure(r)
        yield r
        assert "damaged" not in r.log()
    except BaseException:
        print(r.log())
        raise
    finally:
        r.close()


@pytest.fixture
def talk(router):
    t = Talk(router)
    yield t
    t.close()


def configure(r):
    r.cli("settings", "set", "--flow-tcp-strict")
    for name, vrf, net in (("vm1", "inside", 1), ("vm2", "outside", 2)):
        r.cli("vrf", "add", vrf)
        r.cli("port", "add", name, "tenant", "tap", "--netns", r.spaces[name].name, "--vrf", vrf, "--gateway",
              f"10.{net}.0.1/24", "--guest-address", f"10.{net}.0.1{net}", *(["--stateful"] if net == 1 else []))
        r.spaces[name].device(name, f"10.{net}.0.1{net}/24")
        r.spaces[name].ip("route", "add", "default", "via", f"10.{net}.0.1")
    r.cli("nat", "add", 1, "source", "10.1.0.0/24", "198.51.100.1", "--vrf", "inside", "--external-vrf", "outside",
          "--to", "10.2.0.0/24")
    wait(lambda: r.spaces["vm2"].ip("-j", "link", "show", "up", "vm2"), "link of vm2")


def bindings(r):
    """The translated source port of each connection, which is the destination of what comes back."""
    flows = r.cli("flow", "list", "--protocol", "tcp", "--state", "established")
    return {f["forward"]["source_port"]: f["reverse"]["destination_port"] for f in flows}


def neighbours(r):
    return {(n["port"], n["address"], n["mac"]) for n in r.cli("neighbor", "list") if n.get("mac")}


def end(r, how):
    """Ends the daemon, and starts another one."""
    if how == "takeover":
        old = r.process
        r.launch("--takeover")
        assert old.wait(timeout=60) == 0
        wait(lambda: r.process.poll() is not None or r.answers(), "answer of the daemon", 60)
        return
    if how == signal.SIGKILL:
        carried(r)
    r.end(how)
    r.start()


def carried(r):
    """Waits until the daemon has begun and ended a file of what it carries."""
    path = os.path.join(r.dir, "run", "carried")

    def number():
        return os.stat(path).st_ino if os.path.exists(path) else 0

    for _ in range(2):
        before = number()
        wait(lambda: number() not in (0, before), "file of flows")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, "takeover"])
def test_connections_go_on(router, talk, how):
    assert talk.alive() == CONNECTIONS
    before = bindings(router)
    assert len(before) >= CONNECTIONS
    learnt = neighbours(router)
    assert len(learnt) >= 2
    end(router, how)
    assert learnt <= neighbours(router)
    assert re.search(r"neighbours: (\d+) of \1 are known after the restart", router.log())
    assert bindings(router) == before
    assert talk.alive() == CONNECTIONS
    assert bindings(router) == before
    flow, = (f for f in router.cli("flow", "list", "--protocol", "tcp") if f["forward"]["source_port"] == min(before))
    assert int(flow["forward"]["packets"]) >= 5  # a handshake, and an echo before and after


def test_rules_decide_again(router, talk):
    """What was changed meanwhile counts: a flow is carried, and not what it may do."""
    assert talk.alive() == CONNECTIONS
    router.end(signal.SIGTERM)
    os.rename(os.path.join(router.dir, "run", "carried"), os.path.join(router.dir, "aside"))
    router.start()
    router.cli("rule-list", "add", "nothing")
    router.cli("port", "set", "vm1", "--egress-rules", "nothing")
    router.end(signal.SIGTERM)
    os.rename(os.path.join(router.dir, "aside"), os.path.join(router.dir, "run", "carried"))
    router.start()
    assert int(re.findall(r"flows: (\d+) of \d+ go on", router.log())[-1]) >= CONNECTIONS
    assert talk.alive(1) == 0
    wait(lambda: any(d["reason"] == "flow_denied_egress" for d in router.cli("drops")), "drop by the rules")
    router.cli("port", "set", "vm1", "--egress-rules", "")
    router.cli("rule-list", "del", "nothing")


def counted(r):
    """The sums of the counters of ports, and of drops."""
    ports = {(s["port"], s["name"]): int(s["value"]) for s in r.cli("stats")
             if s["name"] in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes")}
    drops = {(d["port"], d["reason"]): int(d["packets"]) for d in r.cli("drops", "--by-port")}
    return {**ports, **drops}


def test_counters_go_on(router, talk):
    assert talk.alive() == CONNECTIONS
    router.spaces["vm1"].run("bash", "-c", "echo x > /dev/udp/192.0.2.99/9")  # there is no route
    before = counted(router)
    assert before[("vm1", "rx_packets")] > CONNECTIONS
    assert any(port == "vm1" and "route" in name for port, name in before), before
    end(router, signal.SIGTERM)
    after = counted(router)
    assert {name: after.get(name, 0) >= n for name, n in before.items()} == dict.fromkeys(before, True)


def connects(r):
    """New connections are made, and echo."""
    t = Talk(r)
    try:
        return t.alive() == CONNECTIONS
    finally:
        t.close()


def test_run_directory_is_full(router):
    """Packets pass, the daemon says so, and a start has all but what could not be written."""
    run = os.path.join(router.dir, "run")
    router.end(signal.SIGTERM)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "none", run], check=True)
    try:
        shutil.chown(run, USER)
        with open(os.path.join(run, "fill"), "wb", buffering=0) as f:
            f.write(bytes(200 << 10))
            router.start()
            with pytest.raises(OSError):
                while True:
                    f.write(bytes(4096))
        assert connects(router)
        wait(lambda: router.events("carry_not_written"), "event")
        assert "No space left on device" in router.events("carry_not_written")[0]
        before = router.export()
        router.end(signal.SIGKILL)
        router.start()
        assert router.export() == before and connects(router)
        router.end(signal.SIGTERM)
    finally:
        subprocess.run(["umount", "--lazy", run], check=True)
    router.start()
