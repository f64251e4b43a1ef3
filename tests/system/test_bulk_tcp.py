# SPDX-License-Identifier: Apache-2.0
"""Bulk TCP and UDP between kernels, whose large segments and unfinished checksums the router carries: what arrives is what
was sent. On one node, and between two nodes through each encapsulation.

  c0 -- corelaned -- c1                   c0 -- corelaned -- memif -- corelaned -- c1
"""
import contextlib
import json
import os
import re
import socket
import sys

import pytest

from namespaces import Namespace, answers, wait

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402
from tshark import assert_sound, numbers, read  # noqa: E402

MTU, BULK, SOME, LITTLE = 1500, 100 << 20, 16 << 20, 1 << 20
WHOLE = 1700  # bytes of a packet on average: more than any that was cut
HOSTS = {4: ("10.1.0.2", "10.1.0.3"), 6: ("2001:db8:a::2", "2001:db8:a::3")}
MACS = ("02:00:00:00:00:02", "02:00:00:00:00:03")
VIRTUAL = {4: "10.9.0.9", 6: "2001:db8:b::9"}  # that NAT leads to c1

SERVER = """
import hashlib, json, socket
s = socket.create_server(("{address}", 5000), family=socket.{family})
print("ready", flush=True)
c, digest, n = s.accept()[0], hashlib.sha256(), 0
while data := c.recv(1 << 20):
    digest.update(data)
    n += len(data)
c.sendall(digest.digest())
print(json.dumps({{"bytes": n}}), flush=True)
"""

CLIENT = """
import hashlib, random, socket
block, digest = random.Random(7).randbytes(1 << 20), hashlib.sha256()
s = socket.create_connection(("{address}", 5000), timeout=60)
for i in range(0, {size}, len(block)):
    digest.update(block)
    s.sendall(block)
s.shutdown(socket.SHUT_WR)
assert s.recv(32, socket.MSG_WAITALL) == digest.digest(), "not what was sent"
"""

# UDP with segments of 1,000 bytes (UDP_SEGMENT), of which none may be damaged or merged.
DATAGRAMS = """
import socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
s.setsockopt(17, 103, 1000)
s.connect(("{address}", 5000))
for i in range(20):
    s.send(bytes([i]) * 20500)
"""

RECEIVER = """
import json, socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 4 << 20)  # SO_RCVBUFFORCE: room for all
s.bind(("{address}", 5000))
s.settimeout(60)
print("ready", flush=True)
got = [s.recv(65536) for i in range(20 * 21)]
assert all(len(d) == (500 if i % 21 == 20 else 1000) and set(d) == {{i // 21}} for i, d in enumerate(got))
print(json.dumps({{"bytes": sum(len(d) for d in got)}}), flush=True)
"""


def program(namespace, text, **values):
    return namespace.start("/usr/bin/python3", "-c", text.format(**values), stdout=-1, text=True)


def finished(process):
    out = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    return out


def exchange(server, sender, receiver, to, address, text, other, **values):
    """`other` runs where the bytes arrive, `text` where they come from. Returns how many bytes arrived."""
    family = "AF_INET6" if ":" in address else "AF_INET"
    far = program(receiver, other, address=server, family=family)
    assert far.stdout.readline() == "ready\n"
    finished(program(sender, text, address=to, family=family, **values))
    return json.loads(finished(far))["bytes"]


def transfer(sender, receiver, address, size, to=None):
    assert exchange(address, sender, receiver, to or address, address, CLIENT, SERVER, size=size) == size


class Tenants:
    def __init__(self, stack):
        self.sides = [stack.enter_context(contextlib.closing(Namespace(n, MTU))) for n in ("c0", "c1")]
        for side in self.sides:  # segments are large on a slow machine, too: a kernel makes them of what it can send in a millisecond
            side.run("sysctl", "-qw", "net.ipv4.tcp_min_tso_segs=40")

    def routed(self, router, side, *options, vrf="red"):
        near4, near6 = HOSTS[4][side], HOSTS[6][side]
        router.cli("port", "add", f"c{side}", "tenant", "tap", "--netns", self.sides[side].name, "--vrf", vrf, "--gateway",
                   "10.1.0.1/32,2001:db8:a::1/128", "--guest-mac", MACS[side], "--guest-address", f"{near4},{near6}", *options)
        namespace = self.sides[side]
        namespace.device(f"c{side}", f"{near4}/32", mac=MACS[side])
        namespace.ip("address", "add", f"{near6}/128", "dev", f"c{side}", "nodad")
        for gateway, everything in (("10.1.0.1", "0.0.0.0/0"), ("2001:db8:a::1", "::/0")):
            namespace.ip("route", "add", gateway, "dev", f"c{side}")
            namespace.ip("route", "add", everything, "via", gateway, "dev", f"c{side}")

    def reach(self, family):
        wait(lambda: answers(self.sides[0], HOSTS[family][1]), f"answer of {HOSTS[family][1]}")


def bytes_per_packet(router, port):
    counters = router.cli("port", "show", port)[0]["state"]["counters"]
    return int(counters["tx_bytes"]) / int(counters["tx_packets"])


@pytest.fixture(name="stack")
def new_stack():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture(name="router")
def new_router(stack):
    router = Daemon()
    stack.callback(router.stop)
    router.cli("vrf", "add", "red")
    return router


OFFLOADS = [("all", "all"), ("all", "none"), ("none", "all"), ("checksum", "checksum"), ("all", "checksum")]


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
@pytest.mark.parametrize("offloads", OFFLOADS, ids="-".join)
def test_one_node(stack, router, offloads, stateful, family):
    tenants = Tenants(stack)
    for side, offload in enumerate(offloads):
        tenants.routed(router, side, "--offload", offload, *(["--stateful"] if stateful else []))
    tenants.reach(family)
    transfer(*tenants.sides, HOSTS[family][1], BULK if offloads == ("all", "all") else SOME)
    if offloads != ("none", "all"):  # there packets are joined if they leave in one batch, which is what a slow machine does
        assert (bytes_per_packet(router, "c1") > WHOLE) == (offloads == ("all", "all"))
    if stateful and offloads == ("all", "all"):  # flows count packets on the wire
        flows = [f for f in router.cli("flow", "list") if f["protocol"] == "tcp"]
        assert flows
        most = max(int(d.get("bytes", 0)) / int(d["packets"]) for f in flows for d in (f["forward"], f["reverse"]) if d.get("packets"))
        assert most <= MTU


@pytest.mark.parametrize("family", [4, 6])
def test_nat(stack, router, family):
    tenants = Tenants(stack)
    for side in (0, 1):
        tenants.routed(router, side, "--stateful")
    tenants.reach(family)
    router.cli("nat", "add", 10, "destination", f"[{VIRTUAL[6]}]:80" if family == 6 else f"{VIRTUAL[4]}:80",
               f"[{HOSTS[6][1]}]:5000" if family == 6 else f"{HOSTS[4][1]}:5000", "--vrf", "red", "--protocol", "tcp")
    far = program(tenants.sides[1], SERVER, address=HOSTS[family][1], family="AF_INET6" if family == 6 else "AF_INET")
    assert far.stdout.readline() == "ready\n"
    finished(program(tenants.sides[0], CLIENT.replace("5000", "80"), address=VIRTUAL[family], size=BULK))
    assert json.loads(finished(far))["bytes"] == BULK
    assert bytes_per_packet(router, "c1") > WHOLE


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("offloads", [("all", "all"), ("all", "none")], ids="-".join)
def test_datagrams(stack, router, offloads, family):
    tenants = Tenants(stack)
    for side, offload in enumerate(offloads):
        tenants.routed(router, side, "--offload", offload)
    tenants.reach(family)
    address = HOSTS[family][1]
    assert exchange(address, *tenants.sides, address, address, DATAGRAMS, RECEIVER) == 20 * 20500


@pytest.mark.parametrize("family", [4, 6])
def test_bridged(stack, router, family):
    tenants = Tenants(stack)
    router.cli("bridge", "add", "lan")
    for side in (0, 1):
        router.cli("port", "add", f"c{side}", "tenant", "tap", "--netns", tenants.sides[side].name, "--bridge", "lan")
        tenants.sides[side].device(f"c{side}", f"{HOSTS[4][side]}/24")
        tenants.sides[side].ip("address", "add", f"{HOSTS[6][side]}/64", "dev", f"c{side}", "nodad")
    tenants.reach(family)
    transfer(*tenants.sides, HOSTS[family][1], BULK)
    assert bytes_per_packet(router, "c1") > WHOLE


ENCAPS = {"vxlan": ("--vni", 500), "geneve": ("--vni", 500), "mplsoudp": ("--label", 500), "mplsogre": ("--label", 500)}


def node(stack, number, underlay, encap, *fabric):
    router = Daemon()
    stack.callback(router.stop)
    own, far = (("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2"))[underlay == 6][::-1 if number else 1]
    name, value = ENCAPS[encap][0][2:], ENCAPS[encap][1]
    router.cli("vrf", "add", "red")
    router.cli("port", "add", "fab0", "fabric", *fabric, "--mtu", 1700, "--address", f"{own}/{64 if underlay == 6 else 24}")
    router.cli("nexthop", "add", 100, "tunnel", "--encap", encap, "--remote", far, *ENCAPS[encap])
    router.cli(name, "add", value, "vrf", "red")
    router.cli("route", "add", HOSTS[4][1 - number] + "/32", HOSTS[6][1 - number] + "/128", "--vrf", "red", "--nexthop", 100)
    return router


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("underlay", [4, 6], ids=["over4", "over6"])
@pytest.mark.parametrize("encap", ENCAPS)
def test_two_nodes(stack, encap, underlay, family):
    tenants = Tenants(stack)
    memif = os.path.join("/tmp", f"corelane-bulk-{os.getpid()}.sock")
    routers = [node(stack, number, underlay, encap, "memif", "--socket", memif, *(["--client"] if number else [])) for number in (0, 1)]
    for side, router in enumerate(routers):
        tenants.routed(router, side, *(["--stateful"] if side else []))
    tenants.reach(family)
    transfer(*tenants.sides, HOSTS[family][1], SOME)
    assert bytes_per_packet(routers[0], "fab0") < 1700


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("whole", [(True, True), (True, False), (False, True)], ids=["both", "server", "client"])
def test_whole_segments(stack, whole, family):
    """A memif between nodes that both ask for it carries large segments whole, in both directions; with one that does not, nothing
    changes."""
    tenants = Tenants(stack)
    memif = os.path.join("/tmp", f"corelane-bulk-{os.getpid()}.sock")
    routers = [node(stack, number, 4, "vxlan", "memif", "--socket", memif, *(["--client"] if number else []),
                    *(["--whole-segments"] if whole[number] else [])) for number in (0, 1)]
    for side, router in enumerate(routers):
        tenants.routed(router, side)
    tenants.reach(family)
    transfer(*tenants.sides, HOSTS[family][1], SOME)
    transfer(*tenants.sides[::-1], HOSTS[family][0], SOME)
    for router in routers:
        assert (bytes_per_packet(router, "fab0") > WHOLE) == all(whole)
        drops = {d["reason"]: d["packets"] for d in router.cli("drops") if d["reason"].startswith("tunnel_")}
        assert not drops


class Wire:
    """A kernel's bridge between the nodes, and a capture of what the first node sends."""

    def __init__(self, stack, path):
        self.space, self.path = stack.enter_context(contextlib.closing(Namespace("w", 1700))), path
        self.space.ip("link", "add", "wire", "type", "bridge", "mcast_snooping", "0")
        self.space.device("wire")

    def fabric(self, number):
        return "tap", "--netns", self.space.name, "--ifname", f"node{number}"

    def connect(self):
        for number in (0, 1):
            self.space.ip("link", "set", f"node{number}", "master", "wire", "txqueuelen", 10000)  # more than a window

    def has_fin(self, address):
        """Whether the capture has the FIN of a connection to port 5000 of the address, inside whatever encapsulation."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        fin = b"[\x01\x11\x19]"
        header = re.escape(socket.inet_pton(family, address)) + b".." + re.escape((5000).to_bytes(2, "big")) + b".{9}" + fin
        with open(self.path, "rb") as f:
            return re.search(header, f.read(), re.DOTALL)

    @contextlib.contextmanager
    def capture(self, address):
        """The block has a connection to port 5000 of the address, whose FIN ends the capture."""
        p = self.space.start("tcpdump", "-i", "node0", "-Q", "in", "-w", self.path, "-U", "--immediate-mode", "-s", 2000, "-B", 65536,
                             stderr=-1, text=True)
        try:
            assert "listening on" in p.stderr.readline()
            yield
            wait(lambda: self.has_fin(address), "FIN in the capture")
        finally:
            p.terminate()
            said = p.communicate(timeout=60)[1]
        assert "\n0 packets dropped by kernel" in said, said


FROM_CLIENT = "tcp.dstport == 5000"
FIN, SYN, PSH, ACK = 1, 2, 8, 0x10


def sent_again(namespace):
    """Segments that the kernel has sent once more, on a slow machine even if none was lost."""
    return int(namespace.run("nstat", "-asz", "TcpRetransSegs").splitlines()[1].split()[1])


def assert_connection(frames, size, repeated):
    """The frames of one side of a connection, in the order in which they were sent: a correct sender would have sent them, and
    this number of segments once more."""
    flags = [numbers(f, "tcp.flags")[0] for f in frames]
    assert flags[0] == SYN and all(f & ~PSH in (ACK, ACK | FIN) for f in flags[1:])
    assert any(f & FIN for f in flags)
    following = first = numbers(frames[0], "tcp.seq_raw")[0] + 1
    again = 0
    for f in frames[1:]:
        behind = (following - numbers(f, "tcp.seq_raw")[0]) & 0xffffffff
        length = numbers(f, "tcp.len")[0] + (numbers(f, "tcp.flags")[0] & FIN)
        assert behind == 0 or 0 < length <= behind <= following - first, f  # the next bytes, or bytes once more
        again += length if behind else 0
        following += 0 if behind else length
    data = [n for f in frames if (n := numbers(f, "tcp.len")[0]) > 0]
    assert following == first + size + 1 and again <= repeated * (max(data) + 1)
    assert sum(n < max(data) for n in data) < len(data) / 4  # a segment's last packet may be shorter


def assert_ids(frames):
    """Linux counts the packets of a connection, and so does who cuts its segments. Between two frames with data, acknowledgments of
    what the other side has sent may have had numbers."""
    ids = [numbers(f, "ip.id")[-1] for f in frames]
    steps = [(b - a) & 0xffff for a, b in zip(ids, ids[1:])]
    assert all(1 <= step <= 3 for step in steps) and steps.count(1) > 0.9 * len(steps), sorted(set(steps))


@pytest.mark.parametrize("underlay", [4, 6], ids=["over4", "over6"])
@pytest.mark.parametrize("encap", ENCAPS)
def test_on_the_wire(stack, tmp_path, encap, underlay):
    """What the first node makes of a kernel's large segments, as tshark reads it, and what that kernel sends if it has to cut and to
    compute checksums itself."""
    wire, tenants = Wire(stack, str(tmp_path / "wire.pcap")), Tenants(stack)
    routers = [node(stack, number, underlay, encap, *wire.fabric(number)) for number in (0, 1)]
    wire.connect()
    for offload in ("all", "none"):
        tenants.routed(routers[0], 0, "--offload", offload)
        if offload == "all":
            tenants.routed(routers[1], 1)
        for family in (4, 6):
            tenants.reach(family)
            before = sent_again(tenants.sides[0])
            with wire.capture(HOSTS[family][1]):
                transfer(*tenants.sides, HOSTS[family][1], LITTLE)
            frames = read(wire.path, FROM_CLIENT)
            inside = [assert_sound(f, encap, underlay, family) for f in frames]
            assert max(inside) <= MTU
            assert_connection(frames, LITTLE, sent_again(tenants.sides[0]) - before)
            if family == 4:
                assert_ids([f for f in frames if numbers(f, "tcp.len")[0] > 0])
        received = routers[0].cli("port", "show", "c0")[0]["state"]["counters"]
        assert (int(received["rx_bytes"]) / int(received["rx_packets"]) > WHOLE) == (offload == "all")
        routers[0].cli("port", "del", "c0")
