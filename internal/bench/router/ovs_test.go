// SPDX-License-Identifier: Apache-2.0
package router

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/scenario"
)

func TestOVSVersion(t *testing.T) {
	for text, want := range map[string]string{
		"ovs-vswitchd-dpdk (Open vSwitch) 3.1.0\nDPDK 22.11.11\n": "Open vSwitch 3.1.0 (DPDK 22.11.11)",
		"ovs-vswitchd (Open vSwitch) 3.1.0\n":                     "",
		"":                                                        "",
	} {
		got, err := parseOVSVersion(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestOVSSupports(t *testing.T) {
	for _, c := range []struct {
		s    scenario.Scenario
		want string
	}{
		{scenario.Scenario{Overlay: scenario.VXLAN, Workers: 8, Stateful: true}, ""},
		{scenario.Scenario{Overlay: scenario.MPLSoGRE, Workers: 1}, ""},
		{scenario.Scenario{Overlay: scenario.MPLSoUDP, Workers: 1}, "no MPLS over UDP"},
		{scenario.Scenario{Workers: 9}, "9 workers need 18 rings"},
	} {
		err := (&OVS{}).Supports(&c.s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.s, err, c.want)
		}
	}
}

func TestOVSConfiguration(t *testing.T) {
	s, err := scenario.Find("vxlan-encap")
	if err != nil {
		t.Fatal(err)
	}
	b, err := scenario.Build(s, "/tmp/run", 1024)
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{CPUs: []int{1, 33}, ControlCPU: 0, Memory: 512}
	all := strings.Join(append(ovsSettings(env), ovsTopology(env, b)...), " ")
	for _, want := range []string{
		"other_config:pmd-cpu-mask=200000002 ", "other_config:dpdk-lcore-mask=1 ", "other_config:dpdk-socket-mem=512 ",
		"other_config:max-idle=3600000 ", "other_config:max-revalidator=3600000 ", "other_config:flow-limit=2000000 ",
		"-- add-br underlay -- set Bridge underlay datapath_type=netdev fail_mode=secure " +
			"other_config:hwaddr=02:c1:00:00:01:01 ",
		`options:dpdk-devargs="net_memif1,role=server,socket=/tmp/run/wire.sock,socket-abstract=no,id=0" options:n_rxq=4 mtu_request=1600 ofport_request=2 `,
		"set Interface vxlan type=vxlan options:local_ip=flow options:remote_ip=flow ofport_request=1000 " +
			"options:key=flow",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	env.Memory = 0
	if all := strings.Join(ovsSettings(env), " "); !strings.Contains(all, "--no-huge") ||
		strings.Contains(all, "socket-mem") {
		t.Errorf("without hugepages: %s", all)
	}
}

func TestOVSPortErrors(t *testing.T) {
	good := `{"data":[["tenant0",["set",[]]]],"headings":["name","error"]}`
	bad :=
		`{"data":[["tenant0",["set",[]]],["wire","could not add network device wire to ofproto (No such device)"]],"headings":["name","error"]}`
	if err := ovsPortErrors(good); err != nil {
		t.Error(err)
	}
	if err := ovsPortErrors(bad); err == nil || !strings.Contains(err.Error(), "port wire: could not add") {
		t.Error(err)
	}
	if err := ovsPortErrors("nonsense"); err == nil {
		t.Error("nonsense is accepted")
	}
}

func TestOVSCounters(t *testing.T) {
	const ports = `netdev@ovs-netdev:
  lookups: hit:10 missed:4 lost:3
  flows: 0
  port 0: ovs-netdev (tap)
    RX packets:0 errors:0 dropped:0 overruns:0 frame:0
    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0
    collisions:0
  port 2: wire (dpdk: configured_rx_queues=2, mtu=1600)
    RX packets:5 errors:0 dropped:7 overruns:0 frame:0
    TX packets:5 errors:2 dropped:9 aborted:0 carrier:0
`
	const events = `Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=f6aab0cf:
drop_action_of_pipeline    0.0/sec     0.000/sec        0.0000/sec   total: 11
datapath_drop_upcall_error 0.0/sec     0.000/sec        0.0000/sec   total: 0
bridge_reconfigure         0.0/sec     0.000/sec        0.0000/sec   total: 3
`
	drops := map[string]uint64{}
	ovsPortDrops(ports, drops)
	ovsEventDrops(events, drops)
	want := map[string]uint64{"lookups lost": 3, "wire rx dropped": 7, "wire tx errors": 2, "wire tx dropped": 9,
		"drop_action_of_pipeline": 11}
	if !maps.Equal(drops, want) {
		t.Errorf("%v; want %v", drops, want)
	}
	const threads = `pmd thread numa_id 0 core_id 1:
  packets received: 240
  idle cycles: 100 (99.96%)
  processing cycles: 20 (0.04%)
pmd thread numa_id 0 core_id 2:
  idle cycles: 1 (99.96%)
  processing cycles: 2 (0.04%)
main thread:
  idle cycles: 5000 (1.00%)
`
	if busy, idle := ovsCycles(threads); busy != 22 || idle != 101 {
		t.Errorf("busy %d, idle %d", busy, idle)
	}
}

func TestOVSDevices(t *testing.T) {
	i := &ovsInstance{env: &Env{CPUs: []int{1, 2}},
		setup: &scenario.Setup{Ports: []scenario.Port{{Name: "wire", Socket: "/s", RingSize: 512}}}}
	list := i.Devices()
	if len(list) != 1 || list[0].Name != "wire" || list[0].GetMemif().Queues != 4 || list[0].GetMemif().Server ||
		list[0].GetMemif().RingSize != 512 {
		t.Errorf("%v", list)
	}
	if !slices.Equal(i.environment()[:1], []string{"RUNTIME_DIRECTORY="}) {
		t.Errorf("%v", i.environment())
	}
}
