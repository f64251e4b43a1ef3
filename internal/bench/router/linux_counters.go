// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/corelane/corelane/internal/namespace"
)

// Counters of the router's devices and of the protocols in its namespace.
func (i *linuxInstance) Counters(context.Context) (Counters, error) {
	c := Counters{Drops: map[string]uint64{}}
	err := namespace.Do(i.router, func() error {
		if err := deviceDrops(c.Drops); err != nil {
			return err
		}
		for _, file := range []string{"snmp", "snmp6"} { // /proc/net is the process's, not the thread's
			text, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			protocolDrops(string(text), c.Drops)
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("linux: counters: %w", err)
	}
	return c, nil
}

func deviceDrops(drops map[string]uint64) error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, link := range links {
		s := link.Attrs().Statistics
		if s == nil {
			continue
		}
		for what, n := range map[string]uint64{"rx dropped": s.RxDropped, "tx dropped": s.TxDropped, "rx errors": s.RxErrors, "tx errors": s.TxErrors} {
			if n > 0 {
				drops[link.Attrs().Name+" "+what] = n
			}
		}
	}
	return nil
}

var protocolDrop = regexp.MustCompile(`^Ip6?\w*(Discards|Errors|NoRoutes|UnknownProtos)$`)

// protocolDrops reads snmp, where names and values are in lines of their own, and snmp6, where they are in one.
func protocolDrops(text string, drops map[string]uint64) {
	var names []string
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && !strings.HasSuffix(words[0], ":"):
			protocolCount(drops, words[0], words[1])
		case len(words) > 1 && len(names) == len(words) && names[0] == words[0]:
			for n := range words[1:] {
				protocolCount(drops, strings.TrimSuffix(words[0], ":")+names[n+1], words[n+1])
			}
			names = nil
		default:
			names = words
		}
	}
}

func protocolCount(drops map[string]uint64, name, digits string) {
	if protocolDrop.MatchString(name) {
		count(drops, name, digits)
	}
}
