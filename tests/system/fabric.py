# SPDX-License-Identifier: Apache-2.0
"""A fabric for tests: Corelane nodes that get nothing but intent files, and a route reflector.

  tenants' namespaces -- corelaned -- fab0 --+-- bridge of the fabric's namespace -- reflector
                         agent's namespace --+
"""
import atexit
import contextlib
import functools
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

from namespaces import Namespace, answers, dies_with_us, run, wait

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import ROOT, Daemon  # noqa: E402

AGENT = os.environ.get("CORELANE_AGENT") or os.path.join(ROOT, "bin", "corelane-agent")
BGPD = "/usr/lib/frr/bgpd"
ASN = 65000
REFLECTOR = "192.0.2.100"
MTU = 1400
serial = itertools.count()


class Reflector:
    """A route reflector. Subclasses say which configuration and command it has."""

    def __init__(self, namespace, clients):
        self.namespace, self.clients = namespace, clients
        self.dir = tempfile.TemporaryDirectory(prefix=f"corelane-reflector-{os.getpid()}-")
        os.chmod(self.dir.name, 0o777)
        self.config = self.path("config")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(self.text(clients))
        os.chmod(self.config, 0o644)
        self.process = None
        self.start()

    def text(self, clients):
        raise NotImplementedError

    def command(self):
        raise NotImplementedError

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def start(self):
        with open(self.path("log"), "ab") as log:
            self.process = self.namespace.start(*self.command(), stdout=log, stderr=log)

    def kill(self):
        # the process is `ip netns exec`, which has become the reflector
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.dir.cleanup()


class FrrReflector(Reflector):
    """FRR's bgpd without zebra."""

    program = BGPD

    def text(self, clients):
        neighbors = "".join(f" neighbor {c} remote-as {ASN}\n neighbor {c} timers connect 1\n" for c in clients)
        family = "".join(f"  neighbor {c} activate\n  neighbor {c} route-reflector-client\n" for c in clients)
        return f"""router bgp {ASN}
 bgp router-id {REFLECTOR}
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 coalesce-time 10
 bgp graceful-restart
{neighbors} address-family ipv4 vpn
{family} exit-address-family
 address-family ipv6 vpn
{family} exit-address-family
 address-family l2vpn evpn
{family} exit-address-family
"""

    def command(self):
        return [BGPD, "-Z", "-S", "-n", "-f", self.config, "-i", self.path("pid"), "-z", self.path("zserv"), "--vty_socket",
                self.dir.name, "-l", REFLECTOR]


class BirdReflector(Reflector):
    """BIRD 2, which knows VPNv4 and VPNv6; EVPN came with 2.19."""

    program = "/usr/sbin/bird"

    def text(self, clients):
        sessions = "".join(f"protocol bgp from node {{ neighbor {c} as {ASN}; }}\n" for c in clients)
        return f"""router id {REFLECTOR};
vpn4 table vpn4_routes;
vpn6 table vpn6_routes;
protocol device {{ }}
protocol direct {{ ipv4; }}
template bgp node {{
  local {REFLECTOR} as {ASN};
  rr client;
  connect retry time 1;
  vpn4 mpls {{ table vpn4_routes; import all; export all; }};
  vpn6 mpls {{ table vpn6_routes; import all; export all; }};
}}
{sessions}"""

    def command(self):
        return [self.program, "-f", "-c", self.config, "-s", self.path("control"), "-P", self.path("pid")]


@functools.cache
def gobgp_reflector():
    """Builds tests/system/reflector with the flags of bin/, whose packages need not be compiled again then."""
    folder = tempfile.TemporaryDirectory(prefix=f"corelane-gobgp-{os.getpid()}-")
    atexit.register(folder.cleanup)
    program = os.path.join(folder.name, "reflector")
    done = subprocess.run([os.path.join(ROOT, "tools", "go.sh"), "build", "-buildvcs=false", "-trimpath", "-buildmode=pie", "-o", program,
                           "./tests/system/reflector"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return program


class GobgpReflector(Reflector):
    """GoBGP's server as a library."""

    options = ()

    def text(self, clients):
        return ""

    def command(self):
        return [gobgp_reflector(), *self.options, ASN, REFLECTOR, *self.clients]

    def start(self):
        super().start()
        wait(lambda: self.namespace.run("ss", "-Htln", "sport", "=", "179"), "listener of the reflector")


class Frr:
    """A host that nobody here wrote: FRR's bgpd and zebra."""

    def __init__(self, fabric, number, password=""):
        self.address, self.password = f"192.0.2.{number}", password
        self.dir = tempfile.TemporaryDirectory(prefix=f"corelane-vtep-{os.getpid()}-")
        os.chmod(self.dir.name, 0o777)
        self.stack = contextlib.ExitStack()
        self.stack.callback(self.dir.cleanup)
        self.space, self.guest = Namespace(f"v{number}", MTU), Namespace(f"g{number}", MTU - 100)
        self.stack.callback(self.space.close)
        self.stack.callback(self.guest.close)
        fabric.ip("link", "add", f"vtep{number}", "type", "veth", "peer", "name", "eth0", "netns", self.space.name)
        fabric.ip("link", "set", f"vtep{number}", "mtu", MTU, "master", "fabric", "up")
        self.space.ip("link", "set", "lo", "up")
        self.space.device("eth0", f"{self.address}/24")
        self.guest.ip("link", "set", "lo", "up")

    def run_daemons(self, zebra, families, *options):
        """Starts zebra with a configuration, and bgpd with one of its families of addresses."""
        password = f" neighbor {REFLECTOR} password {self.password}\n" if self.password else ""
        self.config("zebra", zebra)
        self.config("bgpd", f"""router bgp {ASN}
 bgp router-id {self.address}
 no bgp default ipv4-unicast
 coalesce-time 10
 neighbor {REFLECTOR} remote-as {ASN}
 neighbor {REFLECTOR} timers connect 1
{password}{families}""")
        for daemon in ("zebra", "bgpd"):
            self.start(daemon, *(options if daemon == "zebra" else ()))
            wait(lambda d=daemon: os.path.exists(self.path(d + ".vty")), f"start of {daemon}")

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def config(self, daemon, text):
        with open(self.path(daemon + ".conf"), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path(daemon + ".conf"), 0o644)

    def command(self, daemon, *options):
        return ["/usr/lib/frr/" + daemon, "-S" if daemon == "bgpd" else "-a", "-f", self.path(daemon + ".conf"), "-i",
                self.path(daemon + ".pid"), "-z", self.path("zserv"), "--vty_socket", self.dir.name, *options]

    def start(self, daemon, *options):
        with open(self.path(daemon + ".log"), "ab") as log:
            process = self.space.start(*self.command(daemon, *options), stdout=log, stderr=log)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)

    def vtysh(self, command, daemon="bgpd"):
        return run("vtysh", "--vty_socket", self.dir.name, "-d", daemon, "-c", command)

    def routes(self):
        """All routes of EVPN that bgpd has, by their text."""
        table = json.loads(self.vtysh("show bgp l2vpn evpn route json"))
        return {prefix: paths["paths"] for rd in table.values() if isinstance(rd, dict) for prefix, paths in rd.items()
                if isinstance(paths, dict) and "paths" in paths}

    def close(self):
        self.stack.close()


class Vtep(Frr):
    """FRR over the kernel's VXLAN device in a bridge, with a guest."""

    def __init__(self, fabric, number, vni, guest_address, password=""):
        super().__init__(fabric, number, password)
        self.space.ip("link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        self.space.ip("link", "set", "br0", "addrgenmode", "none")
        self.space.ip("link", "add", "vx0", "type", "vxlan", "id", vni, "dstport", 4789, "local", self.address, "nolearning")
        self.space.ip("link", "set", "vx0", "master", "br0", "addrgenmode", "none", "up")
        self.space.run("bridge", "link", "set", "dev", "vx0", "learning", "off")
        self.space.ip("link", "add", "p0", "type", "veth", "peer", "name", "eth0", "netns", self.guest.name)
        self.space.ip("link", "set", "p0", "master", "br0", "up")
        self.space.ip("link", "set", "br0", "up")
        self.guest.device("eth0", f"{guest_address}/24")
        self.mac = json.loads(self.guest.ip("-j", "link", "show", "eth0"))[0]["address"]
        self.run_daemons("", f""" address-family l2vpn evpn
  neighbor {REFLECTOR} activate
  advertise-all-vni
 exit-address-family
""")


class RoutedVtep(Frr):
    """FRR with a VRF over the kernel's VXLAN device, and a guest behind it. The VRF is a network namespace: not every kernel has
    VRF devices."""

    def __init__(self, fabric, number, vni, guest_address):
        super().__init__(fabric, number)
        gateway = guest_address.rsplit(".", 1)[0] + ".1"
        self.tenant = Namespace(f"t{number}", MTU - 100)
        self.stack.callback(self.tenant.close)
        self.tenant.ip("link", "set", "lo", "up")
        self.tenant.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.router_mac = f"02:00:00:00:cc:{number:02x}"
        self.tenant.ip("link", "add", "br0", "address", self.router_mac, "type", "bridge", "mcast_snooping", "0")
        self.tenant.ip("link", "set", "br0", "addrgenmode", "none", "mtu", MTU - 50, "up")
        self.space.ip("link", "add", "vx0", "type", "vxlan", "id", vni, "dstport", 4789, "local", self.address, "nolearning")
        self.space.ip("link", "set", "vx0", "netns", self.tenant.name)
        self.tenant.ip("link", "set", "vx0", "master", "br0", "addrgenmode", "none", "up")
        self.tenant.run("bridge", "link", "set", "dev", "vx0", "learning", "off")
        self.tenant.ip("link", "add", "p0", "type", "veth", "peer", "name", "eth0", "netns", self.guest.name)
        self.tenant.device("p0", f"{gateway}/24")
        self.guest.device("eth0", f"{guest_address}/24")
        self.guest.ip("route", "add", "default", "via", gateway)
        self.run_daemons(f"vrf red\n vni {vni}\nexit-vrf\n", f""" address-family l2vpn evpn
  neighbor {REFLECTOR} activate
  advertise-all-vni
 exit-address-family
exit
router bgp {ASN} vrf red
 bgp router-id {self.address}
 address-family ipv4 unicast
  redistribute connected
 exit-address-family
 address-family l2vpn evpn
  advertise ipv4 unicast
  rd {self.address}:{vni}
  route-target both {ASN}:{vni}
 exit-address-family
""", "-n")

    def command(self, daemon, *options):
        """zebra takes each named namespace for a VRF, so it sees only one."""
        named = self.path("netns")
        return ["sh", "-ec", 'touch "$1"; mount --bind "/run/netns/$2" "$1"; mount -t tmpfs none /run/netns; touch /run/netns/red; '
                'mount --bind "$1" /run/netns/red; shift 2; exec "$@"', "sh", named, self.tenant.name,
                *super().command(daemon, *options)]


class Node:
    """A host: corelaned with a fabric port, and the agent, which is told the rest by files."""

    def __init__(self, fabric, number, peer=""):
        self.number, self.fabric = number, fabric
        self.address = f"192.0.2.{number}"
        self.dir = tempfile.TemporaryDirectory(prefix=f"corelane-fabric-{os.getpid()}-")
        self.intent = os.path.join(self.dir.name, "intent")
        os.mkdir(self.intent)
        self.socket = os.path.join(self.dir.name, "agent.sock")
        self.agent_space = Namespace(f"a{number}", MTU)
        self.agent = None
        self.daemon = Daemon()
        self.daemon.cli("port", "add", "fab0", "fabric", "tap", "--ifname", f"fab{number}", "--netns", fabric.name,
                        "--address", f"{self.address}/24", "--mtu", MTU)
        fabric.ip("link", "set", f"fab{number}", "mtu", MTU, "master", "fabric", "up")
        fabric.ip("link", "add", f"agent{number}", "type", "veth", "peer", "name", "eth0", "netns", self.agent_space.name)
        fabric.ip("link", "set", f"agent{number}", "master", "fabric", "up")
        self.agent_address = f"192.0.2.{100 + number}"
        self.agent_space.ip("link", "set", "eth0", "up")
        self.agent_space.ip("address", "add", f"{self.agent_address}/24", "dev", "eth0")
        self.tell_bgp(peer)

    def tell_bgp(self, peer="", bgp=""):
        """peer: more fields of the reflector; bgp: one more of the node."""
        self.tell("bgp", f"""
bgp:
  asn: {ASN}
  router_id: {self.address}
  {bgp}
peers:
  - {{address: {REFLECTOR}{peer and ", " + peer}}}
""")

    def tell(self, name, text):
        """Writes an intent file as an orchestrator should: under another name first."""
        path = os.path.join(self.intent, name + ".yaml")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)

    def forget(self, name):
        os.unlink(os.path.join(self.intent, name + ".yaml"))

    def start_agent(self):
        with open(os.path.join(self.dir.name, "log"), "ab") as log:
            self.agent = self.agent_space.start(AGENT, "--intent", self.intent, "--agent-socket", self.socket, "--socket",
                                                self.daemon.socket, "--journal", os.path.join(self.dir.name, "journal"), "--every", "1h",
                                                stdout=log, stderr=log)

    def kill_agent(self):
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait()

    def log(self):
        with open(os.path.join(self.dir.name, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def ask(self, *args):
        """Asks the agent; returns the messages."""
        done = subprocess.run([self.daemon.cli_path, "--agent-socket", self.socket, *(str(a) for a in args), "-o", "json"],
                              capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{args}: {done.stderr}\n{self.log()[-4000:]}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def close(self):
        if self.agent:
            self.agent.terminate()
            try:
                self.agent.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.agent.kill()
                self.agent.wait()
        self.daemon.stop()
        self.agent_space.close()
        self.dir.cleanup()


class Fabric:
    """Nodes on one wire, with a reflector."""

    def __init__(self, stack, numbers, others=(), reflector=FrrReflector, peer=""):
        self.space = Namespace("fabric", MTU)
        stack.callback(self.space.close)
        self.space.ip("link", "add", "fabric", "type", "bridge", "mcast_snooping", "0")
        self.space.ip("link", "set", "fabric", "mtu", MTU, "up")
        self.space.ip("address", "add", f"{REFLECTOR}/24", "dev", "fabric")
        self.space.ip("link", "set", "lo", "up")
        self.nodes = {}
        for n in numbers:
            self.nodes[n] = Node(self.space, n, peer)
            stack.callback(self.nodes[n].close)
        self.reflector = reflector(self.space, [n.agent_address for n in self.nodes.values()] + list(others))
        stack.callback(self.reflector.close)
        for n in self.nodes.values():
            n.start_agent()


def in_step(node):
    return int(node.ask("bgp", "show")[0]["sync"]["in_step_since_ns"]) > 0


def complete(node):
    """Whether the agent has heard all of its peer, and uses nothing of before."""
    try:
        st = node.ask("bgp", "show")[0]
    except AssertionError:  # the agent does not answer yet
        return False
    return (bool(st["peers"]) and not st["deferring"] and int(st["sync"]["in_step_since_ns"]) > 0
            and all(p["end_of_rib"] and int(p["stale"]) == 0 for p in st["peers"]))


class Flow:
    """Pings of one guest to another, 50 a second, until it is stopped."""

    ENOUGH = 50

    def __init__(self, space, to):
        self.process = space.start("ping", "-i", "0.02", to, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.answered = set()
        self.sent = 0
        self.readers = [threading.Thread(target=r, daemon=True) for r in (self.read_answers, self.read_counts)]
        for r in self.readers:
            r.start()

    def read_answers(self):
        for line in self.process.stdout:
            self.answered.update(int(n) for n in re.findall(r"icmp_seq=(\d+) ttl", line))

    def read_counts(self):
        for line in self.process.stderr:
            for n in re.findall(r"(\d+)/\d+ packets", line):
                self.sent = int(n)

    def lost(self, sent):
        return len(set(range(1, sent + 1)) - self.answered)

    def stop(self):
        """Returns how many were sent, and how many of them were lost: answers are waited for."""
        wait(lambda: len(self.answered) > self.ENOUGH, f"{self.ENOUGH} answers")
        self.process.send_signal(signal.SIGQUIT)  # ping tells how many it has sent
        wait(lambda: self.sent, "counts of ping")
        sent = self.sent
        with contextlib.suppress(AssertionError):
            wait(lambda: self.lost(sent) == 0, "answers")
        self.process.kill()
        self.process.wait()
        for r in self.readers:
            r.join()
        return sent, self.lost(sent)


def bridged(stack, node, name, bridge, mac, address, **more):
    """Adds a tenant's namespace and the attachment of its port in a bridge; returns the namespace."""
    space = Namespace(f"{name}-{next(serial)}", MTU - 100)
    stack.callback(space.close)
    attach(node, name, bridge, mac, address, space, **more)
    try:
        wait(lambda: subprocess.run(["ip", "-n", space.name, "link", "show", name], capture_output=True, check=False).returncode == 0,
             f"port {name}")
    except AssertionError as e:
        raise AssertionError(f"{e}; the agent says: {node.ask('bgp', 'show')}") from e
    space.device(name, f"{address}/24", mac=mac)
    return space


def attach(node, name, bridge, mac, address, space, state="ATTACHMENT_ACTIVE", sticky=False, given=True):
    """given: the intent has the guest's addresses."""
    known = f"""      guest_mac: "{mac}"
    addresses: [{address}]
"""
    node.tell(name, f"""
attachments:
  - port:
      name: {name}
      role: PORT_ROLE_TENANT
      tap: {{netns: {space.name}}}
      bridge: {bridge}
{known if given else ""}
    state: {state}
    sticky: {str(sticky).lower()}
""")


def guest(stack, node, name, address, vrf="red"):
    """Adds a tenant's namespace and the attachment of its port; returns the namespace."""
    space = Namespace(name, MTU - 100)
    stack.callback(space.close)
    gateway = address.rsplit(".", 1)[0] + ".1"
    node.tell(name, f"""
attachments:
  - port:
      name: {name}
      role: PORT_ROLE_TENANT
      tap: {{netns: {space.name}}}
      vrf: {vrf}
      gateways: [{gateway}/24]
      guest_addresses: [{address}]
""")
    wait(lambda: subprocess.run(["ip", "-n", space.name, "link", "show", name], capture_output=True, check=False).returncode == 0,
         f"port {name}; the agent says:\n{node.log()[-2000:]}")
    space.device(name, f"{address}/24")
    space.ip("route", "add", "10.0.0.0/8", "via", gateway)
    return space


__all__ = ["Fabric", "Flow", "Vtep", "answers", "bridged", "complete", "dies_with_us", "guest", "in_step", "wait"]
