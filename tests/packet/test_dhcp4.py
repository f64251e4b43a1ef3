# SPDX-License-Identifier: Apache-2.0
"""DHCPv4 that a port answers for its guest (RFC 2131), on a routed port and on one that is only bridged."""
import pytest
from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from packets import assert_nothing, checksum_ok
from router import GATEWAY_MAC
from topology import GATEWAY, T1, T2
from waiting import PATIENCE

ALL = "ff:ff:ff:ff:ff:ff"
SETTINGS = {"--dns-server": "10.1.0.53,fd00:1::53", "--dns-domain": "red.example", "--host-name": "web1", "--ntp-server": "10.1.0.123",
            "--lease-seconds": 3600, "--boot-route": "10.8.0.0/16 via 10.1.0.5", "--boot-file": "http://10.1.0.80/boot.ipxe",
            "--boot-server": "10.1.0.80", "--mtu": 1450, "--source-check": "strict"}
XID = 0x1234abcd


def options_of(flags):
    return [str(o) for pair in flags.items() for o in pair]


@pytest.fixture(name="guest")
def guest_fixture(router):
    router.cli("port", "set", "t1", "--dhcp4", *options_of(SETTINGS))
    yield T1
    router.cli("port", "set", "t1", "--dhcp4=false", "--mtu", 1500, "--source-check", "none",
               *options_of(dict.fromkeys(["--dns-server", "--dns-domain", "--host-name", "--ntp-server", "--boot-route", "--boot-file",
                                          "--boot-server", "--boot-address"], "")))


def message(kind, *options, src="0.0.0.0", dst="255.255.255.255", mac=T1["mac"], to=ALL, chaddr=None, sport=68, **bootp):
    fields = {"xid": XID, "chaddr": bytes.fromhex((chaddr or mac).replace(":", "")) + bytes(10), **bootp}
    return Ether(src=mac, dst=to) / IP(src=src, dst=dst) / UDP(sport=sport, dport=67) / BOOTP(**fields) / DHCP(
        options=[("message-type", kind), *options, "end"])


def ask(router, frame, port="t1"):
    """The answer, which comes from the control plane. Nothing else comes out of any port."""
    router.wait(0, lambda fs: False)
    router.taps[port].send(frame)
    frames, _ = router.wait(PATIENCE, lambda fs: any(f.port == port and BOOTP in f.packet for f in fs))
    frames += router.wait(0.05, lambda fs: False)[0]
    assert [f.port for f in frames] == [port], [(f.port, f.packet.summary()) for f in frames]
    answer = frames[0].packet
    assert answer[BOOTP].op == 2 and answer[BOOTP].xid == XID and (answer[UDP].sport, answer[UDP].dport) == (67, 68)
    assert checksum_ok(answer, IP) and checksum_ok(answer, UDP)
    return answer


def found(answer):
    return {o[0]: o[1:] if len(o) > 2 else o[1] for o in answer[DHCP].options if isinstance(o, tuple)}


def raw_option(answer, number):
    data, at = bytes(answer[DHCP]), 0
    while data[at] != 255:
        if data[at] == number:
            return data[at + 2:at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    return None


ROUTES = bytes([16, 10, 8, 10, 1, 0, 5, 0, 10, 1, 0, 1])
MESSAGE_TYPES = {"offer": 2, "ack": 5, "nak": 6}


def assert_settings(answer, kind, address=T1[4], lease=True):
    o = found(answer)
    assert o["message-type"] == MESSAGE_TYPES[kind] and o["server_id"] == GATEWAY[4]
    assert answer[BOOTP].yiaddr == (address if lease else "0.0.0.0")
    assert (o.get("lease_time"), o.get("renewal_time"), o.get("rebinding_time")) == ((3600, 1800, 3150) if lease else (None, None, None))
    assert (o["subnet_mask"], o["router"], o["name_server"], o["interface-mtu"]) == ("255.255.255.0", GATEWAY[4], "10.1.0.53", 1450)
    assert (o["domain"], o["hostname"], o["NTP_server"]) == (b"red.example", b"web1", "10.1.0.123")
    assert raw_option(answer, 121) == ROUTES
    assert raw_option(answer, 67) == answer[BOOTP].file.rstrip(b"\0") == b"http://10.1.0.80/boot.ipxe"
    assert raw_option(answer, 66) == b"10.1.0.80" and answer[BOOTP].siaddr == "10.1.0.80"


def test_a_new_guest(router, guest):
    """DISCOVER and OFFER, REQUEST and ACK, to the guest's MAC and address."""
    offer = ask(router, message("discover", ("client_id", b"\1" + b"x" * 6)))
    assert_settings(offer, "offer")
    assert raw_option(offer, 61) == b"\1" + b"x" * 6  # RFC 6842
    assert (offer.src, offer.dst, offer[IP].src, offer[IP].dst) == (GATEWAY_MAC, guest["mac"], GATEWAY[4], guest[4])
    ack = ask(router, message("request", ("requested_addr", guest[4]), ("server_id", GATEWAY[4])))
    assert_settings(ack, "ack")
    assert len(ack) >= 14 + 28 + 300


def test_a_guest_that_wants_broadcasts(router, guest):
    answer = ask(router, message("discover", flags=0x8000))
    assert (answer.dst, answer[IP].dst, answer[BOOTP].flags) == (ALL, "255.255.255.255", 0x8000)


@pytest.mark.parametrize("to,dst", [(GATEWAY_MAC, GATEWAY[4]), (ALL, "255.255.255.255")], ids=["renew", "rebind"])
def test_renewal(router, guest, to, dst):
    ack = ask(router, message("request", src=guest[4], dst=dst, to=to, ciaddr=guest[4]))
    assert_settings(ack, "ack")
    assert (ack.dst, ack[IP].dst, ack[BOOTP].ciaddr) == (guest["mac"], guest[4], guest[4])


def test_a_guest_that_reboots(router, guest):
    assert_settings(ask(router, message("request", ("requested_addr", guest[4]))), "ack")


@pytest.mark.parametrize("wrong", [("requested_addr", T2[4]), None], ids=["requested", "none"])
def test_another_address(router, guest, wrong):
    nak = ask(router, message("request", *([wrong] if wrong else [])))
    assert found(nak)["message-type"] == MESSAGE_TYPES["nak"] and found(nak)["server_id"] == GATEWAY[4]
    assert (nak[BOOTP].yiaddr, nak[IP].dst, nak.dst) == ("0.0.0.0", "255.255.255.255", ALL)
    assert "subnet_mask" not in found(nak) and "lease_time" not in found(nak)


def test_inform(router, guest):
    """A guest with a configured address gets everything but a lease."""
    assert_settings(ask(router, message("inform", src=guest[4], ciaddr=guest[4])), "ack", lease=False)


def test_what_needs_no_answer(router, guest):
    before = len(router.cli("event", "list"))
    with router.drops():
        for kind in ("decline", "release", "decline"):
            assert_nothing(router.run("t1", message(kind, ("requested_addr", guest[4]), ("server_id", GATEWAY[4]))))
    events = [e for e in router.cli("event", "list")[before:] if e["kind"] == "dhcp4_declined"]
    assert [e["subject"] for e in events] == ["port t1"] and guest[4] in events[0]["text"]


def test_another_server(router, guest):
    with router.drops(dhcp4_other_server=1):
        assert_nothing(router.run("t1", message("request", ("requested_addr", guest[4]), ("server_id", "10.1.0.9"))))


def test_options_in_other_fields(router, guest):
    """RFC 2132, 9.3: option 52 says that file (1), sname (2) or both (3) have options."""
    requested = bytes([50, 4, *map(int, guest[4].split(".")), 255])
    for where, field in ((1, "file"), (2, "sname"), (3, "sname")):
        fields = {"file": b"\xff", "sname": b"\xff", field: requested}
        assert_settings(ask(router, message("request", ("dhcp-option-overload", where), **fields)), "ack")
    nak = ask(router, message("request", ("dhcp-option-overload", 2), file=requested, sname=b"\xff"))
    assert found(nak)["message-type"] == MESSAGE_TYPES["nak"]


def test_the_option_of_a_relay(router, guest):
    """RFC 3046: what a switch before the guest has added comes back as it was, behind all other options, however full the answer is."""
    for length in (4, 250):
        value = bytes([1, length - 2]) + b"p" * (length - 2)
        offer = ask(router, message("discover", ("relay_agent_information", value)))
        assert raw_option(offer, 82) == value
        assert bytes(offer[DHCP]).split(b"\x52" + bytes([length]) + value)[1].lstrip(b"\0") == b"\xff"


BAD_OPTIONS = {
    "no type": b"\xff", "type too long": b"\x35\x02\x01\x01\xff", "truncated": b"\x35\x01\x01\x32\x04\x0a", "no length": b"\x35\x01\x01\x32",
    "of a server": b"\x35\x01\x02\xff", "unknown type": b"\x35\x01\x09\xff", "short address": b"\x35\x01\x01\x32\x03\x0a\x01\x00\xff",
    "overload 4": b"\x35\x01\x01\x34\x01\x04\xff", "overload in file": b"\x35\x01\x01\x34\x01\x01\xff",
}


@pytest.mark.parametrize("what", BAD_OPTIONS)
def test_damaged_options(router, guest, what):
    frame = message("discover", file=b"\x34\x01\x02\xff" if what == "overload in file" else b"")
    frame[UDP].payload = BOOTP(**frame[BOOTP].fields)
    frame[BOOTP].options = b"c\x82Sc"
    frame = frame / BAD_OPTIONS[what]
    with router.drops(dhcp4_malformed=1):
        assert_nothing(router.run("t1", frame))


def test_damaged_messages(router, guest):
    good = message("discover")
    whole = bytes(good)
    damaged = [good.copy() for _ in range(4)]
    damaged[0][BOOTP].op = 2
    damaged[1][BOOTP].hlen = 5
    damaged[2][UDP].chksum = 0x1234
    damaged[3][IP].flags = "MF"
    short_udp = good.copy()
    short_udp[UDP].len = 200
    long_udp = good.copy()
    long_udp[UDP].len = 2000
    frames = [*map(bytes, damaged), bytes(short_udp), bytes(long_udp), whole[:200], whole[:14 + 28 + 239]]
    with router.drops(boot_malformed=len(frames) - 1, source_dhcp_server=1):  # the answer
        for f in frames:
            assert_nothing(router.run("t1", f))


def test_only_for_itself(router, guest):
    """Neither the MAC of another port nor a relay's address brings an answer."""
    router.cli("port", "set", "t1", "--source-check", "none")
    frames = [message("discover", chaddr=T2["mac"]), message("discover", mac=T2["mac"])]
    with router.drops(boot_wrong_mac=2):
        assert_nothing(router.run("t1", *frames))
    with router.drops(boot_relayed=1):
        assert_nothing(router.run("t1", message("discover", giaddr="10.1.0.9")))


def test_the_guards_hold(router, guest):
    """A tenant does not answer DHCP, whether its own is answered or not."""
    with router.drops(source_dhcp_server=1):
        assert_nothing(router.run("t1", message("discover", sport=67)))
    with router.drops(source_mac=1):
        assert_nothing(router.run("t1", message("discover", mac=T2["mac"])))
    with router.drops(source_address=1):
        assert_nothing(router.run("t1", message("discover", src=T2[4])))


def test_off_by_default(router):
    with router.drops(eth_multicast_ignored=1):
        assert_nothing(router.run("t2", message("discover", mac=T2["mac"])))


def test_a_flood_is_bounded(router, guest):
    """20 messages at once, then 20 per second. The others count as punt_rate, and other ports are not delayed."""
    before = router.drop_counts().get("punt_rate", 0)
    router.run("t1", *[message("discover")] * 500)
    refused = router.drop_counts()["punt_rate"] - before
    answered = int(router.cli("port", "show", "t1")[0]["state"]["dhcp4_answers"])
    assert 300 < refused < 500 and answered > 0


def test_a_router_off_the_link(router, guest):
    """A single address as subnet: the gateway gets a route on the link, which the default route then uses."""
    router.cli("port", "set", "t1", "--boot-address", f"{T1[4]}/32", "--boot-route", "")
    answer = ask(router, message("discover"))
    assert found(answer)["subnet_mask"] == "255.255.255.255"
    assert raw_option(answer, 121) == bytes([32, 10, 1, 0, 1, 0, 0, 0, 0, 0, 10, 1, 0, 1])


def test_a_bridged_port(router):
    """A port without a VRF: addresses are given as what the guest is told, and the frame does not reach the others of the bridge."""
    router.cli("bridge", "add", "boots")
    for name, mac, options in (("u1", T1["mac"], ("--dhcp4", "--boot-address", "10.5.0.2/16", "--boot-router", "10.5.0.1")), ("u2", T2["mac"], ())):
        router.cli("port", "add", name, "tenant", "tap", "--bridge", "boots", "--guest-mac", mac, *options)
        router.attach(name, None)
    try:
        offer = ask(router, message("discover"), "u1")
        o = found(offer)
        assert (offer[BOOTP].yiaddr, o["subnet_mask"], o["router"], o["server_id"]) == ("10.5.0.2", "255.255.0.0", "10.5.0.1", "10.5.0.1")
    finally:
        for name in ("u1", "u2"):
            router.del_port(name)
        router.cli("bridge", "del", "boots")


REFUSED = [(("--boot-address", "10.1.0.99/24"), "one of --guest-address"), (("--boot-address", "10.1.0.11/24,10.1.0.11/25"), "one address of each family"),
           (("--boot-router", "10.1.0.1,10.1.0.2"), "one router of each family"), (("--boot-server", "fd00:1::80"), "an IPv4 address"),
           (("--boot-route", "10.8.0.0/16"), "via"), (("--boot-route", "10.8.0.0/16 via fd00::1"), "other family"),
           (("--host-name", "a..b"), "labels"), (("--lease-seconds", 5), "60 to")]


@pytest.mark.parametrize("options,text", REFUSED)
def test_what_is_refused(router, options, text):
    with pytest.raises(Exception, match=text):
        router.cli("port", "set", "t1", *options)
