# SPDX-License-Identifier: Apache-2.0
"""A service in front of HTTP servers, all of which are kernels: connections are spread over the servers, and those that are
open go on while servers are drained, removed and brought back.

  client -- corelaned (service web) -- one, two, three
"""
import contextlib
import http.client
import itertools
import os
import sys

import pytest

from namespaces import Namespace, answers, wait

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

SERVERS = ("one", "two", "three")
CLIENT = "client"
NUMBER = {name: n for n, name in enumerate((CLIENT, *SERVERS), 11)}
NET = {4: "10.1.0.", 6: "2001:db8:a::"}
ADDRESS = {name: {family: f"{net}{n}" for family, net in NET.items()} for name, n in NUMBER.items()}
VIP = {4: "198.51.100.80", 6: "2001:db8:f::80"}
FRONT, BACK = 80, 8080
SOME = 1 << 20  # bytes: they come as large segments, which the router translates

# Answers a request for /N with its name, the client's address and N bytes.
SERVER = """
import http.server, socket
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    def do_GET(self):
        peer = self.client_address[0].removeprefix("::ffff:")
        body = b"{name} %s " % peer.encode() + b"x" * int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6  # and IPv4
s = Server(("::", {port}), Handler)
print("listens", flush=True)
s.serve_forever()
"""


def end(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def join(router, space, name):
    """Gives a namespace a port of the router."""
    near, mac = ADDRESS[name], f"02:00:00:00:00:{NUMBER[name]}"
    router.cli("port", "add", name, "tenant", "tap", "--netns", space.name, "--vrf", "red", "--gateway",
               f"{NET[4]}1/32,{NET[6]}1/128", "--guest-mac", mac, "--guest-address", f"{near[4]},{near[6]}")
    space.device(name, f"{near[4]}/32", mac=mac)
    space.ip("address", "add", f"{near[6]}/128", "dev", name, "nodad")
    for gateway, everything in ((f"{NET[4]}1", "0.0.0.0/0"), (f"{NET[6]}1", "::/0")):
        space.ip("route", "add", gateway, "dev", name)
        space.ip("route", "add", everything, "via", gateway, "dev", name)


class Site:
    """The router, and the namespaces at its ports."""

    def __init__(self, stack):
        self.router = Daemon()
        stack.callback(self.router.stop)
        # A late packet of a connection whose flow has ended is no new flow: every flow is a connection.
        self.router.cli("settings", "set", "--flow-tcp-strict")
        self.router.cli("vrf", "add", "red")
        self.spaces = {name: stack.enter_context(contextlib.closing(Namespace(name, 1500))) for name in NUMBER}
        for name, space in self.spaces.items():
            join(self.router, space, name)
        servers = [self.spaces[name].start("/usr/bin/python3", "-c", SERVER.format(name=name, port=BACK), stdout=-1, text=True)
                   for name in SERVERS]
        stack.callback(lambda: [(s.kill(), s.communicate()) for s in servers])
        assert [s.stdout.readline() for s in servers] == ["listens\n"] * len(servers)
        for name in SERVERS:
            for address in ADDRESS[name].values():
                wait(lambda a=address: answers(self.spaces[CLIENT], a), f"answer of {address}")
        self.source_ports = itertools.count(20000)  # each connection has one of its own, so the same ones choose the same servers


@pytest.fixture(name="site", scope="module")
def new_site():
    with contextlib.ExitStack() as stack:
        yield Site(stack)


class Service:
    """The service of a family, and connections to it."""

    def __init__(self, site, family):
        self.site, self.cli, self.family, self.made, self.closing = site, site.router.cli, family, 0, contextlib.ExitStack()
        self.cli("service", "add", "web", end(VIP[family], FRONT), "--vrf", "red", "--protocol", "tcp", "--max-endpoints", 8)
        self.cli("endpoint", "add", "web", *(self.at(name) for name in SERVERS))

    def at(self, name):
        return end(ADDRESS[name][self.family], BACK)

    def connect(self):
        near = (ADDRESS[CLIENT][self.family], next(self.site.source_ports))
        connection = self.closing.enter_context(
            contextlib.closing(http.client.HTTPConnection(VIP[self.family], FRONT, timeout=60, source_address=near)))
        with self.site.spaces[CLIENT].entered():
            connection.connect()
        connection.auto_open = False  # one that breaks is not made again
        self.made += 1
        return connection

    def ask(self, connection, size=0):
        """Sends a request over the connection. Returns the name of the server that answered."""
        connection.request("GET", f"/{size}")
        name, peer, data = connection.getresponse().read().decode().split(" ")
        assert (peer, data) == (ADDRESS[CLIENT][self.family], "x" * size)
        return name

    def new(self, n):
        """The servers of n connections, of which each has one request."""
        names = []
        for _ in range(n):
            with contextlib.closing(self.connect()) as connection:
                names.append(self.ask(connection))
        return names

    def hold(self):
        """Open connections, one to each server."""
        held = {}
        while set(held) != set(SERVERS):
            assert self.made < 100, f"100 connections reach {set(held)} alone"
            connection = self.connect()
            if held.setdefault(self.ask(connection), connection) is not connection:
                connection.close()
        return held

    def state(self):
        return self.cli("service", "show", "web")[0]["state"]

    def endpoints(self):
        listed = {e["address"]: e for e in self.cli("endpoint", "list", "--service", "web")}
        return {name: listed[a[self.family]] for name, a in ADDRESS.items() if a[self.family] in listed}

    def close(self):
        self.closing.close()
        left = [self.at(name) for name in self.endpoints()]
        if left:
            self.cli("endpoint", "del", "web", *left)
        self.cli("service", "del", "web")


@pytest.fixture(name="web", params=[4, 6], ids=["ip4", "ip6"])
def new_web(site, request):
    service = Service(site, request.param)
    yield service
    service.close()


def flows(endpoint_or_state):
    totals = endpoint_or_state.get("state", endpoint_or_state)["totals"]
    return {k: int(totals.get(k, 0)) for k in ("flows", "packets", "bytes", "reply_packets", "reply_bytes")}


def test_connections_are_spread_and_counted(web):
    names = web.new(30)
    assert {name: names.count(name) > 3 for name in SERVERS} == dict.fromkeys(SERVERS, True), names
    big = web.connect()
    names.append(web.ask(big, SOME))
    endpoints, whole = {name: flows(e) for name, e in web.endpoints().items()}, flows(web.state())
    assert {name: e["flows"] for name, e in endpoints.items()} == {name: names.count(name) for name in SERVERS}
    assert whole["flows"] == len(names) == web.made
    assert whole["reply_bytes"] > SOME
    # The last connection may send acknowledgments between the two lists, and the others have ended: their FINs are counted.
    for field in ("packets", "bytes", "reply_packets", "reply_bytes"):
        assert sum(e[field] for e in endpoints.values()) <= whole[field]
    assert whole["packets"] >= 5 * web.made  # SYN, ACK, request, FIN, ACK
    assert (web.state()["endpoints"], web.state()["serving"]) == (3, 3)


def test_open_connections_go_on(web):
    held = web.hold()

    def go_on():
        assert {name: web.ask(connection, SOME) for name, connection in held.items()} == {name: name for name in SERVERS}

    web.cli("endpoint", "set", "web", web.at("one"), "--weight", 0)
    assert set(web.new(20)) == {"two", "three"}
    go_on()
    drained = web.endpoints()["one"]
    assert (drained.get("weight", 0), web.state()["serving"]) == (0, 2) and int(drained["state"]["totals"]["active"]) >= 1
    gone = flows(web.endpoints()["two"])
    web.cli("endpoint", "del", "web", web.at("two"))
    assert set(web.new(10)) == {"three"}
    go_on()
    assert flows(web.state())["flows"] == web.made == gone["flows"] + sum(flows(e)["flows"] for e in web.endpoints().values())
    web.cli("endpoint", "set", "web", web.at("one"), "--weight", 1)
    web.cli("endpoint", "add", "web", web.at("two"))
    assert set(web.new(30)) == set(SERVERS)
    go_on()
    assert flows(web.state())["flows"] == web.made


def test_without_servers_clients_are_refused(web):
    """A kernel takes the reset for that of a closed port; a connection that is open goes on."""
    held = web.hold()
    web.cli("service", "set", "web", "--no-endpoints", "reject")
    web.cli("endpoint", "set", "web", *(web.at(name) for name in SERVERS), "--weight", 0)
    with pytest.raises(ConnectionRefusedError):
        web.connect()
    assert int(web.state()["refused"]) == 1
    assert {name: web.ask(connection) for name, connection in held.items()} == {name: name for name in SERVERS}
    web.cli("endpoint", "set", "web", web.at("two"), "--weight", 1)
    assert web.new(3) == ["two"] * 3
