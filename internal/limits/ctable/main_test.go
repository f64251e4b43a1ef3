// SPDX-License-Identifier: Apache-2.0
package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTablesAreCurrent(t *testing.T) {
	for name, text := range files() {
		path := filepath.Join("../../../dataplane", name)
		old, err := os.ReadFile(path)
		if err != nil || string(old) != text {
			t.Errorf("%s is not what api/*.proto give (%v): run 'make api' and commit", path, err)
		}
	}
}
