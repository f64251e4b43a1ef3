// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/vishvananda/netlink"

	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/procfs"
)

// Counters of the router's devices and of the protocols in its namespace.
func (i *linuxInstance) Counters(context.Context) (Counters, error) {
	c := Counters{Drops: map[string]uint64{}}
	err := namespace.Do(i.router, func() error {
		if err := deviceDrops(c.Drops); err != nil {
			return err
		}
		for _, file := range []string{"snmp", "snmp6"} { // /proc/net shows the process's namespace
			text, err := procfs.Host.Read("proc/thread-self/net/" + file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			protocolDrops(text, c.Drops)
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
		for what, n := range map[string]uint64{"rx dropped": s.RxDropped, "tx dropped": s.TxDropped,
			"rx errors": s.RxErrors, "tx errors": s.TxErrors} {
			if n > 0 {
				drops[link.Attrs().Name+" "+what] = n
			}
		}
	}
	return nil
}

var protocolDrop = regexp.MustCompile(`^Ip6?\w*(Discards|Errors|NoRoutes|UnknownProtos)$`)

func protocolDrops(text string, drops map[string]uint64) {
	for name, n := range procfs.ParseSNMP(text) {
		if n > 0 && protocolDrop.MatchString(name) {
			drops[name] = n
		}
	}
}
