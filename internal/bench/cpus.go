// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/procfs"
)

// cpus are the CPUs of a machine, from /sys.
type cpus struct{ online, isolated []int }

func readCPUs(root string) (c cpus, err error) {
	if c.online, err = cpuList(root, "online"); err == nil {
		c.isolated, err = cpuList(root, "isolated")
	}
	return c, err
}

// cpuList reads a list of CPUs below sys/devices/system/cpu.
func cpuList(root, name string) ([]int, error) {
	set, err := procfs.Root(root).CPUs(name)
	return set.IDs(), err
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
