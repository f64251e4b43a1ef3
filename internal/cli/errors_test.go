// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/corelane/corelane/internal/api"
)

// An error of the daemon names the flags of the command, where it has some for the fields.
func TestErrorsNameFlags(t *testing.T) {
	refused := func(field, message string) *api.Error { return &api.Error{Field: field, Message: message} }
	for _, c := range []struct {
		command []string
		err     error
		want    string
	}{
		{[]string{"meter", "add"},
			&api.Error{Field: "meter.bit_rate", Message: "meter.bit_rate: a meter needs a rate; valid: bit_rate or " +
				"packet_rate", Valid: "bit_rate or packet_rate"},
			"--bit-rate: a meter needs a rate; valid: --bit-rate or --packet-rate"},
		{[]string{"meter", "add"}, &api.Error{Field: "meter.bit_rate", Value: "1"}, "--bit-rate '1': refused"},
		{[]string{"nexthop", "add"}, refused("nexthop.tunnel.label", "'15': is out of range; valid: 16 to 1048575"),
			"--label: '15': is out of range; valid: 16 to 1048575"},
		{[]string{"nexthop", "add"}, refused("nexthop.tunnel.label", "nexthop.tunnel.label '15': with "+
			"nexthop.tunnel.vni (tunnel.gre_key) or 'router_mac', a_b"),
			"--label '15': with nexthop.tunnel.vni (--gre-key) or 'router_mac', a_b"},
		{[]string{"meter", "add"}, refused("meter.name", "meter.name 'bit_rate': exists already"),
			"meter.name 'bit_rate': exists already"},
		{[]string{"mirror", "add"}, refused("mirror.vxlan.remote", "mirror.vxlan.remote 'x'"),
			"mirror.vxlan.remote 'x'"},
		{[]string{"mirror", "add"}, refused("mirror.erspan.local", "mirror.erspan.local 'x'"), "--local 'x'"},
		{[]string{"meter", "del"}, refused("meter.bit_rate", "meter.bit_rate: x"), "meter.bit_rate: x"},
		{[]string{"route", "load"}, fmt.Errorf("f:3: %w", refused("route.nexthop", "route.nexthop '9': is not there")),
			"f:3: route.nexthop '9': is not there"},
		{[]string{"meter", "add"}, errors.New("bit_rate"), "bit_rate"},
	} {
		cmd, _, err := (&app{}).root().Find(c.command)
		if err != nil {
			t.Fatal(err)
		}
		if got := withFlags(cmd, c.err).Error(); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.command, got, c.want)
		}
	}
}
