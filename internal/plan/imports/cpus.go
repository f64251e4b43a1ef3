// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// notation is the syntax in which a value names CPUs. The same text means different CPUs to different readers.
type notation int

const (
	list    notation = iota // the kernel's: 0,5-7, 0-31:2/4
	spaced                  // systemd's: 0 10 20-22, also with commas
	exclude                 // Nova's: a list, in which ^8 excludes a CPU
	mask                    // hexadecimal, with or without 0x; commas between words
	taskset                 // vRouter's CPU_CORE_MASK: a list if it has a comma or dash, else a mask
	// vRouter's service masks: hexadecimal with 0x in 32 bits, else a list, with or without parentheses
	router
	option // corelaned's: hexadecimal with 0x, else a list, with or without parentheses
)

// fiveDigits matches CPU numbers beyond the kernel's maximum of 8191 (CONFIG_NR_CPUS).
var fiveDigits = regexp.MustCompile(`[0-9]{5}`)

func parseCPUs(text string, n notation) (cpuset.Set, error) {
	text = strings.TrimSpace(text)
	const longest = 4096 // the length of the kernel's command line, more than any mask needs
	if len(text) > longest {
		return cpuset.Set{}, fmt.Errorf("'%.16s...' is longer than any list of CPUs", text)
	}
	if n != mask && !(n == taskset && !strings.ContainsAny(text, ",-")) && fiveDigits.MatchString(text) &&
		!strings.HasPrefix(strings.ToLower(text), "0x") {
		return cpuset.Set{}, fmt.Errorf("'%.32s' has a CPU number beyond the kernel's maximum", text)
	}
	switch n {
	case list:
		if strings.ContainsAny(text, "Nn") || text == "all" {
			return cpuset.Set{}, fmt.Errorf("'%s' depends on the machine's number of CPUs", text)
		}
		if text == "" {
			return cpuset.Set{}, nil
		}
		return cpuset.ParseKernel(text, 9999)
	case spaced:
		return cpuset.Parse(strings.Join(strings.FieldsFunc(text, func(c rune) bool {
			return c == ' ' || c == '\t' || c == ','
		}), ","))
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

// typographic quotes come from word processors; parsers do not treat them as quotes.
const typographic = "“”„‟‘’‚‛«»"

// unquote removes shell quotes or typographic quotes from a value.
func (s *scanner) unquote(key, value string, line int) string {
	value = strings.TrimSpace(value)
	if strings.ContainsAny(value, typographic) {
		plain := strings.TrimSpace(strings.Map(func(c rune) rune {
			if strings.ContainsRune(typographic, c) {
				return -1
			}
			return c
		}, value))
		s.find(Wrong, line, fmt.Sprintf("%s with \" instead", key),
			"parsers do not treat them as quotes: they become part of the value, and such a list of CPUs is refused",
			"the value of %s is in typographic quotes", key)
		return plain
	}
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

// claim records the CPUs of a value, or a finding that says how its reader treats a wrong value.
func (s *scanner) claim(use Use, key, value string, n notation, line int) {
	value = s.unquote(key, value, line)
	set, err := parseCPUs(value, n)
	switch {
	case err != nil && (n == router || n == taskset):
		s.find(Wrong, line, key+"=5,25", "vRouter silently reads a malformed number as 0, which means all CPUs",
			"%s: '%s' does not name CPUs", key, value)
		return
	case err != nil:
		s.find(Wrong, line, "a list of CPUs: 0,5-7", "its reader refuses or ignores it", "%s: %v", key, err)
		return
	case set.Empty() && n == router && value != "":
		s.find(Wrong, line, key+"=5,25", "vRouter takes 0 as all CPUs: these threads also run on workers' CPUs",
			"%s: the mask '%s' is empty", key, value)
		return
	case set.Empty():
		s.find(Warning, line, "", "an empty value has no effect", "%s is empty", key)
		return
	}
	s.traps(key, value, n, set, line)
	s.add(Claim{use, set, key, s.file, line})
}

// traps finds values that mean something else than they appear to.
func (s *scanner) traps(key, value string, n notation, set cpuset.Set, line int) {
	hexadecimal := strings.HasPrefix(value, "0x") || strings.HasPrefix(value, "0X")
	switch {
	case n == router && hexadecimal && len(strings.TrimLeft(value[2:], "0")) > 8:
		s.find(Wrong, line, fmt.Sprintf("%s=%s", key, set), "vRouter keeps these masks in 32 bits; CPUs from 32 on "+
			"need a list",
			"%s: CPU %s does not fit into the mask", key, set.Without(cpuset.Range(0, 31)))
	case n == taskset && !hexadecimal && !strings.ContainsAny(value, ",-") && value != "1":
		s.find(Warning, line, fmt.Sprintf("%s=0x%s", key, set.Mask()),
			"without a comma or dash the value is a mask; in SERVICE_CORE_MASK the same text is a CPU's number",
			"%s=%s means CPU %s, not CPU %s", key, value, set, value)
	}
}
