// SPDX-License-Identifier: Apache-2.0
package api_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func TestEachMethodHasARole(t *testing.T) {
	for _, m := range api.Methods() {
		if m.Role == apiv1.Role_ROLE_NONE {
			t.Errorf("%v has no role: add { option (role) = ... } to the method in api/*.proto", m)
		}
	}
}

// What can change something is named alike everywhere, so that a role which is too low stands out.
func TestReadersChangeNothing(t *testing.T) {
	for _, m := range api.Methods() {
		for _, verb := range []string{"Add", "Set", "Del", "Configure", "Disturb", "Delay", "Resize"} {
			if strings.HasPrefix(m.Name, verb) && m.Role != apiv1.Role_ROLE_ADMINISTER {
				t.Errorf("%v needs only %v", m, m.Role)
			}
		}
		if m.Service.Name() == "Capture" && m.Role < apiv1.Role_ROLE_OPERATE {
			t.Errorf("%v shows packets of guests to role %v", m, m.Role)
		}
	}
}

// The page says what each role allows, as api/*.proto state it.
func TestPageOnSecurity(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[apiv1.Role][]string{}
	for _, m := range api.Methods() {
		names[m.Role] = append(names[m.Role], "`"+m.String()+"`")
	}
	for _, role := range []apiv1.Role{apiv1.Role_ROLE_READ, apiv1.Role_ROLE_OPERATE} {
		if row := strings.Join(names[role], ", ") + " |\n"; !strings.Contains(string(page), row) {
			t.Errorf("docs/security.md lacks, in the row of %v:\n%s", role, row)
		}
	}
	for role, group := range api.Groups {
		if !strings.Contains(string(page), "`"+group+"`") {
			t.Errorf("docs/security.md does not name %s, the group of %v", group, role)
		}
	}
}
