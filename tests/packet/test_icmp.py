# SPDX-License-Identifier: Apache-2.0
"""ICMP that the router sends: echo replies of the gateway, and errors, compared byte for byte."""
import time

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import (ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6PacketTooBig, ICMPv6ParamProblem,
                                ICMPv6TimeExceeded, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop)
from scapy.packet import Raw

from packets import PAYLOAD, assert_nothing, assert_out, from_guest, from_host, to_guest, to_host, udp_packet
from topology import FAMILIES, GATEWAY, T1, T2
from waiting import wait_until

NOWHERE = {4: "198.18.0.1", 6: "fd99::1"}
TTL, NO_ROUTE, HOST, PROHIBITED, PORT = "ttl", "no route", "host", "prohibited", "port"
TYPES4 = {TTL: (11, 0), NO_ROUTE: (3, 0), HOST: (3, 1), PROHIBITED: (3, 13), PORT: (3, 3)}
TYPES6 = {NO_ROUTE: 0, HOST: 3, PROHIBITED: 1, PORT: 4}


def error(about, what, dst=None):
    """An error quotes as much of the packet as fits into 576 bytes (RFC 1812 4.3.2.3), or 1280 (RFC 4443)."""
    if isinstance(about, IP):
        kind, code = TYPES4[what]
        header = IP(src=GATEWAY[4], dst=dst or about.src, ttl=64, id=0, tos=0xc0)
        return header / ICMP(type=kind, code=code) / Raw(bytes(about)[:548])
    body = ICMPv6TimeExceeded(code=0) if what == TTL else ICMPv6DestUnreach(code=TYPES6[what])
    return IPv6(src=GATEWAY[6], dst=dst or about.src, hlim=64) / body / Raw(bytes(about)[:1232])


@pytest.mark.parametrize("family", FAMILIES)
def test_echo_to_the_gateway(network, router, family):
    for size in (0, 1, 64, 1400):
        data = bytes(i & 0xff for i in range(size))
        if family == 4:
            request = IP(src=T1[4], dst=GATEWAY[4], ttl=1, id=3) / ICMP(id=5, seq=6) / Raw(data)
            answer = IP(src=GATEWAY[4], dst=T1[4], ttl=64, id=3) / ICMP(type="echo-reply", id=5, seq=6) / Raw(data)
        else:
            request = IPv6(src=T1[6], dst=GATEWAY[6], hlim=1) / ICMPv6EchoRequest(id=5, seq=6, data=data)
            answer = IPv6(src=GATEWAY[6], dst=T1[6], hlim=64) / ICMPv6EchoReply(id=5, seq=6, data=data)
        with router.drops():
            assert_out(router.run("t1", from_guest(T1, request)), ("t1", to_guest(T1, answer)))


def test_echo_with_options(network, router):
    request = IP(src=T1[4], dst=GATEWAY[4], id=3, options=IPOption_Router_Alert()) / ICMP(id=5, seq=6) / Raw(PAYLOAD)
    answer = IP(src=GATEWAY[4], dst=T1[4], id=3, ttl=64, options=IPOption_Router_Alert()) / ICMP(type=0, id=5, seq=6) / Raw(PAYLOAD)
    assert_out(router.run("t1", from_guest(T1, request)), ("t1", to_guest(T1, answer)))


@pytest.mark.parametrize("family", FAMILIES)
def test_echo_through_a_tunnel(network, router, family):
    """The gateway also answers the tenant's hosts on other nodes."""
    sender = network.tunnel("mplsoudp", 4)
    if family == 4:
        request, answer = IP(src=sender[4], dst=GATEWAY[4]) / ICMP(id=1), IP(src=GATEWAY[4], dst=sender[4]) / ICMP(type=0, id=1)
    else:
        request = IPv6(src=sender[6], dst=GATEWAY[6]) / ICMPv6EchoRequest(id=1)
        answer = IPv6(src=GATEWAY[6], dst=sender[6]) / ICMPv6EchoReply(id=1)
    out = router.run("fab0", from_host("mplsoudp", 4, request))
    assert_out(out, ("fab0", to_host("mplsoudp", 4, answer, out[0].data)))


def test_no_echo(network, router):
    """There is no reply if echo is disabled, or if the packet is broken, a fragment or another message."""
    echo4, echo6 = IP(src=T1[4], dst=GATEWAY[4]) / ICMP(), IPv6(src=T1[6], dst=GATEWAY[6]) / ICMPv6EchoRequest()
    wrong4, wrong6 = echo4.copy(), echo6.copy()
    wrong4[ICMP].chksum, wrong6[ICMPv6EchoRequest].cksum = 1, 1
    part4 = echo4.copy()
    part4.flags = "MF"
    part6 = IPv6(src=T1[6], dst=GATEWAY[6]) / IPv6ExtHdrFragment(m=1) / ICMPv6EchoRequest()
    with router.drops(local_icmp_checksum=2, local_fragment=2, local_icmp_ignored=3):
        assert_nothing(router.run("t1", *(from_guest(T1, p) for p in (
            wrong4, wrong6, part4, part6, IP(src=T1[4], dst=GATEWAY[4]) / ICMP(type=13),
            IP(src=T1[4], dst=GATEWAY[4]) / ICMP(type=0), IPv6(src=T1[6], dst=GATEWAY[6]) / ICMPv6EchoReply()))))
    router.cli("port", "set", "t1", "--no-anycast-gateway")
    try:
        with router.drops(local_echo_off=2):
            router.wait(0, lambda fs: False)
            for p in (echo4, echo6):
                router.taps["t1"].send(from_guest(T1, p))
            assert_nothing(router.fence("t2", 3))
    finally:
        router.cli("port", "set", "t1", "--no-anycast-gateway=false")
    assert len(router.run("t1", from_guest(T1, echo4), from_guest(T1, echo6))) == 2


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ttl", [0, 1])
@pytest.mark.parametrize("size", [0, 1400])
def test_ttl_exceeded(network, router, family, ttl, size):
    packet = udp_packet(family, T1, T2, ttl=ttl, payload=bytes(size), tos=0x10)
    with router.drops(ip_ttl_exceeded=1):
        out = router.run("t1", from_guest(T1, packet))
    assert_out(out, ("t1", to_guest(T1, error(packet, TTL))))


@pytest.mark.parametrize("family", FAMILIES)
def test_ttl_exceeded_out_of_a_tunnel(network, router, family):
    """The error goes back through the tunnel that leads to the sender."""
    packet = udp_packet(family, network.tunnel("vxlan", 6), T1, ttl=1)
    with router.drops(ip_ttl_exceeded=1):
        out = router.run("fab0", from_host("mplsogre", 4, packet))
    tos = 0xc0 if family == 4 else 0
    assert_out(out, ("fab0", to_host("vxlan", 6, error(packet, TTL), out[0].data, tos=tos)))


@pytest.mark.parametrize("family", FAMILIES)
def test_unreachable(network, router, family):
    packet = udp_packet(family, T1, NOWHERE)
    with router.drops(ip_no_route=1):
        assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, error(packet, NO_ROUTE))))
    nexthop = network.new_id()
    router.cli("nexthop", "add", nexthop, "reject")
    packet = udp_packet(family, T1, network.route_to(nexthop))
    with router.drops(route_reject=1):
        assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, error(packet, PROHIBITED))))
    router.cli("nexthop", "add", nexthop, "discard", "--replace")
    with router.drops(route_discard=1):
        assert_nothing(router.run("t1", from_guest(T1, packet)))
    router.cli("nexthop", "add", nexthop, "tunnel", "--encap", "mplsoudp", "--label", 88, "--remote", "198.18.9.9", "--replace")
    with router.drops(nexthop_unresolved=1):
        assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, error(packet, HOST))))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("transport", [UDP(sport=1, dport=53), TCP(dport=179, flags="S")])
def test_the_gateway_serves_nothing(network, router, family, transport):
    header = IP(src=T1[4], dst=GATEWAY[4]) if family == 4 else IPv6(src=T1[6], dst=GATEWAY[6])
    packet = header / transport / Raw(PAYLOAD)
    with router.drops(local_no_service=1):
        assert_out(router.run("t1", from_guest(T1, packet)), ("t1", to_guest(T1, error(packet, PORT))))


def test_protocols_that_the_gateway_does_not_speak(network, router):
    four, six = IP(src=T1[4], dst=GATEWAY[4], proto=50) / Raw(PAYLOAD), IPv6(src=T1[6], dst=GATEWAY[6], nh=50) / Raw(PAYLOAD)
    with router.drops(local_no_service=2):
        out = router.run("t1", from_guest(T1, four)) + router.run("t1", from_guest(T1, six))
    assert_out(out, ("t1", to_guest(T1, IP(src=GATEWAY[4], dst=T1[4], id=0, tos=0xc0) / ICMP(type=3, code=2) / Raw(bytes(four)))),
               ("t1", to_guest(T1, IPv6(src=GATEWAY[6], dst=T1[6]) / ICMPv6ParamProblem(code=1, ptr=6) / Raw(bytes(six)))))


def inside(family, what):
    """An ICMP error as a guest would send it."""
    about = bytes(udp_packet(family, T2, T1))
    header = IP(src=T1[4], dst=NOWHERE[4]) if family == 4 else IPv6(src=T1[6], dst=NOWHERE[6])
    return header / what / Raw(about)


SILENT = {
    "errors": [inside(4, ICMP(type=t, code=0)) for t in (3, 4, 5, 11, 12)] +
              [inside(6, e) for e in (ICMPv6DestUnreach(), ICMPv6PacketTooBig(), ICMPv6TimeExceeded(), ICMPv6ParamProblem())],
    "later fragments": [IP(src=T1[4], dst=NOWHERE[4], frag=5) / Raw(PAYLOAD),
                        IP(src=T1[4], dst=NOWHERE[4], frag=5, flags="MF") / Raw(PAYLOAD),
                        IPv6(src=T1[6], dst=NOWHERE[6]) / IPv6ExtHdrFragment(offset=5, nh=58) / Raw(PAYLOAD)],
    "errors behind extension headers": [IPv6(src=T1[6], dst=NOWHERE[6]) / x / ICMPv6DestUnreach() / Raw(PAYLOAD) for x in (
        IPv6ExtHdrFragment(m=1), IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(), IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment(m=1))],
    "too many extension headers": [IPv6(src=T1[6], dst=NOWHERE[6], nh=60) / Raw(b"\x3c\0\1\4\0\0\0\0" * 9)],
    "extension headers that end too early": [IPv6(src=T1[6], dst=NOWHERE[6], nh=60) / Raw(b"\x3c\xff\1\4\0\0\0\0")],
    "icmp without a type": [IP(src=T1[4], dst=NOWHERE[4], proto=1), IPv6(src=T1[6], dst=NOWHERE[6], nh=58)],
}


@pytest.mark.parametrize("kind", SILENT)
def test_no_error_about(network, router, kind):
    """No errors are sent about these: RFC 1812 4.3.2.7, RFC 4443 2.4 (e)."""
    with router.drops(ip_no_route=len(SILENT[kind])):
        assert_nothing(router.run("t1", *(from_guest(T1, p) for p in SILENT[kind])))


def test_errors_about_these(network, router):
    """Errors are sent about echo, its reply, and first fragments; and for IPv6 about later fragments (RFC 4443)."""
    packets = [IP(src=T1[4], dst=NOWHERE[4]) / ICMP(type=t) for t in (0, 8, 13, 14)]
    packets += [IPv6(src=T1[6], dst=NOWHERE[6]) / ICMPv6EchoRequest(), IPv6(src=T1[6], dst=NOWHERE[6]) / ICMPv6EchoReply()]
    packets += [IP(src=T1[4], dst=NOWHERE[4], flags="MF", id=1) / UDP() / Raw(PAYLOAD),
                IPv6(src=T1[6], dst=NOWHERE[6]) / IPv6ExtHdrFragment(m=1) / UDP() / Raw(PAYLOAD),
                IPv6(src=T1[6], dst=NOWHERE[6]) / IPv6ExtHdrFragment(offset=5, nh=17) / Raw(PAYLOAD),
                IPv6(src=T1[6], dst=NOWHERE[6]) / IPv6ExtHdrHopByHop() / ICMPv6EchoRequest()]
    with router.drops(ip_no_route=len(packets)):
        out = router.run("t1", *(from_guest(T1, p) for p in packets))
    fours = [p for p in packets if isinstance(p, IP)]
    sixes = [p for p in packets if isinstance(p, IPv6)]
    assert_out([o for o in out if o.packet.type == 0x0800], *(("t1", to_guest(T1, error(p, NO_ROUTE))) for p in fours))
    assert_out([o for o in out if o.packet.type == 0x86dd], *(("t1", to_guest(T1, error(p, NO_ROUTE))) for p in sixes))


@pytest.mark.parametrize("rate", [0, 5])
def test_rate_limit(network, router, rate):
    """Errors per second are limited; drops without an error are counted, too. One port gets a tenth, but at least one."""
    frames = [from_guest(T1, udp_packet(4, T1, NOWHERE)) for _ in range(60)]
    begun, errors = time.monotonic(), []

    def go_on():
        with router.drops(ip_no_route=60):
            errors.extend(router.run("t1", *frames))
        return len(errors)

    router.cli("settings", "set", "--icmp-errors", rate)
    try:
        go_on()
        if rate > 0:
            wait_until("two errors", go_on, lambda n: n >= 2)  # the second one shows that the bucket is filled
        assert len(errors) <= (time.monotonic() - begun + 2 if rate else 0)
    finally:
        router.cli("settings", "set", "--icmp-errors", 1000)


def test_the_answer_is_the_senders_gateway(network, router):
    """An error about a packet with a forged source goes to the owner of that source, from its gateway."""
    packet = udp_packet(4, T2, NOWHERE)
    with router.drops(ip_no_route=1):
        assert_out(router.run("t1", from_guest(T1, packet)), ("t2", to_guest(T2, error(packet, NO_ROUTE))))
