// SPDX-License-Identifier: Apache-2.0
package host

import (
	"bufio"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// probed looks for breakpoints in the program: instructions that differ from the file.
func (r Root) probed(pid int) (h Handicap, found bool) {
	n := r.breakpoints(pid)
	h = Handicap{What: fmt.Sprintf("somebody set %d breakpoints in the program's code (uprobes, a debugger)", n),
		Remedy: "end what set them: bpftrace, perf probe (perf probe -d '*'), SystemTap, gdb", Passing: true,
		InPath: true}
	if n == 0 {
		return h, false
	}
	if who, sampled := r.sampled(pid); sampled { // uprobes are counted or traced through such counters
		h.What, h.Remedy, h.Fix = h.What+"; "+who.What, "end what set them:", who.Fix
	} else if events := r.uprobes(pid); len(events) > 0 {
		h.What += "; the kernel's tracing has uprobes in it: " + namesOf(events)
		h.Remedy, h.Fix = "switch them off and remove them:", r.endOf("uprobe_events", events)
	}
	return h, true
}

// uprobes returns the events of the kernel's tracing that are in the program of a process.
func (r Root) uprobes(pid int) (out []probe) {
	exe, err := os.Readlink(r.path("proc", strconv.Itoa(pid), "exe"))
	for _, p := range r.probes("uprobe_events") {
		if err == nil && strings.HasPrefix(p.where, exe+":") {
			out = append(out, p)
		}
	}
	return out
}

const breakpoint = 0xcc // int3 of x86-64

// breakpoints compares the pages of code that the kernel has copied for a process with its program.
func (r Root) breakpoints(pid int) (n int) {
	dir := r.path("proc", strconv.Itoa(pid))
	exe, _ := os.Readlink(dir + "/exe")
	maps, err := os.Open(dir + "/smaps")
	if err != nil || exe == "" {
		return 0
	}
	defer maps.Close()
	memory, err := os.Open(dir + "/mem")
	if err != nil {
		return 0
	}
	defer memory.Close()
	program, err := os.Open(dir + "/exe")
	if err != nil {
		return 0
	}
	defer program.Close()
	var from, size, offset uint64 // of a mapping of code
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"): // a mapping: range, rights, offset, device, inode
			size = 0
			begin, end, _ := strings.Cut(fields[0], "-")
			if strings.HasPrefix(fields[1], "r-x") && strings.HasSuffix(lines.Text(), " "+exe) {
				from = hex(begin)
				size, offset = hex(end)-from, hex(fields[2])
			}
		case size > 0 && size <= mostCode && len(fields) >= 2 && fields[0] == "Anonymous:" && count(fields[1]) > 0:
			now, was := make([]byte, size), make([]byte, size)
			got, _ := memory.ReadAt(now, int64(from)) // the mapping may be longer than the file
			had, _ := program.ReadAt(was, int64(offset))
			for i := range min(got, had) {
				if now[i] != was[i] && now[i] == breakpoint {
					n++
				}
			}
		}
	}
	return n
}

const mostCode = 64 << 20 // bytes of a mapping

func hex(text string) uint64 {
	n, _ := strconv.ParseUint(text, 16, 64) // the kernel wrote it
	return n
}

// unoptimized looks for a program that was compiled for debugging: its debug information has the compiler's options.
func (r Root) unoptimized(pid int) (h Handicap, found bool) {
	program, err := elf.Open(r.path("proc", strconv.Itoa(pid), "exe"))
	if err != nil {
		return h, false
	}
	defer program.Close()
	what := ""
	if symbols, _ := program.ImportedSymbols(); hasPrefix(symbols, "__asan_") { // a static program imports none
		what = "the program was compiled with checks of its memory accesses (AddressSanitizer)"
	} else if options := compiledWith(program); options != "" && !strings.Contains(options, " -O1") &&
		!strings.Contains(options, " -O2") && !strings.Contains(options, " -O3") && !strings.Contains(options, " -Os") {
		what = "the program was compiled without optimization (a debug build)"
	}
	return Handicap{What: what, Remedy: "install a release build: meson setup --buildtype release"}, what != ""
}

func hasPrefix(symbols []elf.ImportedSymbol, prefix string) bool {
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, prefix) {
			return true
		}
	}
	return false
}

// compiledWith returns the options with which the first C file of a program was compiled; "": it does not say.
func compiledWith(program *elf.File) string {
	data, err := program.DWARF()
	if err != nil {
		return ""
	}
	for units := data.Reader(); ; units.SkipChildren() {
		unit, err := units.Next()
		if err != nil || unit == nil {
			return ""
		}
		if options, _ := unit.Val(dwarf.AttrProducer).(string); strings.HasPrefix(options, "GNU C") {
			return options
		}
	}
}
