# SPDX-License-Identifier: Apache-2.0
"""The host's own traffic: a host port on a fabric port. A socket stands for the kernel's side."""
import contextlib
import json
import os
import struct
import subprocess
import threading

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6MLQuery, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6NDOptDstLLAddr,
                                ICMPv6NDOptSrcLLAddr, ICMPv6PacketTooBig, IPv6, IPv6ExtHdrFragment)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from daemon import Refused
from packets import PAYLOAD, assert_nothing, assert_out, assert_same, forwarded, from_guest, from_host, ip, to_guest, udp_packet
from router import ISOLATED, Tap
from topology import FAMILIES, OVERLAYS, RED, T1, ids_of
from waiting import PATIENCE, wait_until

FAR = {4: "10.2.0.9", 6: "fd00:2::9"}
VLAN = 77
BROADCAST = "ff:ff:ff:ff:ff:ff"


class Link:
    """A fabric port with a host port, and the host on its wire."""

    def __init__(self, router, number, vlan=0):
        self.router, self.vlan = router, vlan
        self.fabric, self.host = f"fabh{number}", f"host{number}"
        self.mac, self.peer_mac = f"02:00:00:00:f{number}:01", f"02:00:00:00:f{number}:02"
        self.own = {4: f"192.0.{number}.1", 6: f"2001:db8:{number}::1"}
        self.kernel = {4: f"192.0.{number}.77", 6: f"2001:db8:{number}::77"}  # an address that the router does not have
        self.peer = {4: f"192.0.{number}.2", 6: f"2001:db8:{number}::2"}
        router.add_fabric(self.fabric, address=(f"{self.own[4]}/24", f"{self.own[6]}/64"), host=self.peer.values(),
                          host_mac=self.peer_mac, mac=self.mac, vlan=vlan)
        self.attach()

    def attach(self):
        self.router.cli("port", "add", self.host, "host", "tap", "--fabric", self.fabric)
        self.router.taps[self.host] = Tap(self.router.daemon, self.host, None)
        self.router.wait_up(self.host)

    def run(self, port, *frames):
        return self.router.run(port, *frames, fence="fab0")

    def incoming(self, packet, dst=None):
        return Ether(src=self.peer_mac, dst=dst or self.mac) / packet

    def outgoing(self, packet, dst=None):
        return Ether(src=self.mac, dst=dst or self.peer_mac) / packet

    def tag(self, frame):
        """The frame as it is on the wire."""
        raw = bytes(frame)
        return Ether(raw[:12] + struct.pack("!HH", 0x8100, self.vlan) + raw[12:]) if self.vlan else frame

    def state(self):
        return self.router.cli("port", "show", self.host)[0]

    def steers(self):
        return self.router.cli("host", "steer", "list", "--port", self.fabric)


@pytest.fixture(scope="module", params=[0, VLAN], ids=["untagged", "tagged"])
def link(network, request):
    link = Link(network.router, 7 if request.param else 6, request.param)
    yield link
    with contextlib.suppress(Refused):
        network.router.del_port(link.host)
    network.router.del_port(link.fabric)


def for_the_kernel(link, f):
    """Packets outside tunnels, to the router's own address and to one that only the kernel has."""
    echo = ICMP(id=1) if f == 4 else ICMPv6EchoRequest(id=1)
    packets = []
    for dst in (link.own, link.kernel):
        packets += [ip(f, link.peer, dst) / echo / Raw(PAYLOAD), ip(f, link.peer, dst) / TCP(dport=179, flags="S"),
                    udp_packet(f, link.peer, dst, dport=53), udp_packet(f, link.peer, dst, sport=6635, dport=161)]
    return packets


def interface(daemon, name):
    done = subprocess.run(["nsenter", "-t", str(daemon.process.pid), "-n", "ip", "-j", "link", "show", name], capture_output=True,
                          check=False)
    return json.loads(done.stdout)[0] if done.returncode == 0 else None


def test_the_interface_is_that_of_the_link(link):
    seen = interface(link.router.daemon, link.host)
    assert seen["address"] == link.mac
    assert seen["mtu"] == 1500
    link.router.cli("port", "set", link.fabric, "--mtu", 1400)
    assert interface(link.router.daemon, link.host)["mtu"] == 1400
    assert link.state()["mtu"] == 1400
    link.router.cli("port", "set", link.fabric, "--mtu", 1500)
    assert interface(link.router.daemon, link.host)["mtu"] == 1500


@pytest.mark.parametrize("family", FAMILIES)
def test_from_the_wire(link, family):
    packets = for_the_kernel(link, family)
    with link.router.drops():
        out = link.run(link.fabric, *(link.tag(link.incoming(p)) for p in packets))
    assert_out(out, *((link.host, link.incoming(p)) for p in packets))


@pytest.mark.parametrize("family", FAMILIES)
def test_tunnels_are_the_router_s(link, family):
    packet = udp_packet(family, FAR, T1)
    frames = []
    for encap in ("mplsoudp", "mplsogre", "vxlan"):
        p = from_host(encap, family, packet)
        p.src, p.dst, p[1].src, p[1].dst = link.peer_mac, link.mac, link.peer[family], link.own[family]
        frames.append(link.tag(p))
    with link.router.drops():
        assert_out(link.run(link.fabric, *frames), *[("t1", to_guest(T1, forwarded(packet)))] * 3)


def test_fragments(link):
    big = IP(src=link.peer[4], dst=link.own[4], id=9) / UDP(sport=1, dport=5000) / Raw(bytes(range(256)) * 10)
    frames = [link.incoming(p) for p in fragment(big, 1400)]
    frames.append(link.incoming(IPv6(src=link.peer[6], dst=link.own[6]) / IPv6ExtHdrFragment(m=1, id=5) / UDP(dport=5000) / PAYLOAD))
    frames.append(link.incoming(IPv6(src=link.peer[6], dst=link.own[6]) / IPv6ExtHdrFragment(offset=9, id=5, nh=17) / Raw(PAYLOAD)))
    tunnel = link.incoming(IPv6(src=link.peer[6], dst=link.own[6]) / IPv6ExtHdrFragment(m=1, id=6) / UDP(dport=6635) / PAYLOAD)
    with link.router.drops(fabric_fragment=1):
        out = link.run(link.fabric, *(link.tag(f) for f in frames), link.tag(tunnel))
    assert_out(out, *((link.host, f) for f in frames))


def too_big(link, f, quoted, mtu):
    body = ICMP(type=3, code=4, nexthopmtu=mtu) if f == 4 else ICMPv6PacketTooBig(mtu=mtu)
    return link.incoming(ip(f, link.peer, link.own) / body / Raw(quoted))


@pytest.mark.parametrize("encap", OVERLAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_path_mtu_of_tunnels(network, link, family, encap):
    """A hop's error about a tunnel's packet is the router's; one about a packet of the kernel's is the kernel's."""
    r, n, dst = link.router, 20 + OVERLAYS.index(encap) + 10 * bool(link.vlan), "10.2.77.9"
    far = {4: f"203.0.113.{n}", 6: f"2001:db8:fe::{n:x}"}
    under = f"{far[family]}/{32 if family == 4 else 128}"
    via, tunnel = network.new_id(), network.new_id()
    r.cli("nexthop", "add", via, "port", link.fabric, "--address", link.peer[family])
    r.cli("route", "add", under, "--vrf", "fabric", "--nexthop", via)
    r.cli("nexthop", "add", tunnel, "tunnel", "--encap", encap, "--remote", far[family], *ids_of(RED)[encap])
    r.cli("route", "add", f"{dst}/32", "--vrf", "red", "--nexthop", tunnel)

    def state():
        return r.cli("nexthop", "show", tunnel)[0]["state"]
    wait_until("a next hop that is resolved", state, lambda s: s["resolved"])
    (sent,) = link.run("t1", from_guest(T1, udp_packet(4, T1, dst)))
    assert sent.port == link.fabric
    outer = bytes(Ether(sent.data)[IP if family == 4 else IPv6])[:28 if family == 4 else 48]
    own = bytes(ip(family, link.own, far) / TCP(sport=179, dport=4000))[:28 if family == 4 else 48]
    with r.drops():
        assert_nothing(link.run(link.fabric, link.tag(too_big(link, family, outer, 1300))))
        s = wait_until("a path MTU", state, lambda s: s["path_mtu"] == 1300)
        kernels = too_big(link, family, own, 1300)
        assert_out(link.run(link.fabric, link.tag(kernels)), (link.host, kernels))
    (told,) = link.run("t1", from_guest(T1, udp_packet(4, T1, dst, flags="DF", payload=bytes(s["mtu"]))))
    assert told.port == "t1" and Ether(told.data)[ICMP].nexthopmtu == s["mtu"]
    r.cli("route", "del", f"{dst}/32", "--vrf", "red")
    r.cli("nexthop", "del", tunnel)
    r.cli("route", "del", under, "--vrf", "fabric")
    r.cli("nexthop", "del", via)


def test_tunnels_of_the_kernel(link):
    """GRE that carries IP, and VXLAN of a VNI that the router does not have, from an end to which it has no tunnel."""
    gre = IP(src=link.peer[4], dst=link.own[4], proto=47) / Raw(bytes.fromhex("00000800") + bytes(IP(src="10.9.0.1", dst="10.9.0.2") / UDP()))
    vxlan = udp_packet(4, {4: "192.0.2.200"}, link.own, dport=4789, payload=bytes.fromhex("080000000abcde00") + bytes(Ether(type=0x88b5) / PAYLOAD))
    with link.router.drops():
        out = link.run(link.fabric, link.tag(link.incoming(gre)), link.tag(link.incoming(vxlan)))
    assert_out(out, (link.host, link.incoming(gre)), (link.host, link.incoming(vxlan)))


def test_broadcast_multicast_and_others(link):
    frames = [link.incoming(IP(src="0.0.0.0", dst="255.255.255.255") / UDP(sport=68, dport=67) / Raw(PAYLOAD), BROADCAST),
              link.incoming(IP(src=link.peer[4], dst="224.0.0.251") / UDP(sport=5353, dport=5353), "01:00:5e:00:00:fb"),
              link.incoming(IPv6(src="fe80::2", dst="ff02::1") / ICMPv6MLQuery(), "33:33:00:00:00:01"),
              Ether(src=link.peer_mac, dst="01:80:c2:00:00:0e", type=0x88cc) / Raw(PAYLOAD),
              link.incoming(IPv6(src="fe80::1", dst="ff02::1", hlim=255) / ICMPv6ND_RA(), "33:33:00:00:00:01")]
    with link.router.drops():
        out = link.run(link.fabric, *(link.tag(f) for f in frames))
    assert_out(out, *((link.host, f) for f in frames), ordered=False)


def test_not_for_this_node(link):
    frame = link.incoming(udp_packet(4, link.peer, link.own, dport=53), "02:00:00:00:00:99")
    bad = link.incoming(udp_packet(4, link.peer, link.own, dport=53, chksum=1))
    with link.router.drops(fabric_not_local_mac=1, fabric_bad_header=1):
        assert_nothing(link.run(link.fabric, link.tag(frame), link.tag(bad)))


@pytest.mark.parametrize("family", FAMILIES)
def test_from_the_kernel(link, family):
    packets = [ip(family, src, link.peer) / UDP(sport=53, dport=1000) / Raw(PAYLOAD) for src in (link.own, link.kernel)]
    frames = [link.outgoing(p) for p in packets]
    frames.append(link.outgoing(ARP(hwsrc=link.mac, psrc=link.kernel[4], pdst="192.0.9.9"), BROADCAST))
    before = int(link.state()["state"]["counters"].get("rx_packets", 0))
    with link.router.drops():
        out = link.run(link.host, *frames)
    assert_out(out, *((link.fabric, link.tag(f)) for f in frames))
    assert int(link.state()["state"]["counters"]["rx_packets"]) == before + 3


def test_arp_is_shared(link):
    mac, who = "02:00:00:00:aa:70", link.peer[4][:-1] + "70"
    own = Ether(src=mac, dst=BROADCAST) / ARP(hwsrc=mac, psrc=who, pdst=link.own[4])
    other = Ether(src=mac, dst=BROADCAST) / ARP(hwsrc=mac, psrc=who, pdst=link.kernel[4])
    # The router answers for its own address, and the kernel does not see the request.
    link.router.taps[link.fabric].send(link.tag(own))
    answer = Ether(src=link.mac, dst=mac) / ARP(op=2, hwsrc=link.mac, psrc=link.own[4], hwdst=mac, pdst=who)
    assert_same(link.tag(answer), bytes(link.router.expect(link.fabric, lambda p: ARP in p)))
    assert_nothing(link.run(link.fabric))
    # A request for the kernel's address goes to the kernel; the router does not answer.
    assert_out(link.run(link.fabric, link.tag(other)), (link.host, other))
    # A reply goes to the kernel, and the router learns from it, too.
    reply = Ether(src="02:00:00:00:aa:71", dst=link.mac) / ARP(op=2, hwsrc="02:00:00:00:aa:71", psrc=who, hwdst=link.mac, pdst=link.own[4])
    assert_out(link.run(link.fabric, link.tag(reply)), (link.host, reply))
    link.router.settle()
    known = [n for n in link.router.cli("neighbor", "list", "--port", link.fabric) if n["address"] == who]
    assert [n["mac"] for n in known] == ["02:00:00:00:aa:71"]
    link.router.cli("neighbor", "del", link.fabric, who)


def test_nd_is_shared(link):
    mac, who = "02:00:00:00:aa:70", link.peer[6][:-1] + "70"

    def solicit(target):
        low = int(target.split("::")[1], 16)
        return (Ether(src=mac, dst=f"33:33:ff:00:{low >> 8:02x}:{low & 255:02x}") /
                IPv6(src=who, dst=f"ff02::1:ff00:{low:x}", hlim=255) / ICMPv6ND_NS(tgt=target) / ICMPv6NDOptSrcLLAddr(lladdr=mac))

    link.router.taps[link.fabric].send(link.tag(solicit(link.own[6])))
    got = link.router.expect(link.fabric, lambda p: ICMPv6ND_NA in p)
    assert got[ICMPv6ND_NA].tgt == link.own[6] and got[ICMPv6NDOptDstLLAddr].lladdr == link.mac
    assert_nothing(link.run(link.fabric))
    other = solicit(link.kernel[6])
    assert_out(link.run(link.fabric, link.tag(other)), (link.host, other))
    advert = (Ether(src=mac, dst=link.mac) / IPv6(src=who, dst=link.own[6], hlim=255) / ICMPv6ND_NA(tgt=who, S=1, O=1, R=0) /
              ICMPv6NDOptDstLLAddr(lladdr=mac))
    assert_out(link.run(link.fabric, link.tag(advert)), (link.host, advert))
    link.router.cli("neighbor", "del", link.fabric, who)


def test_port_that_is_down(link):
    frame = link.tag(link.incoming(udp_packet(4, link.peer, link.own, dport=53)))
    link.router.cli("port", "set", link.host, "--disabled")
    try:
        with link.router.drops(port_down=1):
            assert_nothing(link.run(link.fabric, frame))
    finally:
        link.router.cli("port", "set", link.host, "--disabled=false")
    assert len(link.run(link.fabric, frame)) == 1


def test_without_host_port_all_is_as_before(link):
    link.router.del_port(link.host)
    try:
        echo = IP(src=link.peer[4], dst=link.own[4]) / ICMP(id=1) / Raw(PAYLOAD)
        with link.router.drops(fabric_udp_port=1):
            out = link.run(link.fabric, link.tag(link.incoming(udp_packet(4, link.peer, link.own, dport=53))),
                           link.tag(link.incoming(echo)))
        back = IP(src=link.own[4], dst=link.peer[4]) / ICMP(type=0, id=1) / Raw(PAYLOAD)
        assert_out(out, (link.fabric, link.tag(link.outgoing(back))))
    finally:
        link.attach()


@pytest.mark.parametrize("args,message", [
    (("host8", "host", "tap"), "shares a fabric port"),
    (("host8", "host", "tap", "--fabric", "t1"), "fabric port"),
    (("host8", "host", "tap", "--fabric", "none"), "there is no such port"),
    (("host8", "host", "tap", "--fabric", "LINK"), "has the host port"),
    (("host8", "host", "tap", "--fabric", "fab0", "--mtu", "1400"), "1500"),
    (("host8", "host", "tap", "--fabric", "fab0", "--address", "192.0.2.9/24"), "accepts no other settings"),
    (("host8", "host", "memif", "--socket", "/tmp/none.sock", "--fabric", "fab0"), "tap, dpdk"),
    (("fab8", "fabric", "tap", "--fabric", "fab0"), "role host"),
])
def test_what_is_refused(link, args, message):
    before = link.router.cli("port", "list")
    with pytest.raises(Refused, match=message):
        link.router.cli("port", "add", *(link.fabric if a == "LINK" else a for a in args))
    assert [p["name"] for p in link.router.cli("port", "list")] == [p["name"] for p in before]


def test_the_fabric_port_stays(link):
    with pytest.raises(Refused, match="has the host port"):
        link.router.cli("port", "del", link.fabric)


# --- The host-path worker. ---

def add_worker(router):
    router.daemon.insist("worker", "add", 9, "--role", "host_path", "--cpu", min(os.sched_getaffinity(0)), "--idle", "sleep")


@pytest.fixture
def host_worker(link):
    add_worker(link.router)
    yield 9
    if link.router.daemon.has_worker(9):
        link.router.daemon.del_worker(9)


def polls(link, port):
    return [q.get("worker", 0) for q in link.router.cli("port", "show", port)[0]["state"]["queues"]]


def exchange(link, n=40):
    """Sends n packets of each family to the kernel, mixed with packets to a tunnel; all arrive, each family in order."""
    r = link.router
    r.wait(0, lambda fs: False)
    inner = udp_packet(4, FAR, T1)
    sent = []
    for i in range(n):
        for f in FAMILIES:
            sent.append(link.incoming(ip(f, link.peer, link.own) / UDP(sport=5, dport=5000) / Raw(bytes([i]) * 32)))
            r.taps[link.fabric].send(link.tag(sent[-1]))
        tunnel = from_host("vxlan", 4, inner)
        tunnel.src, tunnel.dst, tunnel[1].src, tunnel[1].dst = link.peer_mac, link.mac, link.peer[4], link.own[4]
        r.taps[link.fabric].send(link.tag(tunnel))
    out, _ = r.wait(PATIENCE, lambda fs: len(fs) >= 3 * n)
    for kind in (IP, IPv6):
        assert [o.data for o in out if o.port == link.host and kind in o.packet] == [bytes(s) for s in sent if kind in s]
    assert len([o for o in out if o.port == "t1"]) == n


def test_the_worker_polls_the_host_port(link, host_worker):
    assert polls(link, link.host) == [host_worker]
    assert polls(link, link.fabric) == [1 if ISOLATED else 0]
    with link.router.drops():
        exchange(link)
        assert_out(link.router.run(link.fabric, fence="fab0"))
        frame = link.outgoing(udp_packet(4, link.own, link.peer))
        link.router.taps[link.host].send(frame)
        assert_same(link.tag(frame), bytes(link.router.expect(link.fabric, lambda p: UDP in p)))
    link.router.daemon.del_worker(host_worker)
    assert polls(link, link.host) == [0]
    with link.router.drops():
        exchange(link)


def test_steered_in_software(link, host_worker):
    r = link.router
    for f in FAMILIES:
        r.cli("host", "steer", "add", link.own[f], "--port", link.fabric)
    try:
        for s in link.steers():
            assert s["state"]["mode"] == "HOST_STEER_MODE_SOFTWARE" and "rules" in s["state"]["why"]
            assert s["state"]["worker"] == host_worker and s["state"].get("queues") == [0]
        assert polls(link, link.fabric) == [host_worker]
        with r.drops():
            exchange(link)
        assert [int(s["state"]["packets"]) for s in link.steers()] == [40, 40]
        # The kernel also gets packets that are not steered, by a forwarding worker, and ARP directly.
        other = link.incoming(udp_packet(4, link.peer, link.kernel, dport=53))
        arp = Ether(src=link.peer_mac, dst=BROADCAST) / ARP(hwsrc=link.peer_mac, psrc=link.peer[4], pdst=link.kernel[4])
        for frame in (other, arp):
            r.taps[link.fabric].send(link.tag(frame))
            assert_same(frame, bytes(r.expect(link.host, lambda p: True)))
        with pytest.raises(Refused, match="steered addresses"):
            r.cli("port", "del", link.host)
    finally:
        for f in FAMILIES:
            r.cli("host", "steer", "del", link.own[f], "--port", link.fabric)
    assert polls(link, link.fabric) == [0]
    with r.drops():
        exchange(link)


def test_the_worker_goes_and_comes(link):
    r = link.router
    r.cli("host", "steer", "add", link.own[4], "--port", link.fabric)
    try:
        assert link.steers()[0]["state"]["mode"] == "HOST_STEER_MODE_NONE"
        assert "no worker of role host-path" in link.steers()[0]["state"]["why"]
        for _ in range(3):
            add_worker(r)
            assert polls(link, link.fabric) == [9]
            exchange(link, 10)
            r.daemon.del_worker(9)
            assert polls(link, link.fabric) == [0]
            exchange(link, 10)
    finally:
        r.cli("host", "steer", "del", link.own[4], "--port", link.fabric)


WINDOW = 100  # frames that are on their way at once: the kernel's queue of a tap takes some 500


def test_switching_under_traffic(link):
    """No packet is lost or reordered while steering and the worker are added and removed."""
    r = link.router
    r.wait(0, lambda fs: False)
    enough, switched = threading.Event(), threading.Event()
    frame = bytes(link.tag(link.incoming(IP(src=link.peer[4], dst=link.own[4]) / UDP(dport=5000, chksum=0) / Raw(PAYLOAD))))
    sent, got, wrong = 0, [], []

    def switch_once():
        add_worker(r)
        for _ in range(3):
            r.daemon.insist("host", "steer", "add", link.own[4], "--port", link.fabric)
            r.daemon.insist("host", "steer", "del", link.own[4], "--port", link.fabric)
        r.daemon.del_worker(9)

    def switch():
        try:
            for _ in range(5):
                switch_once()
            while not enough.is_set():
                switch_once()
        except Exception as e:
            wrong.append(e)
        finally:
            switched.set()

    def answered(n):
        """Waits until so many frames have come out on the host's side."""
        frames, complete = r.wait(PATIENCE, lambda fs: len(got) + len(fs) >= n)
        got.extend(frames)
        return complete

    thread = threading.Thread(target=switch)
    with r.drops():
        thread.start()
        try:
            complete = True
            while complete and not switched.is_set():
                while sent - len(got) < WINDOW:
                    r.taps[link.fabric].send(frame[:-4] + struct.pack("!I", sent))
                    sent += 1
                complete = answered(sent - WINDOW // 2)
                if sent > 1000:
                    enough.set()
        finally:
            enough.set()
            thread.join()
        answered(sent)
    assert not wrong, wrong
    numbers = [struct.unpack("!I", o.data[-4:])[0] for o in got if o.port == link.host]
    missing = sorted(set(range(sent)) - set(numbers))
    assert not missing, f"{len(missing)} of {sent} are lost: {missing[:5]} to {missing[-1]}"
    assert numbers == list(range(sent)), "reordered"
    assert sent > 1000


@pytest.mark.parametrize("args,message", [
    (("192.0.2.1", "--port", "fab0"), "host port"),
    (("192.0.2.1", "--port", "none"), "there is no such port"),
    (("224.0.0.1",), "is not a host's address"),
    (("0.0.0.0",), "is not a host's address"),
    (("192.0.2.300",), "address"),
])
def test_steering_that_is_refused(link, args, message):
    with pytest.raises(Refused, match=message):
        link.router.cli("host", "steer", "add", *args, *(() if "--port" in args else ("--port", link.fabric)))
    assert link.steers() == []


def test_the_interface_is_deleted_by_hand(link):
    r = link.router
    with r.daemon.namespace():
        subprocess.run(["ip", "link", "del", link.host], check=True)
    r.taps.pop(link.host).sock.close()
    wait_until("the interface to be back", lambda: (interface(r.daemon, link.host), link.state()["state"]),
               lambda seen: seen[0] and seen[1].get("link_up"))
    assert "deleted" in link.state()["state"]["last_error"]
    kinds = [e["kind"] for e in r.cli("event", "list") if e.get("subject") == link.host]
    assert kinds[-2:] == ["port_interface_deleted", "port_interface_restored"]
    assert interface(r.daemon, link.host)["address"] == link.mac
    r.taps[link.host] = Tap(r.daemon, link.host, None)
    for f in FAMILIES:
        test_from_the_wire(link, f)
        test_from_the_kernel(link, f)
