// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// notation is how a value names CPUs. The same text means different CPUs to different readers.
type notation int

const (
	list    notation = iota // the kernel's: 0,5-7
	spaced                  // systemd's: 0 10 20-22, commas too
	exclude                 // Nova's: a list, ^8 takes one out
	mask                    // hexadecimal, with or without 0x, words with commas
	taskset                 // vRouter's CPU_CORE_MASK: a list when it has a comma or dash, else a mask
	router                  // vRouter's service masks: hexadecimal with 0x in 32 bits, else a list, with or without parentheses
	option                  // corelaned's: hexadecimal with 0x, else a list, with or without parentheses
)

func parseCPUs(text string, n notation) (cpuset.Set, error) {
	text = strings.TrimSpace(text)
	switch n {
	case spaced:
		return cpuset.Parse(strings.Join(strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' || c == ',' }), ","))
	case exclude:
		return parseExclude(text)
	case mask:
		return cpuset.ParseMask(text)
	case taskset:
		if !strings.ContainsAny(text, ",-") {
			return cpuset.ParseMask(text)
		}
	case router, option:
		if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") {
			return cpuset.ParseMask(text)
		}
		text = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
	}
	return cpuset.Parse(text)
}

func parseExclude(text string) (cpuset.Set, error) {
	var in, out cpuset.Set
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		to := &in
		if rest, not := strings.CutPrefix(part, "^"); not {
			part, to = rest, &out
		}
		set, err := cpuset.Parse(part)
		if err != nil {
			return in, err
		}
		*to = to.Or(set)
	}
	return in.Without(out), nil
}

// typographic quotes come from texts that were made with a word processor: no parser takes them for quotes.
const typographic = "“”„‟‘’‚‛«»"

// unquote takes quotes of a shell or of a typist from a value.
func (s *scanner) unquote(key, value string, line int) string {
	value = strings.TrimSpace(value)
	if strings.ContainsAny(value, typographic) {
		plain := strings.TrimSpace(strings.Map(func(c rune) rune {
			if strings.ContainsRune(typographic, c) {
				return -1
			}
			return c
		}, value))
		s.find(Wrong, line, fmt.Sprintf("%s with \" instead", key), "they are part of the value: the first and the last word of it are not understood, isolcpus= then isolates no CPU",
			"%s stands in typographic quotes", key)
		return plain
	}
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

// claim notes what a value says, and what its reader will make of it when it is not right.
func (s *scanner) claim(use Use, key, value string, n notation, line int) {
	value = s.unquote(key, value, line)
	set, err := parseCPUs(value, n)
	switch {
	case err != nil && (n == router || n == taskset):
		s.find(Wrong, line, key+"=5,25", "vRouter reads a number that it does not understand as 0 and says nothing, and 0 means all CPUs",
			"%s: '%s' names no CPUs", key, value)
		return
	case err != nil:
		s.find(Wrong, line, "a list of CPUs: 0,5-7", "whoever reads it refuses it, or goes on without it", "%s: %v", key, err)
		return
	case set.Empty() && n == router && value != "":
		s.find(Wrong, line, key+"=5,25", "0 means all CPUs to vRouter: these threads run on workers' CPUs too", "%s: the mask '%s' is empty", key, value)
		return
	case set.Empty():
		s.find(Warning, line, "", "an empty value is as good as none", "%s is empty", key)
		return
	}
	s.traps(key, value, n, set, line)
	s.Claims = append(s.Claims, Claim{use, set, key, s.file, line})
}

// traps are values that are read, but not as they look.
func (s *scanner) traps(key, value string, n notation, set cpuset.Set, line int) {
	hexadecimal := strings.HasPrefix(value, "0x") || strings.HasPrefix(value, "0X")
	switch {
	case n == router && hexadecimal && len(strings.TrimLeft(value[2:], "0")) > 8:
		s.find(Wrong, line, fmt.Sprintf("%s=%s", key, set), "vRouter keeps these masks in 32 bits; CPUs from 32 on can be named in a list only",
			"%s: CPU %s does not fit into the mask", key, set.Without(cpuset.Range(0, 31)))
	case n == taskset && !hexadecimal && !strings.ContainsAny(value, ",-") && value != "1":
		s.find(Warning, line, fmt.Sprintf("%s=0x%s", key, set.Mask()), "without a comma or dash it is a mask: the same text in SERVICE_CORE_MASK would be a CPU's number",
			"%s=%s is CPU %s, not CPU %s", key, value, set, value)
	}
}
