// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/stat"
)

// losses are counters of lost packets: in the routers by reason, and outside them by place.
type losses struct{ drops, outside map[string]uint64 }

// Places outside the routers where packets are lost.
const (
	lostMissed  = "no room in the port"           // rx_missed of a port
	lostWire    = "no room in the fabric ring"    // between the wire and the port
	lostGuestTx = "no room in the guest's tap"    // the router did not poll it in time
	lostSocket  = "no room in the guest's socket" // the receiver did not read it in time
)

// losses reads all counters of a path.
func (l *Lab) losses(ctx context.Context, p Path) (losses, error) {
	all := losses{map[string]uint64{}, map[string]uint64{}}
	for _, h := range l.corelaneHosts() {
		if err := l.hostLosses(ctx, h, all); err != nil {
			return all, fmt.Errorf("counters of %s: %w", h.Name, err)
		}
	}
	for _, g := range []Guest{p.From, p.To} {
		if err := namespace.Do(l.Netns(g.Name()), func() error { return guestLosses(all) }); err != nil {
			return all, fmt.Errorf("counters of %s: %w", g.Name(), err)
		}
	}
	return all, nil
}

func (l *Lab) hostLosses(ctx context.Context, h Host, all losses) error {
	c, err := l.Dial(ctx, h)
	if err != nil {
		return err
	}
	defer c.Close()
	err = api.Stream(ctx, c, apiv1.NewStatsClient, apiv1.StatsClient.Drops, &apiv1.DropListRequest{},
		func(d *apiv1.Drop) error {
			all.drops[d.Reason] += d.Packets
			return nil
		})
	if err != nil {
		return err
	}
	sent, err := l.sentTo(h)
	if err != nil {
		return err
	}
	return api.Stream(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{},
		func(p *apiv1.Port) error {
			n := p.GetState().GetCounters()
			all.outside[lostMissed] += n.GetRxMissed()
			if p.Name == fabricPort && sent > n.GetRxPackets()+n.GetRxMissed() {
				all.outside[lostWire] += sent - n.GetRxPackets() - n.GetRxMissed()
			}
			return nil
		})
}

// sentTo is the number of packets that the switch has sent to a host; 0 without a switch.
func (l *Lab) sentTo(h Host) (sent uint64, err error) {
	if !l.hasSwitch() {
		return 0, nil
	}
	err = namespace.Do(l.Netns(switchName), func() error {
		link, err := netlink.LinkByName(h.Name)
		if err == nil {
			sent = link.Attrs().Statistics.TxPackets
		}
		return err
	})
	return sent, err
}

func guestLosses(all losses) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	all.outside[lostGuestTx] += link.Attrs().Statistics.TxDropped
	const file = "proc/thread-self/net/snmp"
	text, err := procfs.Host.Read(file)
	if err != nil {
		return err
	}
	n, found := procfs.ParseSNMP(text)["UdpRcvbufErrors"]
	if !found {
		return errors.New("no UdpRcvbufErrors in /" + file)
	}
	all.outside[lostSocket] += n
	return nil
}

// since subtracts an earlier reading. Counters that have not grown are left out.
func (n losses) since(before losses) losses {
	return losses{stat.GrownBy(n.drops, before.drops), stat.GrownBy(n.outside, before.outside)}
}
