// SPDX-License-Identifier: Apache-2.0
package router

import (
	"fmt"
	"slices"
	"strings"
)

// cpuMask in the kernel's form: 32 bits in hexadecimal, and more of them in front of a comma.
func cpuMask(cpus []int) string {
	const bits = 32
	words := make([]uint32, slices.Max(cpus)/bits+1)
	for _, cpu := range cpus {
		words[cpu/bits] |= 1 << (cpu % bits)
	}
	slices.Reverse(words)
	text := fmt.Sprintf("%x", words[0])
	for _, w := range words[1:] {
		text += fmt.Sprintf(",%08x", w)
	}
	return text
}

// plainMask is the same without commas.
func plainMask(cpus []int) string { return strings.ReplaceAll(cpuMask(cpus), ",", "") }
