# SPDX-License-Identifier: Apache-2.0
"""Security rules between guests of one segment, with the traffic of kernels: on this node, and behind a tunnel.

  guest g1 -- vm1 --+
                    +-- corelaned -- fab0 -- the kernel's VXLAN device: guest "far"
  guest g2 -- vm2 --+
"""
import contextlib
import os
import subprocess
import sys

import pytest

from namespaces import Namespace, answers, wait

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

G1, G2, FAR = (("10.5.0.1", "fd05::1"), ("10.5.0.2", "fd05::2"), ("10.5.0.3", "fd05::3"))
ROUTER, KERNEL = "192.0.2.1", "192.0.2.2"
VNI, TUNNEL, MTU = 500, 100, 1400
OPEN, CLOSED = 8080, 8081
BYTES = 300000

SERVER = """
import socket
s = socket.create_server(("{address}", {port}), family=socket.{family})
print("ready", flush=True)
c = s.accept()[0]
while data := c.recv(1 << 16):
    c.sendall(data)
"""

# A host that should not answer is given up after a second, in which the first segment is sent once.
CLIENT = """
import socket, threading
try:
    s = socket.create_connection(("{address}", {port}), timeout={seconds})
except TimeoutError:
    print("nothing")
    raise SystemExit
s.settimeout(60)
sent = bytes(i % 251 for i in range({size}))
threading.Thread(target=s.sendall, args=(sent,)).start()
got = b""
while len(got) < len(sent):
    data = s.recv(1 << 16)
    assert data
    got += data
print("same" if got == sent else "other")
"""


class Lab:
    def __init__(self, stack):
        self.g1, self.g2, self.far = (stack.enter_context(contextlib.closing(Namespace(n, MTU))) for n in ("g1", "g2", "far"))
        self.router = Daemon()
        stack.callback(self.router.stop)
        self.cli = self.router.cli
        self.cli("port", "add", "fab0", "fabric", "tap", "--netns", self.far.name, "--address", f"{ROUTER}/24")
        self.cli("nexthop", "add", TUNNEL, "tunnel", "--encap", "vxlan", "--remote", KERNEL, "--vni", VNI)
        self.cli("bridge", "add", "lan", "--flood", TUNNEL)
        self.cli("vni", "add", VNI, "bridge", "lan")
        self.rules("web", "allow --protocol tcp --destination-ports 8080", "allow --protocol icmp", "allow --protocol icmpv6")
        self.rules("nothing")
        self.rules("out", "allow --destination 10.5.0.0/24", "allow --destination fd05::/64", "allow --destination ff00::/8")
        # g2 answers, but begins nothing; nobody begins anything with g1.
        for name, guest, addresses, egress, ingress in (("vm1", self.g1, G1, "out", "nothing"), ("vm2", self.g2, G2, "nothing", "web")):
            self.cli("port", "add", name, "tenant", "tap", "--netns", guest.name, "--bridge", "lan", "--stateful", "--egress-rules",
                     egress, "--ingress-rules", ingress, "--mtu", MTU)
            self.addresses(guest, name, addresses)
        self.far.ip("address", "add", f"{KERNEL}/24", "dev", "fab0")
        self.far.ip("link", "set", "fab0", "up")
        self.far.ip("link", "add", "vx0", "type", "vxlan", "id", VNI, "local", KERNEL, "remote", ROUTER, "dstport", 4789)
        self.addresses(self.far, "vx0", FAR)

    @staticmethod
    def addresses(namespace, device, addresses):
        namespace.device(device, f"{addresses[0]}/24")
        namespace.ip("address", "add", f"{addresses[1]}/64", "dev", device, "nodad")

    def rules(self, name, *texts):
        self.cli("rule-list", "add", name)
        for i, text in enumerate(texts):
            self.cli("rule", "add", name, (i + 1) * 10, *text.split())

    def dropped(self, reason):
        return sum(int(d.get("packets", 0)) for d in self.cli("drops") if d["reason"] == reason)


@pytest.fixture(name="lab", scope="module")
def lab_fixture():
    with contextlib.ExitStack() as stack:
        yield Lab(stack)


def program(namespace, text, **values):
    return namespace.start("/usr/bin/python3", "-c", text.format(**values), stdout=subprocess.PIPE, text=True)


@contextlib.contextmanager
def listening(namespace, address, port):
    """A server that returns what its only client sends."""
    server = program(namespace, SERVER, address=address, port=port, family="AF_INET6" if ":" in address else "AF_INET")
    try:
        assert server.stdout.readline() == "ready\n"
        yield
    finally:
        server.kill()
        server.communicate(timeout=60)


def connects(namespace, address, port, seconds=60):
    """Whether a connection is made within these seconds and carries bytes both ways."""
    client = program(namespace, CLIENT, address=address, port=port, size=BYTES, seconds=seconds)
    out, _ = client.communicate(timeout=180)
    assert client.returncode == 0
    return out == "same\n"


@pytest.mark.parametrize("v", [0, 1], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("asker,host,address,reason", [
    ("g1", "g2", G2, "flow_denied_ingress"), ("far", "g2", G2, "flow_denied_ingress"), ("g1", "far", FAR, None)])
def test_what_the_rules_allow(lab, asker, host, address, reason, v):
    """Echoes and TCP pass in both directions of a connection, and another port of the same host does not answer."""
    asker, host = getattr(lab, asker), getattr(lab, host)
    wait(lambda: answers(asker, address[v]), f"answer of {address[v]}")
    with listening(host, address[v], OPEN):
        assert connects(asker, address[v], OPEN)
    with listening(host, address[v], CLOSED):
        before = lab.dropped(reason) if reason else 0
        assert connects(asker, address[v], CLOSED, 1 if reason else 60) is (reason is None)
        assert reason is None or lab.dropped(reason) > before


@pytest.mark.parametrize("v", [0, 1], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("asker,address,reason", [("g2", G1, "flow_denied_egress"), ("far", G1, "flow_denied_ingress")])
def test_what_they_deny(lab, asker, address, reason, v):
    before = lab.dropped(reason)
    assert not answers(getattr(lab, asker), address[v])
    assert lab.dropped(reason) > before


def test_the_flows_are_shown(lab):
    wait(lambda: answers(lab.g1, G2[0]), "answer of g2")
    flows = lab.cli("flow", "list", "--bridge", "lan", "--protocol", "icmp", "--action", "allow", "--port", "vm2")
    flow = next(f for f in flows if f["in_port"] == "vm1")
    assert (flow["out_port"], flow["egress_rule"], flow["ingress_rule"]) == ("vm2", 10, 20)
    assert int(flow["reverse"]["packets"]) > 0
