// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

const (
	uplink        = "uplink" // a port of the network, beside the scenario's
	uplinkAddress = "198.18.2.1"
	uplinkPeer    = "198.18.2.2:9" // nobody has it: the kernel asks for its MAC
)

// injectDeadLink adds a port of the network at one end of a veth pair, lets frames in at the other end, and takes that
// end down.
func injectDeadLink(ctx context.Context, b *loadedVictim) (_ *injection, err error) {
	near, far := fmt.Sprintf("cl%d-0", os.Getpid()), fmt.Sprintf("cl%d-1", os.Getpid())
	attrs := netlink.NewLinkAttrs()
	attrs.Name = near
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: far}
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, err
	}
	undo := func() error { return netlink.LinkDel(pair) }
	defer func() {
		if err != nil {
			err = errors.Join(err, undo())
		}
	}()
	if err := netlink.LinkSetUp(pair); err != nil {
		return nil, err
	}
	if err := address(far, uplinkAddress); err != nil {
		return nil, err
	}
	port := &apiv1.Port{Name: uplink, Role: apiv1.PortRole_PORT_ROLE_FABRIC, Device: &apiv1.Port_Dpdk{
		Dpdk: &apiv1.DpdkDevice{Devargs: "net_af_packet9,iface=" + near}}}
	if _, err := api.Call(ctx, b.client, apiv1.NewPortsClient, apiv1.PortsClient.Add,
		&apiv1.PortAddRequest{Port: port}); err != nil {
		return nil, err
	}
	undo = func() error {
		_, err := api.Call(context.WithoutCancel(ctx), b.client, apiv1.NewPortsClient, apiv1.PortsClient.Del,
			&apiv1.PortDelRequest{Name: uplink})
		return errors.Join(err, netlink.LinkDel(pair))
	}
	ask := func() error { // who has uplinkPeer?
		c, err := net.Dial("udp4", uplinkPeer)
		if err != nil {
			return err
		}
		_, err = c.Write([]byte{0})
		return errors.Join(err, c.Close())
	}
	came := func(s *apiv1.PortState) bool { return s.LinkUp && s.Counters.GetRxPackets() > 0 }
	if err := b.awaitUplink(ctx, ask, came); err != nil {
		return nil, err
	}
	link, err := netlink.LinkByName(far)
	if err == nil {
		err = netlink.LinkSetDown(link)
	}
	if err != nil {
		return nil, err
	}
	down := func(s *apiv1.PortState) bool { return !s.LinkUp }
	up := func(s *apiv1.PortState) bool { return s.LinkUp }
	i := &injection{culprit: Culprit{Port: uplink}, undo: func() error { return undo() },
		mended: func(ctx context.Context) error { return b.awaitUplink(ctx, nothing, up) }}
	return i, b.awaitUplink(ctx, nothing, down)
}

// awaitUplink waits until the state of the port is as wanted, and does something before each look.
func (b *loadedVictim) awaitUplink(ctx context.Context, do func() error, wanted func(*apiv1.PortState) bool) error {
	within, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := wait.Until(within, 100*time.Millisecond, func() (found bool, err error) {
		if err := do(); err != nil {
			return false, err
		}
		list, err := api.Collect(ctx, b.client, apiv1.NewPortsClient, apiv1.PortsClient.List,
			&apiv1.PortListRequest{})
		for _, p := range list {
			found = found || p.Name == uplink && p.State != nil && wanted(p.State)
		}
		return found, err
	})
	if err != nil {
		return fmt.Errorf("port %s: %w", uplink, err)
	}
	return nil
}
