// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/input"
)

// ParseCPUs reads a list of CPU numbers as the kernel writes it: "1,4-6".
func ParseCPUs(text string) ([]int, error) {
	var list []int
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || first < 0 || last < first || last-first > maxCPU {
			return nil, fmt.Errorf("'%s' is not a list of CPUs; valid: numbers and ranges, as in 1,4-6", text)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, cpu)
		}
	}
	return list, nil
}

const maxCPU = 4096

// cpus are the CPUs of a machine, from /sys.
type cpus struct{ online, isolated []int }

func readCPUs(root string) (cpus, error) {
	var c cpus
	for _, f := range []struct {
		name string
		to   *[]int
	}{{"online", &c.online}, {"isolated", &c.isolated}} {
		text, err := os.ReadFile(filepath.Join(root, "sys/devices/system/cpu", f.name))
		if err != nil {
			return c, err
		}
		if strings.TrimSpace(string(text)) == "" {
			continue
		}
		if *f.to, err = ParseCPUs(string(text)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// placement says which CPUs the parts of the benchmark use.
type placement struct {
	routers   []int // one polling thread each
	generator int
	control   int // for everything that does not poll
}

// place chooses the CPUs that the user left open and refuses what is impossible. Routers get isolated CPUs first.
func place(c cpus, asked []int, generator, workers int) (placement, error) {
	p := placement{routers: asked, generator: generator}
	if generator < 0 {
		free := without(preferred(c, workers), asked)
		if len(free) == 0 {
			return p, input.Errorf("--generator-cpu", "a CPU that no router polls on", "none is left of CPUs %v",
				c.online)
		}
		p.generator = free[0]
	}
	if len(asked) == 0 {
		p.routers = without(preferred(c, workers), []int{p.generator})
		if len(p.routers) < workers {
			return p, input.Errorf("--workers", fmt.Sprintf("1 to %d: one CPU is the generator's", len(c.online)-1),
				"%d, but this machine has CPUs %v", workers, c.online)
		}
		p.routers = p.routers[:workers]
	}
	if err := p.check(c, workers); err != nil {
		return p, err
	}
	p.control = p.generator
	if others := without(without(c.online, p.routers), []int{p.generator}); len(others) > 0 {
		p.control = others[0]
	}
	return p, nil
}

// preferred lists CPUs for pollers, the generator's first: the isolated ones when they are enough, else all.
func preferred(c cpus, workers int) []int {
	if len(c.isolated) > workers {
		return c.isolated
	}
	return c.online
}

func without(list, some []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(cpu int) bool { return slices.Contains(some, cpu) })
}

func (p *placement) check(c cpus, workers int) error {
	valid := fmt.Sprintf("of %v", c.online)
	for i, cpu := range p.routers {
		switch {
		case !slices.Contains(c.online, cpu):
			return input.Errorf("--cpu", valid, "CPU %d does not exist", cpu)
		case slices.Contains(p.routers[:i], cpu):
			return input.Errorf("--cpu", "each CPU once", "CPU %d would be shared by two workers", cpu)
		case cpu == p.generator:
			return input.Errorf("--cpu", "another CPU than the generator's",
				"CPU %d would be shared by a router and the generator", cpu)
		}
	}
	switch {
	case !slices.Contains(c.online, p.generator):
		return input.Errorf("--generator-cpu", valid, "CPU %d does not exist", p.generator)
	case len(p.routers) < workers:
		return input.Errorf("--cpu", fmt.Sprintf("%d CPUs", workers), "%d CPUs for %d workers", len(p.routers), workers)
	}
	return nil
}
