// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// domain holds the elements about CPUs of a guest's libvirt XML (https://libvirt.org/formatdomain.html). A capture
// keeps only these.
type domain struct {
	XMLName xml.Name `xml:"domain"`
	Name    string   `xml:"name"`
	VCPU    struct {
		Count  int    `xml:",chardata"`
		CPUSet string `xml:"cpuset,attr,omitempty"`
	} `xml:"vcpu"`
	IOThreads int `xml:"iothreads,omitempty"`
	Tune      struct {
		VCPU     []pin `xml:"vcpupin"`
		Emulator *pin  `xml:"emulatorpin"`
		IOThread []pin `xml:"iothreadpin"`
	} `xml:"cputune"`
	NUMA struct {
		Memory *struct {
			Nodeset string `xml:"nodeset,attr"`
		} `xml:"memory"`
	} `xml:"numatune"`
	Interfaces []struct {
		Type   string `xml:"type,attr"`
		Driver *struct {
			Queues int `xml:"queues,attr,omitempty"`
		} `xml:"driver"`
	} `xml:"devices>interface"`
}

type pin struct {
	VCPU     *int   `xml:"vcpu,attr,omitempty"`
	IOThread *int   `xml:"iothread,attr,omitempty"`
	CPUSet   string `xml:"cpuset,attr"`
}

// status is the file of a running guest.
type status struct {
	XMLName xml.Name `xml:"domstatus"`
	PID     int      `xml:"pid,attr"`
	Domain  domain   `xml:"domain"`
}

// maxThreads bounds the number of vCPUs or iothreads; it is higher than QEMU's limits.
const maxThreads = 4096

// parseDomain parses a guest's definition, or the status of a running guest.
func parseDomain(text string) (domain, error) {
	var d domain
	var s status
	err := xml.Unmarshal([]byte(text), &s)
	if err == nil {
		d = s.Domain
	} else if err = xml.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("is not libvirt XML: %w", err)
	}
	d.Name = strings.TrimSpace(d.Name)
	if d.Name == "" || d.VCPU.Count < 1 || d.VCPU.Count > maxThreads || d.IOThreads < 0 || d.IOThreads > maxThreads {
		return d, errors.New("is a domain without a name or with an impossible number of vCPUs or iothreads")
	}
	return d, nil
}

// guest returns the guest as libvirt would start it: threads without a pin may run on the CPUs of <vcpu cpuset>, or
// on all.
func (d *domain) guest() (Guest, error) {
	g := Guest{Name: d.Name, Source: "libvirt"}
	all, err := cpuset.ParseExcluding(d.VCPU.CPUSet)
	if err != nil {
		return g, err
	}
	g.Emulator = all
	g.VCPUs, g.IOThread = filled(d.VCPU.Count, all), filled(d.IOThreads, all)
	for _, p := range d.Tune.VCPU {
		if err = p.set(g.VCPUs, p.VCPU, 0); err != nil {
			return g, fmt.Errorf("vcpupin: %w", err)
		}
	}
	for _, p := range d.Tune.IOThread {
		if err = p.set(g.IOThread, p.IOThread, 1); err != nil {
			return g, fmt.Errorf("iothreadpin: %w", err)
		}
	}
	if d.Tune.Emulator != nil {
		if g.Emulator, err = cpuset.ParseExcluding(d.Tune.Emulator.CPUSet); err != nil {
			return g, fmt.Errorf("emulatorpin: %w", err)
		}
	}
	if d.NUMA.Memory != nil {
		nodes, err := cpuset.ParseExcluding(d.NUMA.Memory.Nodeset)
		if err != nil {
			return g, fmt.Errorf("numatune: %w", err)
		}
		g.Nodes = nodes.IDs()
	}
	for _, i := range d.Interfaces {
		queues := 1
		if i.Driver != nil && i.Driver.Queues > 0 {
			queues = i.Driver.Queues
		}
		g.Queues = append(g.Queues, queues)
	}
	return g, nil
}

// set pins the thread with a number; numbers start at first.
func (p *pin) set(to []cpuset.Set, number *int, first int) error {
	if number == nil || *number < first || *number-first >= len(to) {
		return errors.New("names a thread that the guest does not have")
	}
	set, err := cpuset.ParseExcluding(p.CPUSet)
	to[*number-first] = set
	return err
}

func filled(n int, set cpuset.Set) []cpuset.Set {
	if n == 0 {
		return nil
	}
	return slices.Repeat([]cpuset.Set{set}, n)
}

// qemu holds the guest's name and the queues of its network devices, from a command line.
type qemu struct {
	name   string
	queues []int
}

// parseQEMU parses a command line of /proc, with NUL bytes between arguments (qemu(1)).
func parseQEMU(line string) (q qemu) {
	args := strings.Split(line, "\x00")
	for i := 0; i+1 < len(args); i++ {
		switch strings.TrimPrefix(args[i], "-") { // QEMU accepts one dash or two
		case "-name", "name":
			q.name = qemuName(args[i+1])
		case "-netdev", "netdev":
			q.queues = append(q.queues, qemuQueues(args[i+1]))
		}
	}
	return q
}

// qemuName finds the name in "guest=a,debug-threads=on" or "a,debug-threads=on".
func qemuName(text string) string {
	for i, part := range strings.Split(text, ",") {
		key, val, hasKey := strings.Cut(part, "=")
		if key == "guest" && hasKey {
			return val
		}
		if i == 0 && !hasKey {
			return part
		}
	}
	return ""
}

// qemuQueues finds the number of queue pairs of a -netdev: queues=, or the number of descriptors in fds=. libvirt
// before 9.2 writes JSON with the same keys.
func qemuQueues(text string) int {
	text = strings.NewReplacer(`":`, "=", `"`, "", "{", "", "}", "").Replace(text)
	for part := range strings.SplitSeq(text, ",") {
		key, val, _ := strings.Cut(part, "=")
		switch key {
		case "queues":
			if n, err := strconv.Atoi(val); err == nil && n > 0 && n <= cpuset.Max {
				return n
			}
		case "fds":
			return len(strings.Split(val, ":"))
		}
	}
	return 1
}

func sortGuests(list []Guest) {
	slices.SortFunc(list, func(a, b Guest) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
	})
}
