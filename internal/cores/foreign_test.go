// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
	"github.com/corelane/corelane/internal/verify"
)

// However a container sees its host and other containers: what apply does and what verify says is about its own threads
// and its own CPUs, with its own plan, with one of the whole host, and without one.
func TestForeignThreads(t *testing.T) {
	t.Parallel()
	rounds.Seeds(t, 60, 300, func(seed uint64) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, own := topologytest.RandomContainer(seed)
			m := s.Machine(t)
			if !m.Container || !m.Usable().Equal(own) {
				t.Fatalf("container %t with CPUs %s, not %s", m.Container, m.Usable(), own)
			}
			var want, have []int
			for _, th := range s.Threads {
				if !th.Foreign {
					want = append(want, th.TID)
				}
			}
			for _, th := range m.Threads {
				have = append(have, th.TID)
			}
			slices.Sort(want)
			slices.Sort(have)
			if !slices.Equal(want, have) {
				t.Fatalf("threads %v, own are %v", have, want)
			}
			f := foreigners{t, own, want}
			f.verified(verify.Check(m, nil))
			host := *m
			host.Container = false
			for _, m := range []*topology.Machine{m, &host} {
				if p, err := plan.Make(m, request(m)); err == nil {
					f.planned(s.Machine(t), p)
				}
			}
		})
	})
}

// request asks for what a machine runs.
func request(m *topology.Machine) plan.Request {
	w := plan.Request{Forwarding: max(1, verify.IntentOf(m, nil).Workers.Len()), Boot: true}
	for _, n := range m.NICs {
		if n.Driver == "vfio-pci" {
			w.NICs = []string{n.Address}
		}
	}
	for _, g := range m.Guests {
		w.Guests += len(g.VCPUs)
	}
	return w
}

// foreigners finds what does not belong to a container.
type foreigners struct {
	t    *testing.T
	own  cpuset.Set
	tids []int // of the container
}

func (f foreigners) planned(m *topology.Machine, p *plan.Plan) {
	f.t.Helper()
	for _, c := range Changes(m, p, Options{Cgroups: true, StopIrqbalance: true}) {
		switch c.Kind {
		case Note:
			f.text(c.What() + " " + c.Why + " " + c.ByHand)
		case Affinity, Worker:
			if !slices.Contains(f.tids, c.TID) || !set(c.New).Within(f.own) {
				f.t.Errorf("%s: CPUs %s of %s", c.What(), c.New, f.own)
			}
		default:
			f.t.Errorf("%s is changed", c.What())
		}
	}
	f.verified(verify.Check(m, p))
}

// Commands that change only what belongs to a container, and the CPUs that they name.
var (
	inside = regexp.MustCompile(`^(taskset -pc|virsh (vcpupin|emulatorpin|iothreadpin|setvcpus|numatune|edit) g\d|` +
		`corelane (plan make|cores apply|worker (add|del)|explain)|# permanently: corelaned )`)
	named = regexp.MustCompile(`(?:-pc|-cpus|--cpu|pin g\d(?: \d+)?) ([0-9,-]+)(?: |;|$)`)
)

func (f foreigners) verified(findings []verify.Finding) {
	f.t.Helper()
	for _, finding := range findings {
		all, err := json.Marshal(finding)
		if err != nil {
			f.t.Fatal(err)
		}
		f.text(string(all))
		for _, command := range finding.Fix {
			if !inside.MatchString(command) {
				f.t.Errorf("%s: $ %s", finding.ID, command)
			}
			for _, list := range named.FindAllStringSubmatch(command, -1) {
				if !set(list[1]).Within(f.own) {
					f.t.Errorf("%s: $ %s: CPUs %s of %s", finding.ID, command, list[1], f.own)
				}
			}
		}
	}
}

var foreign = regexp.MustCompile(`(?i)` + topologytest.Alien + `|kthreadd|\b70\d{4}\b`)

func (f foreigners) text(text string) {
	f.t.Helper()
	if found := foreign.FindString(text); found != "" {
		f.t.Errorf("'%s' is not the container's: %s", found, text)
	}
}

// Once all commands that verify prints in a container were run, only files of its own threads and settings are others.
func TestRemediesOfRandomContainers(t *testing.T) {
	t.Parallel()
	rounds.Seeds(t, 30, 200, func(seed uint64) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, _ := topologytest.RandomContainer(seed)
			root := s.Dir(t)
			before := snapshot(t, root)
			remedies(t, root, seed%2 == 1)
			for name := range changed(before, snapshot(t, root)) {
				at := slices.IndexFunc(s.Threads, func(th topologytest.Thread) bool {
					return strings.HasPrefix(name, fmt.Sprintf("proc/%d/", th.PID))
				})
				guest, _ := filepath.Match("etc/libvirt/qemu/g*.xml", name)
				switch {
				case at >= 0 && !s.Threads[at].Foreign, guest, name == "etc", strings.HasPrefix(name, "etc/default"):
				default:
					t.Errorf("%s has changed", name)
				}
			}
		})
	})
}

// changed returns the names that differ between two snapshots.
func changed(a, b map[string]string) map[string]bool {
	names := map[string]bool{}
	for _, both := range [][2]map[string]string{{a, b}, {b, a}} {
		for name, text := range both[0] {
			if other, ok := both[1][name]; !ok || other != text {
				names[name] = true
			}
		}
	}
	return names
}

// A container's plan is refused on its host: there it would move everything.
func TestPlanOfContainerOnHost(t *testing.T) {
	m := topologytest.Machine(t, "container-host")
	p, err := plan.Make(m, plan.Request{Forwarding: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check("p.json", m, p); err != nil {
		t.Error(err)
	}
	m.Container = false
	if err := Inside("p.json", m, p); err == nil || !strings.Contains(err.Error(), "it was made in a container") {
		t.Error(err)
	}
}
