// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/bench/scenario"
	"github.com/corelane/corelane/internal/input"
)

// Options of one run.
type Options struct {
	Attacks              []string      // names; empty: all
	Ports                []string      // kinds of the attacker's port; empty: all
	Repetitions          int           // pairs of trials
	Trial                time.Duration // length of a trial
	Rate                 float64       // frames per second of the observed tenant; 0: half of its fair share
	FlowLimit, FlowRate  int           // of the attacker's port, 0 = no limit
	WorkerCPU, Generator int
	Root, Bin, Out       string
	Command, Version     string
	Commit               string
}

// Default options: a row takes about ten seconds.
func Default() Options {
	return Options{Repetitions: 5, Trial: 400 * time.Millisecond, WorkerCPU: 1, Root: "/", Out: "."}
}

// Quick shortens everything, to show that it works.
func (o *Options) Quick() { o.Repetitions, o.Trial = 2, 200*time.Millisecond }

const (
	maxRate  = 100_000_000
	ringSize = 1024
)

// Validate checks the options.
func (o *Options) Validate() error {
	for _, c := range []struct {
		flag          string
		names, chosen []string
	}{{"--attack", AttackNames(), o.Attacks}, {"--port", PortKinds(), o.Ports}} {
		for _, name := range c.chosen {
			if !slices.Contains(c.names, name) {
				return input.Errorf(c.flag, strings.Join(c.names, ", "), "'%s' is unknown", name)
			}
		}
	}
	for _, c := range []struct {
		flag             string
		value, low, high float64
	}{{"--reps", float64(o.Repetitions), 1, 100}, {"--trial-seconds", o.Trial.Seconds(), 0.1, 0.8},
		{"--rate", o.Rate, 0, maxRate}, {"--flow-limit", float64(o.FlowLimit), 0, 1 << 24},
		{"--flow-rate", float64(o.FlowRate), 0, 1 << 30}} {
		if !(c.value >= c.low && c.value <= c.high) {
			return input.Errorf(c.flag, fmt.Sprintf("%.9g to %.9g", c.low, c.high), "%.9g is out of range", c.value)
		}
	}
	if len(o.rows()) == 0 {
		return input.Errorf("--port", "see --list", "none of the attacks fits %s", strings.Join(o.Ports, ", "))
	}
	if o.WorkerCPU == o.Generator {
		return input.Errorf("--cpu", "another CPU than the generator's", "%d is both", o.WorkerCPU)
	}
	return nil
}

// scenario has two tenants. The first one is observed, the second one attacks.
func (o *Options) scenario() (scenario.Scenario, error) {
	s, err := scenario.Find("mplsoudp-encap")
	s.Tenants, s.Flows, s.Stateful, s.Both = 2, 2000, true, true
	s.FlowLimit, s.FlowRate = o.FlowLimit, o.FlowRate
	return s, err
}

func (o *Options) settings() map[string]string {
	return map[string]string{"repetitions": fmt.Sprint(o.Repetitions), "trial_seconds": fmt.Sprint(o.Trial.Seconds()),
		"rate": fmt.Sprint(o.Rate), "flow_limit": fmt.Sprint(o.FlowLimit), "flow_rate": fmt.Sprint(o.FlowRate),
		"ring_size": fmt.Sprint(ringSize)}
}
