// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/api"
)

// roles are what the methods need.
func roles() string {
	var b strings.Builder
	b.WriteString(preamble + "#include \"api/role.h\"\n\nconst struct method_role method_roles[] = {\n")
	for _, m := range api.Methods() {
		fmt.Fprintf(&b, "\t{%s, %s, %v},\n", quote(string(m.Service)), quote(m.Name), m.Role)
	}
	return b.String() + "};\nconst unsigned n_method_roles = sizeof(method_roles) / sizeof(method_roles[0]);\n"
}
