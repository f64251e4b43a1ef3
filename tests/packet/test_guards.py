# SPDX-License-Identifier: Apache-2.0
"""RA guard (RFC 6105, RFC 7113) and DHCP guard (RFC 7610): no guest tells others, unasked, what their router or their addresses are."""
import contextlib

import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.dhcp6 import DHCP6_Advertise, DHCP6_Solicit
from scapy.layers.inet import ICMP, IP, UDP, IPOption_Router_Alert, fragment
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6ND_RS, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                                IPv6ExtHdrHopByHop)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from packets import assert_nothing, assert_out, forwarded, to_guest
from router import GATEWAY_MAC

BAD = {4: "10.8.0.2", 6: "fd00:8::2", "mac": "02:00:00:00:08:02"}
VICTIM = {4: "10.8.0.3", 6: "fd00:8::3", "mac": "02:00:00:00:08:03"}
GATEWAYS = ("10.8.0.1/24", "fd00:8::1/64")
ALL_NODES, BROADCAST = "33:33:00:00:00:01", "ff:ff:ff:ff:ff:ff"
SERVERS = {4: (67, 68), 6: (547, 546)}


@pytest.fixture(scope="module", params=["bridge", "bridge and gateway"])
def pair(network, request):
    """Two guests of one bridge domain, the first of which is not to be trusted; with and without a virtual gateway."""
    r, gateway = network.router, request.param == "bridge and gateway"
    r.cli("vrf", "add", "guards")
    r.cli("bridge", "add", "guards")
    for name, guest in (("bad", BAD), ("victim", VICTIM)):
        known = ("--vrf", "guards", "--gateway", ",".join(GATEWAYS), "--guest-address", f"{guest[4]},{guest[6]}")
        r.cli("port", "add", name, "tenant", "tap", "--bridge", "guards", "--guest-mac", guest["mac"],
              *(known if gateway else ("--source-check", "strict")))
        r.attach(name, None)
    yield
    for name in ("bad", "victim"):
        r.del_port(name)
    r.cli("bridge", "del", "guards")
    r.cli("vrf", "del", "guards")


@contextlib.contextmanager
def option(router, flag):
    router.cli("port", "set", "bad", flag)
    try:
        yield
    finally:
        router.cli("port", "set", "bad", f"{flag}=false")


def run(router, *frames):
    return router.run("bad", *frames, fence="t1")


def assert_arrives(router, *frames):
    with router.drops():
        assert_out(run(router, *frames), *(("victim", f) for f in frames), ordered=False)


def assert_dropped(router, reason, *frames):
    with router.drops(**{reason: len(frames)}):
        assert_nothing(run(router, *frames))


def ether(dst=VICTIM["mac"]):
    return Ether(src=BAD["mac"], dst=dst)


def answer4(sport=67, dport=68, dst=VICTIM[4], **fields):
    return IP(src=BAD[4], dst=dst, **fields) / UDP(sport=sport, dport=dport) / BOOTP(op=2, yiaddr=VICTIM[4], siaddr=BAD[4]) / DHCP(
        options=[("message-type", "offer"), ("router", BAD[4]), "end"])


def header6(*headers, dst="ff02::1", source="fe80::5"):
    p = IPv6(src=source, dst=dst, hlim=255)
    for h in headers:
        p /= h
    return p


def answer6(*headers, sport=547, dport=546, dst=VICTIM[6]):
    return header6(*headers, dst=dst, source=BAD[6]) / UDP(sport=sport, dport=dport) / DHCP6_Advertise(trid=7)


@pytest.mark.parametrize("mac", [BROADCAST, VICTIM["mac"]], ids=["broadcast", "unicast"])
@pytest.mark.parametrize("message", [ICMP(type=5, code=1, gw=BAD[4]) / IP(src=VICTIM[4], dst="192.0.2.9") / UDP(),
                                     ICMP(type=9, code=0, addr_mask=0) / Raw(b"\x01\x02\x00\x10" + bytes(8))], ids=["redirect", "advertisement"])
def test_routers_of_ip4(router, pair, mac, message):
    packet = ether(mac) / IP(src=BAD[4], dst=VICTIM[4]) / message
    assert_dropped(router, "source_router", packet)
    assert_arrives(router, ether(mac) / IP(src=BAD[4], dst=VICTIM[4]) / ICMP(type=8))
    with option(router, "--allow-router"):
        assert_arrives(router, packet)


@pytest.mark.parametrize("mac", [ALL_NODES, VICTIM["mac"]], ids=["multicast", "unicast"])
@pytest.mark.parametrize("message", [ICMPv6ND_RA(routerlifetime=9000), ICMPv6ND_Redirect(tgt="fe80::5", dst="2001:db8::9")],
                         ids=["advertisement", "redirect"])
def test_routers_of_ip6(router, pair, mac, message):
    packet = ether(mac) / header6(message)
    assert_dropped(router, "source_router", packet)
    with option(router, "--allow-router"):
        assert_arrives(router, packet)


def test_who_asks_for_a_router_is_heard(router, pair):
    assert_arrives(router, ether("33:33:00:00:00:02") / header6(ICMPv6ND_RS(), dst="ff02::2"))


@pytest.mark.parametrize("headers", [(IPv6ExtHdrDestOpt(),), (IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt()), (IPv6ExtHdrFragment(),),
                                     (IPv6ExtHdrFragment(m=1),), (IPv6ExtHdrDestOpt(), IPv6ExtHdrFragment(m=1)),
                                     (IPv6ExtHdrFragment(m=1), IPv6ExtHdrDestOpt())],
                         ids=["options", "two", "atomic fragment", "first fragment", "options, fragment", "fragment, options"])
def test_what_hides_behind_extension_headers(router, pair, headers):
    """RFC 7113: an advertisement is one behind any headers, and in a first fragment; so is a DHCPv6 answer (RFC 7610)."""
    with option(router, "--allow-router"):  # a router does not need them either (RFC 6980)
        assert_dropped(router, "source_unchecked", ether() / header6(*headers) / ICMPv6ND_RA(routerlifetime=9000))
    assert_dropped(router, "source_dhcp_server", ether() / answer6(*headers))
    with option(router, "--allow-dhcp-server"):
        assert_arrives(router, ether() / answer6(*headers))


def test_headers_that_a_first_fragment_does_not_show(router, pair):
    """RFC 7112: what only the second fragment shows cannot be checked."""
    chain = bytes(header6(IPv6ExtHdrDestOpt(nh=58)) / ICMPv6ND_RA(routerlifetime=9000))[40:]
    assert_dropped(router, "source_unchecked", ether() / header6(IPv6ExtHdrFragment(m=1, nh=60)) / Raw(chain[:8]))
    assert_dropped(router, "source_unchecked", ether() / header6(IPv6ExtHdrFragment(m=1, nh=17)))
    assert_dropped(router, "source_unchecked", ether() / IP(src=BAD[4], dst=VICTIM[4], flags="MF", proto=17))
    later = header6(IPv6ExtHdrFragment(offset=1, nh=58), source=BAD[6]) / Raw(chain[8:])
    assert_arrives(router, ether() / later)  # worth nothing without the first one


@pytest.mark.parametrize("mac", [BROADCAST, VICTIM["mac"]], ids=["broadcast", "unicast"])
@pytest.mark.parametrize("ports", [(67, 68), (4000, 68), (67, 67)], ids=["answer", "from any port", "to a relay"])
def test_dhcp_servers(router, pair, mac, ports):
    packet = ether(mac) / answer4(*ports, dst="255.255.255.255" if mac == BROADCAST else VICTIM[4])
    assert_dropped(router, "source_dhcp_server", packet)
    with option(router, "--allow-dhcp-server"):
        assert_arrives(router, packet)


@pytest.mark.parametrize("ports", [(547, 546), (4000, 546), (547, 547)], ids=["answer", "from any port", "to a relay"])
def test_dhcp6_servers(router, pair, ports):
    packet = ether() / answer6(sport=ports[0], dport=ports[1])
    assert_dropped(router, "source_dhcp_server", packet)
    with option(router, "--allow-dhcp-server"):
        assert_arrives(router, packet)


def test_dhcp_servers_behind_ip4_options_and_in_fragments(router, pair):
    assert_dropped(router, "source_dhcp_server", ether() / answer4(options=[IPOption_Router_Alert()]))
    parts = fragment(answer4(), 64)
    assert len(parts) > 3
    with router.drops(source_dhcp_server=1):  # the first one: the others are worth nothing without it
        assert_out(run(router, *(ether() / p for p in parts)), *(("victim", ether() / p) for p in parts[1:]))


def test_clients_are_heard(router, pair):
    """Clients, and other services of hosts, need no option."""
    ask = Ether(src=BAD["mac"], dst=BROADCAST) / IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / BOOTP(
        op=1, chaddr=bytes.fromhex(BAD["mac"].replace(":", ""))) / DHCP(
        options=[("message-type", "discover"), "end"])
    ask6 = ether("33:33:00:01:00:02") / header6(dst="ff02::1:2") / UDP(sport=546, dport=547) / DHCP6_Solicit(trid=7)
    assert_arrives(router, ask, ask6)
    assert_arrives(router, ether() / IP(src=BAD[4], dst=VICTIM[4]) / UDP(sport=53, dport=53),
                   ether() / header6(dst=VICTIM[6], source=BAD[6]) / UDP(sport=123, dport=123),
                   ether() / header6(dst=VICTIM[6], source=BAD[6]) / ICMPv6EchoRequest())


@pytest.mark.parametrize("pair", ["bridge and gateway"], indirect=True)
def test_the_gateway_does_not_carry_them_either(router, pair):
    """A client that listens to raw frames accepts an answer to its future address, which the router knows."""
    offers = {4: answer4(), 6: answer6()}
    for family, offer in offers.items():
        assert_dropped(router, "source_dhcp_server", ether(GATEWAY_MAC) / offer)
    with option(router, "--allow-dhcp-server"):
        assert_out(run(router, *(ether(GATEWAY_MAC) / p for p in offers.values())), *(("victim", to_guest(VICTIM, forwarded(p))) for p in offers.values()),
                   ordered=False)


def test_without_a_source_check_there_is_no_guard(router, pair):
    router.cli("port", "set", "bad", "--source-check", "none")
    try:
        assert_arrives(router, ether() / answer4(), ether() / answer6(), ether() / header6(ICMPv6ND_RA(routerlifetime=9000)))
    finally:
        router.cli("port", "set", "bad", "--source-check", "strict")
