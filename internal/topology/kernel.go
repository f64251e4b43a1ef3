// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

func (r *reader) kernel() {
	k := &r.m.Kernel
	k.Release, _ = r.text("proc/sys/kernel/osrelease", needed)
	r.m.Hostname, _ = r.text("proc/sys/kernel/hostname", needed)
	k.Cmdline, _ = r.text("proc/cmdline", needed)
	k.Args = ParseCmdline(k.Cmdline)
	k.Isolated, _ = value(r, cpuDir+"/isolated", needed, kernelSet) // since Linux 4.2
	k.NohzFull, _ = value(r, cpuDir+"/nohz_full", maybe, kernelSet) // only with CONFIG_NO_HZ_FULL
}

// ParseCmdline splits the kernel's command line as the kernel does (lib/cmdline.c, next_arg): quotes protect spaces,
// and arguments after "--" are for init.
func ParseCmdline(line string) []Argument {
	var args []Argument
	for _, word := range cmdlineWords(line) {
		if word == "--" {
			break
		}
		name, value, _ := strings.Cut(word, "=")
		args = append(args, Argument{strings.ReplaceAll(name, `"`, ""), strings.Trim(value, `"`)})
	}
	return args
}

func cmdlineWords(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(c rune) bool {
		if c == '"' {
			quoted = !quoted
		}
		return !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r')
	})
}

// same compares names as the kernel does: "-" equals "_" (parameq).
func same(a, b string) bool {
	return strings.ReplaceAll(a, "-", "_") == strings.ReplaceAll(b, "-", "_")
}

// All returns the values of an argument in their order; an argument may occur several times.
func (k *Kernel) All(name string) []string {
	args := k.Args
	if args == nil { // from JSON
		args = ParseCmdline(k.Cmdline)
	}
	var values []string
	for _, a := range args {
		if same(a.Name, name) {
			values = append(values, a.Value)
		}
	}
	return values
}

// Arg returns the last value of an argument, and whether the argument is given.
func (k *Kernel) Arg(name string) (string, bool) {
	all := k.All(name)
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1], true
}

// CPUArgument is an argument with a list of CPUs: isolcpus=managed_irq,domain,2-5.
type CPUArgument struct {
	Given bool
	Flags []string // those of isolcpus: nohz, domain, managed_irq
	CPUs  cpuset.Set
}

// CPUArg parses an argument with a list of CPUs: isolcpus, nohz_full, rcu_nocbs, irqaffinity, ... last is the machine's
// highest CPU, for "all" and "N". An argument without a value has no CPUs (rcu_nocbs).
func (k *Kernel) CPUArg(name string, last int) (CPUArgument, error) {
	text, given := k.Arg(name)
	a := CPUArgument{Given: given}
	if text == "" {
		return a, nil
	}
	rest := text
	for same(name, "isolcpus") {
		flag, after, more := strings.Cut(rest, ",")
		if !more || flag == "" || flag[0] >= '0' && flag[0] <= '9' || flag == "all" || flag[0] == 'N' {
			break
		}
		a.Flags, rest = append(a.Flags, flag), after
	}
	for _, flag := range a.Flags {
		if flag != "nohz" && flag != "domain" && flag != "managed_irq" {
			return a, fmt.Errorf("%s=%s: '%s' is an unknown flag; valid: nohz, domain, managed_irq", name, text, flag)
		}
	}
	var err error
	if a.CPUs, err = cpuset.ParseKernel(rest, last); err != nil {
		return a, fmt.Errorf("%s=%s: %w", name, text, err)
	}
	return a, nil
}

// LastCPU returns the highest id.
func (m *Machine) LastCPU() int { return m.CPUs[len(m.CPUs)-1].ID }

// Online returns the CPUs that are online.
func (m *Machine) Online() cpuset.Set {
	var ids []int
	for i := range m.CPUs {
		if m.CPUs[i].Online {
			ids = append(ids, m.CPUs[i].ID)
		}
	}
	return cpuset.Of(ids...)
}

// CPU returns the CPU with an id, or nil.
func (m *Machine) CPU(id int) *CPU {
	for i := range m.CPUs {
		if m.CPUs[i].ID == id {
			return &m.CPUs[i]
		}
	}
	return nil
}
