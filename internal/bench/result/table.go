// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"strconv"
)

// Digits writes a measured figure with three significant digits; "-" is for what was not measured.
func Digits(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(f))))
	if scale := math.Pow10(decimals); math.Abs(math.Round(f*scale)) >= 1000 {
		decimals-- // 9.996 is 10.0
	}
	if decimals < 0 {
		f = math.Round(f/math.Pow10(-decimals)) * math.Pow10(-decimals)
	}
	return strconv.FormatFloat(f, 'f', max(decimals, 0), 64)
}

// fixed writes a ratio with three decimals.
func fixed(f float64) string {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}
