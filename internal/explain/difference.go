// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/stat"
)

// fill adds to the evidence what happened between two snapshots of the daemon.
func (e *Evidence) fill(before, after *snapshot) {
	e.Started, e.Seconds = before.at, after.at.Sub(before.at).Seconds()
	for _, id := range after.order {
		if was := before.workers[id]; was != nil { // a worker that is new has no window
			e.Workers = append(e.Workers, workerBetween(was, after.workers[id], before, after))
		}
	}
	for key, r := range after.rings {
		was := before.rings[key]
		e.Rings = append(e.Rings, Ring{From: int(r.From), To: int(r.To), Size: r.Size, Used: r.Used, High: r.High,
			Packets: stat.Grown(r.Packets, was.GetPackets()), Refused: stat.Grown(r.Refused, was.GetRefused())})
	}
	sort.Slice(e.Rings, func(i, k int) bool {
		return e.Rings[i].From*64+e.Rings[i].To < e.Rings[k].From*64+e.Rings[k].To
	})
	for name, p := range after.ports {
		e.Ports = append(e.Ports, portBetween(name, before.ports[name], p, before, after))
	}
	sort.Slice(e.Ports, func(i, k int) bool { return e.Ports[i].Name < e.Ports[k].Name })
	for tid, t := range after.threads {
		was := before.threads[tid]
		e.Threads = append(e.Threads,
			OwnThreadState{TID: int(tid), Name: t.Name, Role: enumText(t.Role.String(), "THREAD_ROLE_"),
				Planned: t.Planned, Allowed: t.Allowed, CPU: int(t.Cpu), State: t.State,
				RanNS: stat.Grown(t.RanNs, was.GetRanNs()), MovedBack: t.MovedBack - was.GetMovedBack(),
				Displaced: t.Displaced, StalledMS: t.StalledMs})
	}
	slices.SortFunc(e.Threads, func(a, b OwnThreadState) int { return a.TID - b.TID })
}

func enumText(name, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", "-")
}

func workerBetween(was, now *apiv1.Worker, before, after *snapshot) Worker {
	a, b := was.State, now.State
	w := Worker{ID: int(now.Id), TID: int(b.GetTid()), CPU: int(now.Cpu), Thread: b.GetThread(),
		Role: enumText(now.Role.String(), "WORKER_ROLE_"), Idle: enumText(now.Idle.String(), "IDLE_POLICY_"),
		Loops: stat.Grown(b.GetLoops(), a.GetLoops()), BusyLoops: stat.Grown(b.GetBusyLoops(), a.GetBusyLoops()),
		BusyCycles: stat.Grown(b.GetBusyCycles(), a.GetBusyCycles()),
		IdleCycles: stat.Grown(b.GetIdleCycles(), a.GetIdleCycles()),
		Packets:    stat.Grown(b.GetPackets(), a.GetPackets()), HzTSC: float64(b.GetTscHz()),
		SystemCalls: stat.Grown(b.GetSystemCalls(), a.GetSystemCalls()),
		Dropped:     stat.Grown(b.GetDroppedPackets(), a.GetDroppedPackets()),
		RxMissed:    stat.Grown(b.GetRxMissed(), a.GetRxMissed()), Drops: map[string]uint64{},
		Affinity: b.GetAffinity(), LastCPU: int(b.GetLastCpu()), Involuntary: stat.Grown(b.GetInvoluntarySwitches(),
			a.GetInvoluntarySwitches()),
		Voluntary: stat.Grown(b.GetVoluntarySwitches(), a.GetVoluntarySwitches()),
		Taken:     stat.Grown(b.GetTakenLoops(), a.GetTakenLoops()),
		Moved:     stat.Grown(b.GetMovedLoops(), a.GetMovedLoops()), DelayUS: b.GetDebugDelayUs(),
		BehindUS: b.GetBehindUs(), SleepMaxUS: now.SleepMaxUs, RingSize: now.RingSize}
	w.Past, w.PastPackets = before.past[now.Id], a.GetPackets()
	w.EmptyLoops = w.Loops - min(w.Loops, w.BusyLoops)
	if n := a.GetPackets(); n >= enoughPackets {
		w.Usual = float64(a.GetBusyCycles()) / float64(n)
	}
	had := map[string]uint64{}
	for _, d := range a.GetDrops() {
		had[d.Reason] = d.Packets
	}
	for _, d := range b.GetDrops() {
		if n := stat.Grown(d.Packets, had[d.Reason]); n > 0 {
			w.Drops[d.Reason] = n
			if d.Reason == noBuffer || isOfCopies(d.Reason) { // polls, and copies of packets that went on
				w.Dropped -= min(w.Dropped, n)
			}
		}
	}
	w.Queues = queuesBetween(a, b)
	w.LongLoops = longLoops(after.latency[now.Id], before, after)
	for _, l := range w.LongLoops {
		w.LongestNS = max(w.LongestNS, uint64(l.NS))
	}
	for name, n := range after.nodes[now.Id] {
		old := before.nodes[now.Id][name]
		w.Nodes = append(w.Nodes, Node{name, stat.Grown(n.Calls, old.GetCalls()),
			stat.Grown(n.Packets, old.GetPackets()), stat.Grown(n.Cycles, old.GetCycles()), old.GetPackets(),
			old.GetCycles()})
	}
	slices.SortFunc(w.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return w
}

// pastOf returns what happened between the samples.
func pastOf(samples []*apiv1.WorkerSample) (out []Past) {
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		if b.Packets >= a.Packets && b.BusyCycles >= a.BusyCycles && b.AgeNs < a.AgeNs {
			out = append(out, Past{Seconds: float64(a.AgeNs-b.AgeNs) / 1e9, Packets: b.Packets - a.Packets,
				Loops: stat.Grown(b.Loops, a.Loops), BusyLoops: stat.Grown(b.BusyLoops, a.BusyLoops),
				BusyCycles: b.BusyCycles - a.BusyCycles, IdleCycles: stat.Grown(b.IdleCycles, a.IdleCycles),
				WaitedNS: int64(stat.Grown(b.WaitedNs, a.WaitedNs))})
		}
	}
	return out
}

const enoughPackets = 1e6 // that a worker needs to have a usual cost per packet

func queuesBetween(a, b *apiv1.WorkerState) (out []Queue) {
	had := map[string]uint64{}
	for _, q := range a.GetQueues() {
		had[fmt.Sprint(q.Port, " ", q.Queue)] = q.RxPackets
	}
	for _, q := range b.GetQueues() {
		out = append(out, Queue{q.Port, int(q.Queue), stat.Grown(q.RxPackets, had[fmt.Sprint(q.Port, " ", q.Queue)]),
			q.Depth, !q.DepthUnknown})
	}
	return out
}

// longLoops returns the loops that ended in the window.
func longLoops(l *apiv1.WorkerLatency, before, after *snapshot) (out []LongLoop) {
	for _, loop := range l.GetLongest() {
		end := int64(loop.TimeNs) - before.at.UnixNano()
		if end < 0 || int64(loop.TimeNs) > after.at.UnixNano() {
			continue
		}
		n := LongLoop{FromNS: max(0, end-int64(loop.Ns)), NS: int64(loop.Ns), ReceiveNS: int64(loop.ReceiveNs),
			GraphNS: int64(loop.GraphNs), MessagesNS: int64(loop.MessagesNs), IdleNS: int64(loop.IdleNs),
			DelayNS: int64(loop.DelayNs), Packets: loop.Packets, Taken: loop.Taken, Moved: loop.Moved}
		if len(loop.Nodes) > 0 {
			n.Node = loop.Nodes[0].Node
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b LongLoop) int { return int(a.FromNS - b.FromNS) })
	return out
}

func portBetween(name string, was, now *apiv1.Port, before, after *snapshot) Port {
	a, b := was.GetState(), now.State
	p := Port{Name: name, Driver: b.GetDriver(), Role: enumText(now.Role.String(), "PORT_ROLE_"), Up: b.GetLinkUp(),
		Connected: b.GetPeerConnected(), RxPackets: stat.Grown(b.GetCounters().GetRxPackets(),
			a.GetCounters().GetRxPackets()),
		TxPackets: stat.Grown(b.GetCounters().GetTxPackets(), a.GetCounters().GetTxPackets()),
		RxMissed:  stat.Grown(b.GetCounters().GetRxMissed(), a.GetCounters().GetRxMissed()),
		TxRefused: stat.Grown(b.GetCounters().GetTxRefused(), a.GetCounters().GetTxRefused()),
		Drops:     map[string]uint64{}, Workers: map[int]uint64{}, Disconnects: stat.Grown(b.GetPeerDisconnects(),
			a.GetPeerDisconnects()), Disabled: now.Disabled, Stateful: now.Stateful, UnresolvedRate: now.UnresolvedRate,
		FlowLimit: now.FlowLimit, Hybrid: now.Mode == apiv1.PortMode_PORT_MODE_HYBRID,
		NotLearnt:  stat.Grown(b.GetLearnTooMany(), a.GetLearnTooMany()),
		GuestKnown: now.GuestMac != "" && len(now.GuestAddresses) > 0, Kept: b.GetBuffersKept(),
		Waiting: b.GetBuffersWaiting(), Carried: b.GetCounters().GetRxPackets() + b.GetCounters().GetTxPackets(),
		Sent: a.GetCounters().GetTxPackets()}
	for reason, n := range after.drops[name] {
		if d := stat.Grown(n, before.drops[name][reason]); d > 0 {
			p.Drops[reason] = d
		}
	}
	for id, c := range after.polled[name] {
		if n := stat.Grown(c.RxPackets, before.polled[name][id].GetRxPackets()); n > 0 {
			p.Workers[int(id)] = n
		}
	}
	switch {
	case now.GetVhost() != nil:
		p.Device, p.Peer = "vhost", now.GetVhost().Socket
	case now.GetMemif() != nil:
		p.Device, p.Peer, p.RingSize = "memif", now.GetMemif().Socket, now.GetMemif().RingSize
	case now.GetSubport() != nil:
		p.Device, p.Peer = "subport", now.GetSubport().Parent
	case now.GetTap() != nil:
		p.Device, p.Peer, p.Elsewhere = "tap", now.GetTap().Ifname, now.GetTap().Netns != ""
	case now.GetDpdk() != nil:
		p.Device, p.Peer = "dpdk", now.GetDpdk().Devargs
	}
	return p
}
