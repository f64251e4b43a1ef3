// SPDX-License-Identifier: Apache-2.0

// Package cpuset has sets of CPUs and the two ways in which Linux writes them: lists ("0,5-7") and masks ("40100401",
// in words of 32 bits with commas in /sys and /proc). Ids are the kernel's; there may be thousands, with holes.
package cpuset

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Max is one more than the highest id of a set, which is more than any kernel has.
const Max = 1 << 16

// Set is a set of CPUs, a value that never changes. The zero Set is empty.
type Set struct{ ids []int } // ascending, each once

// Of makes a set of ids in any order. Ids may repeat.
func Of(ids ...int) Set {
	own := slices.Clone(ids)
	slices.Sort(own)
	return Set{slices.Compact(own)}
}

// Range makes a set of the CPUs from first to last, both included.
func Range(first, last int) Set {
	var ids []int
	for id := first; id <= last; id++ {
		ids = append(ids, id)
	}
	return Set{ids}
}

// Parse reads a list as the kernel writes it: "0,5-7". Empty text is the empty set.
func Parse(list string) (Set, error) {
	var ids []int
	list = strings.TrimSpace(list)
	if list == "" {
		return Set{}, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := id(low)
		last := first
		if err == nil && isRange {
			last, err = id(high)
		}
		if err != nil {
			return Set{}, fmt.Errorf("'%s' is not a CPU or range of CPUs; valid: a list, 0,5-7", part)
		}
		if last < first {
			return Set{}, fmt.Errorf("'%s' ends before it begins; valid: a list, 0,5-7", part)
		}
		if len(ids) > 2*Max { // a list with each CPU twice is already useless; this bounds memory
			return Set{}, fmt.Errorf("repeats the same CPUs too often; valid: a list, 0,5-7")
		}
		for ; first <= last; first++ {
			ids = append(ids, first)
		}
	}
	return Of(ids...), nil
}

// Repeats reports whether a valid list names a CPU twice, as a slip of the pen does: "14,14".
func Repeats(list string) bool {
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		if set, err := Parse(part); err == nil {
			n += set.Len()
		}
	}
	all, err := Parse(list)
	return err == nil && n > all.Len()
}

func id(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n >= Max {
		err = strconv.ErrRange
	}
	return int(n), err
}

// ParseMask reads hexadecimal digits, with or without "0x" and commas: "0x60", "ffff0000,00000001".
func ParseMask(mask string) (Set, error) {
	digits := strings.ReplaceAll(strings.TrimSpace(mask), ",", "")
	digits = strings.TrimPrefix(strings.TrimPrefix(digits, "0x"), "0X")
	if digits == "" || len(digits) > Max/4 {
		return Set{}, fmt.Errorf("'%s' is not a mask of CPUs; valid: hexadecimal, 0x60", mask)
	}
	var ids []int
	for i := range digits {
		digit, err := strconv.ParseUint(digits[len(digits)-1-i:len(digits)-i], 16, 8)
		if err != nil {
			return Set{}, fmt.Errorf("'%s' is not a mask of CPUs; valid: hexadecimal, 0x60", mask)
		}
		for ; digit != 0; digit &= digit - 1 {
			ids = append(ids, 4*i+bits.TrailingZeros64(digit))
		}
	}
	return Set{ids}, nil
}

// String is the list, shortest first: "0,5-7".
func (s Set) String() string {
	var parts []string
	for i := 0; i < len(s.ids); {
		j := i
		for j+1 < len(s.ids) && s.ids[j+1] == s.ids[j]+1 {
			j++
		}
		part := strconv.Itoa(s.ids[i])
		if j > i {
			part += "-" + strconv.Itoa(s.ids[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Mask is the set in hexadecimal without "0x" and commas: "60"; "0" when empty.
func (s Set) Mask() string {
	digits := make([]byte, 1)
	if len(s.ids) > 0 {
		digits = make([]byte, s.ids[len(s.ids)-1]/4+1)
	}
	for _, id := range s.ids {
		digits[len(digits)-1-id/4] |= 1 << (id % 4)
	}
	for i, digit := range digits {
		digits[i] = "0123456789abcdef"[digit]
	}
	return string(digits)
}

// MaskWords is the mask as /proc and /sys take it: words of 32 bits with commas between them.
func (s Set) MaskWords() string {
	mask := s.Mask()
	words := []string{}
	for len(mask) > 8 {
		words = append([]string{mask[len(mask)-8:]}, words...)
		mask = mask[:len(mask)-8]
	}
	return strings.Join(append([]string{mask}, words...), ",")
}

// IDs are the CPUs, ascending. The caller may change the slice.
func (s Set) IDs() []int { return slices.Clone(s.ids) }

// Len is the number of CPUs.
func (s Set) Len() int { return len(s.ids) }

// Empty reports whether the set has no CPU.
func (s Set) Empty() bool { return len(s.ids) == 0 }

// First is the lowest CPU, -1 for an empty set.
func (s Set) First() int {
	if s.Empty() {
		return -1
	}
	return s.ids[0]
}

// Has reports whether a CPU is in the set.
func (s Set) Has(id int) bool {
	_, found := slices.BinarySearch(s.ids, id)
	return found
}

// Equal reports whether both hold the same CPUs.
func (s Set) Equal(t Set) bool { return slices.Equal(s.ids, t.ids) }

// Within reports whether all CPUs of s are in t.
func (s Set) Within(t Set) bool { return s.Without(t).Empty() }

// Overlaps reports whether both have a CPU in common.
func (s Set) Overlaps(t Set) bool { return !s.And(t).Empty() }

// Or returns the union.
func (s Set) Or(t Set) Set { return Of(append(s.IDs(), t.ids...)...) }

// And returns the intersection.
func (s Set) And(t Set) Set { return s.keep(t.Has) }

// Without returns the CPUs of s that are not in t.
func (s Set) Without(t Set) Set { return s.keep(func(id int) bool { return !t.Has(id) }) }

func (s Set) keep(which func(int) bool) Set {
	var ids []int
	for _, id := range s.ids {
		if which(id) {
			ids = append(ids, id)
		}
	}
	return Set{ids}
}

// MarshalText writes the list.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a list.
func (s *Set) UnmarshalText(text []byte) error {
	set, err := Parse(string(text))
	*s = set
	return err
}
