# SPDX-License-Identifier: Apache-2.0
"""Router advertisements of a port for its guest (RFC 4861, 4191, 8106), on a routed port and on one that is only bridged."""
import pytest
from scapy.layers.inet6 import (ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_RS, ICMPv6NDOptDNSSL, ICMPv6NDOptDstLLAddr, ICMPv6NDOptMTU,
                                ICMPv6NDOptPrefixInfo, ICMPv6NDOptRDNSS, ICMPv6NDOptRouteInfo, ICMPv6NDOptSrcLLAddr, IPv6)
from scapy.layers.l2 import Ether

from packets import assert_nothing
from router import GATEWAY_MAC
from topology import GATEWAY, T1, T2
from waiting import PATIENCE

ROUTERS, ROUTERS_MAC, NODES, NODES_MAC = "ff02::2", "33:33:00:00:00:02", "ff02::1", "33:33:00:00:00:01"
LINK_LOCAL, GUEST = "fe80::200:5eff:fe00:101", "fe80::ff:fe00:111"
SETTINGS = ("--dns-server", "10.1.0.53,fd00:1::53,fd00:1::54", "--dns-domain", "red.example", "--mtu", 1450, "--source-check", "strict",
            "--boot-route", f"fd00:8::/32 via {GATEWAY[6]},2001:db8:8::1/128 via {GATEWAY[6]},::/0 via {GATEWAY[6]},10.8.0.0/16 via 10.1.0.5")
RESET = ("--router-advertisements=false", "--slaac=false", "--dns-server", "", "--dns-domain", "", "--mtu", 1500, "--source-check", "none",
         "--boot-route", "", "--boot-router", "", "--proxy-arp=false")


@pytest.fixture(name="guest")
def guest_fixture(router):
    router.cli("port", "set", "t1", "--router-advertisements", *SETTINGS)
    yield T1
    router.cli("port", "set", "t1", *RESET)
    router.expect("t1", lambda f: is_advert(f) and f[ICMPv6ND_RA].routerlifetime == 0)  # the last frame of the advertiser


def solicit(src=GUEST, mac=T1["mac"], option=True, dst=ROUTERS, to=ROUTERS_MAC, **fields):
    frame = Ether(src=mac, dst=to) / IPv6(src=src, dst=dst, hlim=255, **fields) / ICMPv6ND_RS()
    return frame / ICMPv6NDOptSrcLLAddr(lladdr=mac if option is True else option) if option else frame


def is_advert(frame):
    return ICMPv6ND_RA in frame


def ask(router, frame=None, port="t1"):
    """The advertisement for the guest alone, which those for all nodes may precede. Nothing comes out of other ports."""
    router.wait(0, lambda fs: False)
    router.taps[port].send(frame or solicit())
    frames, reached = router.wait(PATIENCE, lambda fs: any(is_advert(f.packet) and f.packet[IPv6].dst == GUEST for f in fs))
    assert reached and all(f.port == port and is_advert(f.packet) for f in frames), [(f.port, f.packet.summary()) for f in frames]
    return checked(frames[-1].packet)


def checked(advert):
    assert advert[IPv6].hlim == 255 and (advert[ICMPv6ND_RA].type, advert[ICMPv6ND_RA].code) == (134, 0)
    p = advert[IPv6].copy()
    del p[ICMPv6ND_RA].cksum
    assert IPv6(bytes(p))[ICMPv6ND_RA].cksum == advert[ICMPv6ND_RA].cksum
    return advert


def options(advert, kind):
    found, layer = [], advert.getlayer(kind)
    while layer:
        found.append(layer)
        layer = layer.payload.getlayer(kind)
    return found


def test_what_a_guest_is_told(router, guest):
    advert = ask(router)
    assert (advert.src, advert.dst, advert[IPv6].src, advert[IPv6].dst) == (GATEWAY_MAC, T1["mac"], LINK_LOCAL, GUEST)
    head = advert[ICMPv6ND_RA]
    assert (head.chlim, head.M, head.O, head.routerlifetime, head.reachabletime, head.retranstimer) == (64, 0, 0, 1800, 0, 0)
    assert advert[ICMPv6NDOptSrcLLAddr].lladdr == GATEWAY_MAC and advert[ICMPv6NDOptMTU].mtu == 1450
    assert not options(advert, ICMPv6NDOptPrefixInfo)  # other hosts of the subnet are behind the router
    routes = {(r.prefix, r.plen, r.rtlifetime, r.len) for r in options(advert, ICMPv6NDOptRouteInfo)}
    assert routes == {("fd00:8::", 32, 1800, 2), ("2001:db8:8::1", 128, 1800, 3), ("::", 0, 1800, 1)}
    (dns,), (names,) = options(advert, ICMPv6NDOptRDNSS), options(advert, ICMPv6NDOptDNSSL)
    assert (dns.dns, dns.lifetime) == (["fd00:1::53", "fd00:1::54"], 1800)
    assert (names.searchlist, names.lifetime) == (["red.example."], 1800)


@pytest.mark.parametrize("flags,on_link,autonomous", [(("--slaac",), 0, 1), (("--proxy-arp",), 1, 0), (("--slaac", "--proxy-arp"), 1, 1)],
                         ids=["slaac", "proxy", "both"])
def test_prefixes(router, guest, flags, on_link, autonomous):
    router.cli("port", "set", "t1", *flags)
    (prefix,) = options(ask(router), ICMPv6NDOptPrefixInfo)
    assert (prefix.prefix, prefix.prefixlen, prefix.L, prefix.A, prefix.R) == ("fd00:1::", 64, on_link, autonomous, 0)
    assert (prefix.validlifetime, prefix.preferredlifetime) == (86400, 14400)


def test_the_router_answers_for_its_address(router, guest):
    """The guest resolves, and later probes, the link-local address that was advertised."""
    ns = Ether(src=T1["mac"], dst=GATEWAY_MAC) / IPv6(src=GUEST, dst=LINK_LOCAL, hlim=255) / ICMPv6ND_NS(tgt=LINK_LOCAL)
    answers = [f.packet for f in router.run("t1", ns / ICMPv6NDOptSrcLLAddr(lladdr=T1["mac"])) if ICMPv6ND_NA in f.packet]
    assert [(a[ICMPv6ND_NA].tgt, a[ICMPv6ND_NA].R, a[ICMPv6NDOptDstLLAddr].lladdr) for a in answers] == [(LINK_LOCAL, 1, GATEWAY_MAC)]


def test_without_an_address(router, guest):
    """A guest that has not even a link-local address is answered as all nodes are."""
    router.expect("t1", is_advert)  # the first one comes by itself, within a second
    router.taps["t1"].send(solicit(src="::", option=None))
    advert = checked(router.expect("t1", is_advert))
    assert (advert.dst, advert[IPv6].dst, advert[IPv6].src) == (NODES_MAC, NODES, LINK_LOCAL)


def test_unsolicited(router, guest):
    before = int(router.cli("port", "show", "t1")[0]["state"]["router_adverts"])
    router.cli("port", "set", "t1", "--dns-domain", "blue.example")
    advert = checked(router.expect("t1", lambda f: is_advert(f) and f[ICMPv6NDOptDNSSL].searchlist == ["blue.example."]))
    assert (advert.dst, advert[IPv6].dst) == (NODES_MAC, NODES)
    assert int(router.cli("port", "show", "t1")[0]["state"]["router_adverts"]) > before


def test_the_end(router):
    """What was advertised is taken back: the router and its routes at once, addresses are not used for new connections."""
    router.cli("port", "set", "t1", "--router-advertisements", "--slaac", *SETTINGS)
    router.cli("port", "set", "t1", *RESET)
    advert = checked(router.expect("t1", lambda f: is_advert(f) and f[ICMPv6ND_RA].routerlifetime == 0))
    assert (advert[ICMPv6NDOptPrefixInfo].validlifetime, advert[ICMPv6NDOptPrefixInfo].preferredlifetime) == (86400, 0)
    assert {r.rtlifetime for r in options(advert, ICMPv6NDOptRouteInfo)} == {0}
    assert (advert[ICMPv6NDOptRDNSS].lifetime, advert[ICMPv6NDOptDNSSL].lifetime) == (0, 0)
    with router.drops(nd_router_solicit_ignored=1):
        assert_nothing(router.run("t1", solicit()))


def test_refused_solicitations(router, guest):
    router.cli("port", "set", "t1", "--source-check", "none")
    router.expect("t1", is_advert)
    far = solicit()
    far[IPv6].hlim = 254
    damaged = solicit()
    damaged[ICMPv6ND_RS].cksum = 0x1234
    unspecified = solicit(src="::")  # with an option, which RFC 4861, 6.1.1 forbids
    broken = solicit() / bytes(8)    # an option of length 0
    with router.drops(boot_malformed=4):
        assert_nothing(router.run("t1", far, damaged, unspecified, broken))
    with router.drops(boot_wrong_mac=2):
        assert_nothing(router.run("t1", solicit(mac=T2["mac"]), solicit(option=T2["mac"])))


def test_a_flood_is_bounded(router, guest):
    before = router.drop_counts().get("punt_rate", 0)
    router.run("t1", *[solicit()] * 500)
    assert 300 < router.drop_counts()["punt_rate"] - before < 500


def test_bridged(router):
    """Without a VRF, another host of the link may be the router: it is advertised by its own address, or else nobody is."""
    router.cli("bridge", "add", "adverts")
    for name, mac, flags in (("u1", T1["mac"], ("--router-advertisements", "--slaac", "--boot-address", "fd00:5::2/64")), ("u2", T2["mac"], ())):
        router.cli("port", "add", name, "tenant", "tap", "--bridge", "adverts", "--guest-mac", mac, *flags)
        router.attach(name, None)
    try:
        advert = ask(router, port="u1")
        assert (advert[ICMPv6ND_RA].routerlifetime, advert[IPv6].src) == (0, LINK_LOCAL)
        prefix = advert[ICMPv6NDOptPrefixInfo]
        assert (prefix.prefix, prefix.prefixlen, prefix.L, prefix.A) == ("fd00:5::", 64, 1, 1)
        router.cli("port", "set", "u1", "--boot-router", "fe80::99", "--boot-route", "fd00:8::/32 via fe80::99")
        advert = ask(router, port="u1")
        assert (advert[ICMPv6ND_RA].routerlifetime, advert[IPv6].src) == (1800, "fe80::99")
        assert ICMPv6NDOptSrcLLAddr not in advert and advert[ICMPv6NDOptRouteInfo].prefix == "fd00:8::"
        # A solicitation to that router itself is not for this node.
        router.taps["u1"].send(solicit(dst="fe80::99", to=T2["mac"]))
        assert ICMPv6ND_RS in router.expect("u2", lambda f: ICMPv6ND_RS in f)
    finally:
        for name in ("u1", "u2"):
            router.del_port(name)
        router.cli("bridge", "del", "adverts")


REFUSED = [(("--slaac",), "--router-advertisements"), (("--router-advertisements", "--mtu", 1279), "1280"),
           (("--router-advertisements", "--boot-router", "fd00:1::9"), "link-local"),
           (("--router-advertisements", "--boot-route", "fd00:8::/32 via fd00:1::9"), "router that is advertised"),
           (("--router-advertisements", "--slaac", "--gateway", "10.1.0.1/24,fd00:1::1/65"), "length 64")]


@pytest.mark.parametrize("flags,text", REFUSED)
def test_what_is_refused(router, flags, text):
    with pytest.raises(Exception, match=text):
        router.cli("port", "set", "t1", *flags)
