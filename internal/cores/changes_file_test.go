// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"encoding/json"
	"os"
	"testing"
)

func writeChanges(t *testing.T, path string, changes []Change) {
	t.Helper()
	text, err := json.Marshal(changes)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readChanges(path string) (changes []Change, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &changes)
	}
	return changes, err
}
