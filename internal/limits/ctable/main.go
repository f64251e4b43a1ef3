// SPDX-License-Identifier: Apache-2.0

// ctable writes the limits of api/*.proto as C, which has no options of fields: numbers and notations for every module
// (dataplane/base/field_limits.h, notations.c), and a table of each request for the API (dataplane/api/field_limits.c);
// the role that each method needs (dataplane/api/method_roles.c); and the nouns (dataplane/keep/nouns.c).
// `make api` runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ctable DIRECTORY, the one that has base/ and api/")
		os.Exit(2)
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// files are all that is made, by name below dataplane/.
func files() map[string]string {
	return map[string]string{"base/field_limits.h": header(), "base/notations.c": notations(),
		"api/field_limits.c": tables(), "api/method_roles.c": roles(),
		"keep/nouns.c": keptNouns()}
}

const preamble = `// SPDX-License-Identifier: Apache-2.0
// Made by ` + "`make api`" + ` from the options in api/*.proto. Change them there.
// clang-format off
`
