// SPDX-License-Identifier: Apache-2.0
package state

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/rounds"
)

func planned(t *testing.T, ops []Op) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, ops); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Applying the difference of two states to a node in one of them brings it into the other.
func TestDiffTurnsAnyStateIntoAnyOther(t *testing.T) {
	rounds.Seeds(t, 30, 150, func(seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newModel()
		c := m.serve(t)
		for step := range 3 {
			want := randomState(r)
			have, err := Read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			ops := Diff(want, have)
			if _, err := Apply(t.Context(), c, ops, nil); err != nil {
				t.Fatalf("seed %d step %d: %v\nplan:\n%s", seed, step, err, planned(t, ops))
			}
			have, err = Read(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if left := Diff(want, have); len(left) > 0 {
				t.Fatalf("seed %d step %d: still different:\n%s", seed, step, planned(t, left))
			}
			if n := len(have.Routes) - len(want.Routes); n != 0 {
				t.Fatalf("seed %d step %d: %d routes too many", seed, step, n)
			}
		}
	})
}

func TestDiffOfEqualStatesIsEmpty(t *testing.T) {
	rounds.Seeds(t, 40, 200, func(seed uint64) {
		s := randomState(rand.New(rand.NewPCG(seed, 2)))
		if ops := Diff(s, s); len(ops) > 0 {
			t.Fatalf("seed %d:\n%s", seed, planned(t, ops))
		}
	})
}

const baseYAML = `
vrfs:
  - {name: red}
ports:
  - {name: fab0, role: PORT_ROLE_FABRIC, dpdk: {devargs: net_null0}, addresses: [192.0.2.1/24]}
  - {name: tap0, role: PORT_ROLE_TENANT, tap: {}, vrf: red}
nexthops:
  - {id: 1, port: {port: fab0, address: 192.0.2.9}}
  - {id: 2, tunnel: {encap: ENCAP_VXLAN, remote: 192.0.2.2, vni: 7}}
labels:
  - {label: 100, vrf: red}
routes:
  - {vrf: red, prefix: 10.0.0.0/8, nexthop: 2}
`

func load(t *testing.T, text string) *State {
	t.Helper()
	s, err := Load("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDiffPlans(t *testing.T) {
	tests := []struct{ name, from, to, want string }{
		{"nothing", "", "", ""},
		{"one field", "devargs: net_null0}", "devargs: net_null0}, mtu: 9000", "~ port fab0: mtu 1500 -> 9000\n"},
		{"route to another next hop", "10.0.0.0/8, nexthop: 2", "10.0.0.0/8, nexthop: 1",
			"~ route red 10.0.0.0/8: nexthop 2 -> 1\n"},
		{"tunnel in place", "vni: 7", "vni: 8",
			"~ nexthop 2: kind tunnel {encap: vxlan, remote: 192.0.2.2, vni: 7} -> tunnel {encap: vxlan, " +
				"remote: 192.0.2.2, vni: 8}\n"},
		{"port replaced", "devargs: net_null0", "devargs: net_null1",
			"~ nexthop 1: kind port {port: fab0, address: " +
				"192.0.2.9} -> discard {} (its port 'fab0' is deleted first)\n" +
				"- port fab0 (to change device)\n" +
				"+ port fab0: role fabric, dpdk {devargs: net_null1}, addresses [192.0.2.1/24]\n" +
				"~ nexthop 1: kind discard {} -> port {port: fab0, address: 192.0.2.9}\n"},
		{"VRF renamed", "red", "blue",
			"- route red 10.0.0.0/8\n+ vrf blue\n~ port tap0: vrf red -> blue\n~ label 100: target vrf red -> vrf " +
				"blue\n" +
				"+ route blue 10.0.0.0/8: nexthop 2\n- vrf red\n"},
		{"next hop becomes a group", "{id: 2, tunnel: {encap: ENCAP_VXLAN, remote: 192.0.2.2, vni: 7}}",
			"{id: 2, group: {members: [{nexthop: 1}]}}", "- route red 10.0.0.0/8\n- nexthop 2 (to change its kind)\n" +
				"+ nexthop 2: group {members: [{nexthop: 1}]}\n" +
				"+ route red 10.0.0.0/8: nexthop 2\n"},
		{"meter added", "tap: {}, vrf: red}",
			"tap: {}, vrf: red, stateful: true, egress_meter: m}\nmeters: [{name: m, packet_rate: 5}]",
			"+ meter m: packet_rate 5\n~ port tap0: stateful false -> true, egress_meter \"\" -> m\n"},
		{"setting", "\nvrfs:", "\nsettings: {vxlan_ports: [4789, 8472]}\nvrfs:",
			"~ settings: vxlan_ports [4789] -> [4789, 8472]\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := baseYAML
			if test.from != "" {
				text = strings.ReplaceAll(text, test.from, test.to)
			}
			if got := planned(t, Diff(load(t, text), load(t, baseYAML))); got != test.want {
				t.Errorf("got:\n%swant:\n%s", got, test.want)
			}
		})
	}
}

// Fields that a file leaves to the node are not a difference.
func TestDiffLeavesToTheNode(t *testing.T) {
	have := load(t, baseYAML)
	have.Vrfs[0].Id = 17
	have.Workers = []*apiv1.Worker{{Id: 0, Cpu: 1}}
	for _, p := range have.Ports {
		p.Queues, p.Mac = 2, "02:00:00:00:00:01"
	}
	have.Nexthops[1].GetTunnel().Local = "192.0.2.1"
	if ops := Diff(load(t, baseYAML), have); len(ops) > 0 {
		t.Errorf("%s", planned(t, ops))
	}
}

func TestDiffWorkersNeverLeavesQueuesAlone(t *testing.T) {
	for _, test := range []struct{ have, want, ops string }{
		{"[{id: 0, cpu: 0}, {id: 1, cpu: 1}]", "[{id: 1, cpu: 2}, {id: 2, cpu: 3}, {id: 3, cpu: 0}]",
			"~ worker 1: cpu 1 -> 2\n+ worker 2: cpu 3, idle spin\n- worker 0\n+ worker 3: cpu 0, idle spin\n"},
		// all CPUs that are wanted are those of workers that leave
		{"[{id: 1, cpu: 1}, {id: 2, cpu: 0, idle: sleep}]", "[{id: 0, cpu: 1}]",
			"~ worker 1: idle spin -> sleep\n+ worker 0: cpu 1, idle sleep\n- worker 1\n- worker 2\n" +
				"~ worker 0: idle sleep -> spin\n"},
		// two exchange their CPUs
		{"[{id: 0, cpu: 0}, {id: 1, cpu: 1}]", "[{id: 0, cpu: 1}, {id: 1, cpu: 0}]",
			"~ worker 1: idle spin -> sleep\n~ worker 0: idle spin -> sleep\n~ worker 0: cpu 0 -> 1\n" +
				"~ worker 1: cpu 1 -> 0, idle sleep -> spin\n~ worker 0: idle sleep -> spin\n"},
		// the only forwarding worker becomes another kind, and hands its packets to one that is not there yet
		{"[{id: 0, cpu: 0}]", "[{id: 0, cpu: 0, role: isolated_rx, target: 1}, {id: 1, cpu: 1}]",
			"+ worker 1: cpu 1, idle spin\n~ worker 0: role forwarding -> isolated_rx, target \"\" -> \"1\"\n"},
	} {
		if got := planned(t, Diff(load(t, "workers: "+test.want), load(t, "workers: "+test.have))); got != test.ops {
			t.Errorf("got:\n%swant:\n%s", got, test.ops)
		}
	}
}

// A worker begins to wait for interrupts after ports without interrupts are deleted, and ceases before they are added.
func TestDiffWorkersWaitLast(t *testing.T) {
	const port = "vrfs: [{name: red}]\nports: [{name: p, role: PORT_ROLE_TENANT, vrf: red, dpdk: {devargs: " +
		"\"net_af_packet0,iface=e\"}}]\n"
	polls := load(t, "workers: [{id: 0, cpu: 1, idle: IDLE_POLICY_SLEEP}]\n"+port)
	waits := load(t, "workers: [{id: 0, cpu: 2, idle: IDLE_POLICY_INTERRUPT}]\nvrfs: [{name: red}]\nports: []\n")
	other := load(t, "workers: [{id: 1, cpu: 2, idle: IDLE_POLICY_INTERRUPT}]\nvrfs: [{name: red}]\nports: []\n")
	for _, test := range []struct {
		want, have *State
		ops        []string
	}{
		{waits, polls, []string{"~ worker 0: cpu 1 -> 2", "- port p", "~ worker 0: idle sleep -> " +
			"interrupt"}},
		{polls, waits, []string{"~ worker 0: cpu 2 -> 1, idle interrupt -> sleep", "+ port p"}},
		{other, polls, []string{"+ worker 1: cpu 2, idle sleep", "- worker 0", "- port p",
			"~ worker 1: idle sleep -> interrupt"}},
	} {
		got := strings.Split(strings.TrimSpace(planned(t, Diff(test.want, test.have))), "\n")
		if len(got) != len(test.ops) {
			t.Fatalf("got:\n%s", strings.Join(got, "\n"))
		}
		for i, op := range test.ops {
			if !strings.HasPrefix(got[i], op) {
				t.Errorf("got:\n%swant:\n%s", got[i], op)
			}
		}
	}
}

func manyRoutes(n int, nexthop uint32) []Route {
	routes := make([]Route, n)
	for i := range routes {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		routes[i] = Route{Vrf: "red", Prefix: netip.PrefixFrom(a, 32), Nexthop: nexthop}
	}
	return routes
}

func TestRoutesGoInBatches(t *testing.T) {
	have, want := load(t, baseYAML), load(t, baseYAML)
	have.Routes = nil
	want.Routes = manyRoutes(2*RouteBatch+1, 2)
	ops := Diff(want, have)
	if len(ops) != 3 || ops[0].Objects() != RouteBatch || ops[2].Objects() != 1 {
		t.Fatalf("%d operations", len(ops))
	}
	if c := CountOps(ops); c != (Count{Add: 2*RouteBatch + 1}) {
		t.Errorf("counted %v", c)
	}
}

// New addresses of a bridge are added in few requests; a refused request names the address that is to blame, and adds
// none.
func TestAddressesGoInBatches(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	want := load(t, baseYAML+"bridges: [{name: lan}]\n")
	for i := range 5000 {
		want.Macs = append(want.Macs, &apiv1.Mac{Bridge: "lan", Mac: fmt.Sprintf("02:77:00:00:%02x:%02x", i>>8, i&255),
			Target: &apiv1.Mac_Nexthop{Nexthop: 2}})
	}
	want.Normalize()
	have, err := Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ops := Diff(want, have)
	const taken = "lan 02:77:00:00:13:00" // number 4864: in the second request
	m.objects["macs"][taken] = &apiv1.Mac{}
	_, err = Apply(t.Context(), c, ops, nil)
	var stopped *ApplyError
	if !errors.As(err, &stopped) || stopped.Op.Key != taken {
		t.Fatalf("%v", err)
	}
	if n := len(m.objects["macs"]); n != 4096+1 {
		t.Errorf("%d addresses are there", n)
	}
	delete(m.objects["macs"], taken)
	if have, err = Read(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	m.calls = 0
	if _, err = Apply(t.Context(), c, Diff(want, have), nil); err != nil || m.calls != 1 {
		t.Errorf("%d calls for the rest: %v", m.calls, err)
	}
}

// Next hops that nothing refers to go in few requests; a refused request names the one that is to blame, and all of its
// next hops stay.
func TestNexthopsAreDeletedInBatches(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	want, more := load(t, baseYAML), load(t, baseYAML)
	for id := range uint32(1500) {
		more.Nexthops = append(more.Nexthops, &apiv1.Nexthop{Id: 1000 + id,
			Kind: &apiv1.Nexthop_Discard{Discard: &apiv1.Empty{}}})
	}
	more.Normalize()
	have, err := Read(t.Context(), c)
	if err == nil {
		_, err = Apply(t.Context(), c, Diff(more, have), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	there := len(m.objects["nexthops"])
	ops := Diff(want, more)
	const absent = "2100" // in the second request
	gone := m.objects["nexthops"][absent]
	delete(m.objects["nexthops"], absent)
	_, err = Apply(t.Context(), c, ops, nil)
	var stopped *ApplyError
	if !errors.As(err, &stopped) || stopped.Op.Key != absent {
		t.Fatalf("%v", err)
	}
	if n := len(m.objects["nexthops"]); n != there-1024-1 {
		t.Errorf("%d next hops of %d are there", n, there)
	}
	m.objects["nexthops"][absent] = gone
	if have, err = Read(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	m.calls = 0
	if _, err = Apply(t.Context(), c, Diff(want, have), nil); err != nil || m.calls != 1 {
		t.Errorf("%d calls for the rest: %v", m.calls, err)
	}
}

// An agent may be newer than the daemon for a while: what the daemon does not know as a batch goes one by one.
func TestOldDaemonDeletesOneByOne(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	m.old = true
	want, more := load(t, baseYAML), load(t, baseYAML)
	for id := range uint32(5) {
		more.Nexthops = append(more.Nexthops, &apiv1.Nexthop{Id: 1000 + id,
			Kind: &apiv1.Nexthop_Discard{Discard: &apiv1.Empty{}}})
	}
	more.Normalize()
	have, err := Read(t.Context(), c)
	if err == nil {
		_, err = Apply(t.Context(), c, Diff(more, have), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if done, err := Apply(t.Context(), c, Diff(want, more), nil); err != nil || done.Del != 5 {
		t.Errorf("%v: %v", done, err)
	}
}

func TestApplyWaitsForLateWorkers(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	have, err := Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	m.late = 3
	ops := Diff(load(t, baseYAML), have)
	if done, err := Apply(t.Context(), c, ops, nil); err != nil || done.Add != len(ops) || m.late != 0 {
		t.Errorf("done %v of %d: %v", done, len(ops), err)
	}
}

// A port or worker that the daemon has begun to delete is gone when it is deleted again.
func TestApplyWaitsForDeletions(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	have := load(t, "vrfs: [{name: red}]\n")
	m.late = 1 // and red is not there any more
	if _, err := Apply(t.Context(), c, Diff(load(t, "vrfs: []\n"), have), nil); err != nil {
		t.Error(err)
	}
	var stopped *ApplyError
	if _, err := Apply(t.Context(), c, Diff(load(t, "vrfs: []\n"), have), nil); !errors.As(err, &stopped) {
		t.Errorf("what was never there was deleted: %v", err)
	}
}

func TestApplyStopsAtTheFirstRefusal(t *testing.T) {
	m := newModel()
	c := m.serve(t)
	have, err := Read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ops := Diff(load(t, baseYAML), have)
	m.failAt = []int{4}
	done, err := Apply(t.Context(), c, ops, nil)
	var stopped *ApplyError
	if !errors.As(err, &stopped) {
		t.Fatalf("%v", err)
	}
	if done.Add != 3 || stopped.Left.Add != len(ops)-3 || fmt.Sprint(stopped.Op) != fmt.Sprint(ops[3]) {
		t.Errorf("done %v, left %v, at %v of\n%s", done, stopped.Left, stopped.Op, planned(t, ops))
	}
	for _, part := range []string{"told to refuse call 4", "done: 3 added", "+ nexthop 1: port"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	have, err = Read(t.Context(), c) // another application continues from there
	if err != nil {
		t.Fatal(err)
	}
	if rest := Diff(load(t, baseYAML), have); len(rest) != len(ops)-3 {
		t.Errorf("left to do:\n%s", planned(t, rest))
	}
}

func TestMessages(t *testing.T) {
	routes := []Route{{Vrf: "red", Prefix: netip.MustParsePrefix("10.0.0.0/8"), Nexthop: 2},
		{Vrf: "blue", Prefix: netip.MustParsePrefix("2001:db8::/32"), Nexthop: 3},
		{Vrf: "red", Prefix: netip.MustParsePrefix("0.0.0.0/0"), Nexthop: 4}}
	for i, m := range messages(routes) {
		if !proto.Equal(m, routes[i].message()) {
			t.Errorf("%v, want %v", m, routes[i].message())
		}
	}
	if n := testing.AllocsPerRun(10, func() { messages(routes) }); n > 8 {
		t.Errorf("%v allocations for three routes", n)
	}
}
