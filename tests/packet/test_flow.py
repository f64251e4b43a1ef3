# SPDX-License-Identifier: Apache-2.0
"""Flows of stateful ports: sessions of two directions, their ages, quotas and states; changes reach existing flows."""
import os
import signal
import subprocess
import time

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN
from scapy.packet import Raw

from daemon import Refused
from packets import PAYLOAD, assert_nothing, assert_out, forwarded, from_guest, from_host, ip, to_guest, to_host, udp_packet
from topology import FAMILIES, GATEWAY
from waiting import wait_until

G1 = {4: "10.1.0.21", 6: "fd00:1::21", "mac": "02:00:00:00:03:11"}
G2 = {4: "10.1.0.22", 6: "fd00:1::22", "mac": "02:00:00:00:03:12"}
LABEL = 1010
LONG = 3600  # seconds: the timeout of flows that are to stay
AGES = {"flow-udp": 30, "flow-udp-answered": 180, "flow-tcp-half-open": 30, "flow-tcp-established": 7440, "flow-icmp": 30, "flow-denied": 5}


@pytest.fixture(scope="module")
def tenant(network):
    """A tenant with two guests whose ports keep flows, and a remote guest behind an MPLSoUDP tunnel."""
    r = network.router
    r.cli("vrf", "add", "flows")
    for name, g in (("g1", G1), ("g2", G2)):
        r.add_tenant(name, vrf="flows", stateful=True, gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"),
                     guest=(g[4], g[6]), guest_mac=g["mac"])
    r.cli("label", "add", LABEL, "vrf", "flows")
    yield network.tunnel("mplsoudp", 4, vrf="flows", tag=LABEL)
    for name in ("g1", "g2"):
        r.del_port(name)


@pytest.fixture(autouse=True)
def clean(router, tenant):
    router.cli("flow", "flush", "--all")
    yield
    router.cli("settings", "set", "--flow-tcp-strict=false", *(f"--{k}={v}" for k, v in AGES.items()))


def flows(router, *filters):
    return router.cli("flow", "list", "--vrf", "flows", *filters)


def only(router, *filters):
    found = flows(router, *filters)
    assert len(found) == 1, found
    return found[0]


def reply(family, packet, payload=PAYLOAD):
    p = packet[IP] if family == 4 else packet[IPv6]
    return ip(family, p.dst, p.src) / UDP(sport=p[UDP].dport, dport=p[UDP].sport) / Raw(payload)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_directions_are_one_flow(router, family):
    there = udp_packet(family, G1, G2)
    back = reply(family, there)
    for _ in range(3):
        assert_out(router.run("g1", from_guest(G1, there)), ("g2", to_guest(G2, forwarded(there))))
    assert_out(router.run("g2", from_guest(G2, back)), ("g1", to_guest(G1, forwarded(back))))
    f = only(router)
    assert (f["protocol"], f["action"], f["state"]) == ("udp", "FLOW_ACTION_ALLOW", "FLOW_STATE_ESTABLISHED")
    assert (f["in_port"], f["out_port"]) == ("g1", "g2")
    assert (f["forward"]["source"], f["forward"]["source_port"], f["forward"]["destination_port"]) == (G1[family], 1234, 5678)
    assert (f["reverse"]["source"], f["reverse"]["source_port"], f["reverse"]["destination_port"]) == (G2[family], 5678, 1234)
    assert (int(f["forward"]["packets"]), int(f["reverse"]["packets"])) == (3, 1)
    assert int(f["forward"]["bytes"]) == 3 * len(there)


@pytest.mark.parametrize("family", FAMILIES)
def test_through_a_tunnel(router, tenant, family):
    out = udp_packet(family, G1, tenant)
    back = reply(family, out)
    got = router.run("g1", from_guest(G1, out))
    assert_out(got, ("fab0", to_host("mplsoudp", 4, forwarded(out), got[0].data, tag=LABEL)))
    assert_out(router.run("fab0", from_host("mplsoudp", 4, back, tag=LABEL)), ("g1", to_guest(G1, forwarded(back))))
    f = only(router)
    assert (f["in_port"], f["out_port"], f["state"]) == ("g1", "", "FLOW_STATE_ESTABLISHED")
    assert f["forward"]["nexthop"] == tenant["id"]
    # A flow that begins outside.
    begun = udp_packet(family, tenant, G2, sport=7, dport=8)
    assert_out(router.run("fab0", from_host("mplsoudp", 4, begun, tag=LABEL)), ("g2", to_guest(G2, forwarded(begun))))
    f = only(router, "--port", "g2")
    assert (f["in_port"], f["out_port"], f["state"]) == ("", "g2", "FLOW_STATE_NEW")


@pytest.mark.parametrize("family", FAMILIES)
def test_echo_is_one_flow(router, family):
    request, answer = (ICMP(id=77), ICMP(type=0, id=77)) if family == 4 else (ICMPv6EchoRequest(id=77), ICMPv6EchoReply(id=77))
    there, back = ip(family, G1, G2) / request / Raw(b"x"), ip(family, G2, G1) / answer / Raw(b"x")
    assert_out(router.run("g1", from_guest(G1, there)), ("g2", to_guest(G2, forwarded(there))))
    assert_out(router.run("g2", from_guest(G2, back)), ("g1", to_guest(G1, forwarded(back))))
    f = only(router)
    assert (int(f["forward"]["packets"]), int(f["reverse"]["packets"]), f["forward"]["source_port"]) == (1, 1, 77)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_icmp_error_belongs_to_the_flow_that_it_is_about(router, family):
    there = udp_packet(family, G1, G2)
    assert_out(router.run("g1", from_guest(G1, there)), ("g2", to_guest(G2, forwarded(there))))
    quoted = bytes(forwarded(there))
    error = ip(family, G2, G1) / (ICMP(type=3, code=3) / Raw(quoted[:28]) if family == 4 else ICMPv6DestUnreach(code=4) / Raw(quoted))
    error = error.__class__(bytes(error))
    assert_out(router.run("g2", from_guest(G2, error)), ("g1", to_guest(G1, forwarded(error))))
    assert int(only(router)["reverse"].get("packets", 0)) == 0  # it neither counts as an answer nor refreshes the flow


def icmp_error(family, src, dst, quoted):
    e = ip(family, src, dst) / (ICMP(type=3, code=3) if family == 4 else ICMPv6DestUnreach(code=4)) / Raw(quoted)
    return e.__class__(bytes(e))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_icmp_error_to_another_host_is_not_the_flows(router, tenant, family):
    """A guest whose rules allow one destination cannot send ICMP errors to another one."""
    router.cli("rule-list", "add", "only-g1", "--default-action", "deny")
    router.cli("rule", "add", "only-g1", 10, "allow", "--destination", f"{G1[family]}/{32 if family == 4 else 128}")
    there = udp_packet(family, G1, G2)
    assert_out(router.run("g1", from_guest(G1, there)), ("g2", to_guest(G2, forwarded(there))))
    quoted = bytes(forwarded(there))
    try:
        router.cli("port", "set", "g2", "--egress-rules", "only-g1")
        error = icmp_error(family, G2, G1, quoted)
        assert_out(router.run("g2", from_guest(G2, error)), ("g1", to_guest(G1, forwarded(error))))
        with router.drops(flow_denied_egress=1):
            assert_nothing(router.run("g2", from_guest(G2, icmp_error(family, G2, tenant, quoted))))
    finally:
        router.cli("port", "set", "g2", "--egress-rules=")
        router.cli("rule-list", "del", "only-g1")


@pytest.mark.parametrize("family", FAMILIES)
def test_an_icmp_error_about_the_flow_of_others_is_not_theirs(router, tenant, family):
    """A guest whose rules deny everything cannot reach an accomplice by an error that quotes the accomplice's flow with G1."""
    there = udp_packet(family, tenant, G1)  # the accomplice, behind the tunnel, and G1
    assert_out(router.run("fab0", from_host("mplsoudp", 4, there, tag=LABEL)), ("g1", to_guest(G1, forwarded(there))))
    router.cli("rule-list", "add", "nothing", "--default-action", "deny")
    try:
        router.cli("port", "set", "g2", "--egress-rules", "nothing")
        error = icmp_error(family, G2, tenant, bytes(forwarded(there)))
        with router.drops(flow_denied_egress=1):
            assert_nothing(router.run("g2", from_guest(G2, error)))
        assert len(router.run("g1", from_guest(G1, icmp_error(family, G1, tenant, bytes(forwarded(there)))))) == 1
    finally:
        router.cli("port", "set", "g2", "--egress-rules=")
        router.cli("rule-list", "del", "nothing")


@pytest.mark.parametrize("family, longest", [(4, 576), (6, 1280)])
def test_icmp_errors_are_bounded(router, family, longest):
    there = udp_packet(family, G1, G2)
    assert_out(router.run("g1", from_guest(G1, there)), ("g2", to_guest(G2, forwarded(there))))
    quoted = bytes(forwarded(there))
    room = longest - (28 if family == 4 else 48)
    error = icmp_error(family, G2, G1, quoted + bytes(room - len(quoted)))
    assert len(error) == longest
    assert_out(router.run("g2", from_guest(G2, error)), ("g1", to_guest(G1, forwarded(error))))
    with router.drops(flow_icmp_error_long=1):
        assert_nothing(router.run("g2", from_guest(G2, icmp_error(family, G2, G1, quoted + bytes(room + 1 - len(quoted))))))


def tcp(src, dst, flags, sport=1000, dport=80):
    return ip(4, src, dst) / TCP(sport=sport, dport=dport, flags=flags)


def test_tcp_states(router):
    def state_after(port, guest, packet):
        assert len(router.run(port, from_guest(guest, packet))) == 1
        return only(router)["state"].removeprefix("FLOW_STATE_")

    def there(flags):
        return state_after("g1", G1, tcp(G1, G2, flags))

    def back(flags):
        return state_after("g2", G2, tcp(G2, G1, flags, 80, 1000))

    assert there("S") == "NEW"
    assert back("SA") == "NEW"
    assert there("A") == "ESTABLISHED"
    assert back("PA") == "ESTABLISHED"
    assert there("FA") == "CLOSING"
    assert back("A") == "CLOSING"
    assert back("FA") == "CLOSED"
    assert there("A") == "CLOSED"
    assert there("S") == "NEW"  # a new connection with the same ports
    assert back("RA") == "CLOSED"


def test_strict_tcp(router):
    router.cli("settings", "set", "--flow-tcp-strict")
    with router.drops(flow_not_syn=1):
        assert_nothing(router.run("g1", from_guest(G1, tcp(G1, G2, "A"))))
    assert not flows(router)
    assert len(router.run("g1", from_guest(G1, tcp(G1, G2, "S")))) == 1


def wait_until_gone(router):
    wait_until("the end of all flows", lambda: flows(router), lambda found: not found)


@pytest.mark.parametrize("setting,packet", [("flow-udp", udp_packet(4, G1, G2)), ("flow-udp", udp_packet(6, G1, G2)),
                                            ("flow-tcp-half-open", tcp(G1, G2, "S")), ("flow-icmp", ip(4, G1, G2) / ICMP())])
def test_flows_end(router, setting, packet):
    router.cli("settings", "set", f"--{setting}={LONG}")
    router.run("g1", from_guest(G1, packet))
    assert only(router)["timeout_seconds"] == LONG
    router.cli("settings", "set", f"--{setting}=1")
    wait_until_gone(router)
    wait_until("a port without flows", lambda: router.cli("port", "show", "g1")[0]["state"], lambda s: int(s.get("flows", 0)) == 0)
    router.cli("settings", "set", f"--{setting}={LONG}")
    assert len(router.run("g1", from_guest(G1, packet))) == 1  # and a packet begins a new one
    only(router)


def test_flows_of_a_worker_that_goes(router):
    """Another worker ends the flows of a removed one, and frees all of their memory."""
    workers = router.cli("worker", "list")
    cpu, old = workers[0]["cpu"], workers[0].get("id", 0)
    packets = [from_guest(G1, udp_packet(4, G1, G2, sport=4000 + i)) for i in range(100)]
    new = router.daemon.insist("worker", "add", "--cpu", cpu, "--idle", "sleep")[0]["id"]
    try:
        router.cli("settings", "set", f"--flow-udp={LONG}")
        assert len(router.run("g1", *packets)) == 100
        before = int(router.cli("flow", "count")[0]["in_use"])
        assert before >= 100
        router.cli("settings", "set", "--flow-udp=1")
        router.daemon.del_worker(old)
        wait_until_gone(router)
        wait_until(f"100 flows fewer than {before}", lambda: int(router.cli("flow", "count")[0]["in_use"]), lambda n: n <= before - 100)
        assert len(router.run("g1", *packets)) == 100
    finally:
        router.daemon.insist("worker", "add", old, "--cpu", cpu, "--idle", "sleep")
        router.daemon.del_worker(new)
    assert len(router.run("g1", *packets)) == 100


def idle(flow):
    return flow["forward"].get("idle_seconds", 0)


def test_a_packet_keeps_its_flow_alive(router):
    """A flow's age begins anew with each of its packets. The router counts it in whole seconds."""
    router.cli("settings", "set", f"--flow-udp={LONG}")
    packet = from_guest(G1, udp_packet(4, G1, G2))
    router.run("g1", packet)
    first = only(router)["id"]
    for _ in range(2):
        wait_until("a flow that is idle", lambda: only(router), lambda f: idle(f) >= 2)
        begun = time.monotonic()
        router.run("g1", packet)
        assert idle(only(router)) <= time.monotonic() - begun + 1
    assert only(router)["id"] == first and int(only(router)["forward"]["packets"]) == 3


def test_limit_of_flows(router):
    router.cli("port", "set", "g1", "--flow-limit", 3)
    try:
        packets = [from_guest(G1, udp_packet(4, G1, G2, sport=2000 + i)) for i in range(5)]
        with router.drops(flow_quota_count=2):
            assert len(router.run("g1", *packets)) == 3
        with router.drops(flow_quota_count=2):  # the same two are refused; existing flows pass
            assert len(router.run("g1", *packets)) == 3
        state = router.cli("port", "show", "g1")[0]["state"]
        assert state["flows"] == 3 and int(state["flows_refused"]) >= 2
        assert len(router.run("g2", from_guest(G2, udp_packet(4, G2, G1, sport=99)))) == 1  # the limit does not concern flows of another port
    finally:
        router.cli("port", "set", "g1", "--flow-limit", 0)


@pytest.mark.parametrize("field", ["flow-limit", "flow-rate"])
def test_limits_need_flows(router, field):
    router.cli("port", "set", "g1", f"--{field}", 7)
    try:
        refused = f"--{field} '7': only stateful ports have flows to limit; valid: 0, or a stateful port"
        with pytest.raises(Refused, match=refused):
            router.cli("port", "set", "g1", "--stateful=false")
        router.cli("port", "set", "g1", "--stateful=false", f"--{field}", 0)
        with pytest.raises(Refused, match="only stateful ports have flows"):
            router.cli("port", "set", "g1", f"--{field}", 7)
        assert not router.cli("port", "show", "g1")[0].get("stateful")
    finally:
        router.cli("port", "set", "g1", "--stateful", f"--{field}", 0)


def test_rate_of_new_flows(router):
    ports = iter(range(3000, 60000))
    rate, begun = 16, time.monotonic()
    router.cli("port", "set", "g1", "--flow-rate", rate)  # one per sixteenth of a second
    before = router.drop_counts().get("flow_quota_rate", 0)
    passed = sent = 0

    def begin_flows():
        nonlocal passed, sent
        passed += len(router.run("g1", *(from_guest(G1, udp_packet(4, G1, G2, sport=next(ports))) for _ in range(50))))
        sent += 50
        return router.drop_counts().get("flow_quota_rate", 0) - before

    try:
        refused = wait_until("25 flows that are refused", begin_flows, lambda n: n >= 25)
        assert passed + refused == sent and passed <= rate * (time.monotonic() - begun) + 2
    finally:
        router.cli("port", "set", "g1", "--flow-rate", 0)


def test_fragments_follow_their_first(router):
    for family in FAMILIES:
        whole = udp_packet(family, G1, G2, payload=bytes(i & 0xff for i in range(1200)))
        if family == 4:
            parts = fragment(IP(bytes(whole)), 400)
        else:
            data = bytes(whole)[40:]
            parts = [IPv6(src=G1[6], dst=G2[6]) / IPv6ExtHdrFragment(nh=17, offset=i // 8, m=i + 400 < len(data), id=9) / Raw(data[i:i + 400])
                     for i in range(0, len(data), 400)]
        with router.drops():
            assert_out(router.run("g1", *(from_guest(G1, p) for p in parts)), *(("g2", to_guest(G2, forwarded(p))) for p in parts))
        assert int(only(router)["forward"]["packets"]) == len(parts)
        router.cli("flow", "flush", "--all")
        lost = parts[1].copy()
        if family == 4:
            lost.id += 1
        else:
            lost[IPv6ExtHdrFragment].id += 1
        with router.drops(flow_no_first_fragment=1):
            assert_nothing(router.run("g1", from_guest(G1, lost)))


def test_fragments_behind_extension_headers(router):
    """Only the first fragment shows the protocol: the others begin with the middle of the options (RFC 8200, 4.5)."""
    options = IPv6ExtHdrDestOpt(nh=17, options=[PadN(optdata=bytes(20))])
    whole = bytes(options / UDP(sport=1234, dport=5678, chksum=1) / Raw(bytes(i & 0xff for i in range(1200))))
    parts = [IPv6(src=G1[6], dst=G2[6]) / IPv6ExtHdrFragment(nh=60, offset=i // 8, m=i + 400 < len(whole), id=11) / Raw(whole[i:i + 400])
             for i in range(0, len(whole), 400)]
    with router.drops():
        assert_out(router.run("g1", *(from_guest(G1, p) for p in parts)), *(("g2", to_guest(G2, forwarded(p))) for p in parts))
    assert int(only(router)["forward"]["packets"]) == len(parts)
    router.cli("flow", "flush", "--all")


def test_a_flow_follows_its_route(network, router, tenant):
    other = network.new_id()
    dst = network.destinations(other)
    for nexthop, label in ((other, 1020), (network.new_id(), 1021)):
        router.cli("nexthop", "add", nexthop, "tunnel", "--encap", "mplsoudp", "--remote", "192.0.2.2", "--label", label)
        router.cli("route", "add", f"{dst[4]}/32", "--vrf", "flows", "--nexthop", nexthop)
        packet = udp_packet(4, G1, dst)
        out = router.run("g1", from_guest(G1, packet))
        assert_out(out, ("fab0", to_host("mplsoudp", 4, forwarded(packet), out[0].data, tag=label)))
    assert int(only(router)["forward"]["packets"]) == 2
    router.cli("route", "del", f"{dst[4]}/32", "--vrf", "flows")
    with router.drops(ip_no_route=1):
        assert [o.port for o in router.run("g1", from_guest(G1, packet))] == ["g1"]  # ICMP
    assert not flows(router)


def test_a_port_becomes_stateless(router):
    """A stateful port may become stateless, and a stateless one stateful."""
    packet = from_guest(G1, udp_packet(4, G1, G2))
    router.run("g1", packet)
    only(router)
    for p in ("g1", "g2"):
        router.cli("port", "set", p, "--stateful=false")
    wait_until_gone(router)
    assert len(router.run("g1", packet)) == 1
    assert not flows(router)
    for p in ("g1", "g2"):
        router.cli("port", "set", p, "--stateful")
    assert len(router.run("g1", packet)) == 1
    only(router)


def test_filters(router):
    for p in (udp_packet(4, G1, G2, sport=5), udp_packet(6, G1, G2, dport=6), tcp(G1, G2, "S")):
        router.run("g1", from_guest(G1, p))
    assert len(flows(router)) == 3
    assert len(flows(router, "--protocol", "udp")) == 2
    assert len(flows(router, "--prefix", "10.1.0.22/32")) == 2
    assert len(flows(router, "--prefix", "fd00::/16")) == 1
    assert len(flows(router, "--l4-port", 6)) == 1
    assert len(flows(router, "--state", "established")) == 0
    assert len(flows(router, "--limit", 2)) == 2
    assert int(router.cli("flow", "count", "--protocol", "tcp")[0]["flows"]) == 1
    assert int(router.cli("flow", "flush", "--protocol", "udp")[0]["flows"]) == 2
    assert [f["protocol"] for f in flows(router)] == ["tcp"]
    assert len(router.cli("flow", "top", "--count", 1)) == 1


def test_explain(router, tenant):
    (e,) = router.cli("flow", "explain", "udp", f"{G1[4]}:1234", f"{G2[4]}:5678", "--port", "g1")
    assert e["action"] == "FLOW_ACTION_ALLOW" and e["stateful"] and "flow" not in {k for k, v in e.items() if v}
    assert any("port g2" in s for s in e["steps"])
    router.run("g1", from_guest(G1, udp_packet(4, G1, G2)))
    (e,) = router.cli("flow", "explain", "udp", f"{G1[4]}:1234", f"{G2[4]}:5678", "--port", "g1")
    assert e["flow"]["id"] == only(router)["id"]
    (e,) = router.cli("flow", "explain", "tcp", f"{G1[4]}:1", "203.0.113.9:80", "--port", "g1")
    assert any("ip_no_route" in s for s in e["steps"]) and not e["stateful"]


def test_watch_shows_the_list_again(router):
    daemon = router.daemon
    shown = []

    def read():
        try:
            shown.append(os.read(watch.stdout.fileno(), 1 << 16))
        except BlockingIOError:
            pass
        return b"".join(shown)

    with subprocess.Popen([daemon.cli_path, "--socket", daemon.socket, "flow", "watch", "--watch=500ms"], stdout=subprocess.PIPE) as watch:
        os.set_blocking(watch.stdout.fileno(), False)
        try:
            wait_until("a second table", read, lambda text: text.count(b"PROTOCOL") >= 2)
        finally:
            watch.send_signal(signal.SIGINT)
