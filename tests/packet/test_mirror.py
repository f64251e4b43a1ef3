# SPDX-License-Identifier: Apache-2.0
"""Mirrors: copies of what guests send and receive, to a port of this node, and to VXLAN, Geneve and ERSPAN collectors behind the underlay."""
import pytest
from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN

from daemon import Refused
from packets import assert_nothing, assert_out, assert_same, forwarded, from_guest, from_host, ip, to_guest, to_host, udp_packet
from topology import FAB0, FAB0_MAC, FAMILIES, GATEWAY, HOST, HOST_MAC

M1 = {4: "10.1.0.41", 6: "fd00:1::41", "mac": "02:00:00:00:05:11"}
M2 = {4: "10.1.0.42", 6: "fd00:1::42", "mac": "02:00:00:00:05:12"}
SNIFF = {4: "10.1.0.43", 6: "fd00:1::43", "mac": "02:00:00:00:05:13"}
PORTS = {"n1": M1, "n2": M2, "sniff": SNIFF}
LABEL = 1050


@pytest.fixture(scope="module")
def mirrored(network):
    """A tenant with three stateful guests, one of which gets the copies, and a remote guest."""
    r = network.router
    r.cli("vrf", "add", "mirrored")
    for name, g in PORTS.items():
        r.add_tenant(name, vrf="mirrored", stateful=True, gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"),
                     guest=(g[4], g[6]), guest_mac=g["mac"])
    r.cli("label", "add", LABEL, "vrf", "mirrored")
    yield network.tunnel("mplsoudp", 4, vrf="mirrored", tag=LABEL)
    for name in PORTS:
        r.del_port(name)


@pytest.fixture(autouse=True)
def clean(router, mirrored):
    yield
    for name in PORTS:
        router.cli("port", "set", name, "--mirror", "")
    for m in router.cli("mirror", "list"):
        router.cli("mirror", "del", m["name"])
    router.cli("flow", "flush", "--all")


def mirror(router, *target, name="m", port="n1"):
    router.cli("mirror", "add", name, *target)
    router.cli("port", "set", port, "--mirror", name)
    router.settle()


def state(router, name="m"):
    s = router.cli("mirror", "show", name)[0]["state"]
    return int(s["packets"]), int(s["lost"])


@pytest.mark.parametrize("family", FAMILIES)
def test_to_a_port(router, family):
    there, back = udp_packet(family, M1, M2), udp_packet(family, M2, M1, sport=5678, dport=1234)
    mirror(router, "--port", "sniff")
    for _ in range(2):  # the first packet of a flow, then a later one
        assert_out(router.run("n1", from_guest(M1, there)), ("n2", to_guest(M2, forwarded(there))), ("sniff", from_guest(M1, there)))
        assert_out(router.run("n2", from_guest(M2, back)), ("n1", to_guest(M1, forwarded(back))),
                   ("sniff", to_guest(M1, forwarded(back))))
    assert state(router) == (4, 0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("port,direction", [("n1", "egress"), ("n2", "ingress")])
def test_of_a_rule(router, family, port, direction):
    """Flows that the rule matches are copied, others are not; existing flows follow a change of the rule."""
    router.cli("mirror", "add", "m", "--port", "sniff")
    router.cli("rule-list", "add", "seen", "--default-action", "allow")
    router.cli("rule", "add", "seen", 10, "allow", "--protocol", "udp", "--destination-ports", "5000-5999", "--mirror", "m")
    assert router.cli("rule", "show", "seen", 10)[0]["mirror"] == "m"
    with pytest.raises(Refused, match="--mirror 'none'.*there is no such mirror"):
        router.cli("rule", "add", "seen", 11, "allow", "--mirror", "none")
    router.cli("port", "set", port, f"--{direction}-rules", "seen")
    try:
        with pytest.raises(Refused, match="mirror 'm': is in use by rule 10 of list 'seen'"):
            router.cli("mirror", "del", "m")
        there, back = udp_packet(family, M1, M2), udp_packet(family, M2, M1, sport=5678, dport=1234)
        first = from_guest(M1, there) if port == "n1" else to_guest(M2, forwarded(there))
        answer = to_guest(M1, forwarded(back)) if port == "n1" else from_guest(M2, back)
        for _ in range(2):
            assert_out(router.run("n1", from_guest(M1, there)), ("n2", to_guest(M2, forwarded(there))), ("sniff", first))
            assert_out(router.run("n2", from_guest(M2, back)), ("n1", to_guest(M1, forwarded(back))), ("sniff", answer))
        assert len(router.run("n1", from_guest(M1, udp_packet(family, M1, M2, dport=6000)))) == 1
        flow = router.cli("flow", "list", "--vrf", "mirrored", "--l4-port", 5678)[0]
        assert flow["forward"]["mirrors"] == flow["reverse"]["mirrors"] == ["m"]
        ends = (f"[{g[family]}]:{p}" if family == 6 else f"{g[family]}:{p}" for g, p in ((M1, 1234), (M2, 5678)))
        explained = router.cli("flow", "explain", "udp", *ends, "--port", "n1")[0]
        assert "mirrors: m" in explained["steps"]
        router.cli("rule", "add", "seen", 10, "allow", "--replace")
        assert len(router.run("n1", from_guest(M1, there))) == 1
        router.cli("mirror", "del", "m")
    finally:
        router.cli("port", "set", port, f"--{direction}-rules", "")
        router.cli("rule-list", "del", "seen")


@pytest.mark.parametrize("family", FAMILIES)
def test_directions(router, family):
    there, back = udp_packet(family, M1, M2), udp_packet(family, M2, M1, sport=5678, dport=1234)
    mirror(router, "--port", "sniff", "--direction", "egress")
    assert len(router.run("n1", from_guest(M1, there))) == 2
    assert len(router.run("n2", from_guest(M2, back))) == 1
    router.cli("mirror", "set", "m", "--direction", "ingress")
    assert len(router.run("n1", from_guest(M1, there))) == 1
    assert len(router.run("n2", from_guest(M2, back))) == 2
    router.cli("port", "set", "n1", "--mirror", "")
    assert len(router.run("n2", from_guest(M2, back))) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_of_tunnels(router, mirrored, family):
    mirror(router, "--port", "sniff")
    there = udp_packet(family, M1, mirrored)
    out = router.run("n1", from_guest(M1, there))
    seen = next(o.data for o in out if o.port == "fab0")
    assert_out(out, ("fab0", to_host("mplsoudp", 4, forwarded(there), seen, tag=LABEL)), ("sniff", from_guest(M1, there)))
    back = udp_packet(family, mirrored, M1, sport=5678, dport=1234)
    assert_out(router.run("fab0", from_host("mplsoudp", 4, back, tag=LABEL)), ("n1", to_guest(M1, forwarded(back))),
               ("sniff", to_guest(M1, forwarded(back))))


@pytest.mark.parametrize("family", FAMILIES)
def test_snap_length(router, family):
    there = udp_packet(family, M1, M2, payload=bytes(i & 0xff for i in range(1000)))
    mirror(router, "--port", "sniff", "--snap-length", 100)
    out = router.run("n1", from_guest(M1, there))
    assert [len(o.data) for o in out if o.port == "sniff"] == [100]
    assert next(o.data for o in out if o.port == "sniff") == bytes(from_guest(M1, there))[:100]
    assert_same(to_guest(M2, forwarded(there)), next(o.data for o in out if o.port == "n2"))


def test_mirrors_do_not_loop(router):
    """A target whose own packets are copied, to itself or back to the source of the copies."""
    there = udp_packet(4, M1, SNIFF)
    mirror(router, "--port", "sniff")
    mirror(router, "--port", "n1", name="back", port="sniff")
    out = router.run("n1", from_guest(M1, there))
    assert sorted(o.port for o in out) == ["n1", "sniff", "sniff"]
    mirror(router, "--port", "n2", name="self", port="n2")
    out = router.run("n2", from_guest(M2, udp_packet(4, M2, M2)))
    assert [o.port for o in out] == ["n2"] * 3


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("under", FAMILIES)
def test_vxlan_collector(router, under, family):
    mirror(router, "--vxlan", HOST[under], "--vni", 4242)
    there = udp_packet(family, M1, M2)
    out = router.run("n1", from_guest(M1, there))
    assert sorted(o.port for o in out) == ["fab0", "n2"]
    got = next(o.packet for o in out if o.port == "fab0")
    assert (got.src, got.dst) == (FAB0_MAC, HOST_MAC)
    outer = got[IP] if under == 4 else got[IPv6]
    assert (outer.src, outer.dst) == (FAB0[under], HOST[under])
    assert got[UDP].dport == 4789 and got[VXLAN].vni == 4242
    assert bytes(got[VXLAN].payload) == bytes(from_guest(M1, there))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("under", FAMILIES)
def test_geneve_collector(router, under, family):
    mirror(router, "--geneve", HOST[under], "--vni", 4243)
    shown = router.cli("mirror", "show", "m")[0]["geneve"]
    assert (shown["remote"], shown["vni"]) == (HOST[under], 4243)
    there, back = udp_packet(family, M1, M2), udp_packet(family, M2, M1, sport=5678, dport=1234)
    for port, sent, copy in (("n1", from_guest(M1, there), from_guest(M1, there)),
                             ("n2", from_guest(M2, back), to_guest(M1, forwarded(back)))):
        out = router.run(port, sent)
        assert len(out) == 2
        got = next(o.packet for o in out if o.port == "fab0")
        outer = got[IP] if under == 4 else got[IPv6]
        assert (got.src, got.dst, outer.src, outer.dst) == (FAB0_MAC, HOST_MAC, FAB0[under], HOST[under])
        assert (got[UDP].dport, got[GENEVE].vni, got[GENEVE].proto, got[GENEVE].optionlen) == (6081, 4243, 0x6558, 0)
        assert bytes(got[GENEVE].payload) == bytes(copy)
    router.cli("mirror", "set", "m", "--snap-length", 64)
    got = next(o.packet for o in router.run("n1", from_guest(M1, there)) if o.port == "fab0")
    assert bytes(got[GENEVE].payload) == bytes(from_guest(M1, there))[:64]
    assert state(router) == (3, 0)


def test_geneve_collector_refused(router):
    with pytest.raises(Refused, match=": --vni.*1 to 16777215"):
        router.cli("mirror", "add", "bad", "--geneve", HOST[4])
    with pytest.raises(Refused, match=": --local"):
        router.cli("mirror", "add", "bad", "--geneve", HOST[4], "--vni", 1, "--local", FAB0[6])


def erspan(under, data):
    """Splits what follows the outer IP header into (sequence number, ERSPAN's fields, the frame)."""
    got = Ether(data)
    outer = got[IP] if under == 4 else got[IPv6]
    assert (got.src, got.dst, outer.src, outer.dst) == (FAB0_MAC, HOST_MAC, FAB0[under], HOST[under])
    assert (outer.proto if under == 4 else outer.nh) == 47
    at = 34 if under == 4 else 54
    if under == 4:
        assert outer.len == len(data) - 14 and IP(bytes(outer)[:20]).chksum == IP(bytes(ip(4, FAB0, HOST, flags="DF", id=0, len=outer.len, proto=47))).chksum
    else:
        assert outer.plen == len(data) - 54
    gre = GRE(data[at:])
    assert (gre.seqnum_present, gre.key_present, gre.chksum_present, gre.version, gre.proto) == (1, 0, 0, 0, 0x88be)
    head = int.from_bytes(data[at + 8:at + 12], "big")
    fields = {"version": head >> 28, "vlan": head >> 16 & 0xfff, "cos": head >> 13 & 7, "encap": head >> 11 & 3,
              "truncated": head >> 10 & 1, "session": head & 0x3ff, "index": int.from_bytes(data[at + 12:at + 16], "big")}
    return gre.sequence_number, fields, data[at + 16:]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("under", FAMILIES)
def test_erspan_collector(router, under, family):
    mirror(router, "--erspan", HOST[under], "--session", 1023)
    there, back = udp_packet(family, M1, M2), udp_packet(family, M2, M1, sport=5678, dport=1234)
    expected = {"version": 1, "vlan": 0, "cos": 0, "encap": 0, "truncated": 0, "session": 1023, "index": 0}
    for number, (port, guest, packet, copy) in enumerate((("n1", M1, there, from_guest(M1, there)),
                                                          ("n2", M2, back, to_guest(M1, forwarded(back))),
                                                          ("n1", M1, there, from_guest(M1, there)))):
        out = router.run(port, from_guest(guest, packet))
        assert len(out) == 2
        assert erspan(under, next(o.data for o in out if o.port == "fab0")) == (number, expected, bytes(copy))
    router.cli("mirror", "set", "m", "--snap-length", 64)
    out = router.run("n1", from_guest(M1, there))
    assert erspan(under, next(o.data for o in out if o.port == "fab0")) == (3, {**expected, "truncated": 1}, bytes(from_guest(M1, there))[:64])
    assert state(router) == (4, 0)


def test_scapy_knows_erspan(router):
    """scapy decodes the copies, independently of this test's own parser."""
    scapy_erspan = pytest.importorskip("scapy.contrib.erspan")
    mirror(router, "--erspan", HOST[4], "--session", 5)
    there = udp_packet(4, M1, M2)
    out = router.run("n1", from_guest(M1, there))
    got = next(o.packet for o in out if o.port == "fab0")
    assert got[scapy_erspan.ERSPAN_II].session_id == 5
    assert bytes(got[scapy_erspan.ERSPAN_II].payload) == bytes(from_guest(M1, there))


def test_what_cannot_be_sent_hurts_nobody(router):
    there = udp_packet(4, M1, M2, payload=bytes(1472))
    expected = ("n2", to_guest(M2, forwarded(there)))
    mirror(router, "--erspan", HOST[4], "--session", 1)
    with router.drops(mirror_too_long=1):
        assert_out(router.run("n1", from_guest(M1, there)), expected)
    assert state(router) == (0, 1)
    router.cli("mirror", "set", "m", "--erspan", "100.64.9.9", "--session", 1)
    router.settle()
    assert not router.cli("mirror", "show", "m")[0]["state"].get("resolved")
    with router.drops(mirror_unresolved=1):
        assert_out(router.run("n1", from_guest(M1, there)), expected)
    router.cli("port", "set", "sniff", "--mtu", 1400)
    router.cli("mirror", "set", "m", "--port", "sniff")
    with router.drops(mirror_too_long=1):
        assert_out(router.run("n1", from_guest(M1, there)), expected)
    router.cli("port", "set", "sniff", "--mtu", 1500, "--disabled")
    with router.drops(port_down=1):
        assert_out(router.run("n1", from_guest(M1, there)), expected)
    router.cli("port", "set", "sniff", "--disabled=false")


def test_what_a_meter_drops_was_sent(router):
    router.cli("meter", "add", "none", "--packet-rate", 1, "--burst-packets", 1)
    mirror(router, "--port", "sniff")
    router.cli("port", "set", "n1", "--egress-meter", "none")
    out = router.run("n1", *([from_guest(M1, udp_packet(4, M1, M2))] * 10))
    assert sum(o.port == "sniff" for o in out) == 10 and sum(o.port == "n2" for o in out) <= 3
    router.cli("port", "set", "n1", "--egress-meter", "")
    router.cli("meter", "del", "none")


def test_what_is_refused(router):
    for args, message in ((("--port", "nowhere"), "--port 'nowhere': there is no such port"),
                          (("--erspan", HOST[4], "--session", 1024), "--session '1024': is out of range; valid: 0 to 1023"),
                          (("--vxlan", HOST[4], "--vni", 0), "--vni '0': is out of range; valid: 1 to 16777215"),
                          (("--vxlan", "somewhere", "--vni", 1), "--vxlan 'somewhere'"),
                          (("--vxlan", HOST[4], "--vni", 1, "--local", "2001:db8::1"), "--local '2001:db8::1'"),
                          (("--port", "sniff", "--snap-length", 63), "--snap-length '63': is out of range; valid: 64 to 9614"),
                          ((), "target: missing; valid: --port, --vxlan, --geneve, --erspan")):
        with pytest.raises(Refused) as e:
            router.cli("mirror", "add", "m", *args)
        assert message in str(e.value)
    assert not router.cli("mirror", "list")
    mirror(router, "--port", "sniff")
    with pytest.raises(Refused, match="mirror 'm': is in use by port 'n1'"):
        router.cli("mirror", "del", "m")
    with pytest.raises(Refused, match="port 'sniff': is the target of mirror 'm'"):
        router.cli("port", "del", "sniff")
    with pytest.raises(Refused, match="valid: a stateful port"):
        router.cli("port", "set", "n1", "--stateful=false")
    with pytest.raises(Refused, match="'erspan' is unknown; valid: mplsoudp, mplsogre, vxlan, geneve"):
        router.cli("nexthop", "add", 9999, "tunnel", "--encap", "erspan", "--remote", HOST[4])
    router.cli("port", "set", "n1", "--mirror", "")
    assert_nothing([o for o in router.run("n1", from_guest(M1, udp_packet(4, M1, M2))) if o.port == "sniff"])
