# SPDX-License-Identifier: Apache-2.0
"""Address translation between a guest of one VRF and a host behind a tunnel of another VRF."""
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest
from scapy.packet import Raw

from packets import PAYLOAD, assert_nothing, assert_out, forwarded, from_guest, from_host, ip, to_guest, to_host, udp_packet
from topology import FAMILIES, GATEWAY

GUEST = {4: "10.1.0.31", 6: "fd00:1::31", "mac": "02:00:00:00:04:11"}
OUTSIDE = {4: "198.51.100.31", 6: "2001:db8:31::31"}
SERVICE = {4: "198.51.100.80", 6: "2001:db8:31::80"}
POOL = {4: "198.51.100.99", 6: "2001:db8:31::99"}
EVERYTHING = {4: "0.0.0.0/0", 6: "::/0"}
LABEL = 1031


@pytest.fixture(scope="module")
def wan(network):
    """Guests of VRF 'hosts' leave by VRF 'wan', which has no ports but a tunnel."""
    r = network.router
    r.cli("vrf", "add", "hosts")
    r.cli("vrf", "add", "wan")
    r.add_tenant("w1", vrf="hosts", stateful=False, gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(GUEST[4], GUEST[6]),
                 guest_mac=GUEST["mac"])
    r.cli("label", "add", LABEL, "vrf", "wan")
    yield network.tunnel("mplsoudp", 4, vrf="wan", tag=LABEL)
    r.del_port("w1")


@pytest.fixture(autouse=True)
def rules(router, wan):
    yield
    ids = [str(r["id"]) for r in router.cli("nat", "list")]
    if ids:
        router.cli("nat", "del", *ids)
    router.cli("flow", "flush", "--all")


def add(router, number, kind, *args):
    if kind != "destination":  # the gateway stays reachable
        args += ("--except", "fd00:1::/64" if ":" in args[0] else "10.1.0.0/24")
    router.cli("nat", "add", number, kind, *args, "--vrf", "hosts", "--external-vrf", "wan")


def flows_of(router, number):
    return int(router.cli("nat", "show", number)[0]["flows"])


def leaves(router, packet, want):
    got = router.run("w1", from_guest(GUEST, packet))
    assert_out(got, ("fab0", to_host("mplsoudp", 4, want, got[0].data, tag=LABEL)))


def arrives(router, packet, want):
    assert_out(router.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL)), ("w1", to_guest(GUEST, want)))


@pytest.mark.parametrize("family", FAMILIES)
def test_floating(router, wan, family):
    add(router, 10, "floating", GUEST[family], OUTSIDE[family])
    for _ in range(2):
        leaves(router, udp_packet(family, GUEST, wan), forwarded(udp_packet(family, OUTSIDE, wan)))
    arrives(router, udp_packet(family, wan, OUTSIDE, sport=5678, dport=1234), forwarded(udp_packet(family, wan, GUEST, sport=5678, dport=1234)))
    # A flow that begins outside.
    arrives(router, udp_packet(family, wan, OUTSIDE, sport=7, dport=22), forwarded(udp_packet(family, wan, GUEST, sport=7, dport=22)))
    leaves(router, udp_packet(family, GUEST, wan, sport=22, dport=7), forwarded(udp_packet(family, OUTSIDE, wan, sport=22, dport=7)))
    assert flows_of(router, 10) == 2
    router.cli("nat", "del", 10)
    assert_nothing(router.run("fab0", from_host("mplsoudp", 4, udp_packet(family, wan, OUTSIDE, sport=7, dport=22), tag=LABEL)))


@pytest.mark.parametrize("family", FAMILIES)
def test_pool_and_echo(router, wan, family):
    prefix = f"{GUEST[family]}/{32 if family == 4 else 128}"
    add(router, 20, "source", prefix, POOL[family], "--pool-ports", "4000")
    leaves(router, udp_packet(family, GUEST, wan), forwarded(udp_packet(family, POOL, wan, sport=4000)))
    arrives(router, udp_packet(family, wan, POOL, sport=5678, dport=4000), forwarded(udp_packet(family, wan, GUEST, sport=5678, dport=1234)))
    # The port is in use towards this port of the peer, and free towards another one.
    with router.drops(flow_nat_exhausted=1):
        assert_nothing(router.run("w1", from_guest(GUEST, udp_packet(family, GUEST, wan, sport=1235))))
    leaves(router, udp_packet(family, GUEST, wan, sport=1235, dport=9), forwarded(udp_packet(family, POOL, wan, sport=4000, dport=9)))
    request, answer = (ICMP, ICMP) if family == 4 else (ICMPv6EchoRequest, ICMPv6EchoReply)
    kind = {"type": 0} if family == 4 else {}
    leaves(router, ip(family, GUEST[family], wan[family]) / request(id=7) / Raw(PAYLOAD),
           forwarded(ip(family, POOL[family], wan[family]) / request(id=4000) / Raw(PAYLOAD)))
    arrives(router, ip(family, wan[family], POOL[family]) / answer(id=4000, **kind) / Raw(PAYLOAD),
            forwarded(ip(family, wan[family], GUEST[family]) / answer(id=7, **kind) / Raw(PAYLOAD)))


@pytest.mark.parametrize("family", FAMILIES)
def test_service(router, wan, family):
    address = SERVICE[family] if family == 4 else f"[{SERVICE[6]}]"
    backend = GUEST[family] if family == 4 else f"[{GUEST[6]}]"
    add(router, 30, "destination", f"{address}:80", f"{backend}:8080", "--protocol", "tcp")

    def tcp(src, dst, sport, dport, flags="S"):
        return ip(family, src[family], dst[family]) / TCP(sport=sport, dport=dport, flags=flags) / Raw(PAYLOAD)

    arrives(router, tcp(wan, SERVICE, 1000, 80), forwarded(tcp(wan, GUEST, 1000, 8080)))
    leaves(router, tcp(GUEST, wan, 8080, 1000, "SA"), forwarded(tcp(SERVICE, wan, 80, 1000, "SA")))


@pytest.mark.parametrize("family", FAMILIES)
def test_errors_name_what_the_guest_sent(router, wan, family):
    add(router, 10, "floating", GUEST[family], OUTSIDE[family])
    sent = udp_packet(family, GUEST, wan)
    leaves(router, sent, forwarded(udp_packet(family, OUTSIDE, wan)))
    unreachable = ICMP(type=3, code=3) if family == 4 else ICMPv6DestUnreach(code=4)
    quoted, original = (type(sent)(bytes(udp_packet(family, a, wan))) for a in (OUTSIDE, GUEST))
    hop = {4: "203.0.113.77", 6: "2001:db8:77::1"}
    arrives(router, ip(family, hop[family], OUTSIDE[family]) / unreachable / quoted, forwarded(ip(family, hop[family], GUEST[family]) / unreachable / original))


def test_fragments(router, wan):
    add(router, 10, "floating", GUEST[4], OUTSIDE[4])
    whole = ip(4, GUEST[4], wan[4], id=9) / UDP(sport=1, dport=2) / Raw(b"x" * 1000)
    for part, want in zip(fragment(whole, 600), fragment(IP(bytes(ip(4, OUTSIDE[4], wan[4], id=9) / UDP(sport=1, dport=2) / Raw(b"x" * 1000))), 600)):
        leaves(router, part, forwarded(want))
