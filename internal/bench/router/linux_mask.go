// SPDX-License-Identifier: Apache-2.0
package router

import (
	"fmt"
	"slices"
	"strings"
)

// cpuMask writes CPUs as a mask in the kernel's form: hexadecimal words of 32 bits, separated by commas.
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

// plainMask writes the same without commas.
func plainMask(cpus []int) string { return strings.ReplaceAll(cpuMask(cpus), ",", "") }
