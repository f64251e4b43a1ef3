# SPDX-License-Identifier: Apache-2.0
"""Sub-ports: the guest "trunk" is routed in VRF red without a tag, and has ports of its own for the tags 10 (VRF blue), 20 and
100.7 (bridge domains). The guest "peer" has the tag 30 in the bridge domain of tag 20."""
import threading

import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

from daemon import Refused
from packets import assert_nothing, assert_out, forwarded, from_guest, ip, to_guest, udp_packet
from router import GATEWAY_MAC, STATEFUL, Marks
from topology import B1, FAMILIES, GATEWAY, T2

TRUNK = {4: "10.1.0.71", 6: "fd00:1::71", "mac": "02:00:00:00:07:01"}  # the same guest in all its networks
PEER = {4: "10.1.0.72", 6: "fd00:1::72", "mac": "02:00:00:00:07:02"}
ALL = "ff:ff:ff:ff:ff:ff"
ADDRESSES = ("--gateway", f"{GATEWAY[4]}/24,{GATEWAY[6]}/64", "--guest-address", f"{TRUNK[4]},{TRUNK[6]}", "--guest-mac", TRUNK["mac"])


def tagged(frame, *tags):
    """The frame with these tags; of two, the first one is that of 802.1ad."""
    raw = bytes(frame)
    types = (0x88a8, 0x8100) if len(tags) == 2 else (0x8100,)
    return Ether(raw[:12] + b"".join(t.to_bytes(2, "big") + i.to_bytes(2, "big") for t, i in zip(types, tags)) + raw[12:])


@pytest.fixture(scope="module")
def trunk(network):
    r = network.router
    for bridge in ("sub20", "sub100"):
        r.cli("bridge", "add", bridge)
    for name, guest in (("trunk", TRUNK), ("peer", PEER)):
        r.add_tenant(name, vrf="red", gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(guest[4], guest[6]), guest_mac=guest["mac"])
    stateful = ("--stateful",) if STATEFUL else ()
    r.cli("port", "add", "trunk-10", "tenant", "subport", "--parent", "trunk", "--vlan", 10, "--vrf", "blue", *ADDRESSES, *stateful)
    for name, parent, vlan, bridge, *outer in (("trunk-20", "trunk", 20, "sub20"), ("trunk-100-7", "trunk", 7, "sub100", 100),
                                               ("peer-30", "peer", 30, "sub20"), ("peer-31", "peer", 31, "sub100")):
        r.cli("port", "add", name, "tenant", "subport", "--parent", parent, "--vlan", vlan, "--bridge", bridge,
              *(("--outer-vlan", outer[0]) if outer else ()), *stateful)
    yield r
    for name in ("trunk-10", "trunk-20", "trunk-100-7", "peer-30", "peer-31", "trunk", "peer"):
        r.del_port(name)
    for bridge in ("sub20", "sub100"):
        r.cli("bridge", "del", bridge)


def port(router, name):
    return router.cli("port", "show", name)[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_tag_has_its_vrf(trunk, family):
    out, back = udp_packet(family, TRUNK, B1), udp_packet(family, B1, TRUNK)
    red = udp_packet(family, TRUNK, T2)
    with trunk.drops():
        assert_out(trunk.run("trunk", tagged(from_guest(TRUNK, out), 10)), ("b1", to_guest(B1, forwarded(out))))
        assert_out(trunk.run("b1", from_guest(B1, back), fence="trunk"), ("trunk", tagged(to_guest(TRUNK, forwarded(back)), 10)))
        assert_out(trunk.run("trunk", from_guest(TRUNK, red)), ("t2", to_guest(T2, forwarded(red))))
        priority = tagged(from_guest(TRUNK, red), 0xe000)
        assert_out(trunk.run("trunk", priority), ("t2", to_guest(T2, forwarded(red))))


def test_the_gateway_answers_within_the_tag(trunk):
    ask = Ether(src=TRUNK["mac"], dst=ALL) / ARP(hwsrc=TRUNK["mac"], psrc=TRUNK[4], pdst=GATEWAY[4])
    assert_out(trunk.run("trunk", tagged(ask, 10)),
               ("trunk", tagged(Ether(src=GATEWAY_MAC, dst=TRUNK["mac"]) / ARP(op=2, hwsrc=GATEWAY_MAC, psrc=GATEWAY[4],
                                                                              hwdst=TRUNK["mac"], pdst=TRUNK[4]), 10)))
    for family, request, reply in ((4, ICMP(id=1, seq=2), ICMP(type=0, id=1, seq=2)),
                                   (6, ICMPv6EchoRequest(id=1, seq=2), ICMPv6EchoReply(id=1, seq=2))):
        out = trunk.run("trunk", tagged(from_guest(TRUNK, ip(family, TRUNK, GATEWAY) / request / Raw(b"within")), 10))
        assert len(out) == 1 and out[0].port == "trunk" and out[0].packet[Dot1Q].vlan == 10
        assert bytes(reply)[:1] == bytes(out[0].packet[IP if family == 4 else IPv6].payload)[:1]
    solicit = Ether(src=TRUNK["mac"], dst="33:33:ff:00:00:01") / IPv6(src=TRUNK[6], dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(
        tgt=GATEWAY[6]) / ICMPv6NDOptSrcLLAddr(lladdr=TRUNK["mac"])
    out = trunk.run("trunk", tagged(solicit, 10))
    assert len(out) == 1 and out[0].packet[Dot1Q].vlan == 10 and ICMPv6ND_NA in out[0].packet


@pytest.mark.parametrize("family", FAMILIES)
def test_bridge_translates_tags(trunk, family):
    packet = udp_packet(family, TRUNK, PEER)
    there, back = Ether(src=TRUNK["mac"], dst=PEER["mac"]) / packet, Ether(src=PEER["mac"], dst=TRUNK["mac"]) / packet
    for tags, other in (((20,), 30), ((100, 7), 31)):
        with trunk.drops():
            assert_out(trunk.run("trunk", tagged(there, *tags)), ("peer", tagged(there, other)))
            assert_out(trunk.run("peer", tagged(back, other)), ("trunk", tagged(back, *tags)))


def test_unknown_tags(trunk):
    frame = Ether(src=TRUNK["mac"], dst=ALL) / udp_packet(4, TRUNK, PEER)
    with trunk.drops(vlan_unknown=4):
        assert_nothing(trunk.run("trunk", tagged(frame, 11), tagged(frame, 100, 8), tagged(tagged(frame, 7), 100),
                                 Ether(bytes(frame)[:12] + b"\x81\x00\x00")))


def test_own_source_check_and_counters(trunk):
    forged = udp_packet(4, B1, "10.1.0.200")
    before = {name: port(trunk, name)["state"]["counters"] for name in ("trunk", "trunk-10")}
    frame = tagged(Ether(src=TRUNK["mac"], dst=GATEWAY_MAC) / forged, 10)
    with trunk.drops(source_address=1):
        assert_nothing(trunk.run("trunk", frame))
    after = {name: port(trunk, name)["state"]["counters"] for name in ("trunk", "trunk-10")}
    assert int(after["trunk-10"]["rx_packets"]) - int(before["trunk-10"].get("rx_packets", 0)) == 1
    assert int(after["trunk-10"]["rx_bytes"]) - int(before["trunk-10"].get("rx_bytes", 0)) == len(frame) - 4
    assert int(after["trunk-10"]["dropped"]) - int(before["trunk-10"].get("dropped", 0)) == 1
    assert after["trunk"].get("dropped", 0) == before["trunk"].get("dropped", 0)
    assert port(trunk, "trunk-10")["state"].get("queues", []) == []


def test_own_rules(trunk):
    trunk.cli("rule-list", "add", "sub", "--default-action", "deny")
    trunk.cli("port", "set", "trunk-20", "--stateful", "--egress-rules", "sub")
    frame = Ether(src=TRUNK["mac"], dst=PEER["mac"]) / udp_packet(4, TRUNK, PEER)
    with trunk.drops(flow_denied_egress=1):
        assert_nothing(trunk.run("trunk", tagged(frame, 20)))
    assert_out(trunk.run("trunk", tagged(frame, 100, 7)), ("peer", tagged(frame, 31)))
    trunk.cli("port", "set", "trunk-20", f"--stateful={str(STATEFUL).lower()}", "--egress-rules", "")
    trunk.cli("rule-list", "del", "sub")


def test_own_dhcp(trunk):
    trunk.cli("port", "set", "trunk-10", "--dhcp4")
    ask = Ether(src=TRUNK["mac"], dst=ALL) / IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / BOOTP(
        chaddr=bytes.fromhex(TRUNK["mac"].replace(":", "")) + bytes(10)) / DHCP(options=[("message-type", "discover"), "end"])
    trunk.taps["trunk"].send(tagged(ask, 10))
    offer = trunk.expect("trunk", lambda p: BOOTP in p)
    assert offer[Dot1Q].vlan == 10 and offer[BOOTP].yiaddr == TRUNK[4]
    trunk.cli("port", "set", "trunk-10", "--dhcp4=false")


@pytest.mark.parametrize("family", FAMILIES)
def test_offloads_with_a_tag(trunk, family):
    """The marks of a tap count from the start of the frame, with its tag. The kernel takes the tag off again, and the test's
    port puts it back."""
    for name in ("trunk", "peer"):
        if not trunk.taps[name].has_marks:
            trunk.taps[name].use_marks()
    size, kind, l4 = 1000, 1 if family == 4 else 4, 14 + (20 if family == 4 else 40)
    packet = ip(family, TRUNK, PEER) / TCP(sport=4000, dport=5000, seq=1, flags="A") / Raw(bytes(i * 7 & 0xff for i in range(3500)))
    frame = Ether(src=TRUNK["mac"], dst=PEER["mac"]) / packet
    marks = Marks(1, kind, l4 + 4 + 20, size, l4 + 4, 16)
    with trunk.drops():
        out = trunk.run("trunk", (tagged(frame, 20), marks))
    assert [o.port for o in out] == ["peer"]
    assert out[0].data[12:16] == b"\x81\x00\x00\x1e" and len(out[0].data) == len(frame) + 4
    assert out[0].marks.gso_type == kind and out[0].marks.gso_size == size and out[0].marks.checksum_start == l4 + 4
    checksum = Marks(1, 0, 0, 0, l4 + 4, 16)
    packet[TCP].payload = Raw(bytes(100))
    frame = Ether(src=TRUNK["mac"], dst=PEER["mac"]) / packet
    with trunk.drops():
        out = trunk.run("trunk", (tagged(frame, 20), checksum))
    assert len(out) == 1 and out[0].marks.checksum_start == l4 + 4 and out[0].marks.gso_type == 0


def test_made_and_removed_under_traffic(trunk):
    """The parent's own frames all pass, and the sub-port has no frames that it does not know of."""
    frame = Ether(src=PEER["mac"], dst=GATEWAY_MAC) / udp_packet(4, PEER, T2)
    other = tagged(Ether(src=PEER["mac"], dst=ALL) / udp_packet(4, PEER, TRUNK), 99)
    stop, sent = threading.Event(), []

    def send():
        tap = trunk.taps["peer"]
        while not stop.is_set():
            tap.send(other)
            tap.send(frame)
            sent.append(1)

    trunk.wait(0, lambda fs: False)
    before = trunk.drop_counts()
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(10):
            trunk.cli("port", "add", "peer-99", "tenant", "subport", "--parent", "peer", "--vlan", 99, "--bridge", "sub100")
            trunk.cli("port", "del", "peer-99")
    finally:
        stop.set()
        sender.join()
    out = trunk.fence("peer")
    trunk.daemon.check_alive()
    grown = {r: n - before.get(r, 0) for r, n in trunk.drop_counts().items() if n != before.get(r, 0)}
    assert set(grown) <= {"vlan_unknown", "port_unconfigured"}, grown
    assert sent and out


def test_refused(trunk):
    add = ("port", "add", "x", "tenant", "subport", "--bridge", "sub20")
    for why, *command in (("has the sub-port 'trunk-10'", "port", "del", "trunk"),
                          ("is the tag of the sub-port 'trunk-10'", *add, "--parent", "trunk", "--vlan", 10),
                          ("cannot have sub-ports", *add, "--parent", "fab0", "--vlan", 10),
                          ("is larger than that of the parent", *add, "--parent", "trunk", "--vlan", 11, "--mtu", 1501),
                          ("is a sub-port", "port", "assign", "trunk-10", "--queue", 0, "--worker", 0)):
        with pytest.raises(Refused, match=why):
            trunk.cli(*command)
