# SPDX-License-Identifier: Apache-2.0
"""Meters of stateful ports: packets within the rate pass, others are dropped and counted, in both directions of flows.

However slow the machine is, no meter lets more pass than its burst and what its rate gives in the time that the test took.
"""
import time

import pytest

from daemon import Refused
from packets import assert_out, forwarded, from_guest, from_host, to_guest, udp_packet
from topology import FAMILIES, GATEWAY
from waiting import wait_until

M1 = {4: "10.1.0.31", 6: "fd00:1::31", "mac": "02:00:00:00:04:11"}
M2 = {4: "10.1.0.32", 6: "fd00:1::32", "mac": "02:00:00:00:04:12"}
LABEL = 1040
PORTS = {"m1": M1, "m2": M2}


@pytest.fixture(scope="module")
def metered(network):
    """A tenant with two stateful guests and a remote one."""
    r = network.router
    r.cli("vrf", "add", "metered")
    for name, g in PORTS.items():
        # Without offloads, since packets that pass would be joined to fewer.
        r.add_tenant(name, "--offload", "none", vrf="metered", stateful=True, gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"),
                     guest=(g[4], g[6]), guest_mac=g["mac"])
    r.cli("label", "add", LABEL, "vrf", "metered")
    yield network.tunnel("mplsoudp", 4, vrf="metered", tag=LABEL)
    for name in PORTS:
        r.del_port(name)


@pytest.fixture(autouse=True)
def clean(router, metered):
    yield
    for name in PORTS:
        router.cli("port", "set", name, "--egress-meter", "", "--ingress-meter", "")
    for m in router.cli("meter", "list"):
        router.cli("meter", "del", m["name"])
    router.cli("flow", "flush", "--all")


class Few:
    """A meter that lets few packets pass: a burst, and one more for each second."""

    def __init__(self, router, name="few", burst=5):
        self.name, self.burst, self.begun = name, burst, time.monotonic()
        router.cli("meter", "add", name, "--packet-rate", 1, "--burst-packets", burst)

    def limits(self, passed):
        """Are these all that have passed since the meter was added, more having come?"""
        return self.burst <= passed <= most_passed(self.burst, 1, self.begun)


def most_passed(burst, rate, begun):
    return burst + rate * (time.monotonic() - begun) + 1


def attach(router, port, **meters):
    router.cli("port", "set", port, *(x for k, v in meters.items() for x in (f"--{k}-meter", v)))


def counts(router, name="few"):
    s = router.cli("meter", "show", name)[0]["state"]
    return int(s["passed_packets"]), int(s["dropped_packets"])


def burst(router, port, guest, packet, n):
    """Returns how many of n packets come out."""
    return len(router.run(port, *([from_guest(guest, packet)] * n)))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_guest_sends(router, family):
    few = Few(router)
    attach(router, "m1", egress=few.name)
    packet = udp_packet(family, M1, M2)
    before = router.drop_counts().get("meter_exceeded", 0)
    out = router.run("m1", *([from_guest(M1, packet)] * 20))
    assert few.limits(len(out))
    assert_out(out, *([("m2", to_guest(M2, forwarded(packet)))] * len(out)))
    assert router.drop_counts()["meter_exceeded"] - before == 20 - len(out)
    assert counts(router) == (len(out), 20 - len(out))
    state = router.cli("meter", "show", "few")[0]["state"]
    assert int(state["passed_bytes"]) == len(out) * len(packet) and int(state["dropped_bytes"]) == (20 - len(out)) * len(packet)
    # What the guest receives is not limited, in neither direction of a flow.
    assert burst(router, "m2", M2, udp_packet(family, M2, M1, sport=5678, dport=1234), 20) == 20
    assert burst(router, "m2", M2, udp_packet(family, M2, M1, sport=77), 20) == 20


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_guest_receives(router, metered, family):
    few = Few(router)
    attach(router, "m1", ingress=few.name)
    there, back = udp_packet(family, M2, M1), udp_packet(family, M1, M2, sport=5678, dport=1234)
    passed = burst(router, "m2", M2, there, 20)
    assert few.limits(passed)
    assert burst(router, "m1", M1, back, 20) == 20  # that flow's second direction is what the guest sends
    # Replies to flows that the guest began share the rate with flows that others began.
    assert burst(router, "m1", M1, udp_packet(family, M1, metered), 20) == 20
    reply = udp_packet(family, metered, M1, sport=5678, dport=1234)
    assert few.limits(passed + len(router.run("fab0", *([from_host("mplsoudp", 4, reply, tag=LABEL)] * 20))))


def test_both_meters_of_a_packet(router):
    leaving, coming = Few(router, "out", burst=10), Few(router, "in", burst=5)
    attach(router, "m1", egress=leaving.name)
    attach(router, "m2", ingress=coming.name)
    got = burst(router, "m1", M1, udp_packet(4, M1, M2), 20)
    assert coming.limits(got)
    passed, dropped = counts(router, "out")
    assert leaving.limits(passed) and passed + dropped == 20
    assert counts(router, "in") == (got, passed - got)


def test_ports_share_a_meter(router):
    few = Few(router, burst=8)
    for port in PORTS:
        attach(router, port, egress=few.name)
    assert router.cli("meter", "show", "few")[0]["state"]["users"] == 2
    first = burst(router, "m1", M1, udp_packet(4, M1, M2), 6)
    assert first == 6
    assert few.limits(first + burst(router, "m2", M2, udp_packet(6, M2, M1), 6))


@pytest.mark.parametrize("family", FAMILIES)
def test_bytes(router, family):
    begun = time.monotonic()
    router.cli("meter", "add", "small", "--bit-rate", 8000, "--burst-bytes", 9600)
    attach(router, "m1", egress="small")
    packet = udp_packet(family, M1, M2, payload=bytes(960 - (28 if family == 4 else 48)))
    assert 10 <= burst(router, "m1", M1, packet, 30) <= most_passed(9600, 1000, begun) / 960


def test_changes_take_effect_at_once(router):
    packet = udp_packet(4, M1, M2)
    assert burst(router, "m1", M1, packet, 20) == 20
    few = Few(router)
    attach(router, "m1", egress=few.name)  # applies to existing flows
    assert few.limits(burst(router, "m1", M1, packet, 20))
    router.cli("meter", "set", "few", "--packet-rate", 1000000, "--burst-packets", 1000)
    time.sleep(0.01)  # in a millisecond the bucket is full
    assert burst(router, "m1", M1, packet, 20) == 20
    begun = time.monotonic()
    router.cli("meter", "set", "few", "--packet-rate", 1, "--burst-packets", 1)
    assert burst(router, "m1", M1, packet, 20) <= most_passed(1, 1, begun)
    attach(router, "m1", egress="")
    assert burst(router, "m1", M1, packet, 20) == 20


def test_rate(router):
    router.cli("meter", "add", "rate", "--packet-rate", 200, "--burst-packets", 20)
    attach(router, "m1", egress="rate")
    packet = from_guest(M1, udp_packet(4, M1, M2))
    router.run("m1", *([packet] * 30))  # uses up the burst
    begun, before = time.monotonic(), counts(router, "rate")

    def go_on():
        router.run("m1", *([packet] * 50))
        return tuple(now - then for now, then in zip(counts(router, "rate"), before))

    passed, _ = wait_until("60 packets that pass and 20 that do not", go_on, lambda c: c[0] > 60 and c[1] > 20, pause=0)
    assert passed < most_passed(20, 200, begun)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("port,direction", [("m1", "egress"), ("m2", "ingress")])
def test_meter_of_a_rule(router, family, port, direction):
    """A rule's meter limits all of its flows, in both directions together."""
    few = Few(router)
    router.cli("rule-list", "add", "limited", "--default-action", "allow")
    router.cli("rule", "add", "limited", 10, "allow", "--protocol", "udp", "--destination-ports", "5000-5999", "--meter", "few")
    router.cli("port", "set", port, f"--{direction}-rules", "limited")
    try:
        assert router.cli("meter", "show", "few")[0]["state"]["users"] == 1
        passed = burst(router, "m1", M1, udp_packet(family, M1, M2), 20)
        assert few.limits(passed)
        passed += burst(router, "m1", M1, udp_packet(family, M1, M2, dport=5679), 20)
        assert few.limits(passed)
        passed += burst(router, "m2", M2, udp_packet(family, M2, M1, sport=5678, dport=1234), 20)
        assert few.limits(passed)
        assert burst(router, "m1", M1, udp_packet(family, M1, M2, dport=80), 20) == 20
        with pytest.raises(Refused, match="meter 'few': is in use by rule 10 of list 'limited'"):
            router.cli("meter", "del", "few")
        router.cli("rule", "add", "limited", 10, "allow", "--protocol", "udp", "--destination-ports", "5000-5999", "--replace")
        assert router.cli("meter", "show", "few")[0]["state"]["users"] == 0
        assert burst(router, "m1", M1, udp_packet(family, M1, M2), 20) == 20
        with pytest.raises(Refused, match="--meter 'few': a rule that denies has no traffic to limit; valid: with action allow"):
            router.cli("rule", "add", "limited", 20, "deny", "--meter", "few")
    finally:
        router.cli("port", "set", port, f"--{direction}-rules", "")
        for r in router.cli("rule", "list", "--list", "limited"):
            router.cli("rule", "del", "limited", r["id"])
        router.cli("rule-list", "del", "limited")


def test_a_meter_in_use_stays(router):
    attach(router, "m1", egress=Few(router).name)
    with pytest.raises(Refused, match="meter 'few': is in use by port 'm1'"):
        router.cli("meter", "del", "few")
    attach(router, "m1", egress="")
    router.cli("meter", "del", "few")
    with pytest.raises(Refused, match="there is no such meter"):
        router.cli("meter", "del", "few")


def test_what_is_refused(router):
    for args, message in ((("--bit-rate", 100), "--bit-rate '100': is out of range; valid: 8000 to 1000000000000"),
                          ((), "--bit-rate: a meter needs a rate; valid: --bit-rate or --packet-rate"),
                          (("--bit-rate", 8000, "--packet-rate", 1), "limits bits or packets, not both"),
                          (("--bit-rate", 8000, "--burst-bytes", 100), "valid: 9600 to 4294967295"),
                          (("--packet-rate", 1, "--burst-bytes", 10000), "valid: --burst-packets")):
        with pytest.raises(Refused) as e:
            router.cli("meter", "add", "bad", *args)
        assert message in str(e.value)
    assert not router.cli("meter", "list")
    with pytest.raises(Refused, match="--egress-meter 'nothing': there is no such meter"):
        router.cli("port", "set", "m1", "--egress-meter", "nothing")
    Few(router)
    with pytest.raises(Refused, match="valid: a stateful port"):
        router.cli("port", "set", "m1", "--egress-meter", "few", "--stateful=false")
    with pytest.raises(Refused, match="valid: --bit-rate or --packet-rate"):
        router.cli("meter", "set", "few", "--packet-rate", 0)
    assert router.cli("meter", "show", "few")[0]["packet_rate"] == 1
