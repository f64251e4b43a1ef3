// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"path"
	"strings"
)

// tuned reads the active profile of TuneD and the profiles that it includes: their variables, and the spared threads.
func (r *reader) tuned() {
	s := &r.m.Services
	s.Tuned, _ = r.text("etc/tuned/active_profile", maybe)
	chain := tunedChain{r: r, variables: map[string]string{}, met: map[string]bool{}}
	for profile := range strings.FieldsSeq(s.Tuned) {
		chain.profile(profile)
	}
	if len(chain.variables) > 0 {
		s.TunedVariables = chain.variables
	}
	s.TunedBlacklist = chain.spares
}

// tunedChain merges profiles; a profile overrides those that it includes.
type tunedChain struct {
	r         *reader
	variables map[string]string
	spares    []string
	met       map[string]bool // guards against profiles that include each other
}

// Directories of profiles; the first match wins (TuneD's profile_dirs, before and since 2.24).
var tunedDirs = []string{"etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"}

func (c *tunedChain) profile(name string) {
	if c.met[name] || name != path.Base(name) {
		return
	}
	c.met[name] = true
	for _, dir := range tunedDirs {
		text, ok := c.r.text(path.Join(dir, name, "tuned.conf"), maybe)
		if ok {
			c.take(path.Join(dir, name), parseSettings(text))
			return
		}
	}
	c.r.trouble(path.Join("etc/tuned", name, "tuned.conf"), "is missing here and in %s", strings.Join(tunedDirs, ", "))
}

func (c *tunedChain) take(dir string, all []setting) {
	for _, s := range all { // included profiles come first, wherever the line is
		if s.section == "main" && s.key == "include" {
			for name := range strings.FieldsFuncSeq(s.value, func(r rune) bool {
				return r == ',' || r == ';' || r == ' '
			}) {
				c.profile(name)
			}
		}
	}
	for _, s := range all {
		switch {
		case s.section == "variables" && s.key == "include":
			c.variableFile(strings.ReplaceAll(s.value, "${i:PROFILE_DIR}", "/"+dir))
		case s.section == "scheduler" && s.key == "ps_blacklist":
			c.spares = strings.Split(s.value, ";")
		}
	}
}

// variableFile reads the variables that the operator set: isolated_cores=2-9.
func (c *tunedChain) variableFile(file string) {
	name := strings.TrimPrefix(path.Clean("/"+file), "/")
	if !strings.HasPrefix(name, "etc/tuned/") && !strings.HasPrefix(name, "usr/lib/tuned/") {
		c.r.trouble(name, "is outside /etc/tuned and /usr/lib/tuned: this file of variables is not read")
		return
	}
	text, _ := c.r.text(name, needed)
	for _, s := range parseSettings(text) {
		c.variables[s.key] = s.value
	}
}
