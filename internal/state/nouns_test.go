// SPDX-License-Identifier: Apache-2.0
package state

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// excused has the services without a section in the node file, each with the reason.
var excused = map[string]string{
	"Capture":   "observes packets",
	"Debug":     "deliberate faults, which are not configuration",
	"Events":    "a log, not configuration",
	"Flows":     "created by traffic; their lifetimes are settings",
	"Generator": "belongs to another program",
	"Stats":     "counters",
	"Threads":   "placed by the options of the process",
}

func TestEveryServiceIsInTheNodeFileOrExcused(t *testing.T) {
	var known []string
	for _, n := range nouns {
		known = append(known, string(n.service.Name()))
	}
	for _, service := range services() {
		name := string(service.Name())
		_, ok := excused[name]
		switch in := slices.Contains(known, name); {
		case !in && !ok:
			t.Errorf("%s is neither a section of State nor excused here", name)
		case in && ok:
			t.Errorf("%s is excused, and is a section", name)
		}
	}
	for name, why := range excused {
		if why == "" || !slices.ContainsFunc(services(), func(s protoreflect.ServiceDescriptor) bool {
			return string(s.Name()) == name
		}) {
			t.Errorf("%s is excused without a reason, or does not exist", name)
		}
	}
}

// Diff, Apply and Read derive what to do with a section from its tag and its service, which therefore must be complete.
func TestNounsAreWhole(t *testing.T) {
	for _, n := range nouns {
		if n.section == "settings" {
			continue
		}
		if len(n.keys) == 0 {
			t.Errorf("%s: no field of %s is a key", n.section, n.message.Descriptor().Name())
		}
		for _, method := range []string{"Add", "Del", "List"} {
			if n.service.Methods().ByName(protoreflect.Name(method)) == nil {
				t.Errorf("%s: %s has no method %s", n.section, n.service.Name(), method)
			}
		}
		if slices.Contains(n.is, "named") && !n.canSet() {
			t.Errorf("%s: others refer to its objects, so they cannot be replaced, but there is no Set", n.section)
		}
		for _, word := range n.is {
			if !slices.Contains([]string{"", "named", "leaf", "line"}, word) {
				t.Errorf("%s: '%s' is none of named, leaf, line", n.section, word)
			}
		}
		if strings.ToLower(n.name) != n.name {
			t.Errorf("%s: '%s' is not lower case", n.section, n.name)
		}
	}
}
