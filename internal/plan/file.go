// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
)

// Load reads a plan file and checks that it is consistent. Fits and Validate check it against a machine.
func Load(path string) (*Plan, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Parse is Load of text. name is the file's name, for errors.
func Parse(name string, text []byte) (*Plan, error) {
	s, p := &strict{name: name}, &Plan{}
	if err := s.decode(text, p); err != nil {
		return nil, err
	}
	s.checkPlan(p)
	if err := s.f.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// LoadRequest reads a request file, YAML or JSON.
func LoadRequest(path string) (Request, error) {
	text, err := readFile(path)
	if err != nil {
		return Request{}, err
	}
	return ParseRequest(path, text)
}

// ParseRequest is LoadRequest of text.
func ParseRequest(name string, text []byte) (Request, error) {
	var w Request
	err := (&strict{name: name}).decode(text, &w)
	return w, err
}

// readFile reads a file up to a size limit.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, input.Errorf(path, "a file", "%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, input.Errorf(path, "a file", "%v", err)
	}
	return text, nil
}

// Save writes a plan file atomically.
func Save(path string, p *Plan) error {
	text, err := Format(p)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return input.Errorf(path, "a file that can be written", "%v", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// Format returns the text of a plan file: JSON with one value per line.
func Format(p *Plan) ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}

// checkPlan checks what does not depend on the machine.
func (s *strict) checkPlan(p *Plan) {
	if p.Version != Version {
		s.wrong("version", fmt.Sprint(Version), "this program does not know version %d of plans", p.Version)
		return
	}
	if len(p.CPUs) == 0 {
		s.wrong("cpus", "each CPU of the machine", "the plan has no CPUs")
	}
	role := map[int]Role{}
	for i, c := range p.CPUs {
		at := fmt.Sprintf("cpus[%d]", i)
		old, twice := role[c.ID]
		switch {
		case twice:
			s.wrong(at, "one role for each CPU", "CPU %d is %s and %s", c.ID, old, c.Role)
		case c.ID < 0 || c.ID >= cpuset.Max:
			s.wrong(at, fmt.Sprintf("0..%d", cpuset.Max-1), "CPU number %d is out of range", c.ID)
		case !slices.Contains(Roles, c.Role):
			s.wrong(at, roleNames(), "'%s' is not a role", c.Role)
		}
		role[c.ID] = c.Role
	}
	s.checkFileWorkers(p, role)
	all := cpuset.Of(slices.Collect(maps.Keys(role))...)
	for _, x := range []struct {
		path string
		set  cpuset.Set
	}{{"isolated", p.Isolated}, {"irqs", p.IRQs}} {
		if !x.set.Within(all) {
			s.wrong(x.path, "CPUs of the plan", "CPU %s is not in the plan", x.set.Without(all))
		}
	}
}

func (s *strict) checkFileWorkers(p *Plan, role map[int]Role) {
	on := map[int]int{}
	for i, w := range p.Workers {
		at := fmt.Sprintf("workers[%d]", i)
		r, planned := role[w.CPU]
		other, twice := on[w.CPU]
		switch {
		case w.ID != i:
			s.wrong(at, fmt.Sprint(i), "id %d: the id of a worker is its position in the list", w.ID)
		case !w.Role.worker():
			s.wrong(at, "forwarding, isolated-rx, host-path", "'%s' is not a role of workers", w.Role)
		case !planned:
			s.wrong(at, "a CPU of the plan", "CPU %d is not in the plan", w.CPU)
		case r != w.Role:
			s.wrong(at, fmt.Sprintf("a CPU of role %s", w.Role),
				"the worker's role is %s, but the role of its CPU %d is %s", w.Role, w.CPU, r)
		case twice:
			s.wrong(at, "one worker per CPU", "CPU %d already has worker %d", w.CPU, other)
		}
		on[w.CPU] = i
	}
	for i, c := range p.CPUs {
		if _, has := on[c.ID]; c.Role.worker() && !has {
			s.wrong(fmt.Sprintf("cpus[%d]", i), "a worker there, or another role", "CPU %d is %s, but has no worker",
				c.ID, c.Role)
		}
	}
}

func roleNames() string {
	names := make([]string, len(Roles))
	for i, r := range Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// Fits refuses a plan that was made for another machine and names the differences.
func (p *Plan) Fits(m *topology.Machine) error {
	if p.Topology == topology.Fingerprint(m) {
		return nil
	}
	differs := layoutDiff(p.Layout, Layout(m))
	if differs == "" {
		differs = "caches, sockets or distances differ"
	}
	made := fmt.Sprintf("it was made for %s, not for %s", hostText(p.Machine), hostText(m.Hostname))
	if p.Machine == m.Hostname {
		made = fmt.Sprintf("it was made for %s, but the machine has changed since", hostText(p.Machine))
	}
	return input.Errorf("plan", "a plan that 'corelane plan make' made for this machine", "%s: %s", made, differs)
}

func hostText(name string) string {
	if name == "" {
		return "a machine without a name"
	}
	return name
}

// layoutDiff lists the parts of lines "node 0: cores 0+20 1+21" that only one of two layouts has.
func layoutDiff(plan, machine []string) string {
	var parts []string
	planned, real := layoutWords(plan), layoutWords(machine)
	for _, x := range []struct {
		have, lack map[string][]string
		text       string
	}{{planned, real, "only the plan has"}, {real, planned, "only this machine has"}} {
		for _, key := range slices.Sorted(maps.Keys(x.have)) {
			var odd []string
			for _, word := range x.have[key] {
				if !slices.Contains(x.lack[key], word) {
					odd = append(odd, word)
				}
			}
			if more := len(odd) - 4; more > 0 {
				odd = append(odd[:4], fmt.Sprintf("and %d more", more))
			}
			if len(odd) > 0 {
				parts = append(parts, fmt.Sprintf("%s %s: %s", x.text, key, strings.Join(odd, ", ")))
			}
		}
	}
	if more := len(parts) - 4; more > 0 {
		parts = append(parts[:4], fmt.Sprintf("and %d more differences", more))
	}
	return strings.Join(parts, "; ")
}

func layoutWords(lines []string) map[string][]string {
	words := map[string][]string{}
	for _, line := range lines {
		key, rest, _ := strings.Cut(line, ": ")
		rest, isCores := strings.CutPrefix(rest, "cores ")
		if isCores {
			words[key] = strings.Fields(rest)
			for i, w := range words[key] {
				words[key][i] = "core " + w
			}
			continue
		}
		words[key] = []string{rest}
	}
	return words
}
