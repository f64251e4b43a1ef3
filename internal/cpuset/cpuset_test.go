// SPDX-License-Identifier: Apache-2.0
package cpuset

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "0", "0,5-7": "0,5-7", "7,5,6,0,5": "0,5-7", " 1 , 2 \n": "1-2", "0-1023": "0-1023",
		"300,2": "2,300",
	} {
		if s, err := Parse(text); err != nil || s.String() != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"a", "1-", "-1", "3-1", "1,,2", "1-2-3", "65536", "0x3", "1-99999999999"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %q, want an error", text, s)
		}
	}
}

func TestMask(t *testing.T) {
	for mask, list := range map[string]string{
		"0": "", "0x60": "5-6", "40100401": "0,10,20,30", "ffff0000,00000001": "0,48-63",
		"0001,00000000,00000000": "64",
	} {
		s, err := ParseMask(mask)
		if err != nil || s.String() != list {
			t.Errorf("ParseMask(%q) = %q, %v; want %q", mask, s, err, list)
		}
	}
	for _, mask := range []string{"", "0x", "xyz", "0x1 2", "(5,6)"} {
		if s, err := ParseMask(mask); err == nil {
			t.Errorf("ParseMask(%q) = %q, want an error", mask, s)
		}
	}
	s := Of(0, 10, 20, 30, 64)
	if s.Mask() != "10000000040100401" || s.MaskWords() != "1,00000000,40100401" || (Set{}).Mask() != "0" {
		t.Errorf("masks %s, %s, %s", s.Mask(), s.MaskWords(), Set{}.Mask())
	}
}

func TestAlgebra(t *testing.T) {
	a, b := Range(0, 5), Of(4, 5, 6)
	for what, got := range map[string]Set{"0-6": a.Or(b), "4-5": a.And(b), "0-3": a.Without(b)} {
		if got.String() != what {
			t.Errorf("%s, want %s", got, what)
		}
	}
	if !Of(4).Within(b) || b.Within(a) || !a.Overlaps(b) || Of(9).Overlaps(a) || !Of(3, 1).Equal(Of(1, 3)) ||
		b.First() != 4 || (Set{}).First() != -1 {
		t.Error("relations are wrong")
	}
}

func TestJSON(t *testing.T) {
	var back Set
	text, err := json.Marshal(Of(1, 2, 9))
	if err != nil || string(text) != `"1-2,9"` || json.Unmarshal(text, &back) != nil || !back.Equal(Of(1, 2, 9)) {
		t.Errorf("%s, %v", text, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0,5-7", "0x60", "ffff0000,00000001", "1-2-3", ",", "7-5", "0x6g", "0x", "14,14",
		"65536", strings.Repeat("0-65535,", 4) + "1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse(text); err == nil {
			if back, err := Parse(s.String()); err != nil || !back.Equal(s) {
				t.Errorf("%q: %s: %s, %v", text, s, back, err)
			}
			if Repeats(s.String()) {
				t.Errorf("%q: %s repeats a CPU", text, s)
			}
		}
		if s, err := ParseMask(text); err == nil {
			if back, err := ParseMask(s.MaskWords()); err != nil || !back.Equal(s) {
				t.Errorf("%q: %s: %s, %v", text, s, back, err)
			}
		}
	})
}

func TestRepeats(t *testing.T) {
	for list, want := range map[string]bool{"": false, "0,5-7": false, "14,14": true, "3,1-4": true, "1-x": false} {
		if Repeats(list) != want {
			t.Errorf("%q: not %t", list, want)
		}
	}
}
