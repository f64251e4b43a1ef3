// SPDX-License-Identifier: Apache-2.0
package input

const longestWord = 64

// Distance is the number of letters to insert, delete or replace that make one word of another (Levenshtein). Words of
// more than 64 bytes are as far from each other as words of 64 can be.
func Distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return longestWord
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
