# SPDX-License-Identifier: Apache-2.0
"""One guest describes frames that are far too long, or lies about large segments, while another one sends valid frames: the daemon drops
and counts those of the first one."""
import os
import struct
import time

import pytest
from scapy.all import IP, TCP, UDP, Ether, IPv6, Raw

from daemon import Daemon, Refused
from packets import forwarded, to_guest
from router import GATEWAY_MAC, Tap
from waiting import PATIENCE, wait_until
from vhost_guest import DATA, OFFLOADS, Guest

FRAME = bytes(Ether(dst="00:00:5e:00:01:01", src="02:00:00:00:00:01") / IP(src="10.0.0.2", dst="10.9.0.1", len=1000) / UDP() / bytes(18))
SMALL = bytes(Ether(dst="00:00:5e:00:01:01", src="02:00:00:00:00:02") / IP(src="10.0.0.2", dst="10.9.0.1") / UDP() / bytes(18))
MIB = 1 << 20
HEADER_ROOM = 64


@pytest.fixture
def daemon():
    d = Daemon()
    yield d
    assert d.stop() == 0


def add(daemon, name, vrf, *options):
    path = f"{daemon.dir}/{name}"
    daemon.cli("vrf", "add", vrf)
    daemon.cli("port", "add", name, "tenant", "vhost", "--socket", path, "--vrf", vrf, "--gateway", "10.0.0.1/24",
               *options)
    return path


def received(daemon, name):
    return int(daemon.cli("port", "show", name)[0]["state"]["counters"].get("rx_packets", 0))


def sent(daemon, name):
    counters = daemon.cli("port", "show", name)[0]["state"]["counters"]
    return int(counters.get("tx_packets", 0)), int(counters.get("tx_bytes", 0))


def too_long(daemon, name):
    return sum(int(d["packets"]) for d in daemon.cli("drops", "--by-port") if d.get("port") == name and d["reason"] == "frame_too_long")


def both_send(guests, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for g in guests:
            g.post()
        time.sleep(0.0001)


@pytest.mark.parametrize("described", [14 + 105556, 64 * MIB], ids=["beyond 16 bits", "64 MiB"])
def test_frames_of_any_length(daemon, described):
    """Each frame of the first guest is counted as too long; each frame of the second arrives."""
    bad = Guest(add(daemon, "vm1", "red"), FRAME, described, described + HEADER_ROOM)
    good = Guest(add(daemon, "vm2", "blue"), SMALL)
    both_send([good], 1)
    before = received(daemon, "vm2")
    both_send([good], 1)
    alone = received(daemon, "vm2") - before
    before = received(daemon, "vm2")
    both_send([good, bad], 1)
    beside = received(daemon, "vm2") - before
    print(f"vm2: {alone} packets in a second alone, {beside} while vm1 posts descriptors of {described} bytes")
    daemon.check_alive()
    assert beside > 0
    assert too_long(daemon, "vm1") > 256
    assert too_long(daemon, "vm2") == 0
    bad.close()
    good.close()
    daemon.check_alive()


def losses(daemon):
    return [e["subject"] for e in daemon.cli("event", "list") if e["kind"] == "port_memory_lost"]


@pytest.mark.parametrize("left", [0, DATA], ids=["all", "frames"])
def test_memory_taken_away(daemon, left):
    """A guest makes the file of its memory shorter while workers read its frames: its port alone goes down, with an event that names it,
    and it may connect again."""
    path = add(daemon, "vm1", "red")
    bad, good = Guest(path, FRAME), Guest(add(daemon, "vm2", "blue"), SMALL)
    wait_up(daemon, "vm1", "vm2")
    wait_until("frames of vm1", lambda: both_send([good, bad], 0.1) or received(daemon, "vm1"), lambda n: n > 256, pause=0)
    os.ftruncate(bad.fd, left)
    if left:
        bad.post()  # the rings are still there; the frames are not
    bad.sock.settimeout(PATIENCE)
    assert bad.sock.recv(1) == b""  # it is disconnected
    wait_until("an event", lambda: losses(daemon), lambda seen: seen == ["port vm1"])
    before = received(daemon, "vm2")
    wait_until("frames of vm2", lambda: both_send([good], 0.1) or received(daemon, "vm2"), lambda n: n > before + 256, pause=0)
    again = Guest(path, FRAME)
    wait_up(daemon, "vm1", "vm2")
    before = received(daemon, "vm1")
    wait_until("frames of vm1", lambda: both_send([again], 0.1) or received(daemon, "vm1"), lambda n: n > before + 256, pause=0)
    state = [daemon.cli("port", "show", n)[0]["state"] for n in ("vm1", "vm2")]
    assert [s.get("last_error") or None for s in state] == ["shared memory was taken away", None]
    assert losses(daemon) == ["port vm1"]
    for guest in (bad, good, again):
        guest.close()
    daemon.check_alive()


def of_lies(family, kind="tcp", **fields):
    """A large segment to nowhere: what is wrong with it is found before its route."""
    link = Ether(dst="00:00:5e:00:01:01", src="02:00:00:00:00:01")
    l4 = UDP(sport=1, dport=2) if kind == "udp" else TCP(sport=1, dport=2, flags="A")
    network = IP(src="10.0.0.2", dst="10.9.0.1", **fields) if family == 4 else IPv6(src="fd00::2", dst="fd09::1", **fields)
    return bytes(link / network / l4 / bytes(6000))


NEEDS_CHECKSUM, TCP4, TCP6 = 1, 1, 4
LIES = {  # the frame, what is wrong in its virtio-net header, how the drops are counted; librte_vhost takes no segment from some
    "pieces of no bytes": (of_lies(4), {"size": 0}, "frame_too_long"),
    "pieces of one byte": (of_lies(4), {"size": 1}, "offload_pieces"),
    "pieces of one byte, IPv6": (of_lies(6), {"size": 1}, "offload_pieces"),
    "pieces that are larger than the packet": (of_lies(4), {"size": 60000}, "offload_size"),
    "TCP that is UDP": (of_lies(4, "udp"), {}, "frame_too_long"),
    "TCP that is UDP, IPv6": (of_lies(6, "udp"), {}, "frame_too_long"),
    "a fragment": (of_lies(4, flags="MF"), {}, "frame_too_long"),
    "a header with options that are not there": (of_lies(4, ihl=15), {}, "offload_header"),
}


def drops_of(daemon, name):
    return {d["reason"]: int(d["packets"]) for d in daemon.cli("drops", "--by-port") if d.get("port") == name}


def test_large_segments_that_lie(daemon):
    """Each is dropped by name, and costs the other guest nothing."""
    good = Guest(add(daemon, "good", "blue"), SMALL)
    seen = {}
    for i, (frame, wrong, _) in enumerate(LIES.values()):
        v4 = frame[14] >> 4 == 4
        h = {"kind": TCP4 if v4 else TCP6, "size": 1400, "start": 34 if v4 else 54, "header": 54 if v4 else 74, **wrong}
        header = struct.pack("<BBHHHHH", NEEDS_CHECKSUM, h["kind"], h["header"], h["size"], h["start"], 16, 0)
        liar = Guest(add(daemon, f"vm{i}", f"red{i}"), frame, header=header, features=OFFLOADS)
        before = received(daemon, "good")
        wait_until("more drops than a ring has buffers", lambda g=(good, liar), n=f"vm{i}": both_send(g, 0.1) or drops_of(daemon, n),
                   lambda drops: sum(drops.values()) > 256, pause=0)
        daemon.check_alive()
        seen[i] = set(drops_of(daemon, f"vm{i}"))
        assert received(daemon, "good") > before
        liar.close()
    assert seen == {i: {reason} for i, (_, _, reason) in enumerate(LIES.values())}
    assert set(drops_of(daemon, "good")) <= {"ip_no_route"}
    good.close()


def test_mtu_and_buffers(daemon):
    """A vhost port without large segments whose frames do not fit a packet buffer is refused, when it is added and when it is set."""
    path = add(daemon, "vm1", "red", "--offload", "none")
    for command in (("add", "vm2", "tenant", "vhost", "--offload", "none", "--socket", path + "2", "--vrf", "red"), ("set", "vm1")):
        with pytest.raises(Refused, match="--mbuf-size 9022"):
            daemon.cli("port", *command, "--mtu", 9000)
    daemon.cli("port", "set", "vm1", "--mtu", 2026)


def test_jumbo_frames(daemon):
    """A guest without large segments sends frames of several buffers: as long as the MTU allows, and no longer."""
    frame = bytes(Ether(dst="00:00:5e:00:01:01", src="02:00:00:00:00:01") / IP(src="10.0.0.2", dst="10.0.1.2", flags="DF") / UDP() /
                  bytes(9000 - 28))
    path = add(daemon, "vm1", "red", "--mtu", 9000, "--guest-address", "10.0.0.2", "--guest-mac", "02:00:00:00:00:01")
    daemon.cli("port", "add", "out", "tenant", "tap", "--vrf", "red", "--mtu", 9000, "--gateway", "10.0.1.1/24", "--guest-address",
               "10.0.1.2", "--guest-mac", "02:00:00:00:00:09")
    guest = Guest(path, frame, space=1 << 14)
    both_send([guest], 1)
    packets, octets = sent(daemon, "out")
    assert received(daemon, "vm1") > 256 and too_long(daemon, "vm1") == 0
    assert packets > 256 and octets / packets > 9000  # the router's own questions are a few short frames
    daemon.cli("port", "set", "vm1", "--mtu", 1500)
    packets = sent(daemon, "out")[0]
    both_send([guest], 1)
    assert too_long(daemon, "vm1") > 256 and sent(daemon, "out")[0] - packets < 600  # what was on its way
    guest.close()


def test_jumbo_frames_to_a_guest(daemon):
    """Frames that are longer than the guest's buffers take several: as many as they need, with every byte in its place."""
    path = add(daemon, "vm1", "red", "--mtu", 9000, "--guest-address", "10.0.0.2", "--guest-mac", "02:00:00:00:00:01")
    daemon.cli("port", "add", "out", "tenant", "tap", "--vrf", "red", "--mtu", 9000, "--gateway", "10.0.1.1/24", "--guest-address",
               "10.0.1.2", "--guest-mac", "02:00:00:00:00:09")
    guest = Guest(path, SMALL, buffer=2048)
    link = Ether(src="02:00:00:00:00:09", dst=GATEWAY_MAC)
    tap = Tap(daemon, "out", link / IP(src="10.0.1.2", dst="10.0.1.1"))
    wait_up(daemon, "vm1", "out")
    before = daemon.cli("drops")
    # The last bytes of a buffer, the first ones of the next one, the MTU; more of them in turn than the ring has buffers.
    for size in (1000, 2048 - 26, 2049 - 26, 4096 - 26, 4097 - 26, 8192 - 26, 9000) * 15:
        packet = IP(src="10.0.1.2", dst="10.0.0.2", flags="DF") / UDP(sport=4000, dport=5000)
        packet /= Raw(bytes(i * 7 & 0xff for i in range(size - 28)))
        tap.send(link / packet)
        frame, buffers = receive_from(guest, "10.0.1.2")
        assert frame == bytes(to_guest({"mac": "02:00:00:00:00:01"}, forwarded(packet)))
        assert buffers == (14 + size + 12 + 2047) // 2048
    tap.sock.close()
    guest.close()
    assert daemon.cli("drops") == before


def receive_from(guest, source):
    """The next frame from an address: the router's own questions may come before it."""
    while True:
        frame, buffers = guest.receive()
        if frame[12:14] == b"\x08\x00" and Ether(frame)[IP].src == source:
            return frame, buffers


def wait_up(daemon, *names):
    wait_until(f"the links of {names}", lambda: [daemon.cli("port", "show", n)[0].get("state", {}) for n in names],
               lambda states: all(s.get("link_up") for s in states), pause=0.02)
