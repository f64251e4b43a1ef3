# SPDX-License-Identifier: Apache-2.0
"""Geneve with Open vSwitch: tenants of Corelane and a host behind Open vSwitch, with its datapath in user space, bridged
and routed, over an IPv4 and an IPv6 underlay. Open vSwitch sends options with every packet.

  tenants' namespace -- corelaned -- fab0 -- Open vSwitch -- veth -- host's namespace
"""
import contextlib
import os
import subprocess
import sys
import tempfile

import pytest

from namespaces import Namespace, answers, run, wait, wait_for_all_answers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

DAEMON, SCHEMA = "/usr/lib/openvswitch-switch/ovs-vswitchd", "/usr/share/openvswitch/vswitch.ovsschema"
FAB0 = {4: "192.0.2.1", 6: "2001:db8::1"}
OVS = {4: "192.0.2.2", 6: "2001:db8::2"}
LENGTH = {4: 24, 6: 64}
BRIDGED, ROUTED = 500, 600  # VNIs
HOST_MAC, FAR_ROUTER = "02:00:00:00:0b:02", "02:00:00:00:bb:02"
LAN, FAR_LAN = "10.5.0.1", "10.5.0.2"
RED, FAR_RED = "10.1.0.11", "10.6.0.2"
CRITICAL_PORT = 7777  # packets to this port get a critical option
MTU = 1400
SENT = 1 << 20

pytestmark = pytest.mark.skipif(not os.path.exists(DAEMON), reason="openvswitch-switch is not installed")


class OpenVSwitch:
    """An Open vSwitch with its own database and directory; the machine's is not touched."""

    def __init__(self, namespace):
        self.dir = tempfile.TemporaryDirectory(prefix=f"corelane-ovs-{os.getpid()}-")
        self.env = {**os.environ, **{f"OVS_{name}": self.dir.name for name in ("RUNDIR", "DBDIR", "LOGDIR", "SYSCONFDIR")}}
        self.processes = []
        database = self.path("conf.db")
        run("ovsdb-tool", "create", database, SCHEMA)
        self.start(namespace, "ovsdb-server", database, f"--remote=punix:{self.path('db.sock')}", f"--unixctl={self.path('db.ctl')}")
        wait(lambda: os.path.exists(self.path("db.sock")), "database of Open vSwitch")
        self.vsctl("--no-wait", "init")
        self.start(namespace, DAEMON, f"unix:{self.path('db.sock')}", f"--unixctl={self.path('daemon.ctl')}")
        wait(lambda: os.path.exists(self.path("daemon.ctl")), "Open vSwitch")

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def start(self, namespace, *command):
        with open(self.path("log"), "ab") as log:
            self.processes.append(namespace.start("taskset", "-c", min(os.sched_getaffinity(0)), *command, stdout=log, stderr=log,
                                                  env=self.env))

    def vsctl(self, *args):
        return run("ovs-vsctl", "--timeout=60", f"--db=unix:{self.path('db.sock')}", *args, env=self.env)

    def ofctl(self, *args):
        return run("ovs-ofctl", "-O", "OpenFlow13", args[0], f"unix:{self.path('int.mgmt')}", *args[1:], env=self.env)

    def close(self):
        for p in reversed(self.processes):
            p.kill()
            p.wait()
        self.dir.cleanup()


class Lab:
    def __init__(self, stack, under):
        self.under = under
        self.tenant, self.host, self.middle = (stack.enter_context(contextlib.closing(Namespace(n, MTU))) for n in ("t", "h", "ovs"))
        self.router = Daemon()
        stack.callback(self.router.stop)
        self.start_corelane()
        self.switch = stack.enter_context(contextlib.closing(OpenVSwitch(self.middle)))
        self.start_switch()
        self.start_hosts()

    def start_corelane(self):
        cli, under, far = self.router.cli, self.under, OVS[self.under]
        address = f"{FAB0[under]}/{LENGTH[under]}"
        cli("port", "add", "fab0", "fabric", "tap", "--netns", self.middle.name, "--address", address)
        cli("vrf", "add", "red")
        cli("nexthop", "add", 100, "tunnel", "--encap", "geneve", "--remote", far, "--vni", BRIDGED)
        cli("nexthop", "add", 200, "tunnel", "--encap", "geneve", "--remote", far, "--vni", ROUTED, "--router-mac", FAR_ROUTER)
        cli("bridge", "add", "lan", "--flood", 100)
        cli("vni", "add", BRIDGED, "bridge", "lan")
        cli("vni", "add", ROUTED, "vrf", "red")
        cli("route", "add", "10.6.0.0/24", "--vrf", "red", "--nexthop", 200)
        cli("port", "add", "lan0", "tenant", "tap", "--netns", self.tenant.name, "--bridge", "lan")
        cli("port", "add", "red0", "tenant", "tap", "--netns", self.tenant.name, "--vrf", "red", "--gateway", "10.1.0.1/24",
            "--guest-address", RED)

    def start_switch(self):
        vsctl, ofctl = self.switch.vsctl, self.switch.ofctl
        self.middle.ip("link", "add", "host0", "type", "veth", "peer", "name", "eth0", "netns", self.host.name)
        for name in ("host0", "fab0"):
            self.middle.run("sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
            self.middle.ip("link", "set", name, "up")
        vsctl("add-br", "phy", "--", "set", "Bridge", "phy", "datapath_type=netdev", "--", "add-port", "phy", "fab0")
        vsctl("add-br", "int", "--", "set", "Bridge", "int", "datapath_type=netdev", "fail_mode=secure", "--", "add-port", "int", "host0",
              "--", "set", "Interface", "host0", "ofport_request=1", "--", "add-port", "int", "gnv", "--", "set", "Interface", "gnv",
              "type=geneve", f"options:remote_ip=\"{FAB0[self.under]}\"", "options:key=flow", "ofport_request=2")
        self.middle.ip("address", "add", f"{OVS[self.under]}/{LENGTH[self.under]}", "dev", "phy", *(["nodad"] if self.under == 6 else []))
        self.middle.ip("link", "set", "phy", "up")
        ofctl("add-tlv-map", "{class=0x102,type=1,len=4}->tun_metadata0,{class=0x102,type=0x81,len=4}->tun_metadata1")
        mac = self.router.cli("vrf", "show", "red")[0]["router_mac"]
        option = "set_field:0x11223344->tun_metadata0"
        for flow in (
                f"priority=3,in_port=1,udp,tp_dst={CRITICAL_PORT},actions=set_field:{BRIDGED}->tun_id,set_field:1->tun_metadata1,output:2",
                f"priority=2,in_port=1,ip,dl_dst={FAR_ROUTER},actions=dec_ttl,set_field:{FAR_ROUTER}->eth_src,set_field:{mac}->eth_dst,"
                f"set_field:{ROUTED}->tun_id,{option},output:2",
                f"priority=1,in_port=1,actions=set_field:{BRIDGED}->tun_id,{option},output:2",
                f"in_port=2,tun_id={BRIDGED},actions=output:1",
                f"in_port=2,tun_id={ROUTED},dl_dst={FAR_ROUTER},actions=set_field:{HOST_MAC}->eth_dst,output:1"):
            ofctl("add-flow", flow)

    def start_hosts(self):
        self.tenant.device("lan0", f"{LAN}/24")
        self.tenant.device("red0", f"{RED}/24")
        self.tenant.ip("route", "add", "10.6.0.0/24", "via", "10.1.0.1")
        self.host.device("eth0", f"{FAR_LAN}/24", f"{FAR_RED}/24", mac=HOST_MAC)
        self.host.ip("neighbor", "add", "10.6.0.1", "lladdr", FAR_ROUTER, "dev", "eth0")
        self.host.ip("route", "add", "10.1.0.0/24", "via", "10.6.0.1")
        self.host.run("ethtool", "-K", "eth0", "tx", "off")  # the switch needs complete checksums

    def drops(self, reason):
        return sum(int(d.get("packets", 0)) for d in self.router.cli("drops") if d["reason"] == reason)


@pytest.fixture(scope="module", params=[4, 6], ids=["ipv4", "ipv6"])
def lab(request):
    with contextlib.ExitStack() as stack:
        yield Lab(stack, request.param)


ways = pytest.mark.parametrize("near,far", [(LAN, FAR_LAN), (RED, FAR_RED)], ids=["bridged", "routed"])


@ways
def test_ping(lab, near, far):
    wait(lambda: answers(lab.tenant, far), f"answer of {far}")
    for namespace, address in ((lab.tenant, far), (lab.host, near)):
        wait_for_all_answers(namespace, address, [lab.router], 1300)


SERVER = f"""
import hashlib, socket, sys
with socket.create_server((sys.argv[1], 5001)) as s:
    print("ready", flush=True)
    c, _ = s.accept()
    with c, c.makefile("rb") as f:
        data = f.read({SENT})
        c.sendall(data)
    print(hashlib.sha256(data).hexdigest())
"""
CLIENT = f"""
import hashlib, os, socket, sys, threading
data, back = os.urandom({SENT}), b""
with socket.create_connection((sys.argv[1], 5001), timeout=60) as c, c.makefile("rb") as f:
    c.sendall(data)
    back = f.read({SENT})
assert back == data, f"{{len(back)}} bytes of {{len(data)}} came back"
print(hashlib.sha256(data).hexdigest())
"""


@ways
def test_tcp(lab, near, far):
    """Sends a megabyte in each direction."""
    wait(lambda: answers(lab.tenant, far), f"answer of {far}")
    server = lab.host.start(sys.executable, "-c", SERVER, far, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        seen = lab.tenant.run(sys.executable, "-c", CLIENT, far)
        assert server.communicate(timeout=60)[0] == seen
    finally:
        server.kill()
        server.wait()


def test_options_are_on_the_wire(lab):
    """Without options on the wire the tests above would not test them."""
    wait(lambda: answers(lab.tenant, FAR_LAN), f"answer of {FAR_LAN}")
    udp = "ip6[48]" if lab.under == 6 else "udp[8]"
    seen = lab.middle.start("timeout", "60", "tcpdump", "-n", "-i", "fab0", "-c", "5", f"{udp} == 2 and dst port 6081 and dst host {FAB0[lab.under]}",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: answers(lab.tenant, FAR_LAN) and seen.poll() is not None, "five packets with one option")
    assert seen.returncode == 0, seen.communicate()[1]


def test_a_critical_option_is_a_named_drop(lab):
    wait(lambda: answers(lab.tenant, FAR_LAN), f"answer of {FAR_LAN}")
    before = lab.drops("geneve_critical_option")
    lab.host.run(sys.executable, "-c",
                 f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); [s.sendto(b'x', ('{LAN}', {CRITICAL_PORT})) for _ in range(3)]")
    wait(lambda: lab.drops("geneve_critical_option") == before + 3, "three drops")
