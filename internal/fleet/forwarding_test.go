// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// The last stage is what the data plane does with a packet: another route may be longer, a tunnel may lead nowhere.
func TestForwarding(t *testing.T) {
	p := netip.MustParsePrefix("10.0.9.0/24")
	for _, c := range []struct {
		name          string
		routes        map[string]string // of the data plane: prefix and origin
		resolved      bool
		evidence, fix string
	}{
		{"all well", map[string]string{"10.0.9.0/24": Owner}, true, "next hop 5000 leaves by fab0 via 192.0.2.2", ""},
		{"no neighbour", map[string]string{"10.0.9.0/24": Owner}, false, "is not resolved", "corelane neighbor list"},
		{"a longer route", map[string]string{"10.0.9.0/24": Owner, "10.0.9.0/28": "api"}, true,
			"take the route 10.0.9.0/28 of 'api'", "wanted: corelane route del 10.0.9.0/28 --vrf red"},
		{"another owner", map[string]string{"10.0.9.0/24": "nova"}, true, "of 'nova'",
			"CORELANE_OWNER=nova corelane route del 10.0.9.0/24 --vrf red"},
		{"a guest here", map[string]string{"10.0.9.0/24": Owner, "10.0.9.0/32": "guest"}, true, "of 'guest'",
			"corelane port list"},
		{"the agent's own", map[string]string{"10.0.9.0/24": Owner, "10.0.9.0/32": Owner}, true, "10.0.9.0/32", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := apitest.Start(t)
			s.Lock()
			for prefix, origin := range c.routes {
				s.Routes.Put(apitest.RouteKey{Vrf: "red", Prefix: prefix},
					&apiv1.Route{Vrf: "red", Prefix: prefix, Nexthop: 5000, Origin: origin})
			}
			state := &apiv1.NexthopState{Resolved: c.resolved, Paths: []string{"fab0 via 192.0.2.2"}}
			s.Nexthops.Put(5000, &apiv1.Nexthop{Id: 5000, State: state, Kind: &apiv1.Nexthop_Tunnel{
				Tunnel: &apiv1.TunnelNexthop{Remote: "192.0.2.2"}}})
			s.Unlock()
			f := &Fleet{Options: Options{Dial: func(ctx context.Context) (*api.Client, error) {
				return api.Dial(ctx, s.Socket, "test")
			}}}
			l := stages{}
			l.add(programmed, true, "", "")
			f.addForwarding(t.Context(), &l, "red", p)
			last := l[len(l)-1]
			if last.Name != forwarding || last.Ok != (c.fix == "") || !strings.Contains(last.Evidence, c.evidence) ||
				!strings.Contains(last.Fix, c.fix) {
				t.Error(last)
			}
		})
	}
	l := stages{}
	l.add(programmed, false, "change it", "it was refused")
	(&Fleet{}).addForwarding(t.Context(), &l, "red", p)
	if len(l) != 1 {
		t.Error("what is not programmed is looked up:", l)
	}
}
