// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// Counters reads the counters of ports, datapath and polling threads. The daemon does not answer while it is paused.
func (i *ovsInstance) Counters(ctx context.Context) (Counters, error) {
	ports, err1 := i.ask(ctx, "dpctl/show", "-s")
	events, err2 := i.ask(ctx, "coverage/show")
	threads, err3 := i.ask(ctx, "dpif-netdev/pmd-stats-show")
	if err := errors.Join(err1, err2, err3); err != nil {
		return Counters{}, err
	}
	c := Counters{Drops: map[string]uint64{}}
	ovsPortDrops(ports, c.Drops)
	ovsEventDrops(events, c.Drops)
	c.Busy, c.Idle = ovsCycles(threads)
	return c, nil
}

var (
	ovsPortLine = regexp.MustCompile(`^  port \d+: (\S+)`)
	ovsStats    = regexp.MustCompile(`^    (RX|TX) packets:`)
	ovsStat     = regexp.MustCompile(`(errors|dropped|overruns):(\d+)`)
	ovsLookups  = regexp.MustCompile(`^  lookups: .*lost:(\d+)`)
	ovsEvent    = regexp.MustCompile(`^(\w*drop\w*) .*total: (\d+)`)
	ovsThread   = regexp.MustCompile(`^(pmd|main) thread`)
	ovsCycle    = regexp.MustCompile(`^  (idle|processing) cycles: (\d+)`)
)

// ovsPortDrops reads the ports' counters of dpctl/show -s.
func ovsPortDrops(text string, drops map[string]uint64) {
	port := ""
	for _, line := range strings.Split(text, "\n") {
		if m := ovsPortLine.FindStringSubmatch(line); m != nil {
			port = m[1]
		} else if m := ovsStats.FindStringSubmatch(line); m != nil {
			for _, s := range ovsStat.FindAllStringSubmatch(line, -1) {
				count(drops, port+" "+strings.ToLower(m[1])+" "+s[1], s[2])
			}
		} else if m := ovsLookups.FindStringSubmatch(line); m != nil {
			count(drops, "lookups lost", m[1])
		}
	}
}

// ovsEventDrops reads the totals of coverage/show.
func ovsEventDrops(text string, drops map[string]uint64) {
	for _, line := range strings.Split(text, "\n") {
		if m := ovsEvent.FindStringSubmatch(line); m != nil {
			count(drops, m[1], m[2])
		}
	}
}

func count(drops map[string]uint64, name, digits string) {
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n > 0 {
		drops[name] += n
	}
}

// ovsCycles sums the cycles of all polling threads in pmd-stats-show. The main thread polls only the kernel's ports.
func ovsCycles(text string) (busy, idle uint64) {
	sum := map[string]uint64{}
	pmd := false
	for _, line := range strings.Split(text, "\n") {
		if m := ovsThread.FindStringSubmatch(line); m != nil {
			pmd = m[1] == "pmd"
		} else if m := ovsCycle.FindStringSubmatch(line); m != nil && pmd {
			count(sum, m[1], m[2])
		}
	}
	return sum["processing"], sum["idle"]
}
