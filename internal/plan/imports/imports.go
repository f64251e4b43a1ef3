// SPDX-License-Identifier: Apache-2.0

// Package imports reads what other tools were told about CPUs: templates of orchestrators, environments of routers, the kernel's
// arguments, settings of host services, and Corelane's own files. It says who gets which CPU, what the files leave open, and what
// is wrong with them. It is pure: text in, findings out. Package plan/output writes the same formats.
package imports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
)

// Use is what a file says that CPUs are for, or how the host shall treat them.
type Use string

// The uses. The first ones are roles of threads, the others are how the host is told.
const (
	Forwarding Use = "forwarding"
	IsolatedRx Use = "isolated-rx"
	HostPath   Use = "host-path"
	Service    Use = "service"
	Control    Use = "control"
	Guests     Use = "guests"
	Emulator   Use = "emulator"

	Isolcpus      Use = "isolcpus"       // taken from the scheduler's balancing, at boot
	IsolcpusPart  Use = "isolcpus-part"  // isolcpus= with flags but without domain: still balanced
	NohzFull      Use = "nohz_full"      // no tick
	RcuNocbs      Use = "rcu_nocbs"      // no RCU callbacks
	IRQAffinity   Use = "irqaffinity"    // where interrupts go
	TunedIsolated Use = "isolated_cores" // TuneD moves threads away
	HostAffinity  Use = "host"           // where the host's services run
	Banned        Use = "banned"         // irqbalance keeps off
	Reserved      Use = "reserved"       // the kubelet gives them to no pod
)

// Claim is one statement about CPUs.
type Claim struct {
	Use  Use        `json:"use"`
	CPUs cpuset.Set `json:"cpus"`
	Key  string     `json:"key"` // who says it: "SERVICE_CORE_MASK", "KernelArgs isolcpus"
	File string     `json:"file"`
	Line int        `json:"line,omitempty"`
}

// Setting is another value of interest.
type Setting struct {
	Key, Value, File string
	Line             int
}

// Reading is what files say together.
type Reading struct {
	Formats   []string // of the files, in their order
	Claims    []Claim
	Settings  []Setting
	Hugepages []plan.HugepageWish // Node -1: over all nodes
	Dpvs      *Dpvs               // nil: no such file
	Guest     *Guest              // nil: no definition of a guest
	Findings  []Finding           // of reading; Check has the others
}

// Severity of a finding.
type Severity string

// The severities.
const (
	Wrong   Severity = "wrong"   // it costs packets, or does not start
	Warning Severity = "warning" // it may
	Note    Severity = "note"
)

// Finding is something that should be otherwise.
type Finding struct {
	Severity Severity `json:"severity"`
	Where    string   `json:"where,omitempty"`   // file:line, or a file
	What     string   `json:"what"`              // one line
	Why      string   `json:"why"`               // why it matters
	Instead  string   `json:"instead,omitempty"` // what to write
}

// Of is the CPUs of a use, by all who say something about it, and the first who does.
func (r *Reading) Of(uses ...Use) (cpuset.Set, *Claim) {
	var set cpuset.Set
	var first *Claim
	for i := range r.Claims {
		if c := &r.Claims[i]; slices.Contains(uses, c.Use) {
			set = set.Or(c.CPUs)
			if first == nil {
				first = c
			}
		}
	}
	return set, first
}

// cpus is Of without who said it.
func (r *Reading) cpus(uses ...Use) cpuset.Set {
	set, _ := r.Of(uses...)
	return set
}

// setting is the last value of a key.
func (r *Reading) setting(key string) *Setting {
	for i := len(r.Settings) - 1; i >= 0; i-- {
		if r.Settings[i].Key == key {
			return &r.Settings[i]
		}
	}
	return nil
}

func (r *Reading) has(formats ...string) bool {
	return slices.ContainsFunc(r.Formats, func(f string) bool { return slices.Contains(formats, f) })
}

func (c *Claim) where() string   { return place(c.File, c.Line) }
func (s *Setting) where() string { return place(s.File, s.Line) }

func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// Options of reading.
type Options struct {
	Format string // empty: found out
	Role   string // of a template with several roles or hosts: "ContrailDpdk"; empty: the only one, or that with DPDK
}

// scanner reads one file into a Reading.
type scanner struct {
	*Reading
	file string
	role string
}

// formats are the readers by the names of package output.
var formats = map[string]func(s *scanner, text string) error{
	"kernel": (*scanner).kernel, "grub": (*scanner).grub, "tuned": (*scanner).env, "systemd": (*scanner).ini, "tuned-profile": (*scanner).ini, "irqbalance": (*scanner).env,
	"nova": (*scanner).ini, "tripleo": (*scanner).tripleo, "kolla": (*scanner).kolla, "juju": (*scanner).juju, "libvirt": (*scanner).libvirt,
	"kubelet": (*scanner).kubelet, "container": (*scanner).env, "dpvs": (*scanner).dpvs, "node": (*scanner).node, "corelaned": (*scanner).env,
}

// Formats are the names of all.
func Formats() []string {
	var names []string
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// MaxSize of a file: more is none of these formats.
const MaxSize = 1 << 20

// Read adds a file to a reading. An error means that the file is not what it should be; what is wrong inside is a finding.
func (r *Reading) Read(file, text string, o Options) error {
	if len(text) > MaxSize {
		return input.Errorf(file, "", "is larger than %d bytes: no file of this kind is", MaxSize)
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	format := o.Format
	if format == "" {
		if format = Detect(text); format == "" {
			return input.Errorf(file, "--format "+strings.Join(Formats(), ", "), "says nothing about CPUs in a format that is known")
		}
	}
	read := formats[format]
	if read == nil {
		return input.Errorf("--format", strings.Join(Formats(), ", "), "'%s' is unknown", format)
	}
	r.Formats = append(r.Formats, format)
	return read(&scanner{r, file, o.Role}, text)
}

func (s *scanner) find(severity Severity, line int, instead, why, what string, args ...any) {
	s.Findings = append(s.Findings, Finding{severity, place(s.file, line), fmt.Sprintf(what, args...), why, instead})
}

func (s *scanner) set(key, value string, line int) {
	s.Settings = append(s.Settings, Setting{key, value, s.file, line})
}

// unknown reports a key that nobody reads, and one that it may be meant to be.
func (s *scanner) unknown(key string, line int, known []string, severity Severity) {
	if near := nearest(key, known); near != "" {
		s.find(Wrong, line, near, "it is ignored, and what it should say is not said", "unknown key '%s': is '%s' meant?", key, near)
		return
	}
	s.find(severity, line, "", "nobody reads it", "unknown key '%s'", key)
}

// nearest is the known key that differs in case, or in up to two letters.
func nearest(key string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(strings.ToLower(key), strings.ToLower(k)); d < distance && d*3 < len(key) {
			best, distance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
