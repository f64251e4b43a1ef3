// SPDX-License-Identifier: Apache-2.0
package protoflag

import (
	"fmt"
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// Rates with decimals are exact, whatever binary fractions make of them.
func TestRates(t *testing.T) {
	fd := Field(&apiv1.Meter{}, "bit_rate")
	for suffix, unit := range map[string]uint64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} {
		for n := range uint64(100_000) {
			text := fmt.Sprintf("%d.%03d%s", n/1000, n%1000, suffix)
			if got, err := number(fd, text, 64); err != nil || got != n*(unit/1000) {
				t.Fatalf("%s: %d, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{"1.0001k", "1.5", "G", ".5G", "1.G", "1g", "-1G", "20000000000G"} {
		if got, err := number(fd, text, 64); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
	if got, err := number(Field(&apiv1.Meter{}, "packet_rate"), "5G", 32); err == nil {
		t.Errorf("5G in 32 bits: %d", got)
	}
}
