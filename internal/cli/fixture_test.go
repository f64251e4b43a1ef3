// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"encoding/hex"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// ping is an ICMP echo request in MPLSoUDP: Ethernet, IPv4, UDP 49152 > 6635, label 2001, IPv4, ICMP.
const ping = "02000000000202000000000108004500003c000000004011f6adc0000201c0000202c00019eb00280000" +
	"007d1140" + "4500001c000000003f01662a0a01000b0a0200160800f7ff00000000"

func mustHex(text string) []byte {
	data, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

// fixture is a daemon of a host with two tenants, each kind of everything, and counters.
func fixture(t testing.TB) *apitest.Server {
	s := apitest.Start(t)
	s.Lock()
	defer s.Unlock()
	fixturePorts(s)
	fixtureTables(s)
	s.Status = &apiv1.Status{Version: "0.1", Pid: 42, UptimeSeconds: 3723.4, Socket: s.Socket, MemoryBytes: 200 << 20,
		MbufsTotal: 16384, MbufsInUse: 512, Ports: 3, PortsUp: 2, Workers: 2, Vrfs: 2, RoutesIpv4: 3, RoutesIpv6: 1,
		Nexthops: 4, Labels: 2, Vnis: 1,
		Bridges: 1, Macs: 2, Neighbors: 2, RxPackets: 1000, TxPackets: 990, DroppedPackets: 10, FibBytes: 64 << 20,
		RibBytes: 3 << 20, OpenFiles: 23,
		Master: &apiv1.MasterTurns{Times: &apiv1.LoopTimes{MaxNs: 12_300_000}, LongestWork: "Flows.Count",
			LongestWorkNs: 11_900_000, WaitingTurns: 2},
		ApiConnections: 3, ApiLimits: []*apiv1.ApiLimit{{Name: "role", Count: 2}, {Name: "slow_reader", Count: 1}}}
	s.Stages = []*agentv1.Stage{
		{Name: "intent", Ok: true, Evidence: "segment lan, VNI 100"},
		{Name: "received", Evidence: "0 paths", Fix: "run this command on the host that has the guest"},
	}
	s.Settings = &apiv1.Settings{MplsoudpPorts: []uint32{6635}, VxlanPorts: []uint32{4789}, MacAgeSeconds: 300,
		NeighborAgeSeconds: 30, IcmpErrorsPerSecond: 1000, LabelStackDepth: 3}
	s.Drops = []*apiv1.Drop{
		{Reason: "arp_not_ours", Explanation: "An ARP request asked for an address that is not the router's."},
		{Reason: "ip4_no_route", Explanation: "The VRF has no route to the destination.", Packets: 3, Port: "vm1"},
		{Reason: "label_unknown", Explanation: "The MPLS label belongs to nothing here.", Packets: 7, Port: "fab0",
			Worker: 1},
		{Reason: "nd_router_solicit_ignored", Explanation: "The host asked for routers.", Packets: 5, Port: "vm1"},
	}
	s.Nodes = []*apiv1.Node{
		{Name: "port_rx", Calls: 100, Packets: 3200, Cycles: 64000, Next: []string{"eth_input"}},
		{Name: "eth_input", Calls: 100, Packets: 3200, Cycles: 32000, Next: []string{"ip4_input", "drop"}},
		{Name: "ip4_input", Calls: 0, Packets: 0, Next: []string{"drop"}},
		{Name: "drop", Calls: 2, Packets: 10, Cycles: 130},
	}
	s.Stats = []*apiv1.Stat{
		{Name: "rx_good_packets", Value: 500, Unit: "packets", Port: "fab0"},
		{Name: "rx_errors", Unit: "packets", Port: "fab0"},
		{Name: "rcu_syncs", Value: 12, Unit: "events"},
	}
	s.Threads = []*apiv1.Thread{
		{Tid: 42, Name: "corelaned", Planned: "0-1", Allowed: "0-1", State: "R", VoluntarySwitches: 1000,
			InvoluntarySwitches: 7},
		{Tid: 43, Name: "eal-intr-thread", Role: apiv1.ThreadRole_THREAD_ROLE_CONTROL, Planned: "0-1", Allowed: "0-1",
			Cpu: 1, State: "S", MovedBack: 2},
		{Tid: 45, Name: "pmd-fwd-0", Role: apiv1.ThreadRole_THREAD_ROLE_FORWARDING, Planned: "2", Allowed: "2", Cpu: 2,
			State: "D", StalledMs: 1500},
		{Tid: 46, Name: "pmd-fwd-1", Role: apiv1.ThreadRole_THREAD_ROLE_FORWARDING, Planned: "3", Allowed: "0-2",
			State: "R", Displaced: true},
	}
	s.Kinds = []*apiv1.EventKind{
		{Name: "thread_stray", Severity: apiv1.EventSeverity_EVENT_SEVERITY_WARNING,
			Explanation: "A thread left its CPUs."},
		{Name: "worker_resumed", Explanation: "A worker polls again."},
	}
	s.Events = []*apiv1.Event{
		{Number: 1, TimeNs: 1700000000123456789, Severity: apiv1.EventSeverity_EVENT_SEVERITY_WARNING,
			Kind: "thread_stray", Subject: "pmd-fwd-1", Text: "could run on CPUs 0-3, planned is 3; moved back"},
		{Number: 2, TimeNs: 1700000001000000000, Kind: "worker_resumed", Subject: "worker 1",
			Text: "polls again after 1.5 s"},
	}
	s.Packets = []*apiv1.CapturedPacket{
		{TimeNs: 1700000000123456789, Point: apiv1.CapturePoint_CAPTURE_POINT_TX, Port: "fab0", Length: 74,
			Data: mustHex(ping)},
		{TimeNs: 1700000001000000000, Point: apiv1.CapturePoint_CAPTURE_POINT_DROP, Port: "vm1", Length: 1400,
			Data: mustHex(ping)[:60], Reason: "label_unknown", Missed: 3},
		{TimeNs: 1700000001000000000, Port: "vm1", Length: 40000, Data: mustHex(ping), SegmentSize: 1448,
			ChecksumUnfinished: true},
		{TimeNs: 1700000001000000000, Port: "vm1", Length: 74, Data: mustHex(ping), ChecksumUnfinished: true},
	}
	s.Steps = []*apiv1.TraceStep{
		{Packet: 1, Worker: 1, Node: "port_rx", Next: "eth_input", Detail: "port fab0 queue 0", Data: mustHex(ping)},
		{Packet: 1, Worker: 1, Node: "eth_input", Next: "ip4_input", Detail: "IPv4", Cycles: 120, Data: mustHex(ping)},
		{Packet: 1, Worker: 1, Node: "drop", Detail: "label_unknown: label 2001", Cycles: 300, Data: mustHex(ping)},
		{Packet: 2, Worker: 0, Node: "port_rx", Next: "eth_input", Detail: "port fab0 queue 1",
			Data: mustHex(ping)[:20]},
	}
	s.Refuse = func(method string, req proto.Message) error {
		if r, ok := req.(*apiv1.VrfAddRequest); ok && r.Vrf.Id > 16383 {
			return apitest.Refusal(codes.InvalidArgument,
				&apiv1.Error{Field: "vrf.id", Value: "99999", Valid: "1..16383",
					Message: "vrf.id '99999': too large"})
		}
		if r, ok := req.(*apiv1.RouteAddRequest); ok {
			for i, route := range r.Routes {
				if route.Nexthop == 404 {
					return apitest.Refusal(codes.NotFound, &apiv1.Error{Field: "routes.nexthop", Value: "404",
						Index: uint32(i), Message: "routes.nexthop '404': does not exist"})
				}
			}
		}
		return nil
	}
	return s
}

func fixturePorts(s *apitest.Server) {
	s.Ports.Put("fab0", &apiv1.Port{Name: "fab0", Role: apiv1.PortRole_PORT_ROLE_FABRIC,
		Device: &apiv1.Port_Dpdk{Dpdk: &apiv1.DpdkDevice{Devargs: "net_af_packet0,iface=eth1"}},
		Queues: 2, Mtu: 1500, Vlan: 10, Addresses: []string{"192.0.2.1/24", "2001:db8::1/64"},
		State: &apiv1.PortState{Id: 1, LinkUp: true, Mac: "02:00:00:00:00:01", Driver: "net_af_packet",
			Queues: []*apiv1.PortQueue{{Index: 0, Worker: 0, RxPackets: 300},
				{Index: 1, Orphan: true, RxPackets: 200}},
			Counters: &apiv1.PortCounters{RxPackets: 500, RxBytes: 40000, TxPackets: 490, TxBytes: 39000, RxMissed: 1,
				Dropped: 7}}})
	s.Ports.Put("vm1", &apiv1.Port{Name: "vm1", Role: apiv1.PortRole_PORT_ROLE_TENANT,
		Device: &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: "tap0", Netns: "blue"}}, Queues: 1, Mtu: 1500, Vrf: "red",
		Bridge: "lan", Gateways: []string{"10.1.0.1/24"}, GuestAddresses: []string{"10.1.0.11/32"},
		State: &apiv1.PortState{Id: 2, LinkUp: true, Counters: &apiv1.PortCounters{RxPackets: 500, RxBytes: 5 << 20,
			Dropped: 3}}})
	s.Ports.Put("vm2", &apiv1.Port{Name: "vm2", Role: apiv1.PortRole_PORT_ROLE_TENANT,
		Device: &apiv1.Port_Memif{Memif: &apiv1.MemifDevice{Socket: "/run/x.sock", Id: 3}}, Vrf: "red",
		State: &apiv1.PortState{Id: 3}})
	for i := range uint32(2) {
		s.Workers.Put(i, &apiv1.Worker{Id: i, Cpu: 2 + i, Idle: apiv1.IdlePolicy_IDLE_POLICY_YIELD,
			State: &apiv1.WorkerState{
				Thread: "pmd-fwd-" + string(rune('0'+i)), Loops: 1000, BusyLoops: 100, BusyCycles: 300000,
				IdleCycles: 700000, Packets: 2000,
				TscHz: 2000000000, Queues: []*apiv1.WorkerQueue{{Port: "fab0", Queue: i, RxPackets: 2000, Depth: 5}},
				EmptyLoops: 900, SystemCalls: 900,
				DroppedPackets: 3, Drops: []*apiv1.WorkerDrop{{Reason: "ip4_no_route", Packets: 3}}, RxMissed: 1,
				Affinity: string(rune('2' + i)),
				LastCpu:  2 + i, InvoluntarySwitches: 4, VoluntarySwitches: 890, WaitedNs: 12345678, TakenLoops: 4,
				TakenSeenBy: "rseq", BehindUs: i * 1500, BusyP99Ns: 21000, LongestLoopNs: 4200000}})
		s.Latencies = append(s.Latencies, fixtureLatency(i))
	}
	s.WorkerPorts = []*apiv1.WorkerPort{
		{Worker: 0, Cpu: 2, Port: "fab0", RxPackets: 300, RxBytes: 24000, TxPackets: 290, TxBytes: 23000, Dropped: 7},
		{Worker: 1, Cpu: 3, Port: "fab0", RxPackets: 200, RxBytes: 16000, TxPackets: 200, TxBytes: 16000},
		{Worker: 0, Cpu: 2, Port: "vm1", RxPackets: 500},
	}
	s.Rings = []*apiv1.WorkerRing{
		{From: 0, To: 1, Size: 1024, Used: 3, High: 700, Packets: 5000, Refused: 2, TscHz: 2000000000,
			Waited: append(make([]uint64, 12), 98, 0, 0, 0, 1, 1)},
		{From: 1, To: 0, Size: 4096},
	}
	s.Plan = &apiv1.RebalancePlan{MostBefore: 9e6, MostAfter: 5e6, Mean: 4.5e6, Moves: []*apiv1.RebalanceMove{
		{Port: "fab0", Queue: 1, From: 0, To: 1, Packets: 3e6},
		{Port: "vm1", Entries: 17, From: 0, To: 1, Packets: 1e6}}}
}

func fixtureTables(s *apitest.Server) {
	s.Vrfs.Put("red", &apiv1.Vrf{Name: "red", Id: 1, RoutesIpv4: 2, RoutesIpv6: 1, RouterMac: "02:00:00:00:00:aa"})
	for _, r := range []*apiv1.Route{
		{Vrf: "fabric", Prefix: "192.0.2.0/24", Nexthop: 1048577, Origin: "connected"},
		{Vrf: "red", Prefix: "10.2.0.0/16", Nexthop: 100, Origin: "api"},
		{Vrf: "red", Prefix: "10.1.0.11/32", Nexthop: 1048578, Origin: "guest"},
		{Vrf: "red", Prefix: "2001:db8:2::/48", Nexthop: 9, Origin: "api"},
	} {
		s.Routes.Put(apitest.RouteKey{Vrf: r.Vrf, Prefix: r.Prefix}, r)
	}
	for _, n := range []*apiv1.Nexthop{
		{Id: 100,
			Kind: &apiv1.Nexthop_Tunnel{Tunnel: &apiv1.TunnelNexthop{Encap: apiv1.Encap_ENCAP_MPLSOUDP,
				Remote: "192.0.2.2", Label: 2001}}, State: &apiv1.NexthopState{Resolved: true, References: 2, Mtu: 1468,
				Overhead: 32, Origin: "api", Paths: []string{"fab0 via 192.0.2.2 lladdr 02:00:00:00:00:02"}}},
		{Id: 101,
			Kind: &apiv1.Nexthop_Tunnel{Tunnel: &apiv1.TunnelNexthop{Encap: apiv1.Encap_ENCAP_VXLAN,
				Remote: "2001:db8::2", Vni: 5001, RouterMac: "02:00:00:00:00:bb"}},
			State: &apiv1.NexthopState{Origin: "api"}},
		{Id: 9,
			Kind: &apiv1.Nexthop_Group{Group: &apiv1.GroupNexthop{Members: []*apiv1.GroupMember{{Nexthop: 100,
				Weight: 1}, {Nexthop: 101, Weight: 3}}}}},
		{Id: 7, Kind: &apiv1.Nexthop_Port{Port: &apiv1.PortNexthop{Port: "vm1", Address: "10.1.0.5"}}},
		{Id: 1048577, Kind: &apiv1.Nexthop_Local{Local: &apiv1.Empty{}},
			State: &apiv1.NexthopState{Resolved: true, Origin: "system"}},
	} {
		s.Nexthops.Put(n.Id, n)
	}
	s.Labels.Put(2001, &apiv1.Label{Label: 2001, Target: &apiv1.Label_Vrf{Vrf: "red"}})
	s.Labels.Put(2002, &apiv1.Label{Label: 2002, Target: &apiv1.Label_Nexthop{Nexthop: 7}, Uniform: true})
	s.Vnis.Put(5001, &apiv1.Vni{Vni: 5001, Target: &apiv1.Vni_Bridge{Bridge: "lan"}})
	s.Groups.Put("offices", &apiv1.AddressGroup{Name: "offices", Prefixes: []string{"10.0.0.0/8", "2001:db8::/32"},
		Rules: 1})
	s.RuleLists.Put("web", &apiv1.RuleList{Name: "web", Rules: 3, EntriesIpv4: 3, EntriesIpv6: 3, Ports: 1,
		DefaultHits: 12})
	for _, r := range []*apiv1.Rule{
		{List: "web", Id: 100, Action: apiv1.RuleAction_RULE_ACTION_ALLOW, Protocol: "tcp", DestinationPorts: "80",
			Hits: 1000},
		{List: "web", Id: 110, Protocol: "icmp", IcmpType: "3", IcmpCode: "4", SourceGroup: "offices", Log: true},
		{List: "web", Id: 120, Protocol: "tcp", Destination: "10.1.0.0/16", SourcePorts: "1-9", DestinationPorts: "80",
			ShadowedBy: 100},
	} {
		s.Rules.Put(apitest.RuleKey{List: r.List, ID: r.Id}, r)
	}
	for _, r := range []*apiv1.NatRule{
		{Id: 10, Vrf: "red",
			Kind:   &apiv1.NatRule_Floating{Floating: &apiv1.FloatingNat{Inside: "10.1.0.2", Outside: "198.51.100.2"}},
			Except: []string{"10.0.0.0/8", "172.16.0.0/12"}, Flows: 12},
		{Id: 20, Vrf: "red", Kind: &apiv1.NatRule_Source{Source: &apiv1.SourceNat{Prefix: "10.1.0.0/16",
			First: "198.51.100.10", Last: "198.51.100.13", FirstPort: 1024, LastPort: 65535}}, Flows: 3456},
		{Id: 30, Vrf: "red", Protocol: apiv1.NatProtocol_NAT_PROTOCOL_TCP,
			Kind: &apiv1.NatRule_Destination{Destination: &apiv1.DestinationNat{
				Address: "2001:db8::1", Port: 443,
				Backends: []*apiv1.NatBackend{{Address: "fd00::5", Port: 8443, Weight: 1},
					{Address: "fd00::6", Port: 8443, Weight: 3}}}}},
	} {
		s.Nat.Put(r.Id, r)
	}
	s.Bridges.Put("lan", &apiv1.Bridge{Name: "lan", Id: 1, Flood: []uint32{100, 101}, MacLimit: 8192,
		Ports: []string{"vm1"}, Macs: 2, LearnRefused: 4})
	s.Memberships = []*apiv1.Membership{{Bridge: "lan", Group: "239.1.1.1", Port: "vm1", AgeSeconds: 30},
		{Bridge: "lan", Group: "ff0e::1", Port: "vm1", AgeSeconds: 7}}
	s.Services.Put("web", &apiv1.Service{Name: "web", Vrf: "red", Address: "198.51.100.80", Port: 443,
		Protocol: apiv1.NatProtocol_NAT_PROTOCOL_TCP, MaxEndpoints: 64,
		State: &apiv1.ServiceState{Rows: 8191, Endpoints: 2, Serving: 1, Refused: 3,
			Totals: &apiv1.FlowTotals{Flows: 12, Active: 2, Packets: 120, Bytes: 9000, ReplyPackets: 130,
				ReplyBytes: 90000}}})
	s.Endpoints.Put("web 10.1.0.5 8443", &apiv1.Endpoint{Service: "web", Address: "10.1.0.5", Port: 8443, Weight: 1,
		State: &apiv1.EndpointState{Rows: 8191, Totals: &apiv1.FlowTotals{Flows: 10, Active: 1, Packets: 100,
			Bytes: 8000, ReplyPackets: 110, ReplyBytes: 80000}}})
	s.Endpoints.Put("web 10.1.0.6 8443", &apiv1.Endpoint{Service: "web", Address: "10.1.0.6", Port: 8443,
		State: &apiv1.EndpointState{Totals: &apiv1.FlowTotals{Flows: 2, Active: 1, Packets: 20, Bytes: 1000,
			ReplyPackets: 20, ReplyBytes: 10000}}})
	s.Meters.Put("gold", &apiv1.Meter{Name: "gold", BitRate: 1000000000,
		State: &apiv1.MeterState{Burst: 6250000, Users: 2,
			PassedPackets: 1000, PassedBytes: 1400000, DroppedPackets: 3, DroppedBytes: 4200}})
	s.Meters.Put("few", &apiv1.Meter{Name: "few", PacketRate: 100, BurstPackets: 10,
		State: &apiv1.MeterState{Burst: 10}})
	s.Mirrors.Put("far",
		&apiv1.Mirror{Name: "far",
			Target:     &apiv1.Mirror_Erspan{Erspan: &apiv1.MirrorErspan{Remote: "203.0.113.9", Session: 7}},
			SnapLength: 128, State: &apiv1.MirrorState{Packets: 10, Bytes: 1280, Users: 1, Resolved: true}})
	s.Mirrors.Put("ids", &apiv1.Mirror{Name: "ids", Target: &apiv1.Mirror_Port{Port: "vm1"},
		Direction: apiv1.MirrorDirection_MIRROR_DIRECTION_EGRESS})
	s.Macs.Put("lan 02:00:00:00:01:01", &apiv1.Mac{Bridge: "lan", Mac: "02:00:00:00:01:01",
		Target: &apiv1.Mac_Port{Port: "vm1"}, Learnt: true, AgeSeconds: 12})
	s.Macs.Put("lan 02:00:00:00:01:02", &apiv1.Mac{Bridge: "lan", Mac: "02:00:00:00:01:02",
		Target: &apiv1.Mac_Nexthop{Nexthop: 101}, Remote: "2001:db8::2"})
	s.Neighbors.Put("fab0 192.0.2.2", &apiv1.Neighbor{Port: "fab0", Address: "192.0.2.2", Mac: "02:00:00:00:00:02",
		Status: apiv1.NeighborStatus_NEIGHBOR_REACHABLE, AgeSeconds: 3})
	s.Neighbors.Put("fab0 192.0.2.9", &apiv1.Neighbor{Port: "fab0", Address: "192.0.2.9", Waiting: 2})
}

func fixtureLatency(worker uint32) *apiv1.WorkerLatency {
	l := &apiv1.WorkerLatency{Worker: worker, Cpu: 2 + worker, SinceSeconds: 61.2, ThresholdUs: 100, TakenLoops: 4,
		TakenSeenBy: "rseq", Busy: &apiv1.LoopTimes{Loops: 100, P50Ns: 1500, P90Ns: 9000, P99Ns: 21000, P999Ns: 4200000,
			MaxNs: 4200000},
		Empty: &apiv1.LoopTimes{Loops: 900, P50Ns: 300, P90Ns: 400, P99Ns: 500, P999Ns: 12000, MaxNs: 12000}}
	if worker == 1 {
		l.TakenSeenBy = "switches"
		return l
	}
	l.Longest = []*apiv1.LongLoop{
		{TimeNs: 1700000000123456789, Ns: 4200000, Packets: 32, ReceiveNs: 2000, GraphNs: 4190000, MessagesNs: 8000,
			Taken: true, Cpu: 2, Nodes: []*apiv1.LoopNode{{Node: "ip4_forward", Runs: 1, Ns: 4100000},
				{Node: "port_tx", Runs: 2, Ns: 60000}}},
		{TimeNs: 1700000001000000000, Ns: 1020000, ReceiveNs: 5000, GraphNs: 5000, IdleNs: 10000, DelayNs: 1000000,
			Taken: true, Moved: true, Cpu: 7},
		{TimeNs: 1700000002000000000, Ns: 12000000, Packets: 1, ReceiveNs: 12000000, Cpu: 2},
	}
	return l
}
