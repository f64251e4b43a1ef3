// SPDX-License-Identifier: Apache-2.0
package cpuset

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseKernel reads a list of a kernel argument, on a machine whose CPUs go up to last: "all", "N" for the last CPU,
// and "0-31:2/8" for the first two of each eight (Documentation/admin-guide/kernel-parameters.rst, cpu lists).
func ParseKernel(list string, last int) (Set, error) {
	if len(list) > 4096 { // the longest command line of a kernel (COMMAND_LINE_SIZE)
		return Set{}, fmt.Errorf("a list of %d characters is longer than a kernel's command line", len(list))
	}
	var all Set
	for part := range strings.SplitSeq(list, ",") {
		set, err := kernelPart(strings.TrimSpace(part), last)
		if err != nil {
			return Set{}, err
		}
		all = all.Or(set)
	}
	return all, nil
}

func kernelPart(part string, last int) (Set, error) {
	bad := fmt.Errorf("'%s' is not a CPU or range of CPUs; valid: a list, 0,5-7, all, 2-N, 0-31:2/8", part)
	if strings.EqualFold(part, "all") {
		return Range(0, last), nil
	}
	span, stride, hasStride := strings.Cut(part, ":")
	low, high, isRange := strings.Cut(span, "-")
	first, err := kernelID(low, last)
	end := first
	if err == nil && isRange {
		end, err = kernelID(high, last)
	}
	if err != nil || end < first || hasStride && !isRange {
		return Set{}, bad
	}
	used, group := 1, 1
	if hasStride {
		a, b, ok := strings.Cut(stride, "/")
		u, err1 := id(a)
		g, err2 := id(b)
		if !ok || err1 != nil || err2 != nil || u < 1 || g < u {
			return Set{}, bad
		}
		used, group = u, g
	}
	var ids []int
	for n := first; n <= end; n++ {
		if (n-first)%group < used {
			ids = append(ids, n)
		}
	}
	return Set{ids}, nil
}

func kernelID(text string, last int) (int, error) {
	if text == "N" {
		if last < 0 {
			return 0, strconv.ErrRange
		}
		return last, nil
	}
	return id(text)
}

// ParseExcluding reads a list that may exclude CPUs, as in libvirt and Nova: "1-4,^3,6".
func ParseExcluding(list string) (Set, error) {
	var with, without []string
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		if out, ok := strings.CutPrefix(part, "^"); ok {
			without = append(without, out)
		} else {
			with = append(with, part)
		}
	}
	in, err := Parse(strings.Join(with, ","))
	if err != nil {
		return Set{}, err
	}
	out, err := Parse(strings.Join(without, ","))
	return in.Without(out), err
}
