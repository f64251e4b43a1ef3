// SPDX-License-Identifier: Apache-2.0
package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corelane/corelane/internal/state"
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

// The kept state finds the object that a request deletes by the same fields in which the object has its keys.
func TestRequestsToDeleteHaveTheKeys(t *testing.T) {
	for _, n := range state.Nouns() {
		add, del := n.Service.Methods().ByName("Add"), n.Service.Methods().ByName("Del")
		if add == nil {
			continue // the settings
		}
		object, deleted := byNumber(add.Input())[0], del.Input()
		if object.Message() != n.Message || object.Number() != 1 {
			t.Errorf("%s: field 1 is not the object", add.Input().FullName())
		}
		if object.IsList() != byNumber(deleted)[0].IsList() {
			t.Errorf("%s.Add and Del do not both have a list of objects", n.Service.FullName())
		}
		if object.IsList() {
			deleted = byNumber(deleted)[0].Message()
		}
		for _, key := range n.Keys {
			fd := deleted.Fields().ByNumber(key.Number())
			if fd == nil || fd.Name() != key.Name() || fd.Kind() != key.Kind() {
				t.Errorf("%s: field %d is not %s", deleted.FullName(), key.Number(), key.Name())
			}
		}
	}
}
