// SPDX-License-Identifier: Apache-2.0
package output

import (
	"encoding/xml"
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

// domain is the part of libvirt's domain XML that says CPUs (https://libvirt.org/formatdomain.html, CPU Tuning).
type domain struct {
	XMLName   xml.Name `xml:"domain"`
	VCPU      vcpu     `xml:"vcpu"`
	IOThreads int      `xml:"iothreads,omitempty"`
	CPUTune   cpuTune  `xml:"cputune"`
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

// libvirt: each vCPU on one CPU, because nobody balances threads on isolated CPUs. Emulator threads, and with them vhost
// threads of the kernel, never on vCPUs' CPUs, where libvirt would leave them.
func libvirt(v *view) ([]File, error) {
	if v.VCPUs < 1 {
		return nil, input.Errorf("--vcpus", "1 or more", "a guest has vCPUs, and the plan does not say how many")
	}
	if v.Skip < 0 || v.IOThreads < 0 {
		return nil, input.Errorf("--skip, --iothreads", "0 or more", "is negative")
	}
	free := v.guestOrder()
	if len(free) < v.Skip+v.VCPUs {
		return nil, input.Errorf("--vcpus", fmt.Sprintf("up to %d", max(0, len(free)-v.Skip)), "the plan has %d CPUs for guests, of which %d are taken", len(free), min(v.Skip, len(free)))
	}
	d := domain{VCPU: vcpu{"static", v.VCPUs}, IOThreads: v.IOThreads, CPUTune: cpuTune{EmulatorPin: emulatorPin{v.emulators().String()}}}
	for i, cpu := range free[v.Skip : v.Skip+v.VCPUs] {
		d.CPUTune.VCPUPin = append(d.CPUTune.VCPUPin, vcpuPin{i, cpuset.Of(cpu).String()})
	}
	for i := range v.IOThreads {
		d.CPUTune.IOThreadPin = append(d.CPUTune.IOThreadPin, ioThreadPin{i + 1, v.emulators().String()})
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	return []File{{"", "elements of the guest's definition: virsh edit", string(text) + "\n", false}}, err
}

// guestOrder has the CPUs of guests node by node and siblings side by side, where the machine is known.
func (v *view) guestOrder() []int {
	if v.Options.Machine == nil {
		return v.guests.IDs()
	}
	var order []int
	seen := map[int]bool{}
	for _, n := range v.Options.Machine.Nodes {
		for _, c := range v.Options.Machine.CPUs {
			if c.Node != n.ID || !v.guests.Has(c.ID) {
				continue
			}
			for _, id := range cpuset.Of(c.ID).Or(c.Siblings.And(v.guests)).IDs() {
				if !seen[id] {
					seen[id] = true
					order = append(order, id)
				}
			}
		}
	}
	return order
}
