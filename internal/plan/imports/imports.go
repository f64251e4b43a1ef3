// SPDX-License-Identifier: Apache-2.0

// Package imports reads other tools' settings about CPUs: templates of orchestrators, environments of routers, kernel
// arguments, settings of host services, and Corelane's own files. It finds the role of each CPU, what the files leave
// open, and what is wrong with them. It does no I/O. Package plan/output writes the same formats.
package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
)

// Use is the role that a file gives to CPUs, or the way in which the host should treat them.
type Use string

// The uses. The first are roles of threads, the others are settings of the host.
const (
	Forwarding Use = "forwarding"
	IsolatedRx Use = "isolated-rx"
	HostPath   Use = "host-path"
	Service    Use = "service"
	Control    Use = "control"
	Guests     Use = "guests"
	Emulator   Use = "emulator"

	Isolcpus      Use = "isolcpus"       // not balanced by the scheduler, since boot
	IsolcpusPart  Use = "isolcpus-part"  // isolcpus= with flags but without domain: still balanced
	NohzFull      Use = "nohz_full"      // no tick
	RcuNocbs      Use = "rcu_nocbs"      // no RCU callbacks
	IRQAffinity   Use = "irqaffinity"    // CPUs of interrupts
	TunedIsolated Use = "isolated_cores" // TuneD moves threads off them
	HostAffinity  Use = "host"           // CPUs of the host's services
	Banned        Use = "banned"         // irqbalance does not use them
	Reserved      Use = "reserved"       // kubelet does not give them to pods
)

// Claim is one statement about CPUs.
type Claim struct {
	Use  Use        `json:"use"`
	CPUs cpuset.Set `json:"cpus"`
	Key  string     `json:"key"` // the setting: "SERVICE_CORE_MASK", "KernelArgs isolcpus"
	File string     `json:"file"`
	Line int        `json:"line,omitempty"`
}

// Setting is a value that does not name CPUs.
type Setting struct {
	Key, Value, File string
	Line             int
}

// Reading is the content of all files together.
type Reading struct {
	Formats   []string // of the files, in their order
	Claims    []Claim
	Settings  []Setting
	Hugepages []plan.HugepageRequest // Node -1: on all nodes together
	Dpvs      *Dpvs                  // nil: there is no such file
	Guest     *Guest                 // nil: there is no definition of a guest
	Findings  []Finding              // found while reading; Check returns more

	size   int                // number of CPUs in all claims
	united map[Use]cpuset.Set // union of all claims of a use, once all files are read
}

// Severity of a finding.
type Severity string

// The severities.
const (
	Wrong   Severity = "wrong"   // packets are lost, or a program does not start
	Warning Severity = "warning" // packets may be lost
	Note    Severity = "note"
)

// Finding is a problem in the files.
type Finding struct {
	Severity Severity `json:"severity"`
	Where    string   `json:"where,omitempty"`   // file:line, or a file
	What     string   `json:"what"`              // one line
	Why      string   `json:"why"`               // its effect
	Instead  string   `json:"instead,omitempty"` // what to write
}

// Of returns the CPUs that all claims of a use name, and the first of these claims.
func (r *Reading) Of(uses ...Use) (cpuset.Set, *Claim) {
	var ids []int
	var first *Claim
	for i := range r.Claims {
		if c := &r.Claims[i]; slices.Contains(uses, c.Use) {
			ids = append(ids, c.CPUs.IDs()...)
			if first == nil {
				first = c
			}
		}
	}
	return cpuset.Of(ids...), first
}

// cpus returns the CPUs of some uses.
func (r *Reading) cpus(uses ...Use) cpuset.Set {
	if r.united == nil {
		set, _ := r.Of(uses...)
		return set
	}
	var set cpuset.Set
	for _, use := range uses {
		if more := r.united[use]; set.Empty() {
			set = more
		} else if !more.Empty() {
			set = set.Or(more)
		}
	}
	return set
}

// unite computes the union of claims once, because the checks use the same sets for each CPU of the machine.
func (r *Reading) unite() {
	r.united = map[Use]cpuset.Set{}
	all := map[Use][]int{}
	for _, c := range r.Claims {
		all[c.Use] = append(all[c.Use], c.CPUs.IDs()...)
	}
	for use, ids := range all {
		r.united[use] = cpuset.Of(ids...)
	}
}

// setting returns the last value of a key.
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
	Format string // empty: detect it
	Role   string // role or host in a template with several: "ContrailDpdk"; empty: the only one, or the one with DPDK
}

// scanner reads one file into a Reading.
type scanner struct {
	*Reading
	file string
	role string
}

// formats holds the readers by the names of package output.
var formats = map[string]func(s *scanner, text string) error{
	"kernel": (*scanner).kernel, "grub": (*scanner).grub, "tuned": (*scanner).env, "systemd": (*scanner).ini,
	"tuned-profile": (*scanner).ini, "irqbalance": (*scanner).env,
	"nova": (*scanner).ini, "tripleo": (*scanner).tripleo, "kolla": (*scanner).kolla, "juju": (*scanner).juju,
	"libvirt": (*scanner).libvirt,
	"kubelet": (*scanner).kubelet, "container": (*scanner).env, "dpvs": (*scanner).dpvs, "node": (*scanner).node,
	"corelaned": (*scanner).env,
}

// Formats returns the names of all formats.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// MaxSize is the size limit of a file.
const MaxSize = 1 << 20

// Read adds a file to a reading. It fails if the file does not have the format; wrong values are findings.
func (r *Reading) Read(file, text string, o Options) error {
	if len(text) > MaxSize {
		return input.Errorf(file, "", "is larger than %d bytes, the limit of such files", MaxSize)
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	format := o.Format
	if format == "" {
		if format = Detect(text); format == "" {
			return input.Errorf(file, "--format "+strings.Join(Formats(), ", "),
				"is not in a known format, or does not set CPUs")
		}
	}
	read := formats[format]
	if read == nil {
		return input.Errorf("--format", strings.Join(Formats(), ", "), "'%s' is unknown", format)
	}
	r.Formats = append(r.Formats, format)
	if err := read(&scanner{r, file, o.Role}, text); err != nil {
		return err
	}
	if r.size > maxClaimed {
		return input.Errorf(file, "", "names CPUs %d times, more than the files of a machine need", r.size)
	}
	return nil
}

// maxClaimed limits the number of CPUs in all claims together; more claims are not kept.
const maxClaimed = 1 << 18

func (s *scanner) add(c Claim) {
	if s.size += c.CPUs.Len(); s.size <= maxClaimed {
		s.Claims = append(s.Claims, c)
	}
}

func (s *scanner) find(severity Severity, line int, instead, why, what string, args ...any) {
	text := printable(fmt.Sprintf(what, args...))
	s.Findings = append(s.Findings, Finding{severity, place(s.file, line), text, why, instead})
}

// printable escapes control characters, because a file that is read must not write to the terminal of its reader.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			fmt.Fprintf(&b, "\\x%02x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (s *scanner) set(key, value string, line int) {
	s.Settings = append(s.Settings, Setting{key, value, s.file, line})
}

// unknown reports an unknown key, with the known key that may be meant.
func (s *scanner) unknown(key string, line int, known []string, severity Severity) {
	if near := nearest(key, known); near != "" {
		s.find(Wrong, line, near, "the key is ignored, and the intended setting is missing",
			"unknown key '%s': is '%s' meant?", key, near)
		return
	}
	s.find(severity, line, "", "the key is ignored", "unknown key '%s'", key)
}

// misspelt reports a key only if it is nearly a known one.
func (s *scanner) misspelt(key string, line int, known []string) {
	if near := nearest(key, known); near != "" && near != key {
		s.unknown(key, line, known, Note)
	}
}

// nearest returns the known key that differs only in case, or in up to two letters.
func nearest(key string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := input.Distance(strings.ToLower(key), strings.ToLower(k)); d < distance && d*3 < len(key) {
			best, distance = k, d
		}
	}
	return best
}
