// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// kernelKeys lists the arguments about CPUs, to find misspelt ones.
var kernelKeys = []string{"isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "hugepages", "hugepagesz",
	"default_hugepagesz", "tuned.non_isolcpus", "rcu_nocb_poll", "skew_tick", "nmi_watchdog", "nosoftlockup", "nohz",
	"intel_iommu", "iommu", "intel_pstate", "nosmt", "maxcpus"}

// bare lists other arguments with similar names.
var notMisspelt = []string{"nowatchdog", "watchdog", "amd_iommu", "amd_pstate", "rcu_nocb", "nr_cpus", "hugepages_",
	"io_mmu", "hugetlb_cma"}

// kernel reads /proc/cmdline.
func (s *scanner) kernel(text string) error {
	line := 0
	for l := range strings.Lines(text) {
		line++
		if !strings.HasPrefix(strings.TrimSpace(l), "#") {
			s.arguments("", l, line)
		}
	}
	return nil
}

var grubLine = regexp.MustCompile(`(?:^\s*(?:export\s+)?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=|--(args)=)(.*)$`)

// grub reads a file of GRUB's settings, or a grubby command.
func (s *scanner) grub(text string) error {
	line := 0
	for l := range strings.Lines(text) {
		line++
		m := grubLine.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil || strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		key := m[1] + m[2]
		s.arguments(key, s.unquote(key, m[3], line), line)
	}
	return nil
}

// arguments reads a command line, which is the value of key, or a file of its own.
func (s *scanner) arguments(key, text string, line int) {
	if key != "" {
		key += " "
	}
	before := len(s.Hugepages)
	defer func() { s.replacePages(before, line) }()
	size := 0 // of the following hugepages; 0: the default size
	defaultSize := 2048
	for word := range strings.FieldsSeq(text) {
		name, value, given := strings.Cut(word, "=")
		name = strings.ReplaceAll(name, "-", "_") // like the kernel
		switch name {
		case "isolcpus":
			s.isolcpus(key+name, value, line)
		case "nohz_full":
			s.claim(NohzFull, key+name, value, list, line)
		case "rcu_nocbs":
			if given {
				s.claim(RcuNocbs, key+name, value, list, line)
			}
		case "irqaffinity":
			s.claim(IRQAffinity, key+name, value, list, line)
		case "tuned.non_isolcpus":
			s.claim(HostAffinity, key+name, value, mask, line)
		case "default_hugepagesz":
			defaultSize = s.pageSize(key+name, value, line)
		case "hugepagesz":
			size = s.pageSize(key+name, value, line)
		case "hugepages":
			if size == 0 {
				size = defaultSize
			}
			s.hugepages(key+name, value, size, line)
		default:
			if !slices.Contains(notMisspelt, name) {
				s.misspelt(name, line, kernelKeys)
			}
		}
	}
}

// isolcpus= [flag,...]list. Without flags it means domain.
func (s *scanner) isolcpus(key, value string, line int) {
	use, rest, flags := Isolcpus, value, 0
	domain := false
	for {
		flag, after, found := strings.Cut(rest, ",")
		if !found || flag == "" || flag[0] >= '0' && flag[0] <= '9' || strings.ContainsAny(flag, typographic) {
			break
		}
		if !slices.Contains([]string{"nohz", "domain", "managed_irq"}, flag) {
			s.find(Wrong, line, "nohz, domain, managed_irq",
				"the kernel then ignores the whole argument and isolates no CPU", "%s: unknown flag '%s'", key, flag)
			return
		}
		domain = domain || flag == "domain"
		flags++
		rest = after
	}
	if flags > 0 {
		s.set("isolcpus flags", value[:len(value)-len(rest)-1], line)
		if !domain {
			use = IsolcpusPart
		}
	}
	s.claim(use, key, rest, list, line)
}

// pageSize returns a size of hugepages in KiB, or 0 if it is not valid.
func (s *scanner) pageSize(key, value string, line int) int {
	kib := topology.ParsePageSize(strings.Trim(value, typographic))
	if kib == 0 {
		s.find(Wrong, line, "2M, 1G", "the kernel then ignores the number of pages too",
			"%s: no processor has hugepages of '%s'", key, value)
	}
	return kib
}

// hugepages= N or node:N,node:N.
func (s *scanner) hugepages(key, value string, kib, line int) {
	const most = 1 << 30
	for part := range strings.SplitSeq(strings.Trim(value, typographic), ",") {
		node := -1
		count := part
		var err error
		if n, c, byNode := strings.Cut(part, ":"); byNode {
			count = c
			if node, err = strconv.Atoi(n); err == nil && (node < 0 || node > 1023) {
				err = strconv.ErrRange
			}
		}
		pages, bad := strconv.Atoi(count)
		if err != nil || bad != nil || pages < 0 || pages > most {
			s.find(Wrong, line, "hugepages=32, or hugepages=0:16,1:16", "no pages are reserved then",
				"%s: '%s' is not a number of pages", key, part)
			return
		}
		if kib != 0 {
			s.Hugepages = append(s.Hugepages, plan.HugepageRequest{Node: node, KiB: kib, Pages: pages})
		}
	}
	if strings.Contains(value, ":") {
		s.set("hugepages by node", value, line)
	}
}

// replacePages lets the last command line win, for each size. Its pages begin at position new.
func (s *scanner) replacePages(new, line int) {
	old, fresh := s.Hugepages[:new], s.Hugepages[new:]
	pages := func(list []plan.HugepageRequest, kib int) (n int) {
		for _, h := range list {
			if h.KiB == kib {
				n += h.Pages
			}
		}
		return n
	}
	for _, kib := range (&topology.Machine{}).PageSizes() {
		was, is := pages(old, kib), pages(fresh, kib)
		if was != 0 && is != 0 && was != is {
			s.find(Warning, line, "one number", "only one of the numbers takes effect",
				"%d hugepages of %d KiB, but %d in an earlier line", is, kib, was)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(h plan.HugepageRequest) bool { return pages(fresh, h.KiB) != 0 })
	s.Hugepages = append(kept, fresh...)
}
