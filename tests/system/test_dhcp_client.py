# SPDX-License-Identifier: Apache-2.0
"""A guest without any configuration gets all of it from its port: from the kernel's own IPv6, dhcpcd, systemd-networkd, ISC's
dhclient and BusyBox' udhcpc, as distributions install them, in a namespace.

  guest (client) -- vm1 -- corelaned -- vm2 -- another guest, configured by hand
"""
import contextlib
import glob
import os
import shutil
import sys

import pytest

from namespaces import Namespace, answers, wait

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

MAC = {"vm1": "02:00:00:00:01:11", "vm2": "02:00:00:00:01:12"}
GUEST, OTHER = "10.1.0.11", "10.2.0.12"
GATEWAY, OTHER_GATEWAY = "10.1.0.1", "10.2.0.1"
# The address that the guest makes of its MAC, and by which it is known to the router.
GUEST6, OTHER6 = "fd00:1::ff:fe00:111", "fd00:2::12"
GATEWAY6, OTHER_GATEWAY6 = "fd00:1::1", "fd00:2::1"
ROUTER = "fe80::200:5eff:fe00:101"
MTU = 1450
CONF = """
option domain_name_servers, domain_name, host_name, interface_mtu, classless_static_routes, ntp_servers
option dhcp6_name_servers, dhcp6_domain_search
slaac hwaddr
noipv4ll
"""
# Prints what a hook of dhcpcd gets to know.
HOOK = """#!/bin/sh
env | grep -E '^(new|nd1)_' > {directory}/.new && mv {directory}/.new {directory}/$reason
"""


class Client:
    """dhcpcd with directories of its own, so that it leaves nothing behind."""

    def __init__(self, namespace, directory, *options):
        self.directory = directory
        for name, text, mode in (("conf", CONF, 0o644), ("hook", HOOK.format(directory=directory), 0o755)):
            path = os.path.join(directory, name)
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            os.chmod(path, mode)
        mounts = "mkdir -p /run/dhcpcd /var/lib/dhcpcd && mount -t tmpfs none /run/dhcpcd && mount -t tmpfs none /var/lib/dhcpcd && "
        command = f"{mounts} exec dhcpcd -B -d -f {directory}/conf -c {directory}/hook {' '.join(options)} vm1"
        with open(os.path.join(directory, "log"), "wb") as log:
            self.process = namespace.start("sh", "-c", command, stdout=log, stderr=log)

    def log(self):
        with open(os.path.join(self.directory, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def told(self, reason):
        """The variables of a hook; empty: it has not run."""
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.directory, reason), encoding="ascii") as f:
            return dict(line.rstrip("\n").split("=", 1) for line in f)
        return {}

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=60)


@pytest.fixture(name="lab")
def lab_fixture():
    if shutil.which("dhcpcd") is None:
        pytest.skip("dhcpcd is not installed: make deps PROFILE=test")
    with contextlib.ExitStack() as stack:
        guest, other = (stack.enter_context(contextlib.closing(Namespace(n, MTU))) for n in ("guest", "other"))
        daemon = Daemon()
        stack.callback(daemon.stop)
        daemon.cli("vrf", "add", "red")
        for name, namespace, addresses, gateways in (("vm1", guest, (GUEST, GUEST6), (GATEWAY, GATEWAY6)),
                                                     ("vm2", other, (OTHER, OTHER6), (OTHER_GATEWAY, OTHER_GATEWAY6))):
            daemon.cli("port", "add", name, "tenant", "tap", "--netns", namespace.name, "--vrf", "red", "--gateway",
                       f"{gateways[0]}/24,{gateways[1]}/64", "--guest-address", ",".join(addresses), "--guest-mac", MAC[name], "--mtu", MTU)
        other.device("vm2", f"{OTHER}/24", mac=MAC["vm2"])
        other.ip("address", "add", f"{OTHER6}/64", "dev", "vm2", "nodad")
        other.ip("route", "add", "default", "via", OTHER_GATEWAY)
        other.ip("route", "add", "default", "via", OTHER_GATEWAY6)
        guest.ip("link", "set", "vm1", "address", MAC["vm1"])
        yield daemon, guest


def test_dhcp4(lab, tmp_path):
    daemon, guest = lab
    daemon.cli("port", "set", "vm1", "--dhcp4", "--dns-server", "10.1.0.53", "--dns-domain", "red.example", "--host-name", "web1",
               "--ntp-server", "10.1.0.123", "--boot-route", "10.8.0.0/16 via 10.1.0.5")
    with contextlib.closing(Client(guest, str(tmp_path), "-4")) as client:
        wait(lambda: client.told("BOUND"), f"lease: {client.log()}")
        told = client.told("BOUND")
        assert (told["new_ip_address"], told["new_subnet_cidr"], told["new_interface_mtu"]) == (GUEST, "24", str(MTU))
        assert (told["new_domain_name_servers"], told["new_domain_name"], told["new_host_name"]) == ("10.1.0.53", "red.example", "web1")
        assert (told["new_ntp_servers"], told["new_dhcp_lease_time"]) == ("10.1.0.123", "86400")
        assert f"{GUEST}/24" in guest.ip("-4", "address", "show", "dev", "vm1")
        routes = guest.ip("-4", "route")
        assert f"default via {GATEWAY}" in routes and "10.8.0.0/16 via 10.1.0.5" in routes and f"mtu {MTU}" in routes, routes
        wait(lambda: answers(guest, OTHER), "echo through the router")
        assert int(daemon.cli("port", "show", "vm1")[0]["state"]["dhcp4_answers"]) >= 2


def test_the_kernel_alone(lab):
    """Stateless autoconfiguration (RFC 4862), without any client."""
    daemon, guest = lab
    daemon.cli("port", "set", "vm1", "--router-advertisements", "--slaac", "--boot-route", f"fd00:8::/32 via {GATEWAY6}")
    for setting, value in (("disable_ipv6", 0), ("accept_ra", 1), ("accept_ra_rt_info_max_plen", 128), ("addr_gen_mode", 0)):
        guest.run("sh", "-c", f"echo {value} > /proc/sys/net/ipv6/conf/vm1/{setting}")
    guest.device("vm1")
    wait(lambda: f"{GUEST6}/64" in guest.ip("-6", "address", "show", "dev", "vm1", "-tentative"), "address")
    wait(lambda: answers(guest, OTHER6), "echo through the router")
    routes = guest.ip("-6", "route")
    assert f"default via {ROUTER} dev vm1 proto ra" in routes and "fd00:8::/32 via" in routes, routes
    assert guest.run("cat", "/proc/sys/net/ipv6/conf/vm1/mtu").strip() == str(MTU)


def test_dhcp6(lab, tmp_path):
    """The address by DHCPv6, the router by its advertisements."""
    daemon, guest = lab
    daemon.cli("port", "set", "vm1", "--router-advertisements", "--dhcp6", "--dns-server", "fd00:1::53", "--dns-domain", "red.example")
    with contextlib.closing(Client(guest, str(tmp_path), "-6")) as client:
        wait(lambda: client.told("BOUND6"), f"lease: {client.log()}")
        told = client.told("BOUND6")
        assert (told["new_dhcp6_ia_na1_ia_addr1"], told["new_dhcp6_ia_na1_ia_addr1_vltime"]) == (GUEST6, "86400")
        assert (told["new_dhcp6_name_servers"], told["new_dhcp6_domain_search"]) == ("fd00:1::53", "red.example")
        wait(lambda: client.told("ROUTERADVERT"), f"advertisement: {client.log()}")
        told = client.told("ROUTERADVERT")
        assert (told["nd1_from"], told["nd1_rdnss1_servers"], told["nd1_mtu"]) == (ROUTER, "fd00:1::53", str(MTU))
        wait(lambda: answers(guest, OTHER6), "echo through the router")
        assert f"default via {ROUTER}" in guest.ip("-6", "route")
        assert int(daemon.cli("port", "show", "vm1")[0]["state"]["dhcp6_answers"]) >= 2


NETWORKD = "/lib/systemd/systemd-networkd"
NETWORK = """[Match]
Name=vm1
[Network]
DHCP=yes
IPv6AcceptRA=yes
[DHCPv4]
ClientIdentifier=mac
UseDomains=yes
[DHCPv6]
DUIDType=link-layer
"""


@pytest.mark.skipif(not os.path.exists(NETWORKD), reason="systemd-networkd is not installed")
def test_networkd(lab, tmp_path):
    """Both families, by systemd-networkd with a run directory of its own. Without udev, /sys must be read-only."""
    daemon, guest = lab
    daemon.cli("port", "set", "vm1", "--dhcp4", "--dhcp6", "--router-advertisements", "--dns-server", "10.1.0.53,fd00:1::53",
               "--dns-domain", "red.example", "--ntp-server", "10.1.0.123", "--boot-route", "10.8.0.0/16 via 10.1.0.5")
    command = ("mount -t tmpfs none /run/systemd && mkdir -p /run/systemd/network /run/systemd/netif && chmod -R 777 /run/systemd/netif && "
               f"cp {tmp_path}/vm1.network /run/systemd/network/ && mount -o remount,ro /sys && exec {NETWORKD}")
    (tmp_path / "vm1.network").write_text(NETWORK, encoding="ascii")
    with open(tmp_path / "log", "wb") as log:
        process = guest.start("sh", "-c", command, stdout=log, stderr=log)
    try:
        wait(lambda: {f"inet {GUEST}/24", f"inet6 {GUEST6}/128"} <= set(addresses(guest)), f"addresses: {(tmp_path / 'log').read_text()}")
        wait(lambda: answers(guest, OTHER) and answers(guest, OTHER6), "echo through the router")
        assert f"default via {ROUTER}" in guest.ip("-6", "route")
        assert f"default via {GATEWAY}" in guest.ip("route") and "10.8.0.0/16 via 10.1.0.5" in guest.ip("route")
        told = "".join(open(f, encoding="utf-8").read() for f in glob.glob(f"/proc/{process.pid}/root/run/systemd/netif/links/*"))
        assert "10.1.0.53" in told and "fd00:1::53" in told and "red.example" in told and "10.1.0.123" in told, told
    finally:
        process.terminate()
        process.wait(timeout=60)


def addresses(namespace):
    return [" ".join(line.split()[:2]) for line in namespace.ip("address", "show", "dev", "vm1").splitlines() if "inet" in line]


# Prints what the scripts of dhclient and udhcpc get to know, and sets the address.
SCRIPT = """#!/bin/sh
reason=${{reason:-$1}}
case $reason in
  BOUND) ip address add $new_ip_address/$new_subnet_mask dev vm1 ;;
  BOUND6) ip address add $new_ip6_address/128 dev vm1 ;;
  bound) ip address add $ip/$subnet dev vm1 ;;
esac
env > {directory}/$reason
"""
DHCLIENT_CONF = """
option classless-routes code 121 = array of unsigned integer 8;
request subnet-mask, routers, domain-name, domain-name-servers, host-name, interface-mtu, classless-routes, ntp-servers, dhcp6.name-servers;
"""
ROUTES_121 = "16 10 8 10 1 0 5 0 10 1 0 1"  # 10.8.0.0/16 via 10.1.0.5, and the default


def script(directory):
    path = directory / "script"
    path.write_text(SCRIPT.format(directory=directory), encoding="ascii")
    path.chmod(0o755)
    return path


def told_by(directory, reason):
    return dict(line.split("=", 1) for line in (directory / reason).read_text(encoding="ascii").splitlines() if "=" in line)


@contextlib.contextmanager
def dhclient(guest, directory, *options):
    """Returns when the guest has a lease; releases it at the end."""
    (directory / "conf").write_text(DHCLIENT_CONF, encoding="ascii")
    command = ("dhclient", "-v", *options, "-sf", script(directory), "-cf", directory / "conf", "-lf", directory / "leases", "-pf", directory / "pid")
    guest.run(*command, "-1", "vm1")
    try:
        yield
    finally:
        guest.run(*command, "-r", "vm1")


@pytest.mark.skipif(shutil.which("dhclient") is None, reason="isc-dhcp-client is not installed: make deps PROFILE=test")
def test_dhclient(lab, tmp_path):
    daemon, guest = lab
    daemon.cli("port", "set", "vm1", "--dhcp4", "--dhcp6", "--dns-server", "10.1.0.53,fd00:1::53", "--dns-domain", "red.example", "--host-name", "web1",
               "--ntp-server", "10.1.0.123", "--boot-route", "10.8.0.0/16 via 10.1.0.5")
    guest.run("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/vm1/disable_ipv6; echo 0 > /proc/sys/net/ipv6/conf/vm1/accept_dad")
    guest.device("vm1")
    with dhclient(guest, tmp_path, "-4"):
        told = told_by(tmp_path, "BOUND")
        assert (told["new_ip_address"], told["new_subnet_mask"], told["new_routers"]) == (GUEST, "255.255.255.0", GATEWAY)
        assert (told["new_interface_mtu"], told["new_classless_routes"]) == (str(MTU), ROUTES_121)
        assert (told["new_domain_name_servers"], told["new_domain_name"], told["new_host_name"]) == ("10.1.0.53", "red.example", "web1")
        assert (told["new_ntp_servers"], told["new_dhcp_lease_time"]) == ("10.1.0.123", "86400")
        wait(lambda: answers(guest, GATEWAY), "echo of the gateway")
    wait(lambda: "tentative" not in guest.run("ip", "-6", "address", "show", "dev", "vm1", "scope", "link"), "link-local address")
    with dhclient(guest, tmp_path, "-6"):
        told = told_by(tmp_path, "BOUND6")
        assert (told["new_ip6_address"], told["new_max_life"], told["new_dhcp6_name_servers"]) == (GUEST6, "86400", "fd00:1::53")


@pytest.mark.skipif(shutil.which("udhcpc") is None, reason="udhcpc is not installed: make deps PROFILE=test")
def test_udhcpc(lab, tmp_path):
    daemon, guest = lab
    daemon.cli("port", "set", "vm1", "--dhcp4", "--dns-server", "10.1.0.53", "--dns-domain", "red.example", "--host-name", "web1", "--ntp-server", "10.1.0.123",
               "--boot-route", "10.8.0.0/16 via 10.1.0.5")
    guest.device("vm1")
    wanted = (word for option in ("mtu", "staticroutes", "ntpsrv", "hostname", "domain", "dns", "subnet", "router") for word in ("-O", option))
    guest.run("udhcpc", "-f", "-q", "-n", "-t", "25", "-T", "2", "-i", "vm1", "-s", script(tmp_path), *wanted)
    told = told_by(tmp_path, "bound")
    assert (told["ip"], told["subnet"], told["router"], told["mtu"]) == (GUEST, "255.255.255.0", GATEWAY, str(MTU))
    assert (told["dns"], told["domain"], told["hostname"], told["ntpsrv"], told["lease"]) == ("10.1.0.53", "red.example", "web1", "10.1.0.123", "86400")
    assert told["staticroutes"] == f"10.8.0.0/16 10.1.0.5 0.0.0.0/0 {GATEWAY}"
    wait(lambda: answers(guest, GATEWAY), "echo of the gateway")
