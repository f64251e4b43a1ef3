# SPDX-License-Identifier: Apache-2.0
"""Soak: two hosts, a VRF per overlay, steady traffic, and random changes all the time.

At the end every datagram has arrived or is explained by a drop counter, and both daemons use as many buffers, descriptors and
as much memory as before. usage: soak.py SECONDS [SEED]; CORELANED and CORELANE name the programs.
"""
import ctypes
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DAEMON = os.environ.get("CORELANED", os.path.join(TOP, "bin", "corelaned"))
COMMAND = os.environ.get("CORELANE", os.path.join(TOP, "bin", "corelane"))
OVERLAYS = ("mplsoudp", "mplsogre", "vxlan")
PAUSE = 0.0005  # seconds between datagrams of a flow
PATIENCE = 60  # seconds
MEMORY_GROWTH = 64 << 20  # bytes that a daemon may gain, because its tables do not shrink


def run(*args):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout


def enter(netns):
    """Moves the calling process into a network namespace."""
    with open("/run/netns/" + netns) as f:
        if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns " + netns)


class Host:
    def __init__(self, lab, index, peer):
        self.index, self.peer = index, peer
        self.netns = "%s-h%d" % (lab.prefix, index)
        self.dir = os.path.join(lab.dir, "h%d" % index)
        self.log = open(os.path.join(lab.dir, "h%d.log" % index), "w+")
        self.daemon = subprocess.Popen(
            ["ip", "netns", "exec", self.netns, DAEMON, "--run-dir", self.dir, "--no-huge", "--memory", "384", "--worker-cpus", "1",
             "--idle", "sleep"], stdout=self.log, stderr=self.log)

    def __call__(self, *args):
        """Runs a command; False when the daemon refused it."""
        env = dict(os.environ, CORELANE_SOCKET=os.path.join(self.dir, "corelaned.sock"))
        done = subprocess.run([COMMAND, *map(str, args)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1, 2):
            raise RuntimeError("corelane %s: status %d\n%s" % (args, done.returncode, done.stderr))
        self.out, self.error = done.stdout, done.stderr
        return done.returncode == 0

    def must(self, *args):
        if not self(*args):
            raise RuntimeError("corelane %s: %s" % (" ".join(map(str, args)), self.error))
        return self.out

    def json(self, *args):
        return [json.loads(line) for line in self.must("-o", "json", *args).splitlines()]

    def drops(self):
        return {d["reason"]: int(d["packets"]) for d in self.json("drops")}

    def missed(self):
        return sum(int(p["state"]["counters"]["rx_missed"]) for p in self.json("port", "list"))

    def wait(self):
        for _ in range(5 * PATIENCE):
            if self("status"):
                return
            if self.daemon.poll() is not None:
                break
            time.sleep(0.2)
        self.log.seek(0)
        raise RuntimeError("corelaned does not start:\n" + self.log.read())


class Lab:
    def __init__(self):
        self.prefix = "soak%d" % os.getpid()
        self.dir = tempfile.mkdtemp(prefix="corelane-soak-")
        self.namespaces = []
        self.hosts = []

    def namespace(self, name):
        run("ip", "netns", "add", name)
        self.namespaces.append(name)
        run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        run("ip", "-n", name, "link", "set", "lo", "up")

    def up(self):
        for i in (1, 2):
            self.namespace("%s-h%d" % (self.prefix, i))
        run("ip", "link", "add", "wire1", "netns", self.prefix + "-h1", "type", "veth", "peer", "name", "wire2", "netns", self.prefix + "-h2")
        for i in (1, 2):
            netns = "%s-h%d" % (self.prefix, i)
            run("ip", "-n", netns, "link", "set", "wire%d" % i, "up", "mtu", "1700")
            run("ip", "netns", "exec", netns, "ethtool", "-K", "wire%d" % i, "tx", "off", "gso", "off", "tso", "off", "gro", "off")
            self.hosts.append(Host(self, i, 3 - i))
        for h in self.hosts:
            h.wait()
            self.configure(h)

    def configure(self, h):
        h.must("port", "add", "fab0", "fabric", "dpdk", "net_af_packet0,iface=wire%d" % h.index, "--address", "192.0.2.%d/24" % h.index,
               "--mtu", 1600)
        for k, overlay in enumerate(OVERLAYS):
            tenant = "%s-%s%d" % (self.prefix, overlay[-3:], h.index)
            self.namespace(tenant)
            h.must("vrf", "add", overlay)
            h.must("port", "add", overlay, "tenant", "tap", "--ifname", "eth0", "--netns", tenant, "--vrf", overlay, "--gateway", "10.1.0.1/24",
                   "--guest-mac", "02:00:00:00:%02d:%02d" % (k, h.index), "--guest-address", "10.1.0.1%d/32" % h.index)
            run("ip", "-n", tenant, "addr", "add", "10.1.0.1%d/24" % h.index, "dev", "eth0")
            run("ip", "-n", tenant, "link", "set", "eth0", "up")
            run("ip", "-n", tenant, "route", "replace", "10.1.0.1%d/32" % h.peer, "via", "10.1.0.1", "dev", "eth0")
            h.must("nexthop", "add", 100 + k, "tunnel", *self.tunnel(h, k))
            h.must("route", "add", "10.1.0.1%d/32" % h.peer, "--vrf", overlay, "--nexthop", 100 + k)
            h.must("label" if overlay != "vxlan" else "vni", "add", 1000 + k, "vrf", overlay)

    @staticmethod
    def tunnel(h, k, ttl=64):
        kind = ("--vni", 1000 + k) if OVERLAYS[k] == "vxlan" else ("--label", 1000 + k)
        return ("--encap", OVERLAYS[k], "--remote", "192.0.2.%d" % h.peer, *kind, "--ttl", ttl)

    def down(self):
        for h in self.hosts:
            h.daemon.send_signal(signal.SIGTERM)
        codes = [h.daemon.wait(PATIENCE) for h in self.hosts]
        for n in self.namespaces:
            subprocess.run(["ip", "netns", "del", n], check=False)
        return codes

    def end(self):
        """Stops everything; returns what went wrong."""
        codes = self.down()
        for p in multiprocessing.active_children():
            p.kill()
        return ["corelaned ended with status %s; logs in %s" % (codes, self.dir)] if any(codes) else []


def sender(netns, source, target, stop, sent, got, window):
    enter(netns)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    n, payload = 0, b"x" * 200
    while not stop.is_set():
        if window and n - got.value >= (window if got.value else 1):  # the first one asks for addresses
            time.sleep(PAUSE)
            continue
        try:
            s.sendto(payload, (target, 5000))
            n += 1
        except OSError:  # the port is down for a moment, so nothing was sent
            pass
        if n % 8 == 0:
            time.sleep(8 * PAUSE)
    sent.value = n


def receiver(netns, address, ready, stop, got, overflow):
    enter(netns)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
    s.bind((address, 5000))
    s.settimeout(0.5)
    ready.set()
    while True:
        try:
            s.recv(2048)
            got.value += 1  # nobody else writes it
        except socket.timeout:
            if stop.is_set():
                break
    with open("/proc/net/udp") as f:
        overflow.value = sum(int(line.split()[-1]) for line in f.readlines()[1:])


class Flow:
    """window: the most datagrams that are on their way."""

    def __init__(self, lab, overlay, a, b, window=None):
        tail = overlay[-3:]
        self.name = "%s h%d->h%d" % (overlay, a, b)
        self.sent, self.got, self.overflow = (multiprocessing.Value("Q") for _ in range(3))
        self.stop_send, self.stop_recv, ready = (multiprocessing.Event() for _ in range(3))
        self.recv = multiprocessing.Process(target=receiver, args=("%s-%s%d" % (lab.prefix, tail, b), "10.1.0.1%d" % b, ready, self.stop_recv,
                                                                   self.got, self.overflow))
        self.recv.start()
        ready.wait(PATIENCE)
        self.send = multiprocessing.Process(target=sender, args=("%s-%s%d" % (lab.prefix, tail, a), "10.1.0.1%d" % a, "10.1.0.1%d" % b,
                                                                 self.stop_send, self.sent, self.got, window))
        self.send.start()

    def stop(self, seconds=1):
        """seconds: for datagrams on their way."""
        self.stop_send.set()
        self.send.join()
        deadline = time.monotonic() + seconds
        while self.got.value < self.sent.value and time.monotonic() < deadline:
            time.sleep(0.1)
        self.stop_recv.set()
        self.recv.join()


class Chaos:
    """Random changes. Each is undone at its end, or by a later one."""

    def __init__(self, lab, rng):
        self.lab, self.rng, self.done = lab, rng, {}
        self.extra = {h.index: 0 for h in lab.hosts}

    def step(self):
        h = self.rng.choice(self.lab.hosts)
        action = self.rng.choice((self.port, self.routes, self.route_gap, self.tunnel, self.worker, self.move, self.queue, self.mtu, self.flap,
                                  self.bridge))
        action(h)
        self.done[action.__name__] = self.done.get(action.__name__, 0) + 1

    def port(self, h):
        name = "extra%d" % self.rng.randrange(4)
        if not h("port", "del", name):
            h.must("port", "add", name, "tenant", "tap", "--vrf", self.rng.choice(OVERLAYS), "--queues", self.rng.choice((1, 2)))

    def routes(self, h):
        base = self.rng.randrange(64)
        prefixes = ["172.%d.%d.0/24" % (16 + base % 16, i) for i in range(200)]
        path = os.path.join(self.lab.dir, "routes")
        with open(path, "w") as f:
            f.writelines("%s 100\n" % p for p in prefixes)
        vrf = self.rng.choice(OVERLAYS)
        if not h("route", "del", *prefixes, "--vrf", vrf):
            h.must("route", "add", "--vrf", vrf, "--file", path)

    def route_gap(self, h):
        k = self.rng.randrange(len(OVERLAYS))
        prefix = "10.1.0.1%d/32" % h.peer
        h.must("route", "del", prefix, "--vrf", OVERLAYS[k])
        h.must("route", "add", prefix, "--vrf", OVERLAYS[k], "--nexthop", 100 + k)

    def tunnel(self, h):
        k = self.rng.randrange(len(OVERLAYS))
        h.must("nexthop", "add", 100 + k, "tunnel", *self.lab.tunnel(h, k, self.rng.randrange(2, 255)), "--replace")

    def worker(self, h):
        if self.extra[h.index]:
            h.must("worker", "del", self.extra[h.index])
            self.extra[h.index] = 0
        else:
            self.extra[h.index] = 7
            h.must("worker", "add", 7, "--cpu", self.rng.randrange(2), "--idle", "sleep")

    def move(self, h):
        h.must("worker", "set", 0, "--cpu", self.rng.randrange(2))

    def queue(self, h):
        workers = [w["id"] for w in h.json("worker", "list")]
        h.must("port", "assign", self.rng.choice(("fab0",) + OVERLAYS), "--queue", 0, "--worker", self.rng.choice(workers))

    def mtu(self, h):
        h.must("port", "set", self.rng.choice(OVERLAYS), "--mtu", self.rng.choice((1400, 1500)))

    def flap(self, h):
        name = self.rng.choice(OVERLAYS)
        h.must("port", "set", name, "--disabled")
        h.must("port", "set", name, "--disabled=false")

    def bridge(self, h):
        if h("bridge", "add", "office"):
            h.must("port", "add", "office0", "tenant", "tap", "--bridge", "office")
            h.must("port", "del", "office0")
            h.must("bridge", "del", "office")


def settled(h):
    """The status after the packets on their way have left."""
    for _ in range(20):
        status = h.json("status")[0]
        if int(status["mbufs_in_use"]) == 0:
            break
        time.sleep(0.2)
    return status


def settled_again(h, before):
    """As settled(), as soon as no more packet buffers are in use than before."""
    for _ in range(5 * PATIENCE):
        status = h.json("status")[0]
        if int(status["mbufs_in_use"]) <= int(before["mbufs_in_use"]):
            break
        time.sleep(0.2)
    return status


def check(lab, flows, before, after, drops, growth=MEMORY_GROWTH):
    failed = []
    lost = sum(f.sent.value - f.got.value for f in flows)
    explained = sum(sum(d.values()) for d in drops) + sum(h.missed() for h in lab.hosts) + sum(f.overflow.value for f in flows)
    for f in flows:
        print("  %-20s sent %9d  received %9d  lost %6d" % (f.name, f.sent.value, f.got.value, f.sent.value - f.got.value))
    for h, d in zip(lab.hosts, drops):
        print("  h%d drops: %s" % (h.index, ", ".join("%s %d" % kv for kv in sorted(d.items())) or "none"))
    print("  lost %d, counted with a reason %d" % (lost, explained))
    if any(f.got.value == 0 for f in flows):
        failed.append("a flow carried nothing")
    if lost > explained:
        failed.append("%d lost datagrams have no reason" % (lost - explained))
    for h, a, b in zip(lab.hosts, before, after):
        print("  h%d buffers in use %s -> %s, files %s -> %s, memory %.0f -> %.0f MiB" % (
            h.index, a["mbufs_in_use"], b["mbufs_in_use"], a["open_files"], b["open_files"], int(a["memory_bytes"]) / 2**20,
            int(b["memory_bytes"]) / 2**20))
        if int(b["mbufs_in_use"]) > int(a["mbufs_in_use"]):
            failed.append("h%d leaks packet buffers" % h.index)
        if int(b["open_files"]) > int(a["open_files"]):
            failed.append("h%d leaks descriptors" % h.index)
        if int(b["memory_bytes"]) > int(a["memory_bytes"]) + growth:
            failed.append("h%d grows" % h.index)
    return failed


def since(now, then):
    """The growth of each counter that grew."""
    return {k: v - then.get(k, 0) for k, v in now.items() if v > then.get(k, 0)}


def report(lab, failed, ok):
    """Returns the exit status."""
    for f in failed:
        print("FAILED: " + f)
    if not failed:
        shutil.rmtree(lab.dir)
        print(ok)
    return 1 if failed else 0


def main():
    seconds = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print("==> soak: %d s, seed %d" % (seconds, seed), flush=True)
    lab, failed = Lab(), ["it did not finish"]
    try:
        lab.up()
        chaos = Chaos(lab, random.Random(seed))
        before = [settled(h) for h in lab.hosts]
        start_drops = [h.drops() for h in lab.hosts]
        flows = [Flow(lab, o, a, 3 - a) for o in OVERLAYS for a in (1, 2)]
        end, tick, n = time.time() + seconds, time.time() + 10, 0
        while time.time() < end:
            chaos.step()
            n += 1
            if time.time() > tick:
                print("  %4d s left, %d changes" % (end - time.time(), n), flush=True)
                tick += 10
            time.sleep(0.05)
        for f in flows:
            f.stop()
        for h in lab.hosts:
            for name in ("extra0", "extra1", "extra2", "extra3"):
                h("port", "del", name)
            if chaos.extra[h.index]:
                h.must("worker", "del", chaos.extra[h.index])
        print("  changes: %s" % ", ".join("%s %d" % kv for kv in sorted(chaos.done.items())))
        after = [settled_again(h, b) for h, b in zip(lab.hosts, before)]
        failed = check(lab, flows, before, after, [since(h.drops(), s) for h, s in zip(lab.hosts, start_drops)])
    finally:
        failed += lab.end()
    return report(lab, failed, "ok: every loss has its reason, nothing leaked")


if __name__ == "__main__":
    sys.exit(main())
