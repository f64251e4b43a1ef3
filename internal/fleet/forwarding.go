// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
)

// addForwarding asks the data plane what a packet to a prefix meets, if all stages before say that it has the route.
func (f *Fleet) addForwarding(ctx context.Context, l *stages, vrf string, p netip.Prefix) {
	if last := (*l)[len(*l)-1]; last.Name != programmed || !last.Ok {
		return
	}
	c, err := f.Dial(ctx)
	if err == nil {
		defer c.Close()
		err = f.lookUp(ctx, c, l, vrf, p)
	}
	if err != nil {
		l.add(forwarding, false, "corelane status", "the data plane does not answer: %v", err)
	}
}

const (
	programmed = "programmed"
	forwarding = "forwarding"
)

func (f *Fleet) lookUp(ctx context.Context, c *api.Client, l *stages, vrf string, p netip.Prefix) error {
	found, err := api.Call(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.Lookup,
		&apiv1.RouteLookupRequest{Vrf: vrf, Address: p.Addr().String()})
	if err != nil {
		return err
	}
	if found.Prefix != p.String() || found.Origin != Owner {
		// A longer route of the agent's own is another host's, and as it should be.
		l.add(forwarding, found.Origin == Owner, routeFix(found, vrf), "packets to %v take the route %s of '%s'",
			p.Addr(), found.Prefix, found.Origin)
		return nil
	}
	var hop *apiv1.Nexthop
	err = api.Stream(ctx, c, apiv1.NewNexthopsClient, apiv1.NexthopsClient.List,
		&apiv1.NexthopListRequest{Id: found.Nexthop}, func(n *apiv1.Nexthop) error {
			hop = n
			return nil
		})
	if err != nil {
		return err
	}
	st := hop.GetState()
	l.add(forwarding, st.GetResolved(), neighborFix(hop), "next hop %d%s", found.Nexthop, ways(st))
	return nil
}

// routeFix says how a route that is in the way can be removed: by its owner, or with what made it.
func routeFix(r *apiv1.Route, vrf string) string {
	command := fmt.Sprintf("corelane route del %s --vrf %s", r.Prefix, vrf)
	switch r.Origin {
	case "guest", "connected", "local":
		return "'corelane port list' shows the port that has this address; change the port if it should not"
	case api.DefaultOwner:
		return "if that route is not wanted: " + command
	}
	return "if that route is not wanted: CORELANE_OWNER=" + r.Origin + " " + command
}

func ways(st *apiv1.NexthopState) string {
	text := " is not resolved"
	if st.GetResolved() {
		text = " leaves by " + strings.Join(st.GetPaths(), ", ")
		if len(st.GetPaths()) == 0 {
			text = " is resolved"
		}
	}
	if st.GetPathMtu() > 0 {
		text += fmt.Sprintf("; hop %s reports a path MTU of %d", st.PathMtuHop, st.PathMtu)
	}
	return text
}

// neighborFix is the command that shows where the underlay ends.
func neighborFix(hop *apiv1.Nexthop) string {
	if t := hop.GetTunnel(); t != nil {
		return fmt.Sprintf("'corelane neighbor list' shows whether the underlay's next hop to %s answers; bring up "+
			"that host or router", t.Remote)
	}
	return fmt.Sprintf("'corelane nexthop show %d' lists its members; bring up one of their hosts", hop.GetId())
}

// whyNotPrefix is whyNot with the data plane's part.
func (f *Fleet) whyNotPrefix(ctx context.Context, vrf string, p netip.Prefix) []*agentv1.Stage {
	f.enter()
	l := f.whyNot(vrf, p)
	f.mu.Unlock()
	f.addForwarding(ctx, &l, vrf, p)
	return l
}
