// SPDX-License-Identifier: Apache-2.0
package stat

// Grown is the growth of a counter between two readings. A counter that went back was reset, and its value has grown
// since.
func Grown[N uint64 | int64](now, before N) N {
	if now < before {
		return now
	}
	return now - before
}

// GrownBy are the counters that grew between two readings, and by how much.
func GrownBy[K comparable, N ~uint64 | ~int64](now, before map[K]N) map[K]N {
	grown := map[K]N{}
	for key, n := range now {
		if n < before[key] { // it was reset
			grown[key] = n
		} else if n > before[key] {
			grown[key] = n - before[key]
		}
	}
	return grown
}
