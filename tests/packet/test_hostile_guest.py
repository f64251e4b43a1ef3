# SPDX-License-Identifier: Apache-2.0
"""One guest describes frames that are far too long while another one sends valid frames: the daemon drops and counts the long ones."""
import time

import pytest
from scapy.all import IP, UDP, Ether

from daemon import Daemon, Refused
from vhost_guest import Guest

FRAME = bytes(Ether(dst="00:00:5e:00:01:01", src="02:00:00:00:00:01") / IP(src="10.0.0.2", dst="10.9.0.1", len=1000) / UDP() / bytes(18))
SMALL = bytes(Ether(dst="00:00:5e:00:01:01", src="02:00:00:00:00:02") / IP(src="10.0.0.2", dst="10.9.0.1") / UDP() / bytes(18))
MIB = 1 << 20
HEADER_ROOM = 64


@pytest.fixture
def daemon():
    d = Daemon()
    yield d
    assert d.stop() == 0


def add(daemon, name, vrf):
    path = f"{daemon.dir}/{name}"
    daemon.cli("vrf", "add", vrf)
    daemon.cli("port", "add", name, "tenant", "vhost", "--socket", path, "--vrf", vrf, "--gateway", "10.0.0.1/24")
    return path


def received(daemon, name):
    return int(daemon.cli("port", "show", name)[0]["state"]["counters"].get("rx_packets", 0))


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


def test_mtu_and_buffers(daemon):
    """A vhost port whose frames do not fit a packet buffer is refused, when it is added and when it is set."""
    path = add(daemon, "vm1", "red")
    for command in (("add", "vm2", "tenant", "vhost", "--socket", path + "2", "--vrf", "red"), ("set", "vm1")):
        with pytest.raises(Refused, match="--mbuf-size 9022"):
            daemon.cli("port", *command, "--mtu", 9000)
    daemon.cli("port", "set", "vm1", "--mtu", 2026)
