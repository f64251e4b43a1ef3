# SPDX-License-Identifier: Apache-2.0
"""Bridge domains: local ports and remote ends of VXLAN and MPLS, learning, flooding, and the gateway on a bridge."""
import time
from socket import AF_INET6, inet_ntop, inet_pton

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, IPv6,
                                 in6_getnsma, in6_getnsmac)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from packets import PAYLOAD, assert_nothing, assert_out, carrier, cut, forwarded, from_guest, from_host, ip, to_host, udp_packet
from router import GATEWAY_MAC, STATEFUL
from topology import FAB0, FAB0_MAC, FAMILIES, HOST, HOST_MAC, OVERLAYS, T1
from waiting import wait_until

A, B, C = "02:00:00:00:10:01", "02:00:00:00:10:02", "02:00:00:00:10:03"  # behind l1, l2 and the remote end
BROADCAST = "ff:ff:ff:ff:ff:ff"
LABEL, VNI = 6002, 6001


@pytest.fixture(scope="module")
def lan(network):
    """Two local ports, two remote ends: VXLAN over IPv4 and MPLSoUDP over IPv6, which are two addresses of one host."""
    r = network.router
    vx, mpls = network.new_id(), network.new_id()
    r.cli("nexthop", "add", vx, "tunnel", "--encap", "vxlan", "--remote", HOST[4], "--vni", VNI)
    r.cli("nexthop", "add", mpls, "tunnel", "--encap", "mplsoudp", "--remote", HOST[6], "--label", LABEL)
    r.cli("bridge", "add", "lan", "--flood", f"{vx},{mpls}")
    for name in ("l1", "l2"):
        r.cli("port", "add", name, "tenant", "tap", "--bridge", "lan", "--mtu", 1600, *(("--stateful",) if STATEFUL else ()))
        r.attach(name, None)
    r.cli("vni", "add", VNI, "bridge", "lan")
    r.cli("label", "add", LABEL, "bridge", "lan")
    return {"vxlan": vx, "mplsoudp": mpls}


@pytest.fixture
def empty(lan, router):
    """No MAC is known yet."""
    for m in router.cli("mac", "list"):
        router.cli("mac", "del", m["bridge"], m["mac"])
    return lan


def frame(src, dst, family=4, payload=PAYLOAD):
    return Ether(src=src, dst=dst) / udp_packet(family, {4: "192.168.0.1", 6: "fd77::1"}, {4: "192.168.0.2", 6: "fd77::2"},
                                                payload=payload)


def run(router, port, *frames):
    return router.run(port, *frames, fence="t1" if port != "fab0" else None)


def learn(router, port, f, mac):
    """Sends until the source is learnt there: a MAC that was just learnt and deleted is learnt again after 0.1 s only."""
    def known():
        run(router, port, f)
        router.settle()
        return {m["mac"]: m for m in router.cli("mac", "list") if m["bridge"] == "lan"}.get(mac)

    return wait_until(f"{mac} to be learnt at {port}", known,
                      lambda m: m and (m.get("port") == port or port == "fab0" and "nexthop" in m), pause=0)


def by_tunnel(out):
    """The frames that went to the underlay, VXLAN first."""
    fabric = [o for o in out if o.port == "fab0"]
    return sorted(fabric, key=lambda o: o.packet.type)


def vxlan_out(inner, seen, tos=0):
    p = to_host("vxlan", 4, IP(), seen, tos=tos)
    p[VXLAN].vni = VNI
    p[VXLAN].remove_payload()
    return p / Raw(bytes(inner))


def mpls_out(inner, seen, tos=0):
    p = to_host("mplsoudp", 6, IP(), seen, tag=LABEL, tos=tos)
    p[MPLS].remove_payload()
    return p / Raw(bytes(inner))


def from_remote(inner, encap="vxlan", under=4):
    shim = VXLAN(flags="Instance", vni=VNI) if encap == "vxlan" else MPLS(label=LABEL, s=1, ttl=64)
    return Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(under, HOST, FAB0) / carrier(encap, under) / shim / Raw(bytes(inner))


def assert_flooded(out, f, *local, tos=0):
    vx, mpls = by_tunnel(out)
    assert_out([o for o in out if o.port != "fab0"], *((port, f) for port in local))
    assert_out([vx], ("fab0", vxlan_out(f, vx.data, tos)))
    assert_out([mpls], ("fab0", mpls_out(f, mpls.data, tos)))


FLOODED = {
    "broadcast": frame(A, BROADCAST), "broadcast of IPv6": frame(A, BROADCAST, 6), "multicast": frame(A, "01:00:5e:00:00:fb"),
    "unknown unicast": frame(A, "02:00:00:00:99:99"), "ARP": Ether(src=A, dst=BROADCAST) / ARP(),
    "VLAN of the guest": Ether(src=A, dst=BROADCAST) / Dot1Q(vlan=5) / frame(A, B)[IP],
    "header only": Ether(src=A, dst=BROADCAST, type=0x88b5) / Raw(b""),
    "802.3": Ether(src=A, dst=BROADCAST, type=60) / Raw(b"\xaa\xaa\x03" + bytes(57)),
}


@pytest.mark.parametrize("kind", FLOODED)
def test_flood(empty, router, kind):
    f = FLOODED[kind]
    with router.drops():
        out = run(router, "l1", f)
    assert_flooded(out, f, "l2")


def test_a_guest_that_is_a_virtual_router(empty, router):
    """VRRP and CARP of group 1 use the MAC that the gateway has elsewhere. On a bridge without a gateway it is a guest's."""
    advert = Ether(src=GATEWAY_MAC, dst="01:00:5e:00:00:12") / IP(src="192.168.0.2", dst="224.0.0.18", ttl=255, proto=112) / Raw(
        bytes.fromhex("2101640100010000c0a80001") + bytes(8))
    announce = Ether(src=GATEWAY_MAC, dst=BROADCAST) / ARP(op=1, hwsrc=GATEWAY_MAC, psrc="192.168.0.1", pdst="192.168.0.1")
    with router.drops():
        for f in (advert, announce):
            assert_flooded(run(router, "l1", f), f, "l2")
    assert learn(router, "l1", announce, GATEWAY_MAC)["learnt"]
    there, back = frame(B, GATEWAY_MAC), frame(GATEWAY_MAC, B)
    with router.drops():
        assert_out(run(router, "l2", there), ("l1", there))
        learn(router, "l2", there, B)
        assert_out(run(router, "l1", back), ("l2", back))


def test_a_priority_tag_is_carried(empty, router):
    f = Ether(src=A, dst=BROADCAST) / Dot1Q(vlan=0, prio=5) / frame(A, B)[IP]
    out = run(router, "l1", f)
    # Where rules read what is behind the tag, it is removed.
    assert_flooded(out, frame(A, BROADCAST) if STATEFUL else f, "l2")


def test_dscp_of_bridged_packets(empty, router):
    f = frame(A, BROADCAST)
    f[IP].tos = 0xb9
    assert_flooded(run(router, "l1", f), f, "l2", tos=0xb9)


def test_learning(empty, router):
    """After one frame from B, frames to B go to B's port only."""
    assert learn(router, "l2", frame(B, BROADCAST), B)["learnt"]
    f = frame(A, B)
    with router.drops():
        assert_out(run(router, "l1", f), ("l2", f))
    learn(router, "l1", frame(B, BROADCAST), B)  # it moves
    with router.drops(bridge_same_port=1):
        assert_nothing(run(router, "l1", f))
    assert_out(run(router, "l2", f), ("l1", f))


def test_a_guest_that_claims_the_addresses_of_others(empty, router):
    """Its port has no source check. It sends with the MAC of another port's guest and with ever new ones: what is for the others still
    arrives there, and only there."""
    router.cli("port", "set", "l2", "--guest-mac", B, "--source-check", "strict")
    router.cli("port", "add", "l3", "tenant", "tap", "--bridge", "lan", "--mtu", 1600)
    router.attach("l3", None)
    try:
        learn(router, "l2", frame(B, BROADCAST), B)
        before = router.cli("bridge", "show", "lan")[0]
        for part in range(20):
            new = [frame(f"02:77:00:00:{part:02x}:{i:02x}", B) for i in range(100)]
            run(router, "l3", frame(B, BROADCAST), *new)
            assert_out(run(router, "fab0", from_remote(frame(C, B))), ("l2", frame(C, B)))
            time.sleep(0.02)
        router.settle()
        after = router.cli("bridge", "show", "lan")[0]
        at = {m["mac"]: m.get("port") for m in router.cli("mac", "list") if m["bridge"] == "lan"}
        assert at[B] == "l2"
        assert int(after.get("learn_refused", 0)) > int(before.get("learn_refused", 0))
        assert int(after.get("moves", 0)) == int(before.get("moves", 0))
        assert list(at.values()).count("l3") > 100  # its own are learnt
    finally:
        router.del_port("l3")
        router.cli("port", "set", "l2", "--guest-mac", "", "--source-check", "none")


@pytest.mark.parametrize("encap,under", [("vxlan", 4), ("mplsoudp", 6)])
def test_learning_behind_a_tunnel(empty, router, encap, under):
    arriving = frame(C, BROADCAST)
    with router.drops():
        out = run(router, "fab0", from_remote(arriving, encap, under))
    assert_out(out, ("l1", arriving), ("l2", arriving))  # split horizon: not back into a tunnel
    known = learn(router, "fab0", from_remote(arriving, encap, under), C)
    assert known["remote"] == HOST[under] and known["nexthop"] == empty[encap]
    f = frame(A, C)
    with router.drops():
        out = run(router, "l1", f)
    assert_out(out, ("fab0", (vxlan_out if encap == "vxlan" else mpls_out)(f, out[0].data)))


def test_split_horizon(empty, router):
    learn(router, "fab0", from_remote(frame(C, BROADCAST)), C)
    with router.drops(bridge_split_horizon=1):
        assert_nothing(run(router, "fab0", from_remote(frame("02:00:00:00:10:09", C), "mplsoudp", 6)))


def test_unknown_unicast_policy(empty, router):
    router.cli("bridge", "set", "lan", "--unknown-unicast", "drop")
    try:
        with router.drops(bridge_unknown_unicast=2):
            assert_nothing(run(router, "l1", frame(A, "02:00:00:00:99:99")))
            assert_nothing(run(router, "fab0", from_remote(frame(C, "02:00:00:00:99:99"))))
        assert len(run(router, "l1", frame(A, BROADCAST))) == 3
    finally:
        router.cli("bridge", "set", "lan", "--unknown-unicast", "flood")


def test_mac_set_by_hand(empty, router):
    router.cli("mac", "add", "lan", B, "port", "l2")
    router.cli("mac", "add", "lan", C, "nexthop", empty["vxlan"])
    run(router, "l1", frame(B, BROADCAST), frame(C, BROADCAST))  # their sources are configured, not learnt
    router.settle()
    f = frame(A, B)
    assert_out(run(router, "l1", f), ("l2", f))
    f = frame(A, C, 6)
    out = run(router, "l1", f)
    assert_out(out, ("fab0", vxlan_out(f, out[0].data)))


def test_no_learning_and_limit(empty, router):
    def learnt():
        router.settle()
        return {m["mac"] for m in router.cli("mac", "list")}

    router.cli("bridge", "set", "lan", "--no-learning")
    try:
        run(router, "l1", frame("02:00:00:00:11:01", BROADCAST))
        assert not learnt()
        router.cli("bridge", "set", "lan", "--no-learning=false", "--mac-limit", 3)
        run(router, "l1", *(frame(f"02:00:00:00:11:{i:02x}", BROADCAST) for i in range(2, 10)))
        assert len(learnt()) == 3
        assert int(router.cli("bridge", "show", "lan")[0]["learn_refused"]) >= 5
    finally:
        router.cli("bridge", "set", "lan", "--no-learning=false", "--mac-limit", 8192)


NEAR, FAR, UNKNOWN = {4: "10.77.0.1", 6: "fd77::1"}, {4: "10.77.0.2", 6: "fd77::2"}, {4: "10.77.0.3", 6: "fd77::3"}


def asks(family, target, source=NEAR, mac=A):
    """A guest asks for the MAC address of another one."""
    if family == 4:
        return Ether(src=mac, dst=BROADCAST) / ARP(hwsrc=mac, psrc=source[4], pdst=target[4])
    group = in6_getnsma(inet_pton(AF_INET6, target[6]))
    option = ICMPv6NDOptSrcLLAddr(lladdr=mac)
    return Ether(src=mac, dst=in6_getnsmac(group)) / IPv6(src=source[6], dst=inet_ntop(AF_INET6, group), hlim=255) / ICMPv6ND_NS(
        tgt=target[6]) / option


def answered(family):
    """What a guest at C would say itself."""
    if family == 4:
        return Ether(src=C, dst=A) / ARP(op="is-at", hwsrc=C, psrc=FAR[4], hwdst=A, pdst=NEAR[4])
    return Ether(src=C, dst=A) / IPv6(src=FAR[6], dst=NEAR[6], hlim=255) / ICMPv6ND_NA(
        tgt=FAR[6], R=1, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=C)


@pytest.mark.parametrize("family", FAMILIES)
def test_neighbor_suppression(empty, router, family):
    router.cli("mac", "add", "lan", C, "nexthop", empty["vxlan"], "--addresses", f"{FAR[4]},{FAR[6]}")
    known = asks(family, FAR)
    assert_flooded(run(router, "l1", known), known, "l2")  # the bridge has no suppression yet
    router.cli("bridge", "set", "lan", "--neighbor-suppression")
    try:
        assert_out(run(router, "l1", known), ("l1", answered(family)))
        unknown = asks(family, UNKNOWN)
        assert_flooded(run(router, "l1", unknown), unknown, "l2")
        assert_out(run(router, "fab0", from_remote(asks(family, FAR, mac="02:00:00:00:10:04"))),
                   *((port, asks(family, FAR, mac="02:00:00:00:10:04")) for port in ("l1", "l2")))  # its own host answers
        router.cli("mac", "del", "lan", C)
        assert_flooded(run(router, "l1", known), known, "l2")
    finally:
        router.cli("bridge", "set", "lan", "--neighbor-suppression=false")


def test_refused(empty, router):
    with router.drops(bridge_link_local=2):
        assert_nothing(run(router, "l1", frame(A, "01:80:c2:00:00:00"), frame(A, "01:80:c2:00:00:0e")))
    with router.drops(eth_bad_source=2):
        assert_nothing(run(router, "l1", frame("00:00:00:00:00:00", B), frame("01:00:5e:00:00:01", B)))
    with router.drops(bridge_bad_source=2):
        assert_nothing(run(router, "fab0", from_remote(frame("00:00:00:00:00:00", B)),
                           from_remote(frame(BROADCAST, B), "mplsoudp", 6)))


@pytest.mark.parametrize("encap,under", [("vxlan", 4), ("mplsoudp", 6)])
def test_truncated(empty, router, encap, under):
    """A frame that is cut within its headers is counted; one that is cut behind the inner Ethernet header is valid."""
    whole = bytes(from_remote(Ether(src=C, dst=A, type=0x88b5) / Raw(b"payload"), encap, under))
    ethernet = len(whole) - 7
    frames = [cut(whole, n, fix=True) for n in range(14, ethernet)]
    expected = {"fabric_truncated", "tunnel_truncated"} | ({"bridge_truncated"} if encap == "mplsoudp" else set())
    with router.all_dropped(len(frames), expected):
        assert_nothing(run(router, "fab0", *frames))
    short = cut(whole, ethernet, fix=True)
    assert_out(run(router, "fab0", short), ("l1", Raw(whole[ethernet - 14:ethernet])), ("l2", Raw(whole[ethernet - 14:ethernet])))


def test_too_large_for_a_tunnel(empty, router):
    """1450 bytes of IP fit into VXLAN over IPv4 with an MTU of 1500; MPLSoUDP over IPv6 takes 1500 - 52 - 14."""
    router.cli("mac", "add", "lan", B, "nexthop", empty["vxlan"])
    router.cli("mac", "add", "lan", C, "nexthop", empty["mplsoudp"])
    for dst, mtu in ((B, 1450), (C, 1434)):
        with router.drops(bridge_too_big=1):
            out = run(router, "l1", frame(A, dst, payload=bytes(mtu - 28)), frame(A, dst, payload=bytes(mtu - 27)))
        assert len(out) == 1 and len(out[0].data) == 14 + 1500
    with router.drops(bridge_flood_too_big=1):
        assert len(run(router, "l1", frame(A, BROADCAST, payload=bytes(1435 - 28)))) == 2
    f = frame(A, BROADCAST, payload=bytes(1600 - 28))
    with router.drops(bridge_flood_too_big=2):
        assert_out(run(router, "l1", f), ("l2", f))


# --- the gateway on a bridge ---

I1 = {4: "10.5.0.11", 6: "fd00:5::11", "mac": "02:00:00:00:15:11"}
I2 = {4: "10.5.0.12", 6: "fd00:5::12", "mac": "02:00:00:00:15:12"}
IRB_GATEWAY = {4: "10.5.0.1", 6: "fd00:5::1"}


@pytest.fixture(scope="module")
def irb(network):
    r = network.router
    nexthop = network.new_id()
    r.cli("nexthop", "add", nexthop, "tunnel", "--encap", "vxlan", "--remote", HOST[4], "--vni", 6003)
    r.cli("bridge", "add", "irb", "--flood", nexthop)
    for name, g in (("i1", I1), ("i2", I2)):
        r.add_tenant(name, "--bridge", "irb", "--source-check", "none", vrf="red", gateway=(f"{IRB_GATEWAY[4]}/24", f"{IRB_GATEWAY[6]}/64"),
                     guest=(g[4], g[6]),
                     guest_mac=g["mac"])
    r.cli("vni", "add", 6003, "bridge", "irb")
    return r


@pytest.mark.parametrize("family", FAMILIES)
def test_routed_to_and_from_a_bridge(network, irb, family):
    """Frames to the gateway's MAC are routed, also into tunnels; other frames are bridged."""
    packet = udp_packet(family, I1, T1)
    with irb.drops():
        assert_out(irb.run("i1", from_guest(I1, packet)), ("t1", Ether(src=GATEWAY_MAC, dst=T1["mac"]) / forwarded(packet)))
    packet = udp_packet(family, T1, I2)
    assert_out(irb.run("t1", from_guest(T1, packet)), ("i2", Ether(src=GATEWAY_MAC, dst=I2["mac"]) / forwarded(packet)))
    for encap in OVERLAYS:
        packet = udp_packet(family, I1, network.tunnel(encap, 4))
        out = irb.run("i1", from_guest(I1, packet))
        assert_out(out, ("fab0", to_host(encap, 4, forwarded(packet), out[0].data)))
        packet = udp_packet(family, {4: "10.2.0.9", 6: "fd00:2::9"}, I2)
        assert_out(irb.run("fab0", from_host(encap, 4, packet)), ("i2", Ether(src=GATEWAY_MAC, dst=I2["mac"]) / forwarded(packet)))
    irb.run("i2", Ether(src=I2["mac"], dst=BROADCAST) / ARP(op=1, hwsrc=I2["mac"], psrc=I2[4], pdst=I1[4]))
    irb.settle()
    bridged = Ether(src=I1["mac"], dst=I2["mac"]) / udp_packet(family, I1, I2)
    assert_out(irb.run("i1", bridged), ("i2", bridged))


def test_priority_tags_to_the_gateway(irb):
    """A tag with id 0 says a priority and no VLAN, from a guest as from another host's."""
    packet = udp_packet(4, I1, T1)
    tagged = Ether(src=I1["mac"], dst=GATEWAY_MAC) / Dot1Q(vlan=0, prio=5) / packet
    outer = Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(4, HOST, FAB0) / carrier("vxlan", 4) / VXLAN(flags="Instance", vni=6003)
    far = Ether(src=C, dst=GATEWAY_MAC) / Dot1Q(vlan=0, prio=5) / udp_packet(4, {4: "10.5.0.99"}, T1)
    with irb.drops():
        assert_out(irb.run("i1", tagged), ("t1", Ether(src=GATEWAY_MAC, dst=T1["mac"]) / forwarded(packet)))
        assert_out(irb.run("fab0", outer / far), ("t1", Ether(src=GATEWAY_MAC, dst=T1["mac"]) / forwarded(far[IP])))
    asked = Ether(src=I1["mac"], dst=BROADCAST) / Dot1Q(vlan=0) / ARP(op=1, hwsrc=I1["mac"], psrc=I1[4], pdst=IRB_GATEWAY[4])
    back = Ether(src=GATEWAY_MAC, dst=I1["mac"]) / ARP(op=2, hwsrc=GATEWAY_MAC, psrc=IRB_GATEWAY[4], hwdst=I1["mac"], pdst=I1[4])
    assert_out(irb.run("i1", asked), ("i1", back))


def test_arp_on_a_bridge(irb):
    """The gateway answers for its own addresses; questions of guests to each other are flooded."""
    asked = Ether(src=I1["mac"], dst=BROADCAST) / ARP(op=1, hwsrc=I1["mac"], psrc=I1[4], pdst=IRB_GATEWAY[4])
    back = Ether(src=GATEWAY_MAC, dst=I1["mac"]) / ARP(op=2, hwsrc=GATEWAY_MAC, psrc=IRB_GATEWAY[4], hwdst=I1["mac"], pdst=I1[4])
    assert_out(irb.run("i1", asked), ("i1", back))
    other = Ether(src=I1["mac"], dst=BROADCAST) / ARP(op=1, hwsrc=I1["mac"], psrc=I1[4], pdst=I2[4])
    out = irb.run("i1", other)
    assert sorted(o.port for o in out) == ["fab0", "i2"]
    with irb.drops(arp_spoofed_gateway=1):
        spoofed = ARP(op=2, hwsrc=I1["mac"], psrc=IRB_GATEWAY[4], pdst=I2[4])
        assert_nothing(irb.run("i1", Ether(src=I1["mac"], dst=BROADCAST) / spoofed))
    with irb.drops(eth_spoofed_gateway=1):
        assert_nothing(irb.run("i1", Ether(src=GATEWAY_MAC, dst=I2["mac"]) / udp_packet(4, I1, I2)))


def test_a_remote_end_routes_by_the_gateway(irb):
    """A frame from a tunnel to the gateway's MAC is routed here; one with the gateway's MAC as its source is dropped."""
    far = {4: "10.5.0.99"}
    packet = udp_packet(4, far, T1)

    def arriving(inner):
        outer = Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(4, HOST, FAB0) / carrier("vxlan", 4)
        return outer / VXLAN(flags="Instance", vni=6003) / inner

    with irb.drops():
        out = irb.run("fab0", arriving(Ether(src=C, dst=GATEWAY_MAC) / packet))
    assert_out(out, ("t1", Ether(src=GATEWAY_MAC, dst=T1["mac"]) / forwarded(packet)))
    with irb.drops(bridge_spoofed_gateway=1):
        assert_nothing(irb.run("fab0", arriving(Ether(src=GATEWAY_MAC, dst=I1["mac"]) / packet)))


def test_bridges_are_apart(empty, router, irb):
    """A MAC that is known in one domain is unknown in the other."""
    router.run("i1", Ether(src=I1["mac"], dst=BROADCAST) / ARP(op=1, hwsrc=I1["mac"], psrc=I1[4], pdst=I2[4]))
    router.settle()
    out = run(router, "l1", frame(A, I1["mac"]))
    assert sorted(o.port for o in out) == ["fab0", "fab0", "l2"]
    assert UDP in out[0].packet


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bridged_packet_too_large_for_a_tunnel(irb, family):
    """The domain's gateway sends an ICMP error, so that the sender discovers the path's MTU."""
    nexthop = next(n["id"] for n in irb.cli("nexthop", "list") if n.get("tunnel", {}).get("vni") == 6003)
    irb.cli("mac", "add", "irb", C, "nexthop", nexthop)
    try:
        far = {4: "10.5.0.99", 6: "fd00:5::99"}
        size = 1451 - (28 if family == 4 else 48)
        packet = udp_packet(family, I1, far, payload=bytes(size), **({"flags": "DF"} if family == 4 else {}))
        with irb.drops(bridge_too_big=1):
            out = irb.run("i1", Ether(src=I1["mac"], dst=C) / packet)
        if family == 4:
            error = IP(src=IRB_GATEWAY[4], dst=I1[4], id=0, tos=0xc0) / ICMP(type=3, code=4, nexthopmtu=1450)
            error /= Raw(bytes(packet)[:548])
        else:
            error = IPv6(src=IRB_GATEWAY[6], dst=I1[6]) / ICMPv6PacketTooBig(mtu=1450) / Raw(bytes(packet)[:1232])
        assert_out(out, ("i1", Ether(src=GATEWAY_MAC, dst=I1["mac"]) / error))
    finally:
        irb.cli("mac", "del", "irb", C)
