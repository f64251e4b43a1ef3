# SPDX-License-Identifier: Apache-2.0
"""Security rules decide about new flows, replies pass, and changes reach existing flows."""
import threading

import pytest
from scapy.layers.inet import ICMP, TCP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest
from scapy.packet import Raw

from packets import assert_nothing, assert_out, forwarded, from_guest, from_host, ip, to_guest, udp_packet
from topology import FAMILIES, GATEWAY
from waiting import wait_until

G1 = {4: "10.1.0.31", 6: "fd00:1::31", "mac": "02:00:00:00:04:11"}
G2 = {4: "10.1.0.32", 6: "fd00:1::32", "mac": "02:00:00:00:04:12"}
LABEL = 1012


@pytest.fixture(scope="module")
def tenant(network):
    r = network.router
    r.cli("vrf", "add", "ruled")
    for name, g in (("r1", G1), ("r2", G2)):
        r.add_tenant(name, vrf="ruled", gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(g[4], g[6]), guest_mac=g["mac"],
                     stateful=True)
    r.cli("label", "add", LABEL, "vrf", "ruled")
    yield network.tunnel("mplsoudp", 4, vrf="ruled", tag=LABEL)
    for name in ("r1", "r2"):
        r.del_port(name)


@pytest.fixture
def rules(router, tenant):
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


def reply(family, packet):
    p = packet[1] if packet.haslayer("Ether") else packet
    return ip(family, p.dst, p.src) / p.payload.__class__(sport=p.payload.dport, dport=p.payload.sport) / Raw(b"back")


def passes(router, packet):
    assert_out(router.run("r1", from_guest(G1, packet)), ("r2", to_guest(G2, forwarded(packet))))


def denied(router, packet, reason, times=1):
    with router.drops(**{reason: times}):
        assert_nothing(router.run("r1", *([from_guest(G1, packet)] * times)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("port,direction,reason", [("r1", "egress", "flow_denied_egress"), ("r2", "ingress", "flow_denied_ingress")])
def test_first_match_decides_and_replies_pass(router, rules, family, port, direction, reason):
    rules(port, direction, f"deny --protocol udp --destination-ports 53 --destination {G2[family]}/{32 if family == 4 else 128}",
          "allow --protocol udp --destination-ports 1-1000", "deny --protocol udp --destination-ports 999")
    for dport, ok in ((53, False), (54, True), (999, True), (1001, False)):
        packet = udp_packet(family, G1, G2, dport=dport)
        if not ok:
            denied(router, packet, reason, times=3)
            continue
        passes(router, packet)
        answer = reply(family, packet)
        assert_out(router.run("r2", from_guest(G2, answer)), ("r1", to_guest(G1, forwarded(answer))))
    flow = next(f for f in router.cli("flow", "list", "--vrf", "ruled") if f["forward"]["destination_port"] == 999)
    assert flow[f"{direction}_rule"] == 20
    refused = [f for f in router.cli("flow", "list", "--vrf", "ruled", "--action", "deny")]
    assert {f["reason"] for f in refused} == {reason} and {f["forward"]["destination_port"] for f in refused} == {53, 1001}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_direction_needs_a_rule_of_its_own(router, rules, family):
    rules("r2", "egress", "allow --protocol icmp" if family == 4 else "allow --protocol icmpv6")
    packet = udp_packet(family, G1, G2)
    passes(router, packet)  # the egress list does not apply to packets to r2
    fresh = udp_packet(family, G2, G1, sport=4444)
    with router.drops(flow_denied_egress=1):
        assert_nothing(router.run("r2", from_guest(G2, fresh)))
    echo = ip(family, G2, G1) / (ICMP(id=5) if family == 4 else ICMPv6EchoRequest(id=5))
    assert_out(router.run("r2", from_guest(G2, echo)), ("r1", to_guest(G1, forwarded(echo))))
    back = ip(family, G1, G2) / (ICMP(type=0, id=5) if family == 4 else ICMPv6EchoReply(id=5))
    assert_out(router.run("r1", from_guest(G1, back)), ("r2", to_guest(G2, forwarded(back))))


def test_from_a_tunnel(router, rules, tenant):
    rules("r2", "ingress", f"allow --protocol tcp --source {tenant[4]}/32 --destination-ports 80")
    ok = ip(4, tenant, G2) / TCP(dport=80, flags="S")
    assert_out(router.run("fab0", from_host("mplsoudp", 4, ok, tag=LABEL)), ("r2", to_guest(G2, forwarded(ok))))
    with router.drops(flow_denied_ingress=1):
        assert_nothing(router.run("fab0", from_host("mplsoudp", 4, ip(4, tenant, G2) / TCP(dport=81, flags="S"), tag=LABEL)))


def test_a_deny_rule_kills_flows_that_are_there(router, rules):
    name = rules("r2", "ingress", "allow --protocol udp", default="deny")
    packet, other = udp_packet(4, G1, G2), udp_packet(4, G1, G2, dport=7777)
    passes(router, packet)
    passes(router, other)
    router.cli("rule", "add", name, 5, "deny", "--protocol", "udp", "--destination-ports", 5678)
    denied(router, packet, "flow_denied_ingress")
    passes(router, other)
    router.cli("rule", "del", name, 5)
    passes(router, packet)
    # An idle flow is ended too.
    router.cli("rule", "add", name, 5, "deny", "--protocol", "udp")
    wait_until("the end of all flows that are allowed", lambda: router.cli("flow", "list", "--vrf", "ruled"),
               lambda flows: all(f["action"] != "FLOW_ACTION_ALLOW" for f in flows))


def test_address_groups(router, rules):
    router.cli("address-group", "add", "friends", f"{G1[4]}/32")
    try:
        name = rules("r2", "ingress", "allow --source-group friends")
        packet = udp_packet(4, G1, G2)
        passes(router, packet)
        router.cli("address-group", "set", "friends", "203.0.113.0/24")
        denied(router, packet, "flow_denied_ingress")
        router.cli("rule", "del", name, 10)
    finally:
        router.cli("port", "set", "r2", "--ingress-rules=")
        router.cli("address-group", "del", "friends")


def test_rules_of_a_stateless_port_are_refused(router, rules):
    name = rules("r1", "egress", default="allow")
    with pytest.raises(Exception, match="stateful|flows"):
        router.cli("port", "set", "r1", "--stateful=false")
    assert router.cli("port", "show", "r1")[0]["stateful"] and name


def test_ten_thousand_rules(router, rules, tmp_path):
    name = rules("r2", "ingress")
    text = tmp_path / "rules.txt"
    text.write_text("".join(f"{i + 1} allow --protocol udp --source 10.{i >> 8}.{i & 255}.0/24 --destination-ports {i + 1}\n" for i in range(10000)))
    router.cli("rule", "load", name, text)
    packet = udp_packet(4, G1, G2, dport=257)  # rule 257 matches 10.1.0.0/24
    passes(router, packet)
    (flow,) = router.cli("flow", "list", "--vrf", "ruled")
    assert flow["ingress_rule"] == 257
    denied(router, udp_packet(4, G1, G2, dport=258), "flow_denied_ingress")
    router.cli("rule", "del", name, 257)
    denied(router, packet, "flow_denied_ingress")


def test_no_frame_before_the_rules(router, rules, tmp_path):
    """A guest sends without end to a port that comes with rules and goes, by commands and by a node file."""
    def export(name):
        path = tmp_path / name
        path.write_text(router.daemon.export())
        return path

    def sent():
        return int(router.cli("port", "show", "r3")[0]["state"]["counters"].get("tx_packets", 0))

    def flood():
        while not stop.is_set():
            router.taps["r1"].send(frame)
    frame, stop = bytes(from_guest(G1, udp_packet(4, G1, {4: "10.1.0.33"}))), threading.Event()
    add = ("port", "add", "r3", "tenant", "tap", "--vrf", "ruled", "--gateway", f"{GATEWAY[4]}/24", "--guest-address", "10.1.0.33",
           "--guest-mac", "02:00:00:00:04:13", "--stateful", "--ingress-rules", rules("r2", "ingress"))
    without = export("without")
    router.cli(*add)
    file = export("with")
    flooder = threading.Thread(target=flood)
    flooder.start()
    try:
        for _ in range(5):
            router.cli("port", "del", "r3")
            router.cli(*add)
            router.wait_up("r3")
            assert sent() == 0
            router.cli("apply", "-f", without)
            router.cli("apply", "-f", file)
            router.wait_up("r3")
            assert sent() == 0
        router.cli("port", "set", "r3", "--ingress-rules=")
        wait_until("a packet without the rules", sent)
    finally:
        stop.set()
        flooder.join()
        router.cli("port", "del", "r3")


def test_logged(router, rules):
    rules("r2", "ingress", "allow --protocol udp --destination-ports 5678 --log", "deny --protocol udp --log")
    passes(router, udp_packet(4, G1, G2, sport=4321))
    denied(router, udp_packet(6, G1, G2, sport=4322, dport=99), "flow_denied_ingress", times=3)
    wanted = (f"flow allowed: udp {G1[4]} port 4321 to {G2[4]} port 5678, from r1 to r2, egress rule 0, ingress rule 10",
              f"flow denied: udp {G1[6]} port 4322 to {G2[6]} port 99, from r1 to r2, egress rule 0, ingress rule 20")
    wait_until("a line of each flow", router.daemon.log, lambda log: all(log.count(w) == 1 for w in wanted))


def test_explain_names_the_rule(router, rules):
    rules("r2", "ingress", "allow --protocol tcp --destination-ports 443")
    (e,) = router.cli("flow", "explain", "tcp", f"{G1[4]}:1", f"{G2[4]}:443", "--port", "r1")
    assert e["action"] == "FLOW_ACTION_ALLOW" and any("rule 10" in s for s in e["steps"])
    (e,) = router.cli("flow", "explain", "tcp", f"{G1[4]}:1", f"{G2[4]}:444", "--port", "r1")
    assert e["action"] == "FLOW_ACTION_DENY" and e["reason"] == "flow_denied_ingress"
