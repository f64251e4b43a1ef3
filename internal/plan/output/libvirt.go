// SPDX-License-Identifier: Apache-2.0
package output

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

// domain is the part of libvirt's domain XML about CPUs (https://libvirt.org/formatdomain.html, CPU Tuning).
type domain struct {
	XMLName   xml.Name `xml:"domain"`
	VCPU      vcpu     `xml:"vcpu"`
	IOThreads int      `xml:"iothreads,omitempty"`
	CPUTune   cpuTune  `xml:"cputune"`
	Memory    *memory  `xml:"numatune>memory"` // nil: the plan has one node, or does not list nodes
}

type memory struct {
	Mode    string `xml:"mode,attr"`
	NodeSet string `xml:"nodeset,attr"`
}

type vcpu struct {
	Placement string `xml:"placement,attr"`
	Count     int    `xml:",chardata"`
}

type cpuTune struct {
	VCPUPin     []vcpuPin     `xml:"vcpupin"`
	EmulatorPin emulatorPin   `xml:"emulatorpin"`
	IOThreadPin []ioThreadPin `xml:"iothreadpin"`
}

type vcpuPin struct {
	VCPU   int    `xml:"vcpu,attr"`
	CPUSet string `xml:"cpuset,attr"`
}

type emulatorPin struct {
	CPUSet string `xml:"cpuset,attr"`
}

type ioThreadPin struct {
	IOThread int    `xml:"iothread,attr"`
	CPUSet   string `xml:"cpuset,attr"`
}

// libvirt pins each vCPU to one CPU, because threads on isolated CPUs are not balanced. It keeps emulator threads,
// and with them the kernel's vhost threads, off the vCPUs' CPUs, where libvirt would leave them. The guest's memory
// comes from the nodes of its vCPUs.
func libvirt(v *view) ([]File, error) {
	if v.VCPUs < 1 {
		return nil, input.Errorf("--vcpus", "1 or more", "the plan does not say how many vCPUs the guest has")
	}
	if v.Skip < 0 || v.IOThreads < 0 {
		return nil, input.Errorf("--skip, --iothreads", "0 or more", "the number is negative")
	}
	free := v.guestOrder()
	if len(free) < v.Skip+v.VCPUs {
		return nil, input.Errorf("--vcpus", fmt.Sprintf("up to %d", max(0, len(free)-v.Skip)),
			"the plan has %d CPUs for guests, of which %d are skipped", len(free),
			min(v.Skip, len(free)))
	}
	d := domain{VCPU: vcpu{"static", v.VCPUs}, IOThreads: v.IOThreads,
		CPUTune: cpuTune{EmulatorPin: emulatorPin{v.emulators().String()}}}
	own := free[v.Skip : v.Skip+v.VCPUs]
	if nodes := v.nodesOf(cpuset.Of(own...)); len(v.nodes()) > 1 && !nodes.Empty() {
		d.Memory = &memory{"strict", nodes.String()}
	}
	for i, cpu := range own {
		d.CPUTune.VCPUPin = append(d.CPUTune.VCPUPin, vcpuPin{i, cpuset.Of(cpu).String()})
	}
	for i := range v.IOThreads {
		d.CPUTune.IOThreadPin = append(d.CPUTune.IOThreadPin, ioThreadPin{i + 1, v.emulators().String()})
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	return []File{{"", "elements of the guest's definition: virsh edit", string(text) + "\n", false}}, err
}

// nodesOf returns the nodes of CPUs, according to the plan's layout.
func (v *view) nodesOf(cpus cpuset.Set) cpuset.Set {
	var ids []int
	for _, line := range v.Layout {
		var id int
		head, cores, _ := strings.Cut(line, ": cores ")
		set, err := cpuset.Parse(strings.NewReplacer("+", ",", " ", ",").Replace(cores))
		if n, _ := fmt.Sscanf(head, "node %d", &id); n == 1 && err == nil && set.Overlaps(cpus) {
			ids = append(ids, id)
		}
	}
	return cpuset.Of(ids...)
}

// guestOrder returns the guests' CPUs in the order of the plan's layout: by node, siblings side by side. Whole cores
// come first, because the sibling of a single CPU may have another role.
func (v *view) guestOrder() []int {
	var whole, half []int
	for _, line := range v.Layout {
		_, cores, _ := strings.Cut(line, ": cores ")
		for core := range strings.FieldsSeq(cores) {
			set, err := cpuset.Parse(strings.ReplaceAll(core, "+", ","))
			switch {
			case err != nil:
			case set.Within(v.guests):
				whole = append(whole, set.IDs()...)
			default:
				half = append(half, set.And(v.guests).IDs()...)
			}
		}
	}
	order := append(whole, half...)
	return append(order, v.guests.Without(cpuset.Of(order...)).IDs()...)
}
