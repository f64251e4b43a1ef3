// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"strings"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func TestPortsWithRules(t *testing.T) {
	guest := func(p *apiv1.Port) *apiv1.Port {
		p.GuestMac, p.GuestAddresses = "02:00:00:00:00:01", []string{"10.1.0.2/32"}
		return p
	}
	const none, path = apiv1.SourceCheck_SOURCE_CHECK_NONE, apiv1.SourceCheck_SOURCE_CHECK_REVERSE_PATH
	for _, c := range []struct {
		port *apiv1.Port
		warn bool
	}{
		{&apiv1.Port{}, false},
		{&apiv1.Port{EgressRules: "web"}, true},
		{&apiv1.Port{IngressRules: "web"}, true},
		{&apiv1.Port{IngressRules: "web", GuestMac: "02:00:00:00:00:01"}, true},
		{guest(&apiv1.Port{IngressRules: "web"}), false},
		{guest(&apiv1.Port{IngressRules: "web", SourceCheck: none}), true},
		{guest(&apiv1.Port{SourceCheck: none}), false},
		{&apiv1.Port{IngressRules: "web", SourceCheck: path}, false},
	} {
		if got := PassableRules(c.port); (got != "") != c.warn {
			t.Errorf("%v: '%s'", c.port, got)
		}
		c.port.Name = "vm1"
		f := Ports([]*apiv1.Port{c.port})
		if (f.Verdict == Warn) != c.warn || c.warn && !strings.Contains(said(f), "port vm1 has rules") {
			t.Errorf("%v: %s", c.port, said(f))
		}
	}
}
