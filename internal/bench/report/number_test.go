// SPDX-License-Identifier: Apache-2.0
package report

import (
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(0), "0"}, {number(math.NaN()), none}, {number(math.Inf(1)), none}, {number(15.94), "15.9"},
		{number(12345), "12,300"},
		{number(-1234567), "-1,230,000"}, {mpps(165432), "0.165"}, {ratio(0), none}, {ratio(0.5149), "0.51"},
		{times(2.34), "2.3"}, {times(52.9), "53"},
		{count(999), "999"}, {count(uint64(1048576)), "1,048,576"}, {plural(1, "route"), "1 route"},
		{plural(100000, "flow"), "100,000 flows"},
		{span(4.001, 4.002, number), "4.00"}, {span(4, 9, number), "4.00\u00a0to\u00a09.00"},
		{tick(0.30000000000000004), "0.3"}, {tick(1000), "1,000"},
		{short(1), "1"}, {short(1e5), "100\u00a0k"}, {short(1e6), "1\u00a0M"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
