// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"errors"
	"fmt"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
)

// hint is a permission that makes room on small machines.
type hint struct {
	text string
	with func(w *Wishes)
}

var hints = []hint{
	{"share_cores, for both siblings of each worker's core", func(w *Wishes) { w.ShareCores = true }},
	{"allow_overlap, for workers on the host's core", func(w *Wishes) { w.AllowOverlap = true }},
	{"share_cores with allow_overlap", func(w *Wishes) { w.ShareCores, w.AllowOverlap = true, true }},
}

// small is the most cores of a machine on which workers on the host's core are advised.
const small = 4

// withHints adds to what is missing the permission with which the wishes can be met, tried out.
func withHints(m *topology.Machine, wishes Wishes, err error) error {
	var s shortage
	if !errors.As(err, &s) {
		return err
	}
	for _, h := range hints {
		w := wishes
		h.with(&w)
		if w.AllowOverlap != wishes.AllowOverlap && len(newView(m).cores) > small {
			continue
		}
		if _, failed := decide(m, w); failed == nil {
			return &input.Error{Field: s.missing.Field, Text: s.missing.Text, Valid: s.missing.Valid + ", or " + h.text}
		}
	}
	return err
}

// option is an alternative that is offered when its wishes can be met.
type option struct {
	offered bool
	with    func(w *Wishes)
	Alternative
}

// alternatives are other wishes that this machine can meet, each tried out.
func (k *maker) alternatives(m *topology.Machine) []Alternative {
	var list []Alternative
	for _, o := range k.options() {
		w := k.w
		o.with(&w)
		if !o.offered {
			continue
		}
		if _, err := decide(m, w); err == nil {
			list = append(list, o.Alternative)
		}
	}
	return list
}

func (k *maker) options() []option {
	threads, fixed := k.threads(), !k.w.ForwardingCPUs.Empty()
	grow := func(w *Wishes) {
		w.Forwarding++
		if w.IsolatedRx > 0 {
			w.IsolatedRx++
		}
	}
	return append(k.placeOptions(), []option{
		{k.w.Forwarding > 0 && threads > 1 && !k.w.ShareCores && k.w.IsolatedRx == 0 && !fixed,
			func(w *Wishes) { w.ShareCores, w.Forwarding = true, w.Forwarding*threads },
			Alternative{fmt.Sprintf("share_cores with forwarding %d: all siblings of the same cores", k.w.Forwarding*threads),
				"more packets from the same cores: one sibling works while the other waits for memory",
				"each worker is slower than alone on its core, and what stops one is felt by the other"}},
		{k.w.Forwarding > 0 && threads > 1 && !k.w.ShareCores && k.w.IsolatedRx == 0 && !fixed,
			func(w *Wishes) { w.IsolatedRx = w.Forwarding },
			Alternative{fmt.Sprintf("isolated_rx %d: receiving workers on the idle siblings", k.w.Forwarding),
				"the network device's queues are emptied while a forwarding worker is late",
				"each pair shares the core's execution units and first caches, and packets pass one more ring"}},
		{k.w.Forwarding > 0 && k.w.Guests > threads && !fixed && k.w.GuestCPUs.Empty(),
			func(w *Wishes) { grow(w); w.Guests -= threads },
			Alternative{fmt.Sprintf("forwarding %d with guests %d: one core from the guests to forwarding", k.w.Forwarding+1, k.w.Guests-threads),
				fmt.Sprintf("%d forwarding workers instead of %d", k.w.Forwarding+1, k.w.Forwarding), fmt.Sprintf("%d vCPUs less", threads)}},
		{k.w.Forwarding > 0 && !fixed, grow,
			Alternative{fmt.Sprintf("forwarding %d: one core more", k.w.Forwarding+1),
				fmt.Sprintf("%d forwarding workers instead of %d", k.w.Forwarding+1, k.w.Forwarding), "a core that nobody has asked for so far"}},
		{k.w.HostPath > 0 && k.w.HostPathCPUs.Empty(), func(w *Wishes) { w.HostPath-- },
			Alternative{fmt.Sprintf("host_path %d: one worker less for the kernel's traffic", k.w.HostPath-1), "a core",
				"forwarding workers carry the host's traffic as well: a data plane that is overloaded starves the host"}},
		{k.w.Forwarding > 0 && k.w.HostPath == 0, func(w *Wishes) { w.HostPath = 1 },
			Alternative{"host_path 1: a worker for the kernel's traffic", "the host stays reachable at full speed while forwarding is overloaded", "a core"}},
		{k.w.Forwarding > 0 && k.w.Service == 0, func(w *Wishes) { w.Service = 1 },
			Alternative{"service 1: a CPU for service and control threads", "changes of tables do not wait for the host's programs", "a CPU"}},
		{k.w.Forwarding > 0 && !k.w.Boot && !k.m.Container && !k.single, func(w *Wishes) { w.Boot = true },
			Alternative{"boot: isolate with arguments of the kernel", "no timer tick and no RCU callbacks on the workers' CPUs (nohz_full, rcu_nocbs), " +
				"nobody is there before the plan is applied", "a reboot now and at each change of the plan"}},
	}...)
}

// placeOptions are about nodes: workers that do not fit on that of the network device.
func (k *maker) placeOptions() []option {
	onHome := 0
	for _, w := range k.workers {
		if w.Role == Forwarding && w.Node == k.homes[0] {
			onHome++
		}
	}
	spilled := onHome < k.w.Forwarding && len(k.homes) == 1 && onHome > 0
	receivers := 0
	if k.w.IsolatedRx > 0 {
		receivers = onHome
	}
	list := []option{{spilled && k.w.ForwardingCPUs.Empty(), func(w *Wishes) { w.Forwarding, w.IsolatedRx = onHome, receivers },
		Alternative{fmt.Sprintf("forwarding %d: only what fits on node %d", onHome, k.homes[0]), "no packet of a worker crosses the link between nodes",
			fmt.Sprintf("%d forwarding workers less", k.w.Forwarding-onHome)}}}
	for _, nic := range k.m.NICs {
		if nic.Node == k.homes[0] || !spilled {
			continue
		}
		other := append(append([]string{}, k.w.NICs...), nic.Address)
		list = append(list, option{true, func(w *Wishes) { w.NICs = other },
			Alternative{fmt.Sprintf("nics with %s, too: a port on each node", nic.Address), "each worker polls the device of its own node",
				"that port has to be cabled, and packets that change ports cross the link between nodes"}})
	}
	return list
}
