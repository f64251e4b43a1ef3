# SPDX-License-Identifier: Apache-2.0
"""ARP and neighbour discovery of the router: questions, answers, packets that wait, and spoofed messages."""
import contextlib
import socket
import struct
import time

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect,
                                ICMPv6ND_RS,
                                ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, in6_getnsma, in6_getnsmac)
from scapy.layers.l2 import ARP, Ether
from scapy.pton_ntop import inet_pton
from scapy.utils6 import in6_mactoifaceid
from scapy.packet import Padding, Raw

from packets import assert_nothing, assert_out, assert_same, forwarded, from_guest, from_host, to_guest, udp_packet
from router import GATEWAY_MAC
from topology import FAB0, FAB0_MAC, FAMILIES, GATEWAY, HOST, HOST_MAC, T1, T2
from waiting import PATIENCE, wait_until

NEW_MAC = "02:00:00:00:f0:50"
BROADCAST = "ff:ff:ff:ff:ff:ff"


def link_local(mac):
    return "fe80::" + in6_mactoifaceid(mac).lower()


def is_discovery(packet):
    return ARP in packet or ICMPv6ND_NS in packet


def group_of(address):
    """The solicited-node multicast address of this address, as IP and as MAC."""
    raw = inet_pton(10, address)
    return socket.inet_ntop(10, in6_getnsma(raw)), in6_getnsmac(in6_getnsma(raw))


def request(mac, own, asked, to=BROADCAST):
    return Ether(src=mac, dst=to) / ARP(op=1, hwsrc=mac, psrc=own, hwdst="00:00:00:00:00:00", pdst=asked)


def reply(mac, own, to_mac, to):
    return Ether(src=mac, dst=to_mac) / ARP(op=2, hwsrc=mac, psrc=own, hwdst=to_mac, pdst=to)


def solicit(mac, own, asked, to_mac=None):
    ip, multicast = group_of(asked)
    return Ether(src=mac, dst=to_mac or multicast) / IPv6(src=own, dst=asked if to_mac else ip,
                                                          hlim=255) / ICMPv6ND_NS(tgt=asked) / \
        ICMPv6NDOptSrcLLAddr(lladdr=mac)


def advert(mac, own, to_mac, to, router=0, solicited=1, override=1, src=None):
    header = Ether(src=mac, dst=to_mac) / IPv6(src=src or own, dst=to, hlim=255)
    return header / ICMPv6ND_NA(tgt=own, R=router, S=solicited, O=override) / ICMPv6NDOptDstLLAddr(lladdr=mac)


def ask(family, mac, own, asked, to_mac=None):
    if family == 4:
        return request(mac, own, asked, to_mac or BROADCAST)
    return solicit(mac, own, asked, to_mac)


def answer(family, mac, own, to_mac, to, **options):
    return reply(mac, own, to_mac, to) if family == 4 else advert(mac, own, to_mac, to, **options)


@contextlib.contextmanager
def unknown_remotes(network, *addresses):
    """Tunnels to unknown hosts of the link. All is removed afterwards, so that the router no longer asks for the hosts."""
    r = network.router
    nexthops, dsts = [], []
    r.wait(0, lambda fs: False)
    try:
        for address in addresses:
            nexthop = network.new_id()
            r.cli("nexthop", "add", nexthop, "tunnel", "--encap", "mplsoudp", "--remote", address, "--label", 777)
            nexthops.append(nexthop)
            dsts.append(network.route_to(nexthop))
        yield dsts
    finally:
        for dst in dsts:
            r.cli("route", "del", f"{dst[4]}/32", f"{dst[6]}/128", "--vrf", "red")
        for nexthop in nexthops:
            r.cli("nexthop", "del", nexthop)
        for address in addresses:
            with contextlib.suppress(Exception):
                r.cli("neighbor", "del", "fab0", address)
        r.settle()
        r.wait(0, lambda fs: False)


@contextlib.contextmanager
def unknown_remote(network, address):
    with unknown_remotes(network, address) as dsts:
        yield dsts[0]


REMOTE = {4: "192.0.2.50", 6: "2001:db8::50"}


def status_of(router, port, address):
    found = [n for n in router.cli("neighbor", "list") if n["port"] == port and n["address"] == address]
    return found[0].get("status", "NEIGHBOR_INCOMPLETE") if found else None


# --- the underlay ---

@pytest.mark.parametrize("family", FAMILIES)
def test_fabric_answers(network, router, family):
    who = {4: "192.0.2.70", 6: "2001:db8::70"}[family]
    with router.drops():
        router.wait(0, lambda fs: False)
        router.taps["fab0"].send(ask(family, NEW_MAC, who, FAB0[family]))
        got = router.expect("fab0", lambda p: True)
    expected = answer(family, FAB0_MAC, FAB0[family], NEW_MAC, who, **({"router": 1} if family == 6 else {}))
    assert_same(expected, bytes(got))
    # A host that asks will send next, so it is learnt.
    assert status_of(router, "fab0", who) == "NEIGHBOR_STALE"
    router.cli("neighbor", "del", "fab0", who)


@pytest.mark.parametrize("family", FAMILIES)
def test_fabric_does_not_answer_for_others(network, router, family):
    asked = {4: "192.0.2.99", 6: "2001:db8::99"}[family]
    with router.drops():
        assert_nothing(router.run("fab0", ask(family, HOST_MAC, HOST[family], asked)))
        router.settle()
        assert_nothing(router.run("fab0"))


@pytest.mark.parametrize("family", FAMILIES)
def test_address_conflict(network, router, family):
    """Another host with this node's address is not learnt, but counted."""
    reason = {4: "arp_address_conflict", 6: "nd_address_conflict"}[family]
    frames = [ask(family, NEW_MAC, FAB0[family], HOST[family]), answer(family, NEW_MAC, FAB0[family], FAB0_MAC, FAB0[family])]
    with router.drops(**{reason: 2}):
        assert_nothing(router.run("fab0", *frames))


@pytest.mark.parametrize("family", FAMILIES)
def test_fabric_asks_and_packets_wait(network, router, family):
    """The youngest 32 of 40 packets wait, and are sent in order when the answer arrives."""
    remote = REMOTE[family]
    with unknown_remote(network, remote) as dst:
        asked = router.expect("fab0", is_discovery)
        expected = ask(family, FAB0_MAC, FAB0[family], remote)
        assert_same(expected / Padding(bytes(18)) if family == 4 else expected, bytes(asked))
        packets = [udp_packet(4, T1, dst, payload=bytes([i]) * 8) for i in range(40)]
        with router.drops(neighbor_queue_full=8):
            out = router.run("t1", *(from_guest(T1, p) for p in packets))
            assert all(is_discovery(o.packet) for o in out)
        assert status_of(router, "fab0", remote) == "NEIGHBOR_INCOMPLETE"
        frames = []
        router.taps["fab0"].send(answer(family, NEW_MAC, remote, FAB0_MAC, FAB0[family]))
        with router.drops():
            out, _ = router.wait(PATIENCE, lambda fs: len([f for f in fs if f.packet.dst == NEW_MAC]) >= 32)
        frames = [f.packet for f in out if not is_discovery(f.packet)]
        assert [p[Raw].load if Raw in p else bytes(p)[-8:] for p in frames] == [bytes([i]) * 8 for i in range(8, 40)]
        assert {(p.src, p.dst, p[1].dst, p[MPLS].label) for p in frames} == {(FAB0_MAC, NEW_MAC, remote, 777)}
        assert status_of(router, "fab0", remote) == "NEIGHBOR_REACHABLE"
        out = router.run("t1", from_guest(T1, packets[0]))
        assert len(out) == 1 and out[0].packet.dst == NEW_MAC


def asks_for(frames, address):
    return [f for f in frames if (ARP in f.packet and f.packet[ARP].pdst == address) or
            (ICMPv6ND_NS in f.packet and f.packet[ICMPv6ND_NS].tgt == address)]


def test_nobody_answers(network, router):
    """The router asks three times, a second apart, then drops the packets that wait. Both families at a time."""
    begun, asked = time.monotonic(), []

    def questions(more=()):
        return [len(asks_for(asked + list(more), REMOTE[f])) for f in FAMILIES]

    with unknown_remotes(network, *REMOTE.values()) as dsts:
        with router.drops(neighbor_unresolved=6):
            for dst in dsts:
                asked += router.run("t1", *[from_guest(T1, udp_packet(4, T1, dst))] * 3)
            wait_until("both to fail", lambda: [status_of(router, "fab0", REMOTE[f]) for f in FAMILIES],
                       lambda states: states == ["NEIGHBOR_FAILED"] * 2)
        asked += router.wait(PATIENCE, lambda frames: min(questions(frames)) >= 3)[0]
        assert all(is_discovery(o.packet) for o in asked)
        assert 3 <= min(questions()) and max(questions()) <= time.monotonic() - begun + 1
    assert time.monotonic() - begun > 2


@pytest.mark.parametrize("family", FAMILIES)
def test_another_mac_is_learnt(network, router, family):
    """When a host announces another MAC, its packets go there."""
    remote = REMOTE[family]
    with unknown_remote(network, remote) as dst:
        router.expect("fab0", is_discovery)
        for mac in (NEW_MAC, "02:00:00:00:f0:51"):
            router.taps["fab0"].send(answer(family, mac, remote, FAB0_MAC, FAB0[family]))
            router.settle()
            out = [o for o in router.run("t1", from_guest(T1, udp_packet(4, T1, dst))) if not is_discovery(o.packet)]
            assert [o.packet.dst for o in out] == [mac]


def test_permanent_neighbours_are_not_taken_over(network, router):
    dst = network.tunnel("mplsoudp", 4)
    with router.drops():
        router.run("fab0", reply(NEW_MAC, HOST[4], FAB0_MAC, FAB0[4]), request(NEW_MAC, HOST[4], HOST[4]),
                   advert(NEW_MAC, HOST[6], FAB0_MAC, FAB0[6]))
        router.settle()
        router.wait(0, lambda fs: False)
        out = router.run("t1", from_guest(T1, udp_packet(4, T1, dst)))
    assert [o.packet.dst for o in out] == [HOST_MAC]


def test_ageing(network, router):
    """A neighbour in use is probed by unicast before it expires."""
    router.cli("settings", "set", "--neighbor-age", 1)
    try:
        with unknown_remote(network, REMOTE[4]) as dst:
            router.expect("fab0", is_discovery)

            def send_in_a_probe():
                """Returns the neighbour's state after the packet, and where the packet went."""
                router.taps["fab0"].send(reply(NEW_MAC, REMOTE[4], FAB0_MAC, FAB0[4]))
                probe = router.expect("fab0", lambda p: ARP in p and p.dst == NEW_MAC)
                assert_same(request(FAB0_MAC, FAB0[4], REMOTE[4], to=NEW_MAC) / Padding(bytes(18)), bytes(probe))
                out = [o for o in router.run("t1", from_guest(T1, udp_packet(4, T1, dst))) if not is_discovery(o.packet)]
                return status_of(router, "fab0", REMOTE[4]), [o.packet.dst for o in out]

            # It lasts three seconds. The old MAC is used then.
            _, went = wait_until("a packet during a probe", send_in_a_probe, lambda seen: seen[0] == "NEIGHBOR_PROBE")
            assert went == [NEW_MAC]
            router.taps["fab0"].send(reply(NEW_MAC, REMOTE[4], FAB0_MAC, FAB0[4]))
            wait_until("the answer to be believed", lambda: status_of(router, "fab0", REMOTE[4]),
                       lambda state: state == "NEIGHBOR_REACHABLE")
    finally:
        router.cli("settings", "set", "--neighbor-age", 30)


def echo_and_reply(family, who, own):
    if family == 4:
        return IP(src=who, dst=own) / ICMP(id=1, seq=2), IP(src=own, dst=who) / ICMP(type=0, id=1, seq=2)
    return IPv6(src=who, dst=own) / ICMPv6EchoRequest(id=1, seq=2), IPv6(src=own, dst=who) / ICMPv6EchoReply(id=1, seq=2)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_routers_own_answer_waits_too(network, router, family):
    """The reply to an echo from a host of the link waits until the host's MAC is known."""
    who = {4: "192.0.2.80", 6: "2001:db8::80"}[family]
    echo, back = echo_and_reply(family, who, FAB0[family])
    with router.drops():
        router.wait(0, lambda fs: False)
        router.taps["fab0"].send(Ether(src=NEW_MAC, dst=FAB0_MAC) / echo)
        router.expect("fab0", is_discovery)
        router.taps["fab0"].send(answer(family, NEW_MAC, who, FAB0_MAC, FAB0[family]))
        got = router.expect("fab0", lambda p: not is_discovery(p))
    assert_same(Ether(src=FAB0_MAC, dst=NEW_MAC) / back, bytes(got))
    router.cli("neighbor", "del", "fab0", who)


FLOODED = {4: "198.18.0.1", 6: "2001:db8:9::1"}
FLOODED_MAC, NEAR_MAC = "02:00:00:00:f9:01", "02:00:00:00:f9:02"
NEAR = {4: "198.18.0.2", 6: "2001:db8:9::2"}
NEW_HOST = {4: "198.18.0.3", 6: "2001:db8:9::3"}
STRANGERS = 6000  # six times what the table of a port and family holds


def stranger(question, i):
    """The question from another host. What its MAC gets is taken from its address, so that the checksum stays."""
    raw, low = bytearray(question), struct.pack("!H", 0x1000 + i)
    rest = struct.pack("!H", 0xffff - (0x1000 + i))
    addresses, macs = ((30,), (10, 26)) if ARP in Ether(question) else ((36,), (10, 84))
    for at in addresses:
        raw[at:at + 2] = low
    for at in macs:
        raw[at:at + 2] = rest
    return bytes(raw)


@pytest.mark.parametrize("family", FAMILIES)
def test_strangers_ask(network, router, family):
    """Thousands of hosts ask for the router's address: all get their answer, and the router still finds hosts of the link."""
    router.add_fabric("fab9", address=(f"{FLOODED[4]}/16", f"{FLOODED[6]}/64"), host=NEAR.values(), host_mac=NEAR_MAC,
                      mac=FLOODED_MAC)
    try:
        first = {4: "198.18.255.255", 6: "2001:db8:9::ffff"}[family]
        question = bytes(ask(family, "02:00:00:00:00:00", first, FLOODED[family]))
        layer = ARP if family == 4 else ICMPv6ND_NA
        with router.drops():
            for begin in range(0, STRANGERS, 100):
                for i in range(begin, begin + 100):
                    router.taps["fab9"].send(stranger(question, i))
                _, reached = router.wait(PATIENCE, lambda fs: sum(f.port == "fab9" and layer in f.packet for f in fs) >= 100)
                assert reached
            echo, back = echo_and_reply(family, NEW_HOST[family], FLOODED[family])
            router.taps["fab9"].send(Ether(src=NEW_MAC, dst=FLOODED_MAC) / echo)
            router.expect("fab9", is_discovery)
            router.taps["fab9"].send(answer(family, NEW_MAC, NEW_HOST[family], FLOODED_MAC, FLOODED[family]))
            got = router.expect("fab9", lambda p: not is_discovery(p))
            assert_same(Ether(src=FLOODED_MAC, dst=NEW_MAC) / back, bytes(got))
            # An answer that was asked for is not what makes room for the next strangers.
            router.run("fab9", *(stranger(question, i) for i in range(STRANGERS, STRANGERS + 1000)))
            assert status_of(router, "fab9", NEW_HOST[family]) in ("NEIGHBOR_REACHABLE", "NEIGHBOR_STALE")  # as it has aged
    finally:
        router.del_port("fab9")


def broken(frame, **fields):
    p = frame.copy()
    layer = p[ARP] if ARP in p else p[IPv6]
    for name, value in fields.items():
        setattr(layer, name, value)
    return p


@pytest.mark.parametrize("port", ["fab0", "t1"])
def test_malformed(network, router, port):
    mac, own, gateway = (HOST_MAC, HOST, FAB0) if port == "fab0" else (T1["mac"], T1, GATEWAY)
    good = request(mac, own[4], gateway[4])
    arps = [broken(good, hwtype=6), broken(good, ptype=0x86dd), broken(good, op=3), broken(good, op=0),
            broken(good, hwsrc="00:00:00:00:00:00"), broken(good, hwsrc=BROADCAST), broken(good, psrc="224.0.0.1"),
            broken(good, psrc="255.255.255.255")]
    for field, value in ((18, 5), (19, 16)):
        raw = bytearray(bytes(good))
        raw[field] = value
        arps.append(bytes(raw))
    with router.drops(arp_malformed=len(arps)):
        assert_nothing(router.run(port, *arps))
    good = solicit(mac, own[6], gateway[6])
    bad_sum = good.copy()
    bad_sum[ICMPv6ND_NS].cksum = 1
    zero_option = Ether(bytes(good)[:-8]) / Raw(b"\x01\x00\0\0\0\0\0\0")
    long_option = Ether(bytes(good)[:-8]) / Raw(b"\x01\x02\0\0\0\0\0\0")
    for p in (zero_option, long_option):
        p[IPv6].plen = 32
        del p[ICMPv6ND_NS].cksum
    code = good.copy()
    code[ICMPv6ND_NS].code = 1
    multicast_target = solicit(mac, own[6], gateway[6])
    multicast_target[ICMPv6ND_NS].tgt = "ff02::1"
    from_nobody = broken(good, src="::")  # with a source MAC option: RFC 4861 7.1.1
    nds = [broken(good, hlim=254), broken(good, plen=31), broken(good, src="ff02::5"), bad_sum, zero_option, long_option, code,
           multicast_target,
           from_nobody]
    with router.drops(nd_malformed=len(nds)):
        assert_nothing(router.run(port, *nds))


# --- guests ---

@pytest.mark.parametrize("family", FAMILIES)
def test_guest_asks_for_its_gateway(network, router, family):
    expected = answer(family, GATEWAY_MAC, GATEWAY[family], T1["mac"], T1[family], **({"router": 1} if family == 6 else {}))
    for to in (None, GATEWAY_MAC):
        with router.drops():
            assert_out(router.run("t1", ask(family, T1["mac"], T1[family], GATEWAY[family], to)), ("t1", expected))


def test_guest_asks_for_the_gateways_link_local_address(network, router):
    gateway = link_local(GATEWAY_MAC)
    own = link_local(T1["mac"])
    assert_out(router.run("t1", solicit(T1["mac"], own, gateway)), ("t1", advert(GATEWAY_MAC, gateway, T1["mac"], own, router=1)))


def test_duplicate_address_detection(network, router):
    """A guest that probes for the gateway's address gets an answer at once, to all nodes (RFC 4862)."""
    probe = solicit(T1["mac"], "::", GATEWAY[6])
    probe[ICMPv6ND_NS].remove_payload()
    expected = advert(GATEWAY_MAC, GATEWAY[6], "33:33:00:00:00:01", "ff02::1", router=1, solicited=0)
    assert_out(router.run("t1", probe), ("t1", expected))
    arp_probe = request(T1["mac"], "0.0.0.0", GATEWAY[4])  # RFC 5227
    assert_out(router.run("t1", arp_probe), ("t1", reply(GATEWAY_MAC, GATEWAY[4], T1["mac"], "0.0.0.0")))


@pytest.mark.parametrize("family", FAMILIES)
def test_guest_asks_for_others(network, router, family):
    """The gateway answers only with proxy_arp, and only for addresses that are reached by another port than the guest's."""
    reason = {4: "arp_not_ours", 6: "nd_not_ours"}[family]
    nowhere = {4: "198.18.0.1", 6: "fd99::1"}[family]
    own_link = {4: "169.254.1.1", 6: "fe80::9"}[family]
    far = network.tunnel("vxlan", 4)[family]
    questions = [ask(family, T1["mac"], T1[family], a) for a in (T2[family], far, nowhere, T1[family], own_link)]
    if family == 4:
        questions[3] = request(T1["mac"], "0.0.0.0", T1[4])  # a probe; with its own address as source it would be an announcement
    with router.drops(**{reason: 5}):
        assert_nothing(router.run("t1", *questions))
    router.cli("port", "set", "t1", "--proxy-arp")
    try:
        with router.drops(**{reason: 3}):
            out = router.run("t1", *questions)
        options = {"router": 1, "override": 0, "src": link_local(GATEWAY_MAC)} if family == 6 else {}
        assert_out(out, *(("t1", answer(family, GATEWAY_MAC, a, T1["mac"], T1[family], **options)) for a in (T2[family], far)))
    finally:
        router.cli("port", "set", "t1", "--proxy-arp=false")


def test_spoofed_gateway(network, router):
    """Messages of a guest that claims to be the gateway are neither learnt nor forwarded."""
    arps = [request(T1["mac"], GATEWAY[4], T2[4]), request(T1["mac"], GATEWAY[4], GATEWAY[4]),
            reply(T1["mac"], GATEWAY[4], T2["mac"], T2[4]),
            reply(T1["mac"], GATEWAY[4], BROADCAST, GATEWAY[4]), reply(T1["mac"], GATEWAY[4], GATEWAY_MAC, GATEWAY[4])]
    arps = [p for p in arps if p.dst in (BROADCAST, GATEWAY_MAC)]
    with router.drops(arp_spoofed_gateway=len(arps)):
        assert_nothing(router.run("t1", *arps))
    nds = [advert(T1["mac"], GATEWAY[6], "33:33:00:00:00:01", "ff02::1", solicited=0, router=1),
           advert(T1["mac"], GATEWAY[6], GATEWAY_MAC, GATEWAY[6]), solicit(T1["mac"], GATEWAY[6], T2[6]),
           advert(T1["mac"], link_local(GATEWAY_MAC), "33:33:00:00:00:01", "ff02::1", solicited=0)]
    with router.drops(nd_spoofed_gateway=len(nds)):
        assert_nothing(router.run("t1", *nds))
    assert_out(router.run("t2", request(T2["mac"], T2[4], GATEWAY[4])), ("t2", reply(GATEWAY_MAC, GATEWAY[4], T2["mac"], T2[4])))


def test_guest_with_another_mac(network, router):
    """A guest with a configured MAC cannot announce another one, and still gets its packets."""
    wrong = "02:00:00:00:66:66"
    with router.drops(arp_wrong_guest_mac=1, nd_wrong_guest_mac=1):
        assert_nothing(router.run("t1", reply(wrong, T1[4], GATEWAY_MAC, GATEWAY[4]),
                                  advert(wrong, T1[6], GATEWAY_MAC, GATEWAY[6])))
    p = udp_packet(4, T2, T1)
    assert_out(router.run("t2", from_guest(T2, p)), ("t1", to_guest(T1, forwarded(p))))


@pytest.mark.parametrize("port", ["fab0", "t1"])
def test_routers_are_not_discovered(network, router, port):
    mac, own = (HOST_MAC, HOST[6]) if port == "fab0" else (T1["mac"], T1[6])
    source = link_local(mac)

    def nd(body, dst="ff02::2", to="33:33:00:00:00:02"):
        return Ether(src=mac, dst=to) / IPv6(src=source, dst=dst, hlim=255) / body

    with router.drops(nd_router_solicit_ignored=1, nd_router_advert_ignored=1, nd_redirect_ignored=1):
        assert_nothing(router.run(port, nd(ICMPv6ND_RS()), nd(ICMPv6ND_RA()), nd(ICMPv6ND_Redirect(tgt=source, dst=own))))


@pytest.mark.parametrize("family", FAMILIES)
def test_guest_without_a_configured_mac(network, router, family):
    """The gateway asks for the guest's MAC when it has a packet for the guest."""
    guest = {4: "10.4.0.11", 6: "fd00:4::11", "mac": "02:00:00:00:04:11"}
    gateway = {4: "10.4.0.1", 6: "fd00:4::1"}
    router.cli("port", "add", "t4", "tenant", "tap", "--vrf", "red", "--gateway", "10.4.0.1/24,fd00:4::1/64", "--guest-address",
               "10.4.0.11,fd00:4::11")
    router.attach("t4", Ether(src=guest["mac"], dst=GATEWAY_MAC) / IP(src=guest[4], dst=gateway[4]))
    try:
        asked = router.expect("t4", lambda p: (ARP in p) if family == 4 else (ICMPv6ND_NS in p))
        expected = ask(family, GATEWAY_MAC, gateway[family], guest[family])
        assert_same(expected / Padding(bytes(18)) if family == 4 else expected, bytes(asked))
        p = udp_packet(family, T1, guest)
        router.run("t1", from_guest(T1, p))
        router.taps["t4"].send(answer(family, guest["mac"], guest[family], GATEWAY_MAC, gateway[family]))
        got = router.expect("t4", lambda p: UDP in p)
        assert_same(to_guest(guest, forwarded(p)), bytes(got))
        out = [o for o in router.run("fab0", from_host("vxlan", 6, p)) if not is_discovery(o.packet)]
        assert_out(out, ("t4", to_guest(guest, forwarded(p))))
    finally:
        router.del_port("t4")
