# SPDX-License-Identifier: Apache-2.0
"""corelane apply is one transaction: whatever stops it, the router is as it was before."""
import fcntl
import os
import signal
import subprocess

import pytest

from daemon import Daemon, Refused

BEFORE = """
vrfs:
  - {name: red}
bridges:
  - {name: lan}
meters:
  - {name: gold, bit_rate: 1000000}
rule_lists:
  - {name: web, default_action: deny}
rules:
  - {list: web, id: 10, action: allow, protocol: tcp, destination_ports: "80", meter: gold}
ports:
  - {name: fab0, role: fabric, dpdk: {devargs: net_null0}, addresses: [192.0.2.1/24]}
  - {name: vm1, role: tenant, tap: {ifname: vm1}, vrf: red, bridge: lan, gateways: [10.1.0.1/24],
     guest_addresses: [10.1.0.11], stateful: true, egress_rules: web, ingress_meter: gold,
     source_check: reverse_path}
nexthops:
  - {id: 1, port: {port: fab0, address: 192.0.2.9}}
  - {id: 2, tunnel: {encap: vxlan, remote: 192.0.2.2, vni: 7}}
  - {id: 3, group: {members: [{nexthop: 1}, {nexthop: 2}]}}
labels:
  - {label: 100, vrf: red}
vnis:
  - {vni: 7, bridge: lan}
nat:
  - {id: 1, vrf: red, source: {prefix: 10.1.0.0/24, first: 198.51.100.1}}
routes:
  - {vrf: red, prefix: 10.2.0.0/16, nexthop: 2}
  - {vrf: red, prefix: 10.3.0.0/16, nexthop: 3}
macs:
  - {bridge: lan, mac: "02:00:00:00:00:05", nexthop: 2}
"""

# Another name for everything, the same devices and addresses, and one more port, whose device is not there: the daemon
# learns that late.
AFTER = (BEFORE.replace("red", "blue").replace("lan}", "office}").replace("bridge: lan", "bridge: office")
         .replace("web", "mail").replace("gold", "iron").replace("name: vm1", "name: vm2").replace("label: 100", "label: 200")
         .replace("nexthop: 3}", "nexthop: 1}").replace("vni: 7", "vni: 8").replace("id: 3, ", "id: 4, "))
LATE = AFTER.replace("nexthops:", "  - {name: vm9, role: tenant, vrf: blue, dpdk: {devargs: net_nosuch0}}\nnexthops:")


@pytest.fixture(name="daemon")
def daemon_fixture():
    d = Daemon()
    yield d
    assert d.stop() == 0


@pytest.fixture(name="write")
def write_fixture(tmp_path):
    def write(text):
        path = tmp_path / "node.yaml"
        path.write_text(text)
        return path
    return write


def test_refused(daemon, write):
    daemon.cli("apply", "-f", write(BEFORE))
    before = daemon.export()
    with pytest.raises(Refused) as refused:
        daemon.cli("apply", "-f", write(LATE))
    text = str(refused.value)
    assert "+ port vm9" in text and "refused:" in text and "net_nosuch0" in text, text
    assert "taken back" in text and "the router is as it was before" in text, text
    assert "deleted and added again, without their counters" in text and "port vm1" in text, text
    assert daemon.export() == before
    daemon.cli("apply", "-f", write(AFTER))
    assert daemon.export() != before
    daemon.cli("apply", "-f", write(before))
    assert daemon.export() == before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(daemon, write, how):
    daemon.cli("apply", "-f", write(BEFORE))
    before = daemon.export()
    many = "".join(f"  - {{name: many{i:04}}}\n" for i in range(1000))
    file = write(BEFORE.replace("vrfs:\n", "vrfs:\n" + many))
    read, written = os.pipe()
    fcntl.fcntl(written, fcntl.F_SETPIPE_SZ, 4096)  # apply cannot end before somebody reads its steps
    with subprocess.Popen([daemon.cli_path, "--socket", daemon.socket, "apply", "-f", file], text=True, stdout=written,
                          stderr=subprocess.PIPE) as apply:
        os.close(written)
        with open(read, encoding="utf-8") as output:
            assert output.readline().startswith("+ vrf many")
            apply.send_signal(how)
            assert apply.stderr.readline() == "Interrupted: what is done is taken back. Again: it stays as it is.\n"
            steps = output.read()
        text = apply.stderr.read()
    assert "Taken back:\n- vrf many" in steps
    assert "not made: interrupted" in text and "the router is as it was before" in text, text
    assert apply.returncode == 130
    assert daemon.export() == before
