// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"errors"
	"fmt"
	"strings"
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
			"--vxlan 'x'"},
		{[]string{"port", "add"}, refused("tap.netns", "tap.netns 'x': there is no such network namespace"),
			"--netns 'x': there is no such network namespace"},
		{[]string{"label", "add"}, &api.Error{Field: "label.label", Message: "label.label: is taken; valid: a free " +
			"label, or replace", Valid: "a free label, or replace"},
			"label.label: is taken; valid: a free label, or --replace"},
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
		if got := (&app{}).inOwnWords(cmd, c.err).Error(); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.command, got, c.want)
		}
	}
}

// An error of the daemon names the arguments of the command line by their names in its usage.
func TestErrorsNameArguments(t *testing.T) {
	for _, c := range []struct {
		line         string
		field, value string
		want         string
	}{
		{"rule add web 5 allow", "rule.id", "5", "rule '5': no"},
		{"rule add 5 5 allow", "rule.id", "5", "rule '5': no"},
		{"rule add 5 5 allow", "rule.list", "5", "list '5': no"},
		{"rule del web 5 7", "rule.id", "7", "rule '7': no"},
		{"label add 20 vrf red", "label.label", "20", "label '20': no"},
		{"port add vm1 tenant tap", "port.name", "vm1", "port 'vm1': no"},
		{"port add blue tenant tap --netns blue", "tap.netns", "blue", "--netns 'blue': no"},
		{"port add blue tenant tap --netns blue", "port.name", "blue", "port 'blue': no"},
		{"port add vm1 tenant tap", "port.mtu", "1", "--mtu '1': no"},
	} {
		words := strings.Fields(c.line)
		cmd, args, err := (&app{}).root().Find(words)
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err != nil {
			t.Fatal(err)
		}
		refused := &api.Error{Field: c.field, Value: c.value, Message: c.field + " '" + c.value + "': no"}
		if got := (&app{}).inOwnWords(cmd, refused).Error(); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.line, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"red", "blue", "vm1", "vm2", "ip4_no_route", "x"}
	for word, want := range map[string]string{"rde": "red", "RED": "red", "blu": "blue", "vm": "vm1 vm2", "a": "",
		"ab": "", "vm10": "vm1 vm2", "ip4_no_rout": "ip4_no_route", "green": "", "y": ""} {
		if got := strings.Join(nearest(word, names), " "); got != want {
			t.Errorf("%s: %s, not %s", word, got, want)
		}
	}
}
