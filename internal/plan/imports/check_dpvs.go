// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"slices"
)

// dpvs checks a configuration of DPVS. DPVS checks some of this at start and prints "bad lcore configuration" with a
// number.
func (c *checker) dpvs() {
	d := c.Dpvs
	switch {
	case d == nil, len(d.Blocks) == 0 && d.File == "":
		return
	case len(d.Blocks) == 0:
		c.find(Wrong, d.File, "a master and a slave", "DPVS does not start", "worker_defs has no workers")
		return
	}
	if !d.Command {
		c.find(Warning, d.File, "--lcores 0@1,1@2,...", "cpu_id is the number of an EAL lcore: without --lcores "+
			"worker 0 is on CPU 0, together with interrupts",
			"the CPUs of the workers' cpu_id are not known: give the command line too")
	}
	c.dpvsBlocks()
	c.dpvsQueues()
	c.dpvsReceivers()
	c.dpvsLcores()
}

func (c *checker) dpvsBlocks() {
	d := c.Dpvs
	masters, slaves := 0, 0
	seen := map[int]string{}
	for _, b := range d.Blocks {
		where := place(d.File, b.Line)
		switch b.Type {
		case "master":
			masters++
			if d.Command && b.Lcore != d.master() {
				c.find(Wrong, where, "--main-lcore, or another cpu_id", "DPVS expects its master on EAL's main lcore",
					"the master's cpu_id is %d, but the main lcore is %d", b.Lcore, d.master())
			}
		case "slave":
			slaves++
			if len(b.Ports) == 0 {
				c.find(Wrong, where, "a block 'port'", "the worker forwards nothing", "worker %s has no port", b.Name)
			}
		case "":
			c.find(Wrong, where, "type slave", "DPVS does not know the worker's role", "worker %s has no type", b.Name)
		}
		if other, twice := seen[b.Lcore]; twice && b.Lcore >= 0 {
			c.find(Wrong, where, "one cpu_id per worker", "one of them does not run",
				"workers %s and %s both have cpu_id %d", other, b.Name, b.Lcore)
		}
		seen[b.Lcore] = b.Name
		if _, mapped := d.Lcores[b.Lcore]; d.Command && b.Lcore >= 0 && !mapped {
			c.find(Wrong, where, "an lcore of --lcores", "DPVS does not start: EAL has no such lcore",
				"worker %s has cpu_id %d, which --lcores does not map", b.Name, b.Lcore)
		}
	}
	if masters != 1 {
		c.find(Wrong, d.File, "one worker of type master", "DPVS does not start", "%d masters", masters)
	}
	if slaves == 0 {
		c.find(Wrong, d.File, "a worker of type slave", "DPVS does not start", "no forwarding worker")
	}
}

// dpvsQueues checks that each queue of a device has one worker, and that the queues are numbered from 0 without gaps,
// in both directions.
func (c *checker) dpvsQueues() {
	d := c.Dpvs
	rx, tx := map[string]map[int]string{}, map[string]map[int]string{}
	var names []string
	for _, b := range d.Blocks {
		for _, p := range b.Ports {
			if rx[p.Name] == nil {
				rx[p.Name], tx[p.Name] = map[int]string{}, map[int]string{}
				names = append(names, p.Name)
			}
			where := place(d.File, p.Line)
			c.dpvsTwice(where, "rx", p.Name, b.Name, p.Rx, rx[p.Name])
			c.dpvsTwice(where, "tx", p.Name, b.Name, p.Tx, tx[p.Name])
			if b.Type == "slave" && len(p.Rx) == 0 {
				c.find(Warning, where, "rx_queue_ids", "the worker receives nothing from this port",
					"worker %s has no rx queue of %s", b.Name, p.Name)
			}
		}
	}
	for _, name := range names {
		c.dpvsGaps("rx", name, rx[name])
		c.dpvsGaps("tx", name, tx[name])
		if n, known := d.Queues[name]; known && n > 0 && len(rx[name]) > 0 && n != len(rx[name]) {
			c.find(Wrong, d.File, "the number of polled queues",
				"packets of queues without a poller are lost; missing queues are not created",
				"%s has queue_number %d, but workers poll %d rx queues", name, n, len(rx[name]))
		}
		for _, b := range d.Blocks {
			if b.Type == "slave" && !slices.ContainsFunc(b.Ports, func(p DpvsPort) bool { return p.Name == name }) {
				c.find(Wrong, place(d.File, b.Line), "a block 'port "+name+"'",
					"every forwarding worker must serve every port, or DPVS does not start",
					"worker %s does not serve %s", b.Name, name)
			}
		}
	}
}

func (c *checker) dpvsTwice(where, direction, port, worker string, queues []int, seen map[int]string) {
	for _, q := range queues {
		if other, twice := seen[q]; twice {
			c.find(Wrong, where, "one queue per worker", "two threads on one queue corrupt it; DPVS does not start",
				"%s queue %d of %s is polled by both %s and %s", direction, q, port, other, worker)
		}
		seen[q] = worker
	}
}

func (c *checker) dpvsGaps(direction, port string, seen map[int]string) {
	for q := range len(seen) {
		if _, used := seen[q]; !used {
			c.find(Wrong, c.Dpvs.File, "queues 0, 1, 2, ...", "RSS distributes packets to all queues, and those of "+
				"a queue without a poller are lost; DPVS does not start",
				"%s queue %d of %s has no worker", direction, q, port)
			return
		}
	}
}

// dpvsReceivers checks isolated receivers: each needs an lcore of its own, one per rx queue, in the order of the
// queues.
func (c *checker) dpvsReceivers() {
	d := c.Dpvs
	blocks := map[int]string{}
	for _, b := range d.Blocks {
		blocks[b.Lcore] = b.Name
	}
	for _, b := range d.Blocks {
		for _, p := range b.Ports {
			where := place(d.File, p.Line)
			if len(p.IsolRx) > len(p.Rx) {
				c.find(Warning, where, "one per rx queue", "receivers without a queue do nothing",
					"worker %s: %d isol_rx_cpu_ids for %d rx queues", b.Name,
					len(p.IsolRx), len(p.Rx))
			}
			for _, lcore := range p.IsolRx {
				if other, is := blocks[lcore]; is {
					c.find(Wrong, where, "an lcore that is not a worker", "one lcore cannot do both: the worker's "+
						"packets would wait", "isol_rx_cpu_ids %d is worker %s", lcore, other)
				} else if _, mapped := d.Lcores[lcore]; d.Command && !mapped {
					c.find(Wrong, where, "an lcore of --lcores",
						"the worker then receives by itself, and DPVS does not report it",
						"isol_rx_cpu_ids %d: --lcores does not map this lcore", lcore)
				}
			}
		}
	}
}

// dpvsLcores checks that each lcore has a CPU of its own and is used.
func (c *checker) dpvsLcores() {
	d := c.Dpvs
	used := map[int]bool{}
	for _, b := range d.Blocks {
		used[b.Lcore] = true
		for _, p := range b.Ports {
			for _, lcore := range p.IsolRx {
				used[lcore] = true
			}
		}
	}
	on := map[int]int{}
	for _, lcore := range d.Order {
		set := d.Lcores[lcore]
		if set.Len() > 1 {
			c.find(Warning, d.Where, "one CPU", "the worker moves between CPUs or shares one",
				"lcore %d may run on %s", lcore, cpuText(set))
		}
		if other, twice := on[set.First()]; twice && set.Len() == 1 {
			c.find(Wrong, d.Where, "one CPU per lcore", "two polling threads preempt each other",
				"lcores %d and %d are both on %s", other, lcore, cpuText(set))
		}
		on[set.First()] = lcore
		if !used[lcore] {
			c.find(Note, d.Where, "", "the lcore is idle", "lcore %d (%s) is not a worker", lcore, cpuText(set))
		}
	}
}
