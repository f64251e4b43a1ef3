# SPDX-License-Identifier: Apache-2.0
"""The network around the router in all tests: a host on the underlay, guests of two tenants, a tunnel of each kind."""
import ipaddress

FAB0_MAC, HOST_MAC = "02:00:00:00:f0:01", "02:00:00:00:f0:02"
FAB0 = {4: "192.0.2.1", 6: "2001:db8::1"}
HOST = {4: "192.0.2.2", 6: "2001:db8::2"}
REMOTE_ROUTER_MAC = "02:00:00:00:aa:02"

GATEWAY = {4: "10.1.0.1", 6: "fd00:1::1"}
T1 = {4: "10.1.0.11", 6: "fd00:1::11", "mac": "02:00:00:00:01:11"}
T2 = {4: "10.1.0.12", 6: "fd00:1::12", "mac": "02:00:00:00:01:12"}
# A guest of the other tenant, with the same addresses on purpose.
B1 = {4: "10.1.0.11", 6: "fd00:1::11", "mac": "02:00:00:00:02:11"}

OVERLAYS = ("mplsoudp", "mplsogre", "vxlan", "geneve")
IN_UDP = ("mplsoudp", "vxlan", "geneve")
WITH_VNI = ("vxlan", "geneve")
FAMILIES = (4, 6)
UDP_PORT = {"mplsoudp": 6635, "vxlan": 4789, "geneve": 6081}
RED, BLUE, RED_UNIFORM = 1001, 1002, 1003  # labels, and VNIs with 4000 more


def vni(label):
    return label + 4000


def ids_of(tag):
    """The options of a tunnel with this label, or with the VNI of this label, by encapsulation."""
    routed = ("--vni", vni(tag), "--router-mac", REMOTE_ROUTER_MAC)
    return {"mplsoudp": ("--label", tag), "mplsogre": ("--label", tag), "vxlan": routed, "geneve": routed}


class Network:
    """The router with that topology. Tunnels are added when a test asks for them, each with its destinations, and stay."""

    def __init__(self, router):
        self.router = router
        self.tunnels = {}
        self.last_id = 1000
        self.build()

    def build(self):
        r = self.router
        for vrf in ("red", "blue"):
            r.cli("vrf", "add", vrf)
        r.add_fabric("fab0", address=(f"{FAB0[4]}/24", f"{FAB0[6]}/64"), host=HOST.values(), host_mac=HOST_MAC, mac=FAB0_MAC)
        for name, vrf, g in (("t1", "red", T1), ("t2", "red", T2), ("b1", "blue", B1)):
            # Most tests are about what the router does with any packet.
            r.add_tenant(name, "--source-check", "none", vrf=vrf, gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"),
                         guest=(g[4], g[6]), guest_mac=g["mac"])
        for tag, vrf, uniform in ((RED, "red", False), (BLUE, "blue", False), (RED_UNIFORM, "red", True)):
            option = ("--uniform",) if uniform else ()
            r.cli("label", "add", tag, "vrf", vrf, *option)
            r.cli("vni", "add", vni(tag), "vrf", vrf, *option)

    def new_id(self):
        self.last_id += 1
        return self.last_id

    def destinations(self, number):
        """Addresses that no other test uses."""
        return {4: str(ipaddress.ip_address("10.2.0.0") + number), 6: str(ipaddress.ip_address("fd00:2::") + number)}

    def route_to(self, nexthop, vrf="red"):
        dst = self.destinations(nexthop)
        self.router.cli("route", "add", f"{dst[4]}/32", f"{dst[6]}/128", "--vrf", vrf, "--nexthop", nexthop)
        return dst

    def tunnel(self, encap, under, *options, vrf="red", tag=RED):
        """A tunnel to HOST; returns the destinations that lead into it, by family, and its id."""
        key = (encap, under, options, vrf, tag)
        if key not in self.tunnels:
            nexthop = self.new_id()
            self.router.cli("nexthop", "add", nexthop, "tunnel", "--encap", encap, "--remote", HOST[under], *ids_of(tag)[encap],
                            *options)
            self.tunnels[key] = {**self.route_to(nexthop, vrf), "id": nexthop}
        return self.tunnels[key]
