// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"net"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/vpn"
	"github.com/corelane/corelane/internal/wait"
)

// followMacs keeps the engine informed of the addresses that bridges learn, over a connection of its own.
func (f *Fleet) followMacs(ctx context.Context) {
	for ctx.Err() == nil {
		if c, err := f.Dial(ctx); err == nil {
			_ = api.Stream(ctx, c, apiv1.NewMacsClient, apiv1.MacsClient.Watch, &apiv1.MacWatchRequest{},
				func(e *apiv1.MacEvent) error { return f.macChange(ctx, c, e) })
			_ = c.Close()
		}
		_ = wait.For(ctx, retry)
	}
}

// macChange takes one change. After a gap it reads all addresses; that some changes come twice then does
// no harm.
func (f *Fleet) macChange(ctx context.Context, c *api.Client, e *apiv1.MacEvent) error {
	if e.Change == apiv1.MacChange_MAC_CHANGE_MISSED {
		return f.readMacs(ctx, c)
	}
	hw, err := net.ParseMAC(e.GetMac().GetMac())
	if err != nil || len(hw) != len(vpn.Mac{}) {
		return nil // its bridge is gone meanwhile
	}
	bridge, m, port := e.Mac.Bridge, vpn.Mac(hw), e.Mac.GetPort()
	f.enter()
	defer f.mu.Unlock()
	f.engine.Tick(time.Now())
	news := false
	switch {
	case e.Change == apiv1.MacChange_MAC_CHANGE_GONE || port == "": // or it has moved behind a tunnel
		news = f.engine.Gone(bridge, m)
	case e.Change == apiv1.MacChange_MAC_CHANGE_SEEN:
		news = f.engine.Seen(bridge, m, port)
	default:
		news = f.engine.Learnt(bridge, m, port)
	}
	if news {
		f.nudge()
	}
	return nil
}

func (f *Fleet) readMacs(ctx context.Context, c *api.Client) error {
	all := map[string]map[vpn.Mac]string{}
	err := api.Stream(ctx, c, apiv1.NewMacsClient, apiv1.MacsClient.List, &apiv1.MacListRequest{},
		func(m *apiv1.Mac) error {
			hw, err := net.ParseMAC(m.Mac)
			if err != nil || len(hw) != len(vpn.Mac{}) || !m.Learnt || m.GetPort() == "" {
				return nil // nothing to announce
			}
			if all[m.Bridge] == nil {
				all[m.Bridge] = map[vpn.Mac]string{}
			}
			all[m.Bridge][vpn.Mac(hw)] = m.GetPort()
			return nil
		})
	if err != nil {
		return err
	}
	f.enter()
	defer f.mu.Unlock()
	f.engine.Tick(time.Now())
	f.engine.SetLearnt(all)
	f.nudge()
	return nil
}
