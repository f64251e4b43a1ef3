# SPDX-License-Identifier: Apache-2.0
"""DHCPv6 that a port answers for its guest (RFC 8415), on a routed port and on one that is only bridged."""
import struct

import pytest
from scapy.layers.dhcp6 import (DHCP6_Advertise, DHCP6_Confirm, DHCP6_Decline, DHCP6_InfoRequest, DHCP6_Rebind, DHCP6_RelayForward, DHCP6_Release,
                                DHCP6_Renew, DHCP6_Reply, DHCP6_Request, DHCP6_Solicit, DHCP6OptClientId, DHCP6OptDNSDomains, DHCP6OptDNSServers, DHCP6OptIA_NA, DHCP6OptIA_PD, DHCP6OptIA_TA,
                                DHCP6OptIAAddress, DHCP6OptInfoRefreshTime, DHCP6OptOptReq, DHCP6OptPref, DHCP6OptRapidCommit,
                                DHCP6OptServerId, DHCP6OptStatusCode, DUID_LL, DUID_LLT)
from scapy.layers.inet import UDP
from scapy.layers.inet6 import ICMPv6ND_RA, ICMPv6ND_RS, IPv6
from scapy.layers.l2 import Ether

from packets import assert_nothing, checksum_ok
from router import GATEWAY_MAC
from topology import T1, T2
from waiting import PATIENCE

SERVERS, SERVERS_MAC = "ff02::1:2", "33:33:00:01:00:02"
LINK_LOCAL, GUEST = "fe80::200:5eff:fe00:101", "fe80::ff:fe00:111"
SETTINGS = ("--dns-server", "10.1.0.53,fd00:1::53,fd00:1::54", "--dns-domain", "red.example", "--host-name", "web1", "--ntp-server",
            "10.1.0.123,fd00:1::123", "--boot-file", "http://[fd00:1::80]/boot.ipxe", "--lease-seconds", 3600, "--source-check", "strict")
RESET = ("--dhcp6=false", "--dns-server", "", "--dns-domain", "", "--host-name", "", "--ntp-server", "", "--boot-file", "", "--lease-seconds", 0,
         "--source-check", "none")
XID = 0x123456
CLIENT = DHCP6OptClientId(duid=DUID_LLT(lladdr=T1["mac"], timeval=1))
SERVER = DHCP6OptServerId(duid=DUID_LL(lladdr=GATEWAY_MAC))
WANTED = DHCP6OptOptReq(reqopts=[23, 24, 39, 56, 59])
SUCCESS, NO_ADDRESS, NOT_ON_LINK, NO_PREFIX = 0, 2, 4, 6


@pytest.fixture(name="guest")
def guest_fixture(router):
    router.cli("port", "set", "t1", "--dhcp6", *SETTINGS)
    yield T1
    router.cli("port", "set", "t1", *RESET)


def ia(*options, kind=DHCP6OptIA_NA, iaid=7):
    return kind(iaid=iaid, **{"iapdopt" if kind is DHCP6OptIA_PD else "iataopts" if kind is DHCP6OptIA_TA else "ianaopts": list(options)})


def message(kind, *options, src=GUEST, mac=T1["mac"], dst=SERVERS, to=SERVERS_MAC, client=True, sport=546):
    frame = Ether(src=mac, dst=to) / IPv6(src=src, dst=dst, hlim=1) / UDP(sport=sport, dport=547) / kind(trid=XID)
    for o in ([CLIENT] if client else []) + list(options):
        frame /= o
    return frame


def ask(router, frame, kind, port="t1"):
    """The answer, which comes from the control plane. Nothing else comes out of any port."""
    router.wait(0, lambda fs: False)
    router.taps[port].send(frame)
    frames, _ = router.wait(PATIENCE, lambda fs: any(f.port == port and kind in f.packet for f in fs))
    frames += router.wait(0.05, lambda fs: False)[0]
    assert [f.port for f in frames] == [port], [(f.port, f.packet.summary()) for f in frames]
    answer = frames[0].packet
    assert (answer.src, answer.dst, answer[IPv6].src, answer[IPv6].dst) == (GATEWAY_MAC, T1["mac"], LINK_LOCAL, GUEST)
    assert (answer[UDP].sport, answer[UDP].dport, answer[kind].trid) == (547, 546, XID) and checksum_ok(answer, UDP)
    assert bytes(answer[DHCP6OptServerId].duid) == bytes(SERVER.duid)
    return answer


def raw_option(answer, number):
    data, at = bytes(answer[UDP].payload), 4
    while at < len(data):
        code, size = struct.unpack_from(">HH", data, at)
        if code == number:
            return data[at + 4:at + 4 + size]
        at += 4 + size
    return None


FQDN, NTP, BOOT_FILE = 39, 56, 59


def assert_settings(answer):
    assert answer[DHCP6OptDNSServers].dnsservers == ["fd00:1::53", "fd00:1::54"]
    assert answer[DHCP6OptDNSDomains].dnsdomains == ["red.example."]
    assert raw_option(answer, FQDN) == b"\x04\x04web1\x03red\x07example\x00"
    assert raw_option(answer, NTP) == bytes.fromhex("00010010fd000001000000000000000000000123")
    assert raw_option(answer, BOOT_FILE) == b"http://[fd00:1::80]/boot.ipxe"


def addresses(association):
    return [(o.addr, o.preflft, o.validlft) for o in association.ianaopts if isinstance(o, DHCP6OptIAAddress)]


def assert_lease(answer, address=T1[6]):
    assert bytes(answer[DHCP6OptClientId].duid) == bytes(CLIENT.duid)
    association = answer[DHCP6OptIA_NA]
    assert (association.iaid, association.T1, association.T2) == (7, 1800, 3150)
    assert addresses(association) == [(address, 3600, 3600)]


def test_a_new_guest(router, guest):
    """SOLICIT and ADVERTISE, REQUEST and REPLY."""
    advertise = ask(router, message(DHCP6_Solicit, ia(), WANTED), DHCP6_Advertise)
    assert_lease(advertise)
    assert_settings(advertise)
    assert advertise[DHCP6OptPref].prefval == 255
    reply = ask(router, message(DHCP6_Request, SERVER, ia(DHCP6OptIAAddress(addr=guest[6])), WANTED), DHCP6_Reply)
    assert_lease(reply)
    assert_settings(reply)
    assert DHCP6OptPref not in reply
    assert int(router.cli("port", "show", "t1")[0]["state"]["dhcp6_answers"]) >= 2


def test_rapid_commit(router, guest):
    reply = ask(router, message(DHCP6_Solicit, ia(), DHCP6OptRapidCommit()), DHCP6_Reply)
    assert_lease(reply)
    assert DHCP6OptRapidCommit in reply


def test_only_what_is_wanted(router, guest):
    reply = ask(router, message(DHCP6_Solicit, ia(), DHCP6OptOptReq(reqopts=[24])), DHCP6_Advertise)
    assert DHCP6OptDNSDomains in reply and DHCP6OptDNSServers not in reply
    assert not any(raw_option(reply, o) for o in (FQDN, NTP, BOOT_FILE))


@pytest.mark.parametrize("kind", [DHCP6_Renew, DHCP6_Rebind], ids=["renew", "rebind"])
def test_renewal(router, guest, kind):
    """The address is renewed. Another one, which the guest had elsewhere, ends."""
    server = [SERVER] if kind is DHCP6_Renew else []
    assert_lease(ask(router, message(kind, *server, ia(DHCP6OptIAAddress(addr=guest[6]))), DHCP6_Reply))
    reply = ask(router, message(kind, *server, ia(DHCP6OptIAAddress(addr="fd00:9::9"))), DHCP6_Reply)
    assert addresses(reply[DHCP6OptIA_NA]) == [(guest[6], 3600, 3600), ("fd00:9::9", 0, 0)]


@pytest.mark.parametrize("address,status", [(T1[6], SUCCESS), (T2[6], NOT_ON_LINK)], ids=["same", "other"])
def test_confirm(router, guest, address, status):
    reply = ask(router, message(DHCP6_Confirm, ia(DHCP6OptIAAddress(addr=address))), DHCP6_Reply)
    assert reply[DHCP6OptStatusCode].statuscode == status
    with router.drops(dhcp6_nothing_to_confirm=1):
        assert_nothing(router.run("t1", message(DHCP6_Confirm, ia())))


def test_more_than_one_address(router, guest):
    """One address is given; prefixes and temporary addresses are not."""
    others = (ia(iaid=8), ia(kind=DHCP6OptIA_TA, iaid=9), ia(kind=DHCP6OptIA_PD, iaid=10))
    answer = ask(router, message(DHCP6_Solicit, ia(), *others), DHCP6_Advertise)
    assert_lease(answer)
    second = answer[DHCP6OptIA_NA].payload.getlayer(DHCP6OptIA_NA)
    assert (second.iaid, [o.statuscode for o in second.ianaopts]) == (8, [NO_ADDRESS])
    assert [o.statuscode for o in answer[DHCP6OptIA_TA].iataopts] == [NO_ADDRESS]
    assert [o.statuscode for o in answer[DHCP6OptIA_PD].iapdopt] == [NO_PREFIX]


def test_stateless(router, guest):
    """INFORMATION-REQUEST, also without an identifier (RFC 8415, 18.2.6)."""
    for client in (True, False):
        reply = ask(router, message(DHCP6_InfoRequest, WANTED, client=client), DHCP6_Reply)
        assert_settings(reply)
        assert reply[DHCP6OptInfoRefreshTime].reftime == 3600 and DHCP6OptIA_NA not in reply


def test_what_changes_nothing(router, guest):
    before = len(router.cli("event", "list"))
    for kind in (DHCP6_Decline, DHCP6_Release, DHCP6_Decline):
        reply = ask(router, message(kind, SERVER, ia(DHCP6OptIAAddress(addr=guest[6]))), DHCP6_Reply)
        assert reply[DHCP6OptStatusCode].statuscode == SUCCESS
    events = [e for e in router.cli("event", "list")[before:] if e["kind"] == "dhcp6_declined"]
    assert [e["subject"] for e in events] == ["port t1"] and guest[6] in events[0]["text"]


def test_refused(router, guest):
    router.cli("port", "set", "t1", "--source-check", "none")
    other = DHCP6OptServerId(duid=DUID_LL(lladdr=T2["mac"]))
    with router.drops(dhcp6_other_server=1):
        assert_nothing(router.run("t1", message(DHCP6_Request, other, ia())))
    with router.drops(dhcp6_malformed=3):
        assert_nothing(router.run("t1", message(DHCP6_Solicit, ia(), client=False), message(DHCP6_Request, ia()), message(DHCP6_Advertise, SERVER)))
    with router.drops(boot_relayed=1):
        relay = Ether(src=T1["mac"], dst=SERVERS_MAC) / IPv6(src=GUEST, dst=SERVERS) / UDP(sport=547, dport=547) / DHCP6_RelayForward()
        assert_nothing(router.run("t1", relay))
    with router.drops(boot_wrong_mac=1):
        assert_nothing(router.run("t1", message(DHCP6_Solicit, ia(), mac=T2["mac"])))


def test_damaged_messages(router, guest):
    good = message(DHCP6_Solicit, ia())
    wrong_sum, no_sum, short_udp, long_udp = (good.copy() for _ in range(4))
    wrong_sum[UDP].chksum, no_sum[UDP].chksum, short_udp[UDP].len, long_udp[UDP].len = 0x1234, 0, 11, 2000
    frames = [bytes(f) for f in (wrong_sum, no_sum, short_udp, long_udp, message(DHCP6_Solicit, ia(), src=T1[6]))] + [bytes(good)[:-1]]
    with router.drops(boot_malformed=len(frames)):
        for f in frames:
            assert_nothing(router.run("t1", f))


def test_the_guards_hold(router, guest):
    with router.drops(source_dhcp_server=1):
        assert_nothing(router.run("t1", message(DHCP6_Solicit, ia(), sport=547)))


def test_off_by_default(router):
    with router.drops(eth_multicast_ignored=1):
        assert_nothing(router.run("t2", message(DHCP6_Solicit, ia(), mac=T2["mac"])))


@pytest.mark.parametrize("flags,managed,other", [((), 1, 1), (("--slaac",), 0, 1)], ids=["stateful", "stateless"])
def test_advertisements_say_so(router, guest, flags, managed, other):
    router.cli("port", "set", "t1", "--router-advertisements", *flags)
    try:
        router.taps["t1"].send(Ether(src=T1["mac"], dst="33:33:00:00:00:02") / IPv6(src=GUEST, dst="ff02::2", hlim=255) / ICMPv6ND_RS())
        advert = router.expect("t1", lambda f: ICMPv6ND_RA in f and f[IPv6].dst == GUEST)
        assert (advert[ICMPv6ND_RA].M, advert[ICMPv6ND_RA].O) == (managed, other)
    finally:
        router.cli("port", "set", "t1", "--router-advertisements=false", "--slaac=false")
        router.expect("t1", lambda f: ICMPv6ND_RA in f and f[ICMPv6ND_RA].routerlifetime == 0)


def test_a_bridged_port(router):
    """A port without a VRF: the address is told as configured, or that there is none. The frame does not reach the others of the bridge."""
    router.cli("bridge", "add", "boots6")
    for name, mac, flags in (("u1", T1["mac"], ("--dhcp6",)), ("u2", T2["mac"], ())):
        router.cli("port", "add", name, "tenant", "tap", "--bridge", "boots6", "--guest-mac", mac, *flags)
        router.attach(name, None)
    try:
        answer = ask(router, message(DHCP6_Solicit, ia()), DHCP6_Advertise, "u1")
        assert [o.statuscode for o in answer[DHCP6OptIA_NA].ianaopts] == [NO_ADDRESS]
        router.cli("port", "set", "u1", "--boot-address", "fd00:5::2/64", "--lease-seconds", 3600)
        assert_lease(ask(router, message(DHCP6_Solicit, ia()), DHCP6_Advertise, "u1"), "fd00:5::2")
    finally:
        for name in ("u1", "u2"):
            router.del_port(name)
        router.cli("bridge", "del", "boots6")
