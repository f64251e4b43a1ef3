# SPDX-License-Identifier: Apache-2.0
"""Rules and flows on ports of a bridge domain: both directions, both families, local ports and VXLAN, and what has no flow."""
from socket import AF_INET6, inet_ntop, inet_pton

import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, IPv6, in6_getnsma, in6_getnsmac
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from packets import PAYLOAD, assert_nothing, assert_out, carrier, forwarded, ip, udp_packet
from router import GATEWAY_MAC
from topology import FAB0, FAB0_MAC, FAMILIES, HOST, HOST_MAC
from waiting import wait_until

A = {4: "192.168.9.1", 6: "fd99::1", "mac": "02:00:00:00:19:01"}
B = {4: "192.168.9.2", 6: "fd99::2", "mac": "02:00:00:00:19:02"}
C = {4: "192.168.9.3", 6: "fd99::3", "mac": "02:00:00:00:19:03"}  # behind the tunnel
S = {4: "192.168.9.4", 6: "fd99::4", "mac": "02:00:00:00:19:04"}  # at a port that keeps no flows
PORTS = {"f1": A, "f2": B, "f3": S}
VNI = 6091
BROADCAST = "ff:ff:ff:ff:ff:ff"
ICMP_NAME = {4: "icmp", 6: "icmpv6"}


@pytest.fixture(scope="module")
def lan(network):
    r, remote = network.router, network.new_id()
    r.cli("nexthop", "add", remote, "tunnel", "--encap", "vxlan", "--remote", HOST[4], "--vni", VNI)
    r.cli("bridge", "add", "ruled", "--flood", remote)
    for name, g in PORTS.items():
        r.cli("port", "add", name, "tenant", "tap", "--bridge", "ruled", *(() if g is S else ("--stateful",)))
        r.attach(name, None)
    r.cli("vni", "add", VNI, "bridge", "ruled")
    macs(r, remote)
    yield remote
    for name in PORTS:
        r.del_port(name)
    r.cli("vni", "del", VNI)
    r.cli("bridge", "del", "ruled")


def macs(router, remote):
    for name, g in PORTS.items():
        router.cli("mac", "add", "ruled", g["mac"], "port", name, "--addresses", f"{g[4]},{g[6]}")
    router.cli("mac", "add", "ruled", C["mac"], "nexthop", remote)


@pytest.fixture
def rules(router, lan):
    """rules(PORT, DIRECTION, RULE...) attaches a list of these rules."""
    made = []

    def attach(port, direction, *texts, default="deny"):
        name = f"{port}-{direction}"
        router.cli("rule-list", "add", name, "--default-action", default)
        made.append((port, direction, name))
        for i, text in enumerate(texts):
            router.cli("rule", "add", name, (i + 1) * 10, *text.split())
        router.cli("port", "set", port, f"--{direction}-rules", name)
        return name
    yield attach
    for port, direction, name in made:
        router.cli("port", "set", port, f"--{direction}-rules=")
        router.cli("rule-list", "del", name)
    router.cli("flow", "flush", "--all")


def frame(src, dst, packet):
    return Ether(src=src["mac"], dst=dst["mac"]) / packet


def udp(family, src, dst, **fields):
    return frame(src, dst, udp_packet(family, src, dst, **fields))


def tcp(family, src, dst, flags, sport=4000, dport=80):
    return frame(src, dst, ip(family, src, dst) / TCP(sport=sport, dport=dport, flags=flags))


def echo(family, src, dst, reply=False):
    if family == 4:
        return frame(src, dst, ip(4, src, dst) / ICMP(type=0 if reply else 8, id=7) / Raw(PAYLOAD))
    return frame(src, dst, ip(6, src, dst) / (ICMPv6EchoReply if reply else ICMPv6EchoRequest)(id=7) / Raw(PAYLOAD))


def tunnelled(inner):
    return Ether(src=HOST_MAC, dst=FAB0_MAC) / ip(4, HOST, FAB0) / carrier("vxlan", 4) / VXLAN(flags="Instance", vni=VNI) / inner


def run(router, port, *frames):
    if port == "fab0":
        return router.run(port, *(tunnelled(f) for f in frames))
    return router.run(port, *frames, fence="t1")


def inner(out):
    """What came out, by port; of the fabric port, the frame in the tunnel."""
    got = []
    for o in out:
        data = bytes(o.packet[VXLAN].payload) if o.port == "fab0" else o.data
        got.append((o.port, data))
    return sorted(got)


def passes(router, port, f, *to):
    assert inner(run(router, port, f)) == sorted((t, bytes(f)) for t in to)


def denied(router, port, f, reason, times=1):
    with router.drops(**{reason: times}):
        assert_nothing(run(router, port, *([f] * times)))


def flows(router, *options):
    return [f for f in router.cli("flow", "list", *options) if f["forward"].get("bridge") == "ruled"]


# Sender's and receiver's port, and their guests: between local ports, to and from the tunnel, with a port that keeps no flows.
WAYS = {"local": ("f1", A, "f2", B), "to the tunnel": ("f1", A, "fab0", C), "from the tunnel": ("fab0", C, "f2", B),
        "from a stateless port": ("f3", S, "f2", B), "to a stateless port": ("f1", A, "f3", S)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", WAYS)
def test_rules_decide_and_replies_pass(router, rules, way, family):
    there, src, back, dst = WAYS[way]
    reason = "flow_denied_egress" if there == "f1" else "flow_denied_ingress"
    allow = [f"allow --protocol {ICMP_NAME[family]}", "allow --protocol tcp --destination-ports 80",
             f"allow --protocol udp --destination-ports 53 --destination {dst[family]}/{32 if family == 4 else 128}"]
    if there == "f1":
        rules("f1", "egress", *allow)
        rules("f1", "ingress")
    if back == "f2":
        rules("f2", "ingress", *allow)
        rules("f2", "egress")
    for ask, answer in ((echo(family, src, dst), echo(family, dst, src, reply=True)),
                        (udp(family, src, dst, sport=99, dport=53), udp(family, dst, src, sport=53, dport=99)),
                        (tcp(family, src, dst, "S"), tcp(family, dst, src, "SA", 80, 4000))):
        passes(router, there, ask, back)
        passes(router, back, answer, there)
        passes(router, there, ask, back)
    passes(router, there, tcp(family, src, dst, "A"), back)  # established
    passes(router, back, tcp(family, dst, src, "A", 80, 4000), there)
    denied(router, there, udp(family, src, dst, sport=99, dport=54), reason, times=3)
    denied(router, there, tcp(family, src, dst, "S", dport=81), reason)
    if (back == "f2" and there != "f1") or there == "f1" and back != "f2":  # the other direction needs a rule of its own
        fresh = udp(family, dst, src, sport=1, dport=53)
        denied(router, back, fresh, "flow_denied_egress" if back == "f2" else "flow_denied_ingress")


@pytest.mark.parametrize("family", FAMILIES)
def test_flow_list(router, rules, family):
    rules("f1", "egress", "allow --protocol udp --destination-ports 53")
    rules("f2", "ingress", "deny --protocol udp --destination-ports 53", default="allow")
    passes(router, "f1", udp(family, A, C, dport=53), "fab0")
    denied(router, "f1", udp(family, A, B, dport=53), "flow_denied_ingress")
    allowed, refused = sorted(flows(router), key=lambda f: f["action"])
    assert (allowed["in_port"], allowed.get("out_port", ""), allowed["egress_rule"]) == ("f1", "", 10)
    assert allowed["forward"]["destination"] == C[family] and allowed["forward"]["packets"] == "1"
    assert not allowed["forward"]["vrf"]
    assert (refused["in_port"], refused["out_port"], refused["reason"], refused["ingress_rule"]) == (
        "f1", "f2", "flow_denied_ingress", 10)
    assert len(router.cli("flow", "list", "--bridge", "ruled")) == 2
    assert len(router.cli("flow", "list", "--bridge", "ruled", "--action", "deny")) == 1
    assert not router.cli("flow", "list", "--vrf", "red", "--port", "f1")


@pytest.mark.parametrize("family", FAMILIES)
def test_group_members_by_address(router, rules, family):
    bits = 32 if family == 4 else 128
    router.cli("address-group", "add", "peers", f"{A[family]}/{bits}")
    try:
        rules("f2", "ingress", "allow --source-group peers")
        packet = udp(family, A, B)
        passes(router, "f1", packet, "f2")
        denied(router, "fab0", udp(family, C, B), "flow_denied_ingress")
        router.cli("address-group", "set", "peers", f"{C[family]}/{bits}")
        denied(router, "f1", packet, "flow_denied_ingress")
        passes(router, "fab0", udp(family, C, B), "f2")
    finally:
        router.cli("port", "set", "f2", "--ingress-rules=")
        router.cli("rule", "del", "f2-ingress", 10)
        router.cli("address-group", "del", "peers")


@pytest.mark.parametrize("family", FAMILIES)
def test_fragments(router, rules, family):
    rules("f2", "ingress", "allow --protocol udp --destination-ports 53")
    if family == 4:
        first = frame(A, B, IP(src=A[4], dst=B[4], id=5, flags="MF") / UDP(sport=9, dport=53, len=80, chksum=0) / Raw(bytes(16)))
        later = frame(A, B, IP(src=A[4], dst=B[4], id=5, frag=3, proto=17) / Raw(bytes(48)))
    else:
        head = b"\x11\x00\x00%c\x00\x00\x00\x05"
        first = frame(A, B, IPv6(src=A[6], dst=B[6], nh=44) / Raw(head % 1 + bytes(UDP(sport=9, dport=53, len=80, chksum=1)) + bytes(16)))
        later = frame(A, B, IPv6(src=A[6], dst=B[6], nh=44) / Raw(head % 24 + bytes(48)))
    denied(router, "f1", later, "flow_no_first_fragment")
    passes(router, "f1", first, "f2")
    passes(router, "f1", later, "f2")


@pytest.mark.parametrize("family", FAMILIES)
def test_another_guest_cannot_use_a_connection(router, rules, family):
    """It has no source check, and sends with the addresses of one of the ends. The connection goes on."""
    rules("f2", "ingress", "allow --protocol tcp --destination-ports 80")
    rules("f1", "egress", "allow --protocol tcp --destination-ports 80")
    rules("f1", "ingress")
    passes(router, "f1", tcp(family, A, B, "S"), "f2")
    passes(router, "f2", tcp(family, B, A, "SA", 80, 4000), "f1")
    passes(router, "f1", tcp(family, A, B, "A"), "f2")
    rules("f2", "egress")
    forged = frame(B, A, ip(family, C, A) / TCP(sport=80, dport=4000, flags="R"))
    denied(router, "f2", forged, "flow_denied_egress")
    other = frame(A, S, ip(family, A, B) / TCP(sport=4000, dport=80, flags="A"))  # the flow's addresses, to another MAC
    passes(router, "f1", other, "f3")
    passes(router, "f1", tcp(family, A, B, "A"), "f2")
    passes(router, "f2", tcp(family, B, A, "A", 80, 4000), "f1")
    # A port without source check may begin such a connection itself, and this one is not told from it.
    passes(router, "f3", frame(S, B, ip(family, A, B) / TCP(sport=4000, dport=80, flags="A")), "f2")


def test_arp_and_neighbour_discovery_pass(router, rules):
    for port in ("f1", "f2"):
        rules(port, "egress")
        rules(port, "ingress")
    who_has = Ether(src=A["mac"], dst=BROADCAST) / ARP(hwsrc=A["mac"], psrc=A[4], pdst=B[4])
    passes(router, "f1", who_has, "f2", "f3", "fab0")
    passes(router, "f2", Ether(src=B["mac"], dst=A["mac"]) / ARP(op=2, hwsrc=B["mac"], psrc=B[4], hwdst=A["mac"], pdst=A[4]), "f1")
    group = in6_getnsma(inet_pton(AF_INET6, B[6]))
    solicit = Ether(src=A["mac"], dst=in6_getnsmac(group)) / IPv6(src=A[6], dst=inet_ntop(AF_INET6, group), hlim=255) / ICMPv6ND_NS(tgt=B[6])
    passes(router, "f1", solicit, "f2", "f3", "fab0")
    passes(router, "f2", Ether(src=B["mac"], dst=A["mac"]) / IPv6(src=B[6], dst=A[6], hlim=255) / ICMPv6ND_NA(tgt=B[6]), "f1")
    assert not flows(router)


def test_dhcp(router, rules):
    """A client reaches servers, and servers their clients, whatever the rules say; a guest is no server unless it may be one."""
    for port in ("f1", "f2"):
        rules(port, "egress")
        rules(port, "ingress")
    discover = Ether(src=A["mac"], dst=BROADCAST) / IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / \
        BOOTP(chaddr=bytes.fromhex(A["mac"].replace(":", ""))) / DHCP(options=[("message-type", "discover"), "end"])
    with router.drops(flow_denied_egress=1):  # f2 may be no server
        assert inner(run(router, "f1", discover)) == sorted((p, bytes(discover)) for p in ("f3", "fab0"))
    offer = frame(C, A, ip(4, C, A) / UDP(sport=67, dport=68) / BOOTP(op=2))
    passes(router, "fab0", offer, "f1")
    renew = frame(A, C, ip(4, A, C) / UDP(sport=68, dport=67) / BOOTP())
    passes(router, "f1", renew, "fab0")
    denied(router, "f2", frame(B, A, ip(4, B, A) / UDP(sport=67, dport=68) / BOOTP(op=2)), "flow_denied_egress")
    router.cli("port", "set", "f2", "--allow-dhcp-server")
    try:
        passes(router, "f2", frame(B, A, ip(4, B, A) / UDP(sport=67, dport=68) / BOOTP(op=2)), "f1")
        passes(router, "f1", discover, "f2", "f3", "fab0")
    finally:
        router.cli("port", "set", "f2", "--allow-dhcp-server=false")


@pytest.mark.parametrize("family", FAMILIES)
def test_several_receivers(router, rules, family):
    """Each receiver's rules decide about its copy, and the sender's about all of them."""
    group = {4: ("01:00:5e:00:00:fb", "224.0.0.251"), 6: ("33:33:00:00:00:fb", "ff02::fb")}[family]
    hello = Ether(src=A["mac"], dst=group[0]) / ip(family, A[family], group[1]) / UDP(sport=5353, dport=5353) / Raw(PAYLOAD)
    passes(router, "f1", hello, "f2", "f3", "fab0")
    rules("f2", "ingress", "deny --protocol udp --destination-ports 5353", default="allow")
    with router.drops(flow_denied_ingress=1):
        assert inner(run(router, "f1", hello)) == sorted((p, bytes(hello)) for p in ("f3", "fab0"))
    with router.drops(flow_denied_ingress=1):
        assert inner(run(router, "fab0", hello)) == sorted((p, bytes(hello)) for p in ("f1", "f3"))
    rules("f1", "egress", f"deny --destination {group[1]}/{32 if family == 4 else 128}", default="allow")
    denied(router, "f1", hello, "flow_denied_egress")


@pytest.mark.parametrize("family", FAMILIES)
def test_unknown_unicast(router, rules, lan, family):
    """A packet whose MAC address is not known is flooded by the receivers' rules. Its answer belongs to the same flow."""
    rules("f1", "ingress")
    name = rules("f2", "ingress", "allow --protocol udp --destination-ports 53")
    for g in (A, B):
        router.cli("mac", "del", "ruled", g["mac"])
    try:
        ask, answer = udp(family, A, B, sport=99, dport=53), udp(family, B, A, sport=53, dport=99)
        passes(router, "f1", ask, "f2", "f3", "fab0")
        router.cli("mac", "add", "ruled", A["mac"], "port", "f1")
        passes(router, "f2", answer, "f1")
        router.cli("mac", "add", "ruled", B["mac"], "port", "f2")
        passes(router, "f1", ask, "f2")
        router.cli("mac", "del", "ruled", A["mac"])
        passes(router, "f2", answer, "f1")  # the flow knows where the other end is
        router.cli("mac", "del", "ruled", B["mac"])
        router.cli("rule", "del", name, 10)
        with router.drops(flow_denied_ingress=1):
            assert inner(run(router, "f1", ask)) == sorted((p, bytes(ask)) for p in ("f3", "fab0"))
    finally:
        for m in router.cli("mac", "list", "--bridge", "ruled"):
            router.cli("mac", "del", "ruled", m["mac"])
        macs(router, lan)


@pytest.mark.parametrize("kind", ["tagged", "other"])
def test_frames_without_ip(router, rules, kind):
    """No rule matches them: the list's default decides."""
    payload = Dot1Q(vlan=7) / ip(4, A, B) / Raw(PAYLOAD) if kind == "tagged" else Raw(PAYLOAD)
    one = Ether(src=A["mac"], dst=B["mac"], type=0x8100 if kind == "tagged" else 0x88b5) / payload
    everyone = Ether(src=A["mac"], dst=BROADCAST, type=one.type) / payload
    passes(router, "f1", one, "f2")
    rules("f2", "ingress", "allow", default="deny")
    denied(router, "f1", one, "flow_denied_ingress")
    with router.drops(flow_denied_ingress=1):
        assert inner(run(router, "f1", everyone)) == sorted((p, bytes(everyone)) for p in ("f3", "fab0"))
    rules("f1", "egress", default="allow")
    denied(router, "f1", one, "flow_denied_ingress")
    router.cli("rule-list", "set", "f1-egress", "--default-action", "deny")
    denied(router, "f1", one, "flow_denied_egress")
    denied(router, "f1", everyone, "flow_denied_egress")


def test_bad_headers_have_no_flow(router, lan):
    short = frame(A, B, IP(src=A[4], dst=B[4], len=500) / UDP() / Raw(PAYLOAD))
    denied(router, "f1", short, "ip_truncated")
    denied(router, "f1", frame(A, B, IP(src=A[4], dst=B[4], ihl=4) / Raw(PAYLOAD)), "ip4_bad_header_length")
    six = bytearray(bytes(udp(6, A, B)))
    six[14] = 0x40
    denied(router, "f1", Ether(bytes(six[:14])) / Raw(bytes(six[14:])), "ip_bad_version")


def test_icmp_errors_about_a_flow(router, rules):
    rules("f1", "ingress")
    passes(router, "f1", udp(4, A, B), "f2")
    quoted = udp_packet(4, A, B)
    error = frame(B, A, ip(4, B, A) / ICMP(type=3, code=3) / Raw(bytes(quoted)[:28]))
    passes(router, "f2", error, "f1")
    denied(router, "f2", frame(B, A, ip(4, B, A) / ICMP(type=3, code=3) / Raw(bytes(udp_packet(4, A, B, sport=77))[:28])),
           "flow_denied_ingress")
    rules("f2", "ingress")
    # The error's IP header is for A, but its MAC address is that of another guest, whose rules do not allow it.
    denied(router, "fab0", frame(C, B, ip(4, C, A) / ICMP(type=3, code=3) / Raw(bytes(quoted)[:28])), "flow_denied_ingress")


def test_flow_explain(router, rules):
    rules("f1", "egress", "allow --protocol udp")
    rules("f2", "ingress", "deny --protocol udp --destination-ports 53", default="allow")

    def explain(dst, dport, *options):
        return router.cli("flow", "explain", "udp", f"{A[4]}:1234", f"{dst}:{dport}", "--port", "f1", *options)[0]
    e = explain(B[4], 53)
    assert e["reason"] == "flow_denied_ingress" and e["stateful"]
    assert any("f2" in s and "rule 10 denies" in s for s in e["steps"])
    assert explain(B[4], 5678)["action"] == "FLOW_ACTION_ALLOW"
    assert explain(B[4], 53, "--destination-mac", C["mac"])["action"] == "FLOW_ACTION_ALLOW"
    assert any("not known" in s for s in explain("192.168.9.99", 53)["steps"])
    passes(router, "f1", udp(4, A, B), "f2")
    e = explain(B[4], 5678)
    assert e["flow"]["in_port"] == "f1" and e["flow"]["out_port"] == "f2"


def test_stateful_changes_while_packets_flow(router, lan):
    """Without flows, frames pass as before."""
    router.cli("port", "set", "f1", "--stateful=false")
    router.cli("port", "set", "f2", "--stateful=false")
    try:
        passes(router, "f1", udp(4, A, B), "f2")
        assert not flows(router)
    finally:
        router.cli("port", "set", "f1", "--stateful")
        router.cli("port", "set", "f2", "--stateful")
    passes(router, "f1", udp(4, A, B), "f2")
    assert len(flows(router)) == 1
    router.cli("flow", "flush", "--all")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("port,direction", [("f1", "egress"), ("f2", "ingress")])
def test_meter(router, lan, family, port, direction):
    """The meters of the sender's and of the receiver's port; only the packets of flows take tokens."""
    router.cli("meter", "add", "few", "--packet-rate", 1, "--burst-packets", 5)
    router.cli("port", "set", port, f"--{direction}-meter", "few")
    try:
        before = router.drop_counts().get("meter_exceeded", 0)
        out = run(router, "f1", *([udp(family, A, B)] * 20))
        assert 5 <= len(out) <= 7 and {o.port for o in out} == {"f2"}
        assert router.drop_counts()["meter_exceeded"] - before == 20 - len(out)
        assert flows(router)[0]["forward"]["meters"] == ["few"]
    finally:
        router.cli("port", "set", port, f"--{direction}-meter=")
        router.cli("meter", "del", "few")
        router.cli("flow", "flush", "--all")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("of", ["sender", "receiver", "rule"])
def test_mirror(router, rules, family, of):
    """The copies are the bridged frames; both directions of a flow are copied, from its first packet on."""
    router.cli("mirror", "add", "m", "--port", "f3")
    if of == "rule":
        rules("f2", "ingress", "allow --protocol udp --mirror m")
    else:
        router.cli("port", "set", "f1" if of == "sender" else "f2", "--mirror", "m")
    router.settle()
    try:
        there, back = udp(family, A, B, sport=9, dport=53), udp(family, B, A, sport=53, dport=9)
        for _ in range(2):
            passes(router, "f1", there, "f2", "f3")
            passes(router, "f2", back, "f1", "f3")
        passes(router, "f1", udp(family, A, C), "fab0", *(["f3"] if of == "sender" else []))
    finally:
        for port in ("f1", "f2"):
            router.cli("port", "set", port, "--mirror", "", "--ingress-rules=")
        for r in router.cli("rule", "list"):
            router.cli("rule", "del", r["list"], r["id"])
        router.cli("mirror", "del", "m")
        router.cli("flow", "flush", "--all")


def test_logged(router, rules):
    """A rule that logs writes of bridged flows as of routed ones."""
    rules("f2", "ingress", "allow --protocol udp --log")
    passes(router, "f1", udp(4, A, B), "f2")
    wait_until("the line of the flow", router.daemon.log,
               lambda log: "flow allowed: udp 192.168.9.1 port 1234 to 192.168.9.2 port 5678, from f1 to f2" in log)


def test_a_port_that_has_a_vrf_too(router, lan):
    """What is for the gateway is routed and has a flow of the VRF; what is for others has one of the bridge: one flow for each
    packet."""
    router.cli("vrf", "add", "ruled-irb")
    router.cli("bridge", "add", "ruled-irb")
    gateway = ("--vrf", "ruled-irb", "--bridge", "ruled-irb", "--stateful", "--gateway", "192.168.8.1/24")
    names = {"g1": "02:00:00:00:19:11", "g2": "02:00:00:00:19:12"}
    try:
        for name, mac in names.items():
            router.cli("port", "add", name, "tenant", "tap", *gateway, "--guest-mac", mac, "--guest-address",
                       f"192.168.8.{names[name][-1]}1", "--source-check", "none")
            router.attach(name, None)
            router.cli("mac", "add", "ruled-irb", mac, "port", name)
        router.cli("rule-list", "add", "dns")
        router.cli("rule", "add", "dns", 10, "allow", "--protocol", "udp", "--destination-ports", 53)
        router.cli("port", "set", "g2", "--ingress-rules", "dns")
        for dport, ok in ((53, True), (54, False)):
            p = ip(4, "192.168.8.11", "192.168.8.21") / UDP(sport=9, dport=dport) / Raw(PAYLOAD)
            bridged = Ether(src=names["g1"], dst=names["g2"]) / p
            routed = Ether(src=names["g1"], dst=GATEWAY_MAC) / p
            if ok:
                passes(router, "g1", bridged, "g2")
                assert_out(run(router, "g1", routed), ("g2", Ether(src=GATEWAY_MAC, dst=names["g2"]) / forwarded(p)))
            else:
                denied(router, "g1", bridged, "flow_denied_ingress")
                denied(router, "g1", routed, "flow_denied_ingress")
        both = [f["forward"] for f in router.cli("flow", "list", "--port", "g1", "--l4-port", 53)]
        assert {(d["vrf"], d["bridge"], d["packets"]) for d in both} == {("ruled-irb", "", "1"), ("", "ruled-irb", "1")}
    finally:
        for name in names:
            router.del_port(name)
        router.cli("rule-list", "del", "dns")
        router.cli("bridge", "del", "ruled-irb")
        router.cli("vrf", "del", "ruled-irb")
