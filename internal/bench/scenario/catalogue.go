// SPDX-License-Identifier: Apache-2.0
package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/input"
)

// List is the catalogue of scenarios, with default values.
func List() []Scenario {
	var list []Scenario
	for _, o := range overlays {
		for _, bridged := range []bool{false, true} {
			list = append(list, tunnelled(o, bridged, TenantToWire), tunnelled(o, bridged, WireToTenant))
		}
	}
	for _, s := range []Scenario{
		{Name: "routed", Summary: "between two tenants' ports, by route"},
		{Name: "bridged", Summary: "between two tenants' ports, by MAC address", Bridged: true},
	} {
		s.Direction = TenantToTenant
		list = append(list, s)
	}
	for i := range list {
		s := &list[i]
		s.Tenants, s.Routes, s.Flows, s.Sizes, s.Workers = 1, 1, 1000, []int{minFrame}, 1
	}
	return list
}

var (
	overlays = []Overlay{VXLAN, MPLSoUDP, MPLSoGRE, Geneve}
	titles   = map[Overlay]string{VXLAN: "VXLAN", MPLSoUDP: "MPLSoUDP", MPLSoGRE: "MPLSoGRE", Geneve: "Geneve"}
)

// overlayNames lists the valid overlays, for messages.
func overlayNames() string {
	var names []string
	for _, o := range overlays {
		names = append(names, string(o))
	}
	return strings.Join(names, ", ")
}

func tunnelled(o Overlay, bridged bool, d Direction) Scenario {
	name, what := string(o), "routed packets"
	if bridged {
		name, what = name+"-bridge", "bridged frames"
	}
	s := Scenario{Name: name + "-encap", Direction: d, Overlay: o, Bridged: bridged,
		Summary: fmt.Sprintf("tenant to wire: %s into %s", what, titles[o])}
	if d == WireToTenant {
		s.Name, s.Summary = name+"-decap", fmt.Sprintf("wire to tenant: %s out of %s", what, titles[o])
	}
	return s
}

// Find returns a scenario of the catalogue by its name.
func Find(name string) (Scenario, error) {
	list := List()
	for _, s := range list {
		if s.Name == name {
			return s, nil
		}
	}
	slices.SortStableFunc(list, func(a, b Scenario) int {
		return cmp.Compare(input.Distance(name, a.Name), input.Distance(name, b.Name))
	})
	const some = 4
	near := make([]string, some)
	for i := range near {
		near[i] = list[i].Name
	}
	return Scenario{}, fmt.Errorf("scenario '%s' is unknown; similar: %s; all: corelane bench list", name,
		strings.Join(near, ", "))
}
