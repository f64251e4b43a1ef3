# SPDX-License-Identifier: Apache-2.0
"""A hop of the underlay that cannot pass on long tunnel packets: its ICMP errors are believed as far as they are authentic."""
import time

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from packets import assert_nothing, forwarded, from_guest, udp_packet
from topology import FAB0, FAB0_MAC, FAMILIES, HOST, HOST_MAC, OVERLAYS, RED, T1, UDP_PORT, ids_of
from waiting import wait_until

outsides = pytest.mark.parametrize("encap,under", [(e, u) for e in OVERLAYS for u in FAMILIES])
FAR_NET = {4: "203.0.113.0/24", 6: "2001:db8:ff::/48"}


def far(encap, under):
    """A remote end for each test: what is learned about it stays for 10 minutes."""
    n = 10 + OVERLAYS.index(encap)
    return {4: f"203.0.113.{n}", 6: f"2001:db8:ff::{n:x}"}[under]


@pytest.fixture(scope="module")
def underlay(network):
    r = network.router
    for f in FAMILIES:
        via = network.new_id()
        r.cli("nexthop", "add", via, "port", "fab0", "--address", HOST[f])
        r.cli("route", "add", FAR_NET[f], "--vrf", "fabric", "--nexthop", via)
    return network


def tunnel(network, encap, under):
    nexthop = network.new_id()
    network.router.cli("nexthop", "add", nexthop, "tunnel", "--encap", encap, "--remote", far(encap, under), *ids_of(RED)[encap])
    wait_until_resolved(network, nexthop)
    return nexthop, network.route_to(nexthop)


def wait_until_resolved(network, nexthop):
    wait_until("a next hop that is resolved", lambda: state(network, nexthop), lambda s: s["resolved"])


def state(network, nexthop):
    return network.router.cli("nexthop", "show", nexthop)[0]["state"]


def too_big(under, quote, mtu):
    header = IP(src=HOST[4], dst=FAB0[4]) if under == 4 else IPv6(src=HOST[6], dst=FAB0[6])
    body = ICMP(type=3, code=4, nexthopmtu=mtu) if under == 4 else ICMPv6PacketTooBig(mtu=mtu)
    return Ether(src=HOST_MAC, dst=FAB0_MAC) / header / body / Raw(quote)


def learned(network, nexthop, mtu):
    s = wait_until(f"an MTU for packets of {mtu} bytes", lambda: state(network, nexthop), lambda s: s["mtu"] == mtu - s["overhead"])
    assert s["path_mtu"] == mtu
    return s


@outsides
def test_a_hop_is_believed(underlay, router, encap, under):
    nexthop, dst = tunnel(underlay, encap, under)
    small = udp_packet(4, T1, dst)
    sent = Ether(router.run("t1", from_guest(T1, small))[0].data)  # what the hop quotes
    begun = time.monotonic()
    with router.drops():
        router.run("fab0", too_big(under, bytes(sent.payload)[:68 if under == 4 else 100], 1300))
        s = learned(underlay, nexthop, 1300)
    assert s["path_mtu_hop"] == HOST[under] and 599 - (time.monotonic() - begun) <= s["path_mtu_seconds"] <= 600
    event = [e for e in router.cli("event", "list", "--kind", "path_mtu_learned") if e["subject"] == far(encap, under)]
    assert "up to 1300 bytes" in event[-1]["text"] and HOST[under] in event[-1]["text"]

    big = udp_packet(4, T1, dst, flags="DF", payload=bytes(s["mtu"]))  # 28 bytes too long
    out = router.run("t1", from_guest(T1, big))
    assert len(out) == 1 and out[0].port == "t1"
    answer = Ether(out[0].data)
    assert (answer[ICMP].type, answer[ICMP].code, answer[ICMP].nexthopmtu) == (3, 4, s["mtu"])
    fits = udp_packet(4, T1, dst, flags="DF", payload=bytes(s["mtu"] - 28))
    out = router.run("t1", from_guest(T1, fits))
    assert len(out) == 1 and out[0].port == "fab0" and len(out[0].data) == 14 + 1300
    assert bytes(forwarded(fits)) in out[0].data


@pytest.mark.parametrize("under", FAMILIES)
def test_forged(underlay, router, under):
    """No tunnel of this node sends such a packet, or no hop has such an MTU."""
    encap = "mplsoudp"
    end = {4: "203.0.113.200", 6: "2001:db8:ff::c8"}[under]
    nexthop = underlay.new_id()
    router.cli("nexthop", "add", nexthop, "tunnel", "--encap", encap, "--remote", end, *ids_of(RED)[encap])
    wait_until_resolved(underlay, nexthop)
    before = state(underlay, nexthop)["mtu"]

    def quote(src=FAB0[under], dst=end, port=UDP_PORT[encap], proto=17):
        header = IP(src=src, dst=dst, proto=proto, flags="DF", id=0) if under == 4 else IPv6(src=src, dst=dst, nh=proto)
        return bytes(header / UDP(sport=50000, dport=port) / Raw(bytes(40)))

    other = "192.0.2.99" if under == 4 else "2001:db8::99"
    no_tunnel = [quote(dst=other), quote(port=53), quote(proto=6), quote(port=UDP_PORT["vxlan"])]
    impossible = [(quote(src=other), 1300), (quote(), 500), (quote(), 0), (quote()[:20], 1300)]
    with router.drops(path_mtu_no_tunnel=len(no_tunnel), path_mtu_forged=len(impossible)):
        assert_nothing(router.run("fab0", *(too_big(under, q, 1300) for q in no_tunnel), *(too_big(under, q, m) for q, m in impossible)))
    assert state(underlay, nexthop)["mtu"] == before and state(underlay, nexthop)["path_mtu"] == 0


def test_a_hop_that_does_not_say(underlay, router):
    """RFC 1191: an MTU of 0 stands for the next plausible one below the length of the quoted packet, and never for one below 576."""
    end = "203.0.113.201"
    nexthop = underlay.new_id()
    router.cli("nexthop", "add", nexthop, "tunnel", "--encap", "mplsoudp", "--remote", end, *ids_of(RED)["mplsoudp"])
    wait_until_resolved(underlay, nexthop)

    def quote(length):
        header = IP(src=FAB0[4], dst=end, proto=17, flags="DF", id=0, len=length)
        return bytes(header / UDP(sport=50000, dport=UDP_PORT["mplsoudp"]) / Raw(bytes(40)))

    with router.drops(path_mtu_forged=1):
        for length, mtu in ((1500, 1492), (1492, 1006)):
            router.run("fab0", too_big(4, quote(length), 0))
            learned(underlay, nexthop, mtu)
        router.run("fab0", too_big(4, quote(1006), 0))
    assert state(underlay, nexthop)["path_mtu"] == 1006
