// SPDX-License-Identifier: Apache-2.0
package topology

import "testing"

// cpusOf makes online CPUs with ids from 0 on.
func cpusOf(cpus ...CPU) *Machine {
	for i := range cpus {
		cpus[i].ID, cpus[i].Online = i, true
	}
	return &Machine{CPUs: cpus}
}

func TestSpeeds(t *testing.T) {
	fast, slow := Speed{Percent: 100}, func(percent int) Speed { return Speed{Percent: percent, Slow: true} }
	for name, c := range map[string]struct {
		m    *Machine
		want []Speed
	}{
		"nothing is known": {cpusOf(CPU{}, CPU{}), []Speed{fast, fast}},
		"capacity": {cpusOf(CPU{Capacity: 1024, MaxKHz: 1}, CPU{Capacity: 512, MaxKHz: 1}),
			[]Speed{fast, slow(50)}},
		"a CPU lacks it": {cpusOf(CPU{Capacity: 1024}, CPU{}), []Speed{fast, fast}},
		"guaranteed clock": {cpusOf(CPU{MaxKHz: 3900, BaseKHz: 2700}, CPU{MaxKHz: 3900, BaseKHz: 2100}),
			[]Speed{fast, slow(77)}},
		"clocks that hardly differ": {cpusOf(CPU{MaxKHz: 5000}, CPU{MaxKHz: 4900}), []Speed{fast, {Percent: 98}}},
		"type with equal clocks": {cpusOf(CPU{Type: "performance", MaxKHz: 5000}, CPU{Type: "efficient", MaxKHz: 5000}),
			[]Speed{fast, slow(100)}},
		"efficient cores only": {cpusOf(CPU{Type: "efficient"}, CPU{Type: "efficient"}), []Speed{fast, fast}},
		"favoured": {cpusOf(CPU{HighestPerf: 191}, CPU{HighestPerf: 196}, CPU{HighestPerf: 191}),
			[]Speed{fast, {Percent: 100, Favoured: true}, fast}},
		"most have the highest clock": {cpusOf(CPU{HighestPerf: 196}, CPU{HighestPerf: 196}, CPU{HighestPerf: 191}),
			[]Speed{fast, fast, fast}},
	} {
		for id, want := range c.want {
			if have := c.m.Speeds()[id]; have != want {
				t.Errorf("%s: CPU %d: %+v, not %+v", name, id, have, want)
			}
		}
	}
	m := cpusOf(CPU{MaxKHz: 5000}, CPU{MaxKHz: 2500})
	m.CPUs[0].Online = false
	if have := m.Speeds(); len(have) != 1 || have[1] != fast {
		t.Errorf("an offline CPU counts: %+v", have)
	}
}
