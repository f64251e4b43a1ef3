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
	with func(w *Request)
}

var hints = []hint{
	{"share_cores, for both siblings of each worker's core", func(w *Request) { w.ShareCores = true }},
	{"allow_overlap, for workers on the host's core", func(w *Request) { w.AllowOverlap = true }},
	{"share_cores with allow_overlap", func(w *Request) { w.ShareCores, w.AllowOverlap = true, true }},
}

// small is the largest number of cores of a machine for which workers on the host's core are proposed.
const small = 4

// withHints adds to a shortage the first permission with which the planner can meet the request.
func withHints(m *topology.Machine, request Request, err error) error {
	var s shortage
	if !errors.As(err, &s) {
		return err
	}
	for _, h := range hints {
		w := request
		h.with(&w)
		if w.AllowOverlap != request.AllowOverlap && len(newView(m).cores) > small {
			continue
		}
		if _, failed := decide(m, w); failed == nil {
			return &input.Error{Field: s.missing.Field, Text: s.missing.Text, Valid: s.missing.Valid + ", or " + h.text}
		}
	}
	return err
}

// option is an alternative that is offered if the planner can meet its request.
type option struct {
	offered bool
	with    func(w *Request)
	Alternative
}

// alternatives returns other requests that the planner can meet on this machine.
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
	grow := func(w *Request) {
		w.Forwarding++
		if w.IsolatedRx > 0 {
			w.IsolatedRx++
		}
	}
	return append(k.placeOptions(), []option{
		{k.w.Forwarding > 0 && threads > 1 && !k.w.ShareCores && k.w.IsolatedRx == 0 && !fixed,
			func(w *Request) { w.ShareCores, w.Forwarding = true, w.Forwarding*threads },
			Alternative{fmt.Sprintf("share_cores with forwarding %d: workers on all siblings of the same cores",
				k.w.Forwarding*threads),
				"more packets from the same cores: one sibling works while the other waits for memory",
				"each worker is slower than alone on its core, and an interruption of one slows the other"}},
		{k.w.Forwarding > 0 && threads > 1 && !k.w.ShareCores && k.w.IsolatedRx == 0 && !fixed,
			func(w *Request) { w.IsolatedRx = w.Forwarding },
			Alternative{fmt.Sprintf("isolated_rx %d: receiving workers on the idle siblings", k.w.Forwarding),
				"the network device's queues are emptied even while a forwarding worker is delayed",
				"each pair shares the core's execution units and first-level caches, and packets pass one more ring"}},
		{k.w.Forwarding > 0 && k.w.Guests > threads && !fixed && k.w.GuestCPUs.Empty(),
			func(w *Request) { grow(w); w.Guests -= threads },
			Alternative{fmt.Sprintf("forwarding %d with guests %d: one core from the guests to forwarding",
				k.w.Forwarding+1, k.w.Guests-threads),
				fmt.Sprintf("%d forwarding workers instead of %d", k.w.Forwarding+1, k.w.Forwarding),
				fmt.Sprintf("%d CPUs fewer for vCPUs", threads)}},
		{k.w.Forwarding > 0 && !fixed, grow,
			Alternative{fmt.Sprintf("forwarding %d: one more core", k.w.Forwarding+1),
				fmt.Sprintf("%d forwarding workers instead of %d", k.w.Forwarding+1, k.w.Forwarding),
				"a core that the request leaves to the host"}},
		{k.w.HostPath > 0 && k.w.HostPathCPUs.Empty(), func(w *Request) { w.HostPath-- },
			Alternative{fmt.Sprintf("host_path %d: one worker fewer for the kernel's traffic", k.w.HostPath-1),
				"a core",
				"forwarding workers carry the host's traffic too: an overloaded data plane starves the host"}},
		{k.w.Forwarding > 0 && k.w.HostPath == 0, func(w *Request) { w.HostPath = 1 },
			Alternative{"host_path 1: a worker for the kernel's traffic",
				"the host stays reachable while forwarding is overloaded", "a core"}},
		{k.w.Forwarding > 0 && k.w.Service == 0, func(w *Request) { w.Service = 1 },
			Alternative{"service 1: a CPU for service and control threads",
				"table changes do not wait for the host's programs", "a CPU"}},
		{k.w.Forwarding > 0 && !k.w.Boot && !k.m.Container && !k.single, func(w *Request) { w.Boot = true },
			Alternative{"boot: isolate with kernel arguments",
				"no timer tick and no RCU callbacks on the workers' CPUs (nohz_full, rcu_nocbs), " +
					"no other threads on these CPUs before the plan is applied",
				"a reboot now and after each change of the plan"}},
	}...)
}

// placeOptions are alternatives for workers that do not fit on the network device's node.
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
	list := []option{{spilled && k.w.ForwardingCPUs.Empty(), func(w *Request) {
		w.Forwarding, w.IsolatedRx = onHome, receivers
	},
		Alternative{fmt.Sprintf("forwarding %d: only what fits on node %d", onHome, k.homes[0]),
			"no worker's packets cross the link between nodes",
			fmt.Sprintf("%d forwarding workers fewer", k.w.Forwarding-onHome)}}}
	for _, nic := range k.m.NICs {
		if nic.Node == k.homes[0] || !spilled {
			continue
		}
		other := append(append([]string{}, k.w.NICs...), nic.Address)
		list = append(list, option{true, func(w *Request) { w.NICs = other },
			Alternative{fmt.Sprintf("nics with %s: a port on each node", nic.Address),
				"each worker polls the device of its own node",
				"this port must be connected, and packets between ports cross the link between nodes"}})
	}
	return list
}
