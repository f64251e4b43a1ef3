# SPDX-License-Identifier: Apache-2.0
"""Services: flows choose an endpoint, keep it while endpoints come and go, and are counted."""
import ipaddress

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6
from scapy.layers.l2 import Ether

from daemon import Refused
from packets import assert_nothing, assert_out, forwarded, from_guest, from_host, ip, to_guest
from topology import FAMILIES, GATEWAY

G1 = {4: "10.1.0.61", 6: "fd00:1::61", "mac": "02:00:00:00:06:11"}
G2 = {4: "10.1.0.62", 6: "fd00:1::62", "mac": "02:00:00:00:06:12"}
VIP = {4: "198.51.100.17", 6: "2001:db8:f::17"}
PORTS = {"s1": G1, "s2": G2}
KEY = "5,6,7,8"
LABEL = 1023


@pytest.fixture(scope="module")
def tenant(network):
    """Two guests whose ports keep no flows themselves, and clients behind a tunnel."""
    r = network.router
    r.cli("vrf", "add", "serving")
    r.cli("settings", "set", "--service-key", KEY)  # a random one would choose anew in each run
    for name, g in PORTS.items():
        r.add_tenant(name, vrf="serving", gateway=(f"{GATEWAY[4]}/24", f"{GATEWAY[6]}/64"), guest=(g[4], g[6]), guest_mac=g["mac"])
    r.cli("label", "add", LABEL, "vrf", "serving")
    yield network.tunnel("mplsoudp", 4, vrf="serving", tag=LABEL)
    for name in PORTS:
        r.del_port(name)
    r.cli("settings", "set", "--service-key", "")


def end(addr, port):
    return f"{addr}:{port}" if ":" not in addr else f"[{addr}]:{port}"


@pytest.fixture
def web(router, tenant, family):
    """The service of a family, with both guests as its endpoints."""
    router.cli("service", "add", "web", end(VIP[family], 443), "--vrf", "serving", "--protocol", "tcp", "--max-endpoints", 4)
    router.cli("endpoint", "add", "web", *(end(g[family], 8443) for g in PORTS.values()))
    yield router
    left = [end(e["address"], e["port"]) for e in router.cli("endpoint", "list", "--service", "web")]
    if left:
        router.cli("endpoint", "del", "web", *left)
    router.cli("service", "del", "web")
    router.cli("flow", "flush", "--all")


def send(router, tenant, family, sport, flags="S"):
    """Sends a client's packet to the service; returns the port that it left by, after a check of the whole packet."""
    packet = ip(family, tenant, VIP) / TCP(sport=sport, dport=443, flags=flags)
    out = router.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL))
    assert len(out) == 1, out
    guest = PORTS[out[0].port]
    want = forwarded(packet)
    want.dst, want[TCP].dport = guest[family], 8443
    del want[TCP].chksum
    if family == 4:
        del want.chksum
    assert_out(out, (out[0].port, to_guest(guest, want.__class__(bytes(want)))))
    return out[0].port


def until_both_serve(router, tenant, family, first):
    """New flows from this port on, until both endpoints have been chosen: the port that each left by, by source port."""
    chosen = {}
    while set(chosen.values()) != set(PORTS):
        assert len(chosen) < 100, chosen
        sport = first + len(chosen)
        chosen[sport] = send(router, tenant, family, sport)
    return chosen


def inner_of(frame, family, what=lambda packet: packet):
    """The packet in the tunnel, or what the function says of it."""
    inner = Ether(frame)[UDP].payload.payload
    layer = IP if family == 4 else IPv6
    return what(inner if isinstance(inner, layer) else layer(bytes(inner)))


def answer(router, tenant, family, port, sport, flags="SA"):
    """A guest's answer leaves with the address and port of the service."""
    packet = ip(family, PORTS[port], tenant) / TCP(sport=8443, dport=sport, flags=flags)
    (out,) = router.run(port, from_guest(PORTS[port], packet))
    inner = inner_of(out.data, family)
    assert (out.port, inner.src, inner.dst, inner[TCP].sport, inner[TCP].dport) == ("fab0", VIP[family], tenant[family], 443, sport)


def totals(router):
    return {e["address"]: e["state"]["totals"] for e in router.cli("endpoint", "list", "--service", "web")}


@pytest.mark.parametrize("family", FAMILIES)
def test_both_endpoints_serve_and_are_counted(web, tenant, family):
    chosen = until_both_serve(web, tenant, family, 5000)
    for sport, port in chosen.items():
        answer(web, tenant, family, port, sport)
        assert send(web, tenant, family, sport, "A") == port
    for name, guest in PORTS.items():
        n = list(chosen.values()).count(name)
        t = totals(web)[guest[family]]
        assert [int(t[k]) for k in ("flows", "active", "packets", "reply_packets")] == [n, n, 2 * n, n]
    (service,) = web.cli("service", "list")
    t = service["state"]["totals"]
    assert [int(t[k]) for k in ("flows", "active", "packets", "reply_packets")] == [len(chosen), len(chosen), 2 * len(chosen), len(chosen)]
    assert (service["state"]["endpoints"], service["state"]["serving"]) == (2, 2)
    flows = web.cli("flow", "list", "--service", "web")
    assert len(flows) == len(chosen) and {f["service"] for f in flows} == {"web"}
    web.cli("flow", "flush", "--service", "web")
    (service,) = web.cli("service", "show", "web")
    t = service["state"]["totals"]
    assert [int(t[k]) for k in ("flows", "active", "packets", "reply_packets")] == [len(chosen), 0, 2 * len(chosen), len(chosen)]


@pytest.mark.parametrize("how", ["drain", "remove"])
@pytest.mark.parametrize("family", FAMILIES)
def test_existing_flows_keep_their_endpoint(web, tenant, family, how):
    chosen = {sport: send(web, tenant, family, sport) for sport in range(5000, 5008)}
    gone = end(G1[family], 8443)
    if how == "drain":
        web.cli("endpoint", "set", "web", gone, "--weight", 0)
    else:
        web.cli("endpoint", "del", "web", gone)
    assert {send(web, tenant, family, sport) for sport in range(6000, 6008)} == {"s2"}
    # The rules of the VRF change: all flows are decided again.
    web.cli("nat", "add", 900, "source", "10.99.0.0/16", "198.51.100.99", "--vrf", "serving")
    web.cli("nat", "del", 900)
    for sport, port in chosen.items():
        answer(web, tenant, family, port, sport)
        assert send(web, tenant, family, sport, "A") == port
    # The endpoint is back: those that began meanwhile stay where they are.
    if how == "drain":
        web.cli("endpoint", "set", "web", gone, "--weight", 1)
    else:
        web.cli("endpoint", "add", "web", gone)
    assert {send(web, tenant, family, sport, "A") for sport in range(6000, 6008)} == {"s2"}
    until_both_serve(web, tenant, family, 7000)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_endpoint_serves(web, tenant, family):
    for g in PORTS.values():
        web.cli("endpoint", "set", "web", end(g[family], 8443), "--weight", 0)
    packet = ip(family, tenant, VIP) / TCP(sport=1, dport=443, flags="S")
    with web.drops(service_no_endpoint=1):
        assert_nothing(web.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL)))
    (service,) = web.cli("service", "show", "web")
    assert (service["state"]["serving"], int(service["state"]["refused"])) == (0, 1)
    why = explain(web, tenant, family)
    assert (why["action"], why["reason"]) == ("FLOW_ACTION_DENY", "service_no_endpoint")


@pytest.mark.parametrize("family", FAMILIES)
def test_without_endpoints_the_client_is_told(web, tenant, family):
    """A TCP client gets a reset from the service's address, as many as there may be ICMP errors. Flows that exist go on."""
    chosen = send(web, tenant, family, 4999)
    for g in PORTS.values():
        web.cli("endpoint", "set", "web", end(g[family], 8443), "--weight", 0)
    web.cli("service", "set", "web", "--no-endpoints", "reject")
    for flags, seq, ack, reset in (("S", 0, 1001, "RA"), ("A", 7, 0, "R")):
        packet = ip(family, tenant, VIP) / TCP(sport=5000, dport=443, flags=flags, seq=1000, ack=7)
        with web.drops(service_no_endpoint=1):
            (out,) = web.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL))
        assert (out.port, *inner_of(out.data, family, lambda i: (i.src, i.dst))) == ("fab0", VIP[family], tenant[family])
        assert inner_of(out.data, family, lambda i: (i[TCP].sport, i[TCP].dport, i[TCP].seq, i[TCP].ack, i[TCP].flags)) == (
            443, 5000, seq, ack, reset)
    with web.drops(service_no_endpoint=1):
        assert_nothing(web.run("fab0", from_host("mplsoudp", 4, ip(family, tenant, VIP) / TCP(dport=443, flags="R"), tag=LABEL)))
    web.cli("settings", "set", "--icmp-errors", 0)
    try:
        with web.drops(service_no_endpoint=1):
            assert_nothing(web.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL)))
    finally:
        web.cli("settings", "set", "--icmp-errors", 1000)
    assert "told" in " ".join(explain(web, tenant, family)["steps"])
    assert send(web, tenant, family, 4999, "A") == chosen
    (service,) = web.cli("service", "show", "web")
    assert (service["no_endpoints"], int(service["state"]["refused"])) == ("SERVICE_NO_ENDPOINTS_REJECT", 4)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_endpoints_others_get_an_icmp_error(router, tenant, family):
    router.cli("service", "add", "dns", end(VIP[family], 53), "--vrf", "serving", "--protocol", "udp", "--no-endpoints", "reject")
    packet = ip(family, tenant, VIP) / UDP(sport=5000, dport=53)
    try:
        with router.drops(service_no_endpoint=1):
            (out,) = router.run("fab0", from_host("mplsoudp", 4, packet, tag=LABEL))
    finally:
        router.cli("service", "del", "dns")
    want = (ICMP, 3, 3) if family == 4 else (ICMPv6DestUnreach, 1, 4)
    assert inner_of(out.data, family, lambda i: (i.src, i.dst, i[want[0]].type, i[want[0]].code)) == (
        GATEWAY[family], tenant[family], *want[1:])


def explain(router, tenant, family):
    (answer,) = router.cli("flow", "explain", "tcp", end(tenant[family], 5000), end(VIP[family], 443), "--vrf", "serving")
    return answer


@pytest.mark.parametrize("family", FAMILIES)
def test_explain_names_the_endpoint(web, tenant, family):
    before = explain(web, tenant, family)["steps"]
    (text,) = [s for s in before if s.startswith("service: web: row ")]
    guest = PORTS[send(web, tenant, family, 5000)]
    assert text.endswith(f"{guest[family]} port 8443")
    web.cli("endpoint", "set", "web", end(guest[family], 8443), "--weight", 0)
    (text,) = [s for s in explain(web, tenant, family)["steps"] if s.startswith("service: web: ")]
    assert "keeps its endpoint" in text and text.endswith(f"{guest[family]} port 8443")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_client_stays_with_its_endpoint(web, tenant, family):
    web.cli("service", "set", "web", "--scheduler", "source")
    assert len({send(web, tenant, family, sport) for sport in range(5000, 5008)}) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_clients_of_a_prefix_stay_together(web, tenant, family):
    def chosen():
        web.cli("flow", "flush", "--all")
        return {send(web, {family: neighbor}, family, 5000) for neighbor in neighbors}

    address = ipaddress.ip_address(tenant[family])
    bits = address.max_prefixlen - 4
    neighbors = [str(a) for a in list(ipaddress.ip_network(f"{address}/{bits}", strict=False))[1:15]]
    web.cli("service", "set", "web", "--scheduler", "source")
    assert chosen() == set(PORTS)
    web.cli("service", "set", "web", "--client-prefix", bits)
    assert len(chosen()) == 1
    with pytest.raises(Refused):
        web.cli("service", "set", "web", "--client-prefix", address.max_prefixlen + 1)


@pytest.mark.parametrize("family", [4])
def test_the_key_moves_choices(web, tenant, family):
    before = [send(web, tenant, family, sport) for sport in range(5000, 5012)]
    web.cli("flow", "flush", "--all")
    web.cli("settings", "set", "--service-key", "1,2,3,4")
    try:
        after = [send(web, tenant, family, sport) for sport in range(5000, 5012)]
        web.cli("flow", "flush", "--all")
        assert after != before and [send(web, tenant, family, sport) for sport in range(5000, 5012)] == after
    finally:
        web.cli("settings", "set", "--service-key", KEY)
