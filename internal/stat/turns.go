// SPDX-License-Identifier: Apache-2.0
package stat

import "slices"

// Turns returns the order of n things in a repetition: A B C, then C B A, then A B C, and so on, so that none of them
// always has the first turn.
func Turns(repetition, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	if repetition%2 == 1 {
		slices.Reverse(list)
	}
	return list
}
