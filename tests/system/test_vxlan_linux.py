# SPDX-License-Identifier: Apache-2.0
"""VXLAN over an IPv6 underlay with the kernel's own device: both ends must agree on UDP checksums (RFC 6936).

  tenant's namespace -- corelaned -- fab0 -- the kernel's VXLAN device
"""
import contextlib
import os
import sys

import pytest

from namespaces import Namespace, answers, wait, wait_for_all_answers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

ROUTER, KERNEL = "2001:db8::1", "2001:db8::2"
LAN, FAR_LAN = "10.5.0.1", "10.5.0.2"
VNI, TUNNEL, MTU = 500, 100, 1400
BOTH = ("udp6zerocsumtx", "udp6zerocsumrx")


class Lab:
    def __init__(self, stack):
        self.tenant, self.kernel = (stack.enter_context(contextlib.closing(Namespace(n, MTU))) for n in ("t", "k"))
        self.router = Daemon()
        stack.callback(self.router.stop)
        cli = self.router.cli
        cli("port", "add", "fab0", "fabric", "tap", "--netns", self.kernel.name, "--address", f"{ROUTER}/64")
        self.set_checksum("default")
        cli("bridge", "add", "lan", "--flood", TUNNEL)
        cli("vni", "add", VNI, "bridge", "lan")
        cli("port", "add", "lan0", "tenant", "tap", "--netns", self.tenant.name, "--bridge", "lan")
        self.tenant.device("lan0", f"{LAN}/24")
        self.kernel.ip("address", "add", f"{KERNEL}/64", "dev", "fab0", "nodad")
        self.kernel.ip("link", "set", "fab0", "up")

    def set_checksum(self, value):
        self.router.cli("nexthop", "add", TUNNEL, "tunnel", "--encap", "vxlan", "--remote", KERNEL, "--vni", VNI, "--udp6-checksum",
                        value, "--replace")

    @contextlib.contextmanager
    def device(self, *options):
        self.kernel.ip("link", "add", "vx0", "type", "vxlan", "id", VNI, "local", KERNEL, "remote", ROUTER, "dstport", 4789, *options)
        try:
            self.kernel.device("vx0", f"{FAR_LAN}/24")
            self.tenant.ip("neighbor", "flush", "dev", "lan0")
            yield
        finally:
            self.kernel.ip("link", "del", "vx0")

    def refused_by_router(self):
        return sum(int(d.get("packets", 0)) for d in self.router.cli("drops") if d["reason"] == "fabric_udp6_zero")

    def refused_by_kernel(self):
        counters = dict(line.split() for line in self.kernel.run("cat", "/proc/net/snmp6").splitlines())
        return int(counters["Udp6InErrors"])


@pytest.fixture(scope="module")
def lab():
    with contextlib.ExitStack() as stack:
        yield Lab(stack)


# Without options the kernel's device sends checksums and wants them, and so does a next hop.
@pytest.mark.parametrize("options,checksum", [((), "default"), (BOTH, "off"), ((), "on"), (BOTH[:1], "on"), (BOTH[1:], "off")],
                         ids=lambda v: v if isinstance(v, str) else "-".join(v) or "none")
def test_ends_that_agree(lab, options, checksum):
    accept = checksum == "on" and "udp6zerocsumtx" in options  # the router would refuse what the kernel sends
    lab.set_checksum(checksum)
    lab.router.cli("settings", "set", f"--accept-udp6-zero={str(accept).lower()}")
    try:
        with lab.device(*options):
            wait(lambda: answers(lab.tenant, FAR_LAN), f"answer of {FAR_LAN}")
            for namespace, address in ((lab.tenant, FAR_LAN), (lab.kernel, LAN)):
                wait_for_all_answers(namespace, address, [lab.router], 1300)
    finally:
        lab.router.cli("settings", "set", "--accept-udp6-zero=false")


def test_the_kernel_refuses_zero(lab):
    lab.set_checksum("off")
    with lab.device():
        before = lab.refused_by_kernel()
        assert not answers(lab.tenant, FAR_LAN)
        wait(lambda: lab.refused_by_kernel() > before, "packet that the kernel refuses")


def test_the_router_refuses_zero(lab):
    lab.set_checksum("on")
    with lab.device(*BOTH):
        before = lab.refused_by_router()
        assert not answers(lab.kernel, LAN)
        wait(lambda: lab.refused_by_router() > before, "packet that the router refuses")
