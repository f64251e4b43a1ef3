// SPDX-License-Identifier: Apache-2.0
package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/bench/result"
)

const none = "–" // for what was not measured

// number writes three significant digits.
func number(f float64) string {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return none
	case f == 0:
		return "0"
	}
	return thousands(result.Digits(f))
}

// tick writes a number of an axis with no more digits than it needs.
func tick(f float64) string {
	return thousands(strconv.FormatFloat(math.Round(f*1e9)/1e9, 'f', -1, 64))
}

// short writes a power of ten: 1, 10, 100, 1 k, 10 k, ...
func short(f float64) string {
	switch {
	case f >= 1e6:
		return tick(f/1e6) + "\u00a0M"
	case f >= 1e3:
		return tick(f/1e3) + "\u00a0k"
	}
	return tick(f)
}

func mpps(rate float64) string { return number(rate / 1e6) }

// times writes a factor with two significant digits.
func times(f float64) string {
	if f < 10 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return thousands(strconv.FormatFloat(f, 'f', 0, 64))
}

func ratio(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return none
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

func count[N int | uint64](n N) string { return thousands(fmt.Sprint(n)) }

// thousands puts commas between groups of three digits.
func thousands(digits string) string {
	whole, fraction, ok := strings.Cut(digits, ".")
	start := 0
	if strings.HasPrefix(whole, "-") {
		start = 1
	}
	for i := len(whole) - 3; i > start; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if ok {
		return whole + "." + fraction
	}
	return whole
}

func plural[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// span writes two figures as "4 to 9", or as "4" when both give the same text.
func span(low, high float64, text func(float64) string) string {
	if a, b := text(low), text(high); a != b {
		return a + "\u00a0to\u00a0" + b
	}
	return text(low)
}
