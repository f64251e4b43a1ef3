# SPDX-License-Identifier: Apache-2.0
"""Multicast snooping of a bridge: a group's frames go to its members, and reports to multicast routers."""

import pytest
from scapy.contrib.igmp import IGMP
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (ICMPv6MLDone, ICMPv6MLQuery, ICMPv6MLReport, ICMPv6MLReport2, ICMPv6MLDMultAddrRec, IPv6, IPv6ExtHdrHopByHop,
                                 RouterAlert)
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from packets import assert_nothing, assert_out
from router import GATEWAY_MAC, STATEFUL
from topology import FAMILIES
from waiting import wait_until

MACS = {f"m{n}": f"02:00:00:00:30:0{n}" for n in range(1, 5)}
GROUP = {4: "239.7.7.7", 6: "ff0e::77"}
OTHER = {4: "239.7.7.8", 6: "ff0e::78"}
LINK = {4: "224.0.0.251", 6: "ff02::fb"}


def mac_of(group):
    if ":" in group:
        return "33:33:00:00:00:" + group.rsplit("::", 1)[1].rjust(2, "0")
    a = [int(x) for x in group.split(".")]
    return f"01:00:5e:{a[1] & 127:02x}:{a[2]:02x}:{a[3]:02x}"


@pytest.fixture(scope="module")
def ports(network):
    """Four ports; what their hosts are members of is known: they were asked, and did not answer within three seconds."""
    r = network.router
    r.cli("bridge", "add", "snoop", "--multicast-snooping")
    for name in MACS:
        r.cli("port", "add", name, "tenant", "tap", "--bridge", "snoop", *(("--stateful",) if STATEFUL else ()))
        r.attach(name, None)
    run(r, "m4", report(4, OTHER, "m4"))
    wait_until("the group to be known", lambda: [f.port for f in run(r, "m1", data(4, OTHER))], lambda ports: ports == ["m4"], pause=0)


def data(family, groups, port="m1"):
    ip = IP(src="10.30.0.1", dst=groups[4], ttl=1) if family == 4 else IPv6(src="fd30::1", dst=groups[6], hlim=1)
    return Ether(src=MACS[port], dst=mac_of(groups[family])) / ip / UDP(sport=5000, dport=5000) / Raw(b"multicast")


def mld(port, dst):
    return Ether(src=MACS[port], dst=mac_of(dst)) / IPv6(src="fe80::30", dst=dst, hlim=1) / IPv6ExtHdrHopByHop(options=[RouterAlert()])


def report(family, groups, port, leave=False):
    group = groups[family]
    if family == 6:
        return mld(port, "ff02::2" if leave else group) / (ICMPv6MLDone if leave else ICMPv6MLReport)(mladdr=group)
    dst = "224.0.0.2" if leave else group
    return Ether(src=MACS[port], dst=mac_of(dst)) / IP(src="10.30.0.2", dst=dst, ttl=1) / IGMP(type=0x17 if leave else 0x16, mrcode=0, gaddr=group)


def query(family, port):
    if family == 6:
        return mld(port, "ff02::1") / ICMPv6MLQuery(mladdr="::", mrd=10000)
    return Ether(src=MACS[port], dst=mac_of("224.0.0.1")) / IP(src="10.30.0.3", dst="224.0.0.1", ttl=1) / IGMP(type=0x11, mrcode=100)


def groups_of(router, group):
    return sorted(m["port"] for m in router.cli("bridge", "groups", "--bridge", "snoop") if m["group"] == group)


def wait_for(router, group, want):
    wait_until(f"{want} in {group}", lambda: groups_of(router, group), lambda ports: ports == want)


def run(router, port, *frames):
    """Without what the querier sends at times of its own."""
    return [f for f in router.run(port, *frames, fence="t1") if f.packet.src != GATEWAY_MAC]


@pytest.mark.parametrize("family", FAMILIES)
def test_members(ports, router, family):
    frame = data(family, GROUP)
    assert_out(run(router, "m1", frame), *((p, frame) for p in ("m2", "m3", "m4")))  # nobody has joined
    with router.drops(bridge_report_kept=1):
        assert_nothing(run(router, "m2", report(family, GROUP, "m2")))
    wait_for(router, GROUP[family], ["m2"])
    assert_out(run(router, "m1", frame), ("m2", frame))
    with router.drops(bridge_group_empty=1):
        assert_nothing(run(router, "m2", data(family, GROUP, "m2")))
    link = data(family, LINK)
    assert_out(run(router, "m1", link), *((p, link) for p in ("m2", "m3", "m4")))
    run(router, "m2", report(family, GROUP, "m2", leave=True))
    wait_for(router, GROUP[family], [])
    assert_out(run(router, "m1", frame), *((p, frame) for p in ("m2", "m3", "m4")))


def test_report_of_several_groups(ports, router):
    records = [ICMPv6MLDMultAddrRec(rtype=4, dst="ff0e::81"), ICMPv6MLDMultAddrRec(rtype=2, dst="ff0e::82"), ICMPv6MLDMultAddrRec(rtype=4, dst="ff02::1:ff00:1")]
    run(router, "m3", mld("m3", "ff02::16") / ICMPv6MLReport2(records=records))
    wait_for(router, "ff0e::82", ["m3"])
    assert groups_of(router, "ff0e::81") == ["m3"] and groups_of(router, "ff02::1:ff00:1") == []
    assert router.cli("bridge", "show", "snoop")[0]["memberships"] >= 2


def test_damaged(ports, router):
    broken = report(4, GROUP, "m2")
    broken[IGMP].chksum = 1
    with router.drops(bridge_report_damaged=2):
        assert_nothing(run(router, "m2", broken))
        routed = report(6, GROUP, "m2")
        routed[IPv6].hlim = 64
        assert_nothing(run(router, "m2", routed))
    assert groups_of(router, GROUP[4]) == []


def test_a_query_that_rules_deny(ports, router):
    """It reaches nobody, so it makes no port that of a router, and no other querier is heard."""
    router.cli("rule-list", "add", "mute", "--default-action", "allow")
    router.cli("rule", "add", "mute", 10, "deny", "--protocol", 2)
    router.cli("port", "set", "m3", "--stateful", "--egress-rules", "mute")
    assert_nothing(run(router, "m3", query(4, "m3")))
    run(router, "m2", report(4, {4: "239.7.7.9"}, "m2"))
    wait_for(router, "239.7.7.9", ["m2"])  # the router has read what came before this
    assert not router.cli("bridge", "show", "snoop")[0].get("router_ports")
    run(router, "m2", report(4, {4: "239.7.7.9"}, "m2", leave=True))
    router.cli("port", "set", "m3", "--egress-rules=", *(() if STATEFUL else ("--stateful=false",)))
    router.cli("rule-list", "del", "mute")


@pytest.mark.parametrize("family", FAMILIES)
def test_router_port(ports, router, family):
    """The last test: m4 stays the port of a router."""
    asks = query(family, "m4")
    assert_out(run(router, "m4", asks), *((p, asks) for p in ("m1", "m2", "m3")))
    wait_until("the router's port", lambda: router.cli("bridge", "show", "snoop")[0].get("router_ports"), lambda ports: ports == ["m4"])
    joins = report(family, GROUP, "m2")
    assert_out(run(router, "m2", joins), ("m4", joins))
    wait_for(router, GROUP[family], ["m2"])
    frame = data(family, GROUP)
    assert_out(run(router, "m1", frame), ("m2", frame), ("m4", frame))
