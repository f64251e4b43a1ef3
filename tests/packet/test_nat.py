# SPDX-License-Identifier: Apache-2.0
"""Address translation: floating addresses, pools, services, with their replies, ICMP errors and fragments."""
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from packets import PAYLOAD, assert_nothing, assert_out, forwarded, from_guest, from_host, ip, to_guest, to_host, udp_packet
from topology import FAMILIES, GATEWAY

G1 = {4: "10.1.0.41", 6: "fd00:1::41", "mac": "02:00:00:00:05:11"}
G2 = {4: "10.1.0.42", 6: "fd00:1::42", "mac": "02:00:00:00:05:12"}
OUT = {4: "198.51.100.7", 6: "2001:db8:f::7"}
LABEL = 1013
BITS = {4: 32, 6: 128}


@pytest.fixture(scope="module")
def tenant(network):
    """Two guests whose ports keep no flows themselves, and a remote network behind a tunnel."""
    r = network.router
    r.cli("vrf", "add", "inside")
    for name, g in (("n1", G1), ("n2", G2)):
        r.add_tenant(name, vrf="inside", gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(g[4], g[6]), guest_mac=g["mac"])
    r.cli("label", "add", LABEL, "vrf", "inside")
    yield network.tunnel("mplsoudp", 4, vrf="inside", tag=LABEL)
    for name in ("n1", "n2"):
        r.del_port(name)


@pytest.fixture
def nat(router, tenant):
    made = []

    def add(*args):
        made.append(100 + len(made))
        router.cli("nat", "add", made[-1], *args, "--vrf", "inside")
        return made[-1]
    yield add
    for i in made:
        router.cli("nat", "del", i)
    router.cli("flow", "flush", "--all")


def left(router, packet, port="n1", guest=G1):
    """Sends a guest's packet; returns the inner packet on the wire, after it has checked the outer headers."""
    out = router.run(port, from_guest(guest, packet))
    assert len(out) == 1 and out[0].port == "fab0", out
    frame = Ether(out[0].data)
    inner = frame[UDP].payload.payload
    inner = inner if isinstance(inner, (IP, IPv6)) else frame.getlayer(packet.__class__, 2)
    assert_out(out, ("fab0", to_host("mplsoudp", 4, inner, out[0].data, tag=LABEL)))
    return inner


def right(packet, **changes):
    """The expected packet: forwarded, with these changes and new checksums."""
    p = forwarded(packet)
    for k, v in changes.items():
        if k in ("src", "dst"):
            setattr(p, k, v)
        else:
            setattr(p.payload, k, v)
    if p.payload.haslayer(ICMP) or hasattr(p.payload, "cksum"):
        if hasattr(p.payload, "cksum"):
            del p.payload.cksum
    if hasattr(p.payload, "chksum"):
        del p.payload.chksum
    return p.__class__(bytes(p))


def enter(router, packet, port="n1", guest=G1, **changes):
    assert_out(router.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL)), (port, to_guest(guest, right(packet, **changes))))


def bodies(family):
    echo = ICMP(id=9) if family == 4 else ICMPv6EchoRequest(id=9)
    return {"udp": UDP(sport=1000, dport=53) / Raw(PAYLOAD), "tcp": TCP(sport=1000, dport=80, flags="S") / Raw(b"odd"), "echo": echo / Raw(b"x")}


@pytest.mark.parametrize("kind", bodies(4))
@pytest.mark.parametrize("family", FAMILIES)
def test_floating_out_and_back(router, tenant, nat, family, kind):
    rule = nat("floating", G1[family], OUT[family])
    packet = ip(family, G1, tenant) / bodies(family)[kind]
    assert bytes(left(router, packet)) == bytes(right(packet, src=OUT[family]))
    if kind == "echo":
        body = ICMP(type=0, id=9) if family == 4 else ICMPv6EchoReply(id=9)
    else:
        body = packet.payload.__class__(sport=packet.payload.dport, dport=packet.payload.sport)
    enter(router, ip(family, tenant, OUT) / body / Raw(b"answer"), dst=G1[family])
    (flow,) = router.cli("flow", "list", "--nat", rule)
    assert (flow["forward"]["source"], flow["reverse"]["destination"]) == (G1[family], OUT[family])
    assert (int(flow["forward"]["packets"]), int(flow["reverse"]["packets"])) == (1, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_floating_from_outside(router, tenant, nat, family):
    nat("floating", G1[family], OUT[family])
    packet = ip(family, tenant, OUT) / TCP(sport=5, dport=22, flags="S")
    enter(router, packet, dst=G1[family])
    answer = ip(family, G1, tenant) / TCP(sport=22, dport=5, flags="SA")
    assert bytes(left(router, answer)) == bytes(right(answer, src=OUT[family]))


@pytest.mark.parametrize("family", FAMILIES)
def test_pool_gives_each_flow_a_port_of_its_own(router, tenant, nat, family):
    nat("source", "10.1.0.0/24" if family == 4 else "fd00:1::/64", OUT[family], "--pool-ports", "2000-2003")
    seen = {}
    for i in range(4):
        packet = udp_packet(family, G1, tenant, sport=7000 + i)
        inner = left(router, packet)
        assert inner.src == OUT[family] and 2000 <= inner.sport <= 2003
        assert bytes(inner) == bytes(right(packet, src=OUT[family], sport=inner.sport))
        seen[inner.sport] = packet
    assert len(seen) == 4
    with router.drops(flow_nat_exhausted=1):
        assert_nothing(router.run("n1", from_guest(G1, udp_packet(family, G1, tenant, sport=7999))))
    # All four ports are free towards another port of that host.
    assert left(router, udp_packet(family, G1, tenant, sport=7999, dport=1)).src == OUT[family]
    for port, packet in seen.items():
        enter(router, ip(family, tenant, OUT) / UDP(sport=5678, dport=port) / Raw(b"a"), dst=G1[family], dport=packet[UDP].sport)


@pytest.mark.parametrize("family", FAMILIES)
def test_pings_of_one_guest_to_one_host(router, tenant, nat, family):
    """As many identifiers as the pool has: each ping is answered to the identifier that the guest sent."""
    nat("source", "10.1.0.0/24" if family == 4 else "fd00:1::/64", OUT[family], "--pool-ports", "3000-3199")
    request, answer = (ICMP, ICMP) if family == 4 else (ICMPv6EchoRequest, ICMPv6EchoReply)
    pings = [ip(family, G1, tenant) / request(id=i) / Raw(PAYLOAD) for i in range(200)]
    out = router.run("n1", *(from_guest(G1, p) for p in pings))
    ids = [Ether(o.data).getlayer(request).id for o in out]
    assert sorted(ids) == list(range(3000, 3200))
    with router.drops(flow_nat_exhausted=1):
        assert_nothing(router.run("n1", from_guest(G1, ip(family, G1, tenant) / request(id=200) / Raw(PAYLOAD))))
    kind = {"type": 0} if family == 4 else {}
    enter(router, ip(family, tenant, OUT) / answer(id=ids[123], **kind) / Raw(PAYLOAD), dst=G1[family], id=123)


def test_except(router, tenant, nat):
    nat("floating", G1[4], OUT[4], "--except", "10.1.0.0/16")
    packet = udp_packet(4, G1, G2)
    assert_out(router.run("n1", from_guest(G1, packet)), ("n2", to_guest(G2, forwarded(packet))))
    assert left(router, udp_packet(4, G1, tenant)).src == OUT[4]


@pytest.mark.parametrize("family", FAMILIES)
def test_service(router, tenant, nat, family):
    def end(addr, port):
        return f"{addr}:{port}" if family == 4 else f"[{addr}]:{port}"

    nat("destination", end(OUT[family], 443), end(G1[family], 8443), "--protocol", "tcp")
    packet = ip(family, tenant, OUT) / TCP(sport=6, dport=443, flags="S")
    enter(router, packet, dst=G1[family], dport=8443)
    answer = ip(family, G1, tenant) / TCP(sport=8443, dport=6, flags="SA")
    assert bytes(left(router, answer)) == bytes(right(answer, src=OUT[family], sport=443))


@pytest.mark.parametrize("family", FAMILIES)
def test_icmp_error_inside(router, tenant, nat, family):
    """An error of a router about the translated packet reaches the guest and quotes the packet that the guest sent."""
    nat("floating", G1[family], OUT[family])
    packet = udp_packet(family, G1, tenant)
    outside = left(router, packet)
    hop = "203.0.113.77" if family == 4 else "2001:db8:77::1"
    quoted = bytes(outside)[:28 if family == 4 else 48]
    header = ICMP(type=11, code=0) if family == 4 else ICMPv6DestUnreach(code=4)
    error = ip(family, hop, OUT) / header / Raw(quoted)
    out = router.run("fab0", from_host("mplsoudp", 4, error, tag=LABEL))
    assert [o.port for o in out] == ["n1"]
    got = Ether(out[0].data)
    layer = got[IP] if family == 4 else got[IPv6]
    assert (layer.src, layer.dst) == (hop, G1[family])
    inner = IP(bytes(layer)[28:]) if family == 4 else IPv6(bytes(layer)[48:])
    assert (inner.src, inner.dst) == (G1[family], tenant[family])
    again = layer.__class__(bytes(layer))
    if family == 4:
        sent = again[ICMP].chksum
        del again[ICMP].chksum
        assert again.__class__(bytes(again))[ICMP].chksum == sent
    else:
        sent = again[ICMPv6DestUnreach].cksum
        del again[ICMPv6DestUnreach].cksum
        assert again.__class__(bytes(again))[ICMPv6DestUnreach].cksum == sent


def test_fragments(router, tenant, nat):
    nat("floating", G1[4], OUT[4])
    whole = udp_packet(4, G1, tenant, payload=bytes(i & 0xff for i in range(1200)), id=77)
    parts = fragment(IP(bytes(whole)), 400)
    out = router.run("n1", *(from_guest(G1, p) for p in parts))
    assert len(out) == len(parts)
    inner = [Ether(o.data).getlayer(IP, 2) for o in out]
    assert all(p.src == OUT[4] for p in inner)
    data = b"".join(bytes(p)[20:] for p in inner)
    built = IP(src=OUT[4], dst=tenant[4]) / UDP(data)
    sent = built[UDP].chksum
    del built[UDP].chksum
    assert IP(bytes(built))[UDP].chksum == sent


def test_another_vrf_is_the_outside(network, router, tenant, nat):
    """Translated packets leave by the external VRF, and replies arrive there."""
    router.cli("vrf", "add", "world")
    router.cli("label", "add", 1014, "vrf", "world")
    try:
        far = network.tunnel("mplsoudp", 4, vrf="world", tag=1014)
        nat("source", "10.1.0.0/24", OUT[4], "--external-vrf", "world")
        packet = udp_packet(4, G1, far)
        out = router.run("n1", from_guest(G1, packet))
        inner = Ether(out[0].data).getlayer(IP, 2)
        assert_out(out, ("fab0", to_host("mplsoudp", 4, right(packet, src=OUT[4], sport=inner.sport), out[0].data, tag=1014)))
        answer = ip(4, far, OUT) / UDP(sport=5678, dport=inner.sport) / Raw(b"a")
        assert_out(router.run("fab0", from_host("mplsoudp", 4, answer, tag=1014)),
                   ("n1", to_guest(G1, right(answer, dst=G1[4], dport=1234))))
    finally:
        router.cli("label", "del", 1014)


def test_a_rule_that_goes_ends_its_flows(router, tenant, nat):
    packet = udp_packet(4, G1, tenant)
    rule = nat("floating", G1[4], OUT[4])
    assert left(router, packet).src == OUT[4]
    router.cli("nat", "del", rule)
    assert bytes(left(router, packet)) == bytes(forwarded(packet).__class__(bytes(forwarded(packet))))
    router.cli("nat", "add", rule, "floating", G1[4], OUT[4], "--vrf", "inside")
    assert left(router, packet).src == OUT[4]
