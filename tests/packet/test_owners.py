# SPDX-License-Identifier: Apache-2.0
"""Owners: a client changes and deletes only what clients of its owner have added."""
import pytest

from daemon import Daemon, Refused

FIELD = {"nexthop": lambda o: o["state"]["origin"], "route": lambda o: o["origin"]}


@pytest.fixture(scope="module")
def daemon():
    d = Daemon()
    yield d
    assert d.stop() == 0


@pytest.fixture
def as_agent(daemon, monkeypatch):
    """Runs a command as owner 'agent'."""
    def run(*args):
        with monkeypatch.context() as m:
            m.setenv("CORELANE_OWNER", "agent")
            return daemon.cli(*args)
    return run


OBJECTS = [  # noun, add, list, delete, each with the part of a name that tells the owners apart
    ("vrf", lambda n: ("vrf", "add", f"vrf{n}"), lambda n: ("vrf", "show", f"vrf{n}"), lambda n: ("vrf", "del", f"vrf{n}")),
    ("bridge", lambda n: ("bridge", "add", f"lan{n}"), lambda n: ("bridge", "show", f"lan{n}"), lambda n: ("bridge", "del", f"lan{n}")),
    ("nexthop", lambda n: ("nexthop", "add", 100 + n, "tunnel", "--encap", "vxlan", "--remote", "192.0.2.9", "--vni", 7),
     lambda n: ("nexthop", "show", 100 + n), lambda n: ("nexthop", "del", 100 + n)),
    ("label", lambda n: ("label", "add", 200 + n, "vrf", f"vrf{n}"), lambda n: ("label", "show", 200 + n),
     lambda n: ("label", "del", 200 + n)),
    ("vni", lambda n: ("vni", "add", 300 + n, "bridge", f"lan{n}"), lambda n: ("vni", "show", 300 + n), lambda n: ("vni", "del", 300 + n)),
    ("route", lambda n: ("route", "add", f"10.{n}.0.0/16", "--vrf", "vrf0", "--nexthop", 100 + n),
     lambda n: ("route", "lookup", f"10.{n}.0.1", "--vrf", "vrf0"), lambda n: ("route", "del", f"10.{n}.0.0/16", "--vrf", "vrf0")),
    ("port", lambda n: ("port", "add", f"vm{n}", "tenant", "tap", "--bridge", f"lan{n}"), lambda n: ("port", "show", f"vm{n}"),
     lambda n: ("port", "del", f"vm{n}")),
    ("mac", lambda n: ("mac", "add", f"lan{n}", "02:00:00:00:00:01", "port", f"vm{n}"), lambda n: ("mac", "list", "--bridge", f"lan{n}"),
     lambda n: ("mac", "del", f"lan{n}", "02:00:00:00:00:01")),
]


def test_each_object_has_an_owner_who_alone_deletes_it(daemon, as_agent):
    for noun, add, show, _ in OBJECTS:
        daemon.cli(*add(0))
        as_agent(*add(1))
        owner = FIELD.get(noun, lambda o: o["owner"])
        assert owner(daemon.cli(*show(0))[0]) == "api", noun
        assert owner(daemon.cli(*show(1))[0]) == "agent", noun
    with pytest.raises(Refused, match="port 'vm1': belongs to owner 'agent', and this client changes what belongs to 'api'"):
        daemon.cli("port", "set", "vm1", "--disabled")
    with pytest.raises(Refused, match="bridge 'lan0': belongs to owner 'api', and this client changes what belongs to 'agent'"):
        as_agent("bridge", "set", "lan0", "--no-learning")
    with pytest.raises(Refused, match="belongs to owner 'agent' in VRF 'vrf0'"):
        daemon.cli("route", "add", "10.1.0.0/16", "--vrf", "vrf0", "--nexthop", 100)
    for noun, _, show, delete in reversed(OBJECTS):
        for n, wrong, right in ((0, as_agent, daemon.cli), (1, daemon.cli, as_agent)):
            with pytest.raises(Refused, match="belongs to owner"):
                wrong(*delete(n))
            assert daemon.cli(*show(n)), noun
            right(*delete(n))


def test_replacing_a_next_hop(daemon, as_agent):
    tunnel = ("tunnel", "--encap", "vxlan", "--vni", 7, "--remote")
    as_agent("nexthop", "add", 150, *tunnel, "192.0.2.9")
    with pytest.raises(Refused, match="nexthop '150': belongs to owner 'agent'"):
        daemon.cli("nexthop", "add", 150, *tunnel, "192.0.2.10", "--replace")
    as_agent("nexthop", "add", 150, *tunnel, "192.0.2.10", "--replace")
    as_agent("nexthop", "del", 150)


def test_a_node_file_leaves_what_is_not_its_own(daemon, as_agent, tmp_path):
    as_agent("vrf", "add", "far")
    as_agent("nexthop", "add", 160, "discard")
    as_agent("route", "add", "10.9.0.0/16", "--vrf", "far", "--nexthop", 160)
    daemon.cli("vrf", "add", "near")
    assert "far" not in daemon.export() and "near" in daemon.export()
    empty = tmp_path / "node.yaml"
    empty.write_text("vrfs: []\n")
    daemon.cli("apply", "-f", empty)
    assert [v["name"] for v in daemon.cli("vrf", "list")] == ["fabric", "far"]
    assert daemon.cli("route", "lookup", "10.9.0.1", "--vrf", "far")[0]["origin"] == "agent"
    as_agent("apply", "-f", empty)
    assert [v["name"] for v in daemon.cli("vrf", "list")] == ["fabric"]


def test_names_of_owners(daemon, monkeypatch):
    monkeypatch.setenv("CORELANE_OWNER", "connected")
    with pytest.raises(Refused, match="owner 'connected': stands for what the router adds by itself"):
        daemon.cli("vrf", "list")
    monkeypatch.setenv("CORELANE_OWNER", "a b")
    with pytest.raises(Refused, match="1 to 31 of"):
        daemon.cli("vrf", "list")
