# SPDX-License-Identifier: Apache-2.0
"""The bounds of one port: what a guest exceeds them with costs only itself."""
import time

import pytest

from packets import assert_nothing, assert_out, forwarded, from_guest, to_guest, udp_packet
from test_flow import icmp_error, reply
from topology import GATEWAY

N1 = {4: "10.1.0.61", "mac": "02:00:00:00:06:11"}
N2 = {4: "10.1.0.62", "mac": "02:00:00:00:06:12"}
CHUNK = 200  # frames that a tap's queue holds


@pytest.fixture(scope="module")
def tenant(network):
    r = network.router
    r.cli("vrf", "add", "bounds")
    for name, g in (("n1", N1), ("n2", N2)):
        r.add_tenant(name, vrf="bounds", stateful=True, gateway=f"{GATEWAY[4]}/24", guest=g[4], guest_mac=g["mac"])
    yield
    for name in ("n1", "n2"):
        r.del_port(name)


def flood(router, port, frames):
    """Sends the frames; returns how many came out, and in how many seconds."""
    begin, passed = time.monotonic(), 0
    for i in range(0, len(frames), CHUNK):
        passed += len(router.run(port, *frames[i:i + CHUNK]))
    return passed, time.monotonic() - begin


def test_rate_of_icmp_errors(router, tenant):
    there = udp_packet(4, N1, N2)
    back = reply(4, there)
    assert_out(router.run("n1", from_guest(N1, there)), ("n2", to_guest(N2, forwarded(there))))
    assert_out(router.run("n2", from_guest(N2, back)), ("n1", to_guest(N1, forwarded(back))))
    error = bytes(from_guest(N2, icmp_error(4, N2, N1, bytes(forwarded(there)))))
    sent = 4000
    before = router.drop_counts().get("flow_icmp_error_rate", 0)
    passed, seconds = flood(router, "n2", [error] * sent)
    dropped = router.drop_counts()["flow_icmp_error_rate"] - before
    assert passed + dropped == sent
    assert 1000 <= passed <= 1000 + 1000 * seconds + 10
    assert dropped > 0
    other = icmp_error(4, N1, N2, bytes(forwarded(back)))  # of the other port
    assert_out(router.run("n1", from_guest(N1, other)), ("n2", to_guest(N2, forwarded(other))))


def test_number_of_denied_flows(router, tenant):
    def flows(port):
        return int(router.cli("port", "show", port)[0]["state"].get("flows", 0))

    def frames(guest, to, n):
        return [bytes(from_guest(guest, udp_packet(4, guest, to, sport=1024 + i))) for i in range(n)]

    most = int(router.cli("flow", "count")[0]["capacity"]) // 64
    router.cli("flow", "flush", "--all")
    router.cli("settings", "set", "--flow-denied", 60)
    router.cli("rule-list", "add", "nobody", "--default-action", "deny")
    for port in ("n1", "n2"):
        router.cli("port", "set", port, "--egress-rules", "nobody")
    try:
        sent = frames(N1, N2, most + 500)
        with router.drops(flow_denied_egress=len(sent)):
            assert flood(router, "n1", sent)[0] == 0
        assert flows("n1") == most
        with router.drops(flow_denied_egress=1):  # denied without a flow
            assert_nothing(router.run("n1", sent[-1]))
        assert flows("n1") == most
        assert_nothing(router.run("n2", *frames(N2, N1, 10)))
        assert flows("n2") == 10
    finally:
        for port in ("n1", "n2"):
            router.cli("port", "set", port, "--egress-rules=")
        router.cli("rule-list", "del", "nobody")
        router.cli("settings", "set", "--flow-denied", 5)
        router.cli("flow", "flush", "--all")
