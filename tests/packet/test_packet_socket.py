# SPDX-License-Identifier: Apache-2.0
"""A fabric port that is a packet socket: what leaves it as one large datagram is, taken apart, what would leave one by one, and what
comes as one reaches the guest as if it had come one by one."""
import subprocess

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from packets import forwarded, from_guest, from_host, to_host
from router import Marks, Router
from test_offload import G1, NEEDS_CHECKSUM, UDP_L4, cut_again, handed_over, large, pieces
from topology import FAMILIES, GATEWAY, RED, Network

OVER_UDP = ("vxlan", "geneve", "mplsoudp")


class SocketRouter(Router):
    """Its fabric port is at one end of a veth pair, and the test at the other one."""

    def add_fabric(self, name, *options, address, host, host_mac, mac, vlan=0):
        with self.daemon.namespace():
            subprocess.run(["ip", "link", "add", "wire0", "type", "veth", "peer", "name", name], check=True)
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        self.cli("port", "add", name, "fabric", "dpdk", "net_af_packet0,iface=wire0,vnet=1", "--address", ",".join(address), "--mac", mac,
                 "--vlan", vlan, *options)
        for h in host:
            self.cli("neighbor", "add", name, h, host_mac)
        link = Ether(src=host_mac, dst=mac)
        self.attach(name, link / IP(src=next(h for h in host if "." in h), dst=next(a for a in address if "." in a).split("/")[0]))
        self.taps[name].use_marks()


@pytest.fixture(scope="module", name="wired")
def new_network():
    r = SocketRouter()
    network = Network(r)
    r.add_tenant("g1", vrf="red", gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(G1[4], G1[6]), guest_mac=G1["mac"])
    r.taps["g1"].use_marks()
    yield network
    assert r.close() == 0


def segmentation(router, on):
    state = "on" if on else "off"
    with router.daemon.namespace():
        subprocess.run(["ethtool", "-K", "wire0", "tx-udp-segmentation", state, "tx-generic-segmentation", state], check=True,
                       stdout=subprocess.DEVNULL)


def datagrams(o):
    """The frames that a large one stands for, or the frame itself; with an id of 0 and without an outer checksum over IPv4, as the router
    makes them."""
    frame = Ether(o.data)
    ip, data = frame.payload, bytes(frame[UDP].payload)
    size = o.marks.gso_size or len(data)
    assert o.marks == Marks(0, 0, 0, 0, 0, 0) or (o.marks.flags, o.marks.gso_type) == (NEEDS_CHECKSUM, UDP_L4 if o.marks.gso_size else 0)
    for at in range(0, len(data), size):
        part = Ether(src=frame.src, dst=frame.dst) / ip.copy()
        part[UDP].remove_payload()
        part = part / Raw(data[at:at + size])
        del part[UDP].len, part[UDP].chksum
        if isinstance(ip, IP):
            del part[IP].len, part[IP].chksum
            part[IP].id, part[UDP].chksum = 0, 0
        else:
            del part.payload.plen
        yield bytes(part)


@pytest.mark.parametrize("on", [True, False], ids=["whole", "cut"])
@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize("under", FAMILIES)
@pytest.mark.parametrize("encap", OVER_UDP)
def test_to_the_wire(wired, encap, under, kind, on):
    r = wired.router
    segmentation(r, on)
    for inner in FAMILIES:
        packet = large(inner, G1, wired.tunnel(encap, under), kind, flags="CPA", tos=2)
        with r.drops():
            out = [o for o in r.run("g1", handed_over(from_guest(G1, packet))) if UDP in o.packet]  # the router asks for its neighbour, too
        assert len(out) == (1 if on else 4)
        got = [d for o in out for d in datagrams(o)]
        cut = pieces(forwarded(packet))
        assert got == [bytes(to_host(encap, under, p, d, tag=RED, tos=2)) for p, d in zip(cut, got)]


@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize("under", FAMILIES)
@pytest.mark.parametrize("encap", OVER_UDP)
def test_from_the_wire(wired, encap, under, kind):
    """The kernel of another machine, or its NIC, has joined the packets of a tunnel."""
    r = wired.router
    for inner in FAMILIES:
        cut = pieces(large(inner, wired.tunnel(encap, under), G1, kind, flags="PA"))
        frames = [from_host(encap, under, p, tag=RED) for p in cut]
        whole = Ether(bytes(frames[0]))
        parts = [bytes(Ether(bytes(f))[UDP].payload) for f in frames]
        whole[UDP].remove_payload()
        whole = whole / Raw(b"".join(parts))
        del whole[UDP].len, whole[UDP].chksum
        if under == 4:
            del whole[IP].len, whole[IP].chksum
        else:
            del whole.payload.plen
        with r.drops():
            out = r.run("fab0", handed_over(whole, size=len(parts[0])), fence="g1")
        assert {o.port for o in out} == {"g1"}
        assert [bytes(p) for p in cut_again(out)] == [bytes(forwarded(p)) for p in cut]
