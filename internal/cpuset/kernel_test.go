// SPDX-License-Identifier: Apache-2.0
package cpuset

import (
	"strings"
	"testing"
)

func TestKernelList(t *testing.T) {
	for text, want := range map[string]string{
		"all": "0-39", "0-31:2/8": "0-1,8-9,16-17,24-25", "36-N": "36-39", "N": "39", "1,3-5": "1,3-5",
		"0-9:1/1": "0-9", "2-5,ALL": "0-39",
	} {
		if s, err := ParseKernel(text, 39); err != nil || s.String() != want {
			t.Errorf("ParseKernel(%q) = %q, %v; want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"", "1,,2", "5:1/2", "0-9:3/2", "0-9:0/2", "0-9:1", "9-1", "domain", "n", "-1"} {
		if s, err := ParseKernel(text, 39); err == nil {
			t.Errorf("ParseKernel(%q) = %q, want an error", text, s)
		}
	}
}

// A list that names the same CPUs a million times is refused before it fills the memory.
func TestEndless(t *testing.T) {
	list := strings.Repeat("0-65535,", 1000000) + "0"
	if _, err := Parse(list); err == nil {
		t.Error("Parse took it")
	}
	if _, err := ParseKernel(list, 7); err == nil {
		t.Error("ParseKernel took it")
	}
}

func TestExcluding(t *testing.T) {
	for text, want := range map[string]string{"1-4,^3,6": "1-2,4,6", "^0,0-3": "1-3", "5": "5", "": ""} {
		if s, err := ParseExcluding(text); err != nil || s.String() != want {
			t.Errorf("ParseExcluding(%q) = %q, %v; want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"^^1", "a", "1-4,^x"} {
		if s, err := ParseExcluding(text); err == nil {
			t.Errorf("ParseExcluding(%q) = %q, want an error", text, s)
		}
	}
}

func FuzzParseKernel(f *testing.F) {
	for _, text := range []string{"all", "0-31:2/8", "36-N", "1,3-5", "1-4,^3", "0-65535:65535/65535", "0-7:2", "5-x",
		"1-4,^x", strings.Repeat("1,", 2049)} {
		f.Add(text, 39)
	}
	f.Add("N", -1)
	f.Fuzz(func(t *testing.T, text string, last int) {
		if last < -1 || last >= Max { // -1: a machine whose CPUs are not known
			return
		}
		if s, err := ParseKernel(text, last); err == nil && s.Empty() && last >= 0 {
			t.Errorf("%q: no CPU and no error", text)
		}
		if s, err := ParseExcluding(text); err == nil {
			if back, err := Parse(s.String()); err != nil || !back.Equal(s) {
				t.Errorf("%q: %s: %s, %v", text, s, back, err)
			}
		}
	})
}
