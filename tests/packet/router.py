# SPDX-License-Identifier: Apache-2.0
"""The router under test: its ports as pairs of "send a frame in" and "what came out", and its counters.

No test sleeps until a packet has perhaps come. Frames of a port are handled in order, so after the frames of a test the router is
asked for an echo ("fence"), twice: the second answer comes from a later round of the worker than the one that had the test's last
frame, so whatever was to come out of that round has come out.
"""
import contextlib
import fcntl
import os
import select
import socket
import struct
import time
from typing import NamedTuple

from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Dot1Q, Ether

from daemon import PATIENT, Daemon
from waiting import PATIENCE, wait_until

ETH_P_ALL = 0x0003
SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 8, 15, 23
TP_STATUS_VLAN_VALID = 1 << 4
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_NOARP = 0x8913, 0x8914, 0x80
ROUTER_MAC = "02:00:00:00:aa:01"
GATEWAY_MAC = "00:00:5e:00:01:01"
FENCE = b"corelane packet test fence"
STATEFUL = os.environ.get("CORELANE_STATEFUL") == "1"  # routed tenant ports keep flows; nothing else differs
ISOLATED = STATEFUL  # another worker polls all queues and hands the packets, in order, to the one that forwards


class Marks(NamedTuple):
    """The virtio-net header of a frame whose checksum is unfinished, or that is a large segment (struct virtio_net_hdr)."""
    flags: int
    gso_type: int
    header_len: int
    gso_size: int
    checksum_start: int
    checksum_offset: int

    FORMAT = "BBHHHH"


NO_MARKS = Marks(0, 0, 0, 0, 0, 0)


class Out(NamedTuple):
    """A frame that came out of a port."""
    port: str
    data: bytes
    marks: Marks = NO_MARKS

    @property
    def packet(self):
        return Ether(self.data)


class Tap:
    """The wire side of a tap port."""

    def __init__(self, daemon, name, echo):
        self.name = name
        self.echo = echo  # scapy packet up to IP, from a known host of the port to the router
        self.fences = 0
        with daemon.namespace():
            self.silence_kernel()
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            self.sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            self.sock.bind((name, 0))
        self.sock.setblocking(False)
        self.has_marks = False

    def use_marks(self):
        """From now on frames have marks, as those of a guest that negotiated offloads."""
        self.sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.has_marks = True

    def silence_kernel(self):
        with open(f"/proc/sys/net/ipv6/conf/{self.name}/disable_ipv6", "w", encoding="ascii") as f:
            f.write("1")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            name = self.name.encode()
            flags = struct.unpack("16sH22x", fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16sH22x", name, 0)))[1]
            fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", name, flags | IFF_NOARP))

    def send(self, frame, marks=NO_MARKS):
        self.sock.send((struct.pack(Marks.FORMAT, *marks) if self.has_marks else b"") + bytes(frame))

    def recv(self):
        """Returns the next frame, None if there is none now. A VLAN tag that the kernel removed is put back."""
        try:
            data, extra, _, _ = self.sock.recvmsg(1 << 17, 64)
        except BlockingIOError:
            return None
        marks = NO_MARKS
        if self.has_marks:
            size = struct.calcsize(Marks.FORMAT)
            marks, data = Marks(*struct.unpack(Marks.FORMAT, data[:size])), data[size:]
        for level, kind, value in extra:
            if level == SOL_PACKET and kind == PACKET_AUXDATA:
                status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", value)
                if status & TP_STATUS_VLAN_VALID:
                    data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
                    if marks != NO_MARKS:
                        marks = marks._replace(checksum_start=marks.checksum_start + 4)
        return Out(self.name, data, marks)

    def fence(self):
        self.fences += 1
        return bytes(self.echo / ICMP(id=0xfe, seq=self.fences & 0xffff) / FENCE)

    def is_fence_answer(self, data):
        return FENCE in data and data.endswith(self.fence_tail())

    def fence_tail(self):
        return struct.pack("!HH", 0xfe, self.fences & 0xffff) + FENCE


class Router:
    def __init__(self, *options):
        self.daemon = Daemon("--router-mac", ROUTER_MAC, *options)
        self.cli = self.daemon.cli
        self.taps = {}
        if ISOLATED:
            self.cli("worker", "add", 1, "--cpu", max(os.sched_getaffinity(0)), *PATIENT, "--role", "isolated_rx")

    def close(self):
        for tap in self.taps.values():
            tap.sock.close()
        return self.daemon.stop()

    # --- ports ---

    def add_fabric(self, name, *options, address, host, host_mac, mac, vlan=0):
        """A fabric port with one host on its link, whose MAC is configured (no ARP)."""
        addresses = [address] if isinstance(address, str) else list(address)
        hosts = [host] if isinstance(host, str) else list(host)
        self.cli("port", "add", name, "fabric", "tap", "--address", ",".join(addresses), "--mac", mac, "--vlan", vlan, *options)
        for h in hosts:
            self.cli("neighbor", "add", name, h, host_mac)
        own4 = next(a for a in addresses if "." in a).split("/")[0]
        host4 = next(h for h in hosts if "." in h)
        link = Ether(src=host_mac, dst=mac) / Dot1Q(vlan=vlan) if vlan else Ether(src=host_mac, dst=mac)
        self.attach(name, link / IP(src=host4, dst=own4))

    def add_tenant(self, name, *options, vrf, gateway, guest, guest_mac, stateful=STATEFUL):
        gateways = [gateway] if isinstance(gateway, str) else list(gateway)
        guests = [guest] if isinstance(guest, str) else list(guest)
        options += ("--stateful",) if stateful else ()
        self.cli("port", "add", name, "tenant", "tap", "--vrf", vrf, "--gateway", ",".join(gateways), "--guest-address",
                 ",".join(guests),
                 "--guest-mac", guest_mac, *options)
        own4 = next(a for a in gateways if "." in a).split("/")[0]
        guest4 = next(g for g in guests if "." in g).split("/")[0]
        self.attach(name, Ether(src=guest_mac, dst=GATEWAY_MAC) / IP(src=guest4, dst=own4))

    def attach(self, name, echo):
        self.taps[name] = Tap(self.daemon, name, echo)
        if ISOLATED:
            self.cli("port", "assign", name, "--queue", 0, "--worker", 1)
        self.wait_up(name)

    def wait_up(self, name):
        wait_until(f"the link of port {name}", lambda: self.cli("port", "show", name)[0].get("state", {}),
                   lambda state: state.get("link_up"))

    def del_port(self, name):
        tap = self.taps.pop(name, None)
        if tap:
            tap.sock.close()
        self.cli("port", "del", name)

    def settle(self):
        """Waits for the master's next tick, with which tunnels and groups follow the underlay: it is over after two answers."""
        for _ in range(2):
            self.cli("status")

    # --- frames ---

    def wait(self, seconds, until):
        """Collects frames of all ports until `until(out)`; returns (frames, reached)."""
        socks = {t.sock: t for t in self.taps.values()}
        deadline = time.monotonic() + seconds
        frames = []
        while True:
            left = 0 if until(frames) else deadline - time.monotonic()
            ready, _, _ = select.select(list(socks), [], [], max(left, 0))
            for s in ready:
                tap = socks[s]
                while out := tap.recv():
                    frames.append(out)
            if until(frames):
                return frames, True
            if left <= 0:
                return frames, False

    def fence(self, port, times=2):
        """Returns the frames that came out of any port until the router has processed all frames sent so far on this one."""
        tap = self.taps[port]
        frames = []
        for _ in range(times):
            tap.send(tap.fence())
            got, reached = self.wait(PATIENCE, lambda fs: any(f.port == port and tap.is_fence_answer(f.data) for f in fs))
            if not reached:
                self.daemon.check_alive()
                raise TimeoutError(f"port {port} does not answer an echo; came out: {[f.packet.summary() for f in got]}")
            frames += [f for f in got if not (f.port == port and tap.is_fence_answer(f.data))]
        return frames

    def run(self, port, *frames, fence=None):
        """Sends frames, or pairs of a frame and its marks, into a port; returns all frames that came out of any port, in order by port."""
        self.wait(0, lambda fs: False)
        for f in frames:
            self.taps[port].send(*(f if isinstance(f, tuple) else (f,)))
        return self.fence(fence or port, 2 if fence in (None, port) else 3)

    def expect(self, port, predicate):
        """Waits for a frame that the control plane sends at a time of its own: the first one out of this port that fits."""
        found = []

        def look(frames):
            found[:] = [f for f in frames if f.port == port and predicate(f.packet)]
            return bool(found)

        frames, reached = self.wait(PATIENCE, look)
        assert reached, f"nothing that fits came out of {port}; came out: {[(f.port, f.packet.summary()) for f in frames]}"
        return found[0].packet

    # --- counters ---

    def drop_counts(self):
        return {d["reason"]: int(d["packets"]) for d in self.cli("drops")}

    @contextlib.contextmanager
    def all_dropped(self, number, reasons):
        """Asserts that the block drops this number of packets, all for these reasons, and at least one for each reason."""
        before = self.drop_counts()
        yield
        grown = {r: n - before.get(r, 0) for r, n in self.drop_counts().items() if n != before.get(r, 0)}
        assert set(grown) == set(reasons)
        assert sum(grown.values()) == number

    @contextlib.contextmanager
    def drops(self, **expected):
        """Asserts that the block counts exactly these drops."""
        before = self.drop_counts()

        def grown():
            return {r: n - before.get(r, 0) for r, n in self.drop_counts().items() if n != before.get(r, 0)}

        def decided(now):
            """Drops of the control plane may come late. What is too much already stays so."""
            return now == expected or any(n > expected.get(r, 0) for r, n in now.items())

        yield
        assert wait_until(f"the drops {expected}", grown, decided, pause=0.02) == expected
