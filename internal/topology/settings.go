// SPDX-License-Identifier: Apache-2.0
package topology

import "strings"

// setting is one "key = value" line of a file with [sections] (TuneD, Nova, systemd), or of shell variables without
// sections.
type setting struct{ section, key, value string }

// parseSettings parses what these formats have in common: comments with # or ;, and quoted values. A line that ends
// in "\" continues in the next one.
func parseSettings(text string) []setting {
	var all []setting
	section := ""
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			section = line[1 : len(line)-1]
			continue
		}
		key, val, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		key = strings.TrimSpace(strings.TrimPrefix(key, "export "))
		all = append(all, setting{section, key, unquote(strings.TrimSpace(val))})
	}
	return all
}

func unquote(text string) string {
	if len(text) >= 2 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}
