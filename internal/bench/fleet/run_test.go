// SPDX-License-Identifier: Apache-2.0
package fleet

import "testing"

func TestShort(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want bool
	}{
		{Row{Value: 10, Limit: 10}, false}, {Row{Value: 11, Limit: 10}, true},
		{Row{Value: 10, Limit: 10, Least: true}, false}, {Row{Value: 9, Limit: 10, Least: true}, true},
	} {
		if got := c.row.Short(); got != c.want {
			t.Errorf("%+v: %v", c.row, got)
		}
	}
}
