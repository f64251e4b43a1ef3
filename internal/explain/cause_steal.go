// SPDX-License-Identifier: Apache-2.0
package explain

import "fmt"

var steal = row{
	kind: Steal, colour: "held",
	means: "the hypervisor gave the CPU to another machine",
	known: "steal time in `/proc/stat`",
	always: func(a *account) { // only for the share of the window in which the worker had the CPU
		t, ok := a.e.Host.Ticks[a.w.CPU]
		if !ok || t.Steal <= 0 {
			return
		}
		away := int64(0)
		for _, c := range a.causes {
			away += c.LostNS
		}
		window := a.e.ns()
		own := float64(max(0, window-away)) / float64(max(1, window))
		a.add(culprit{kind: Steal, name: "hypervisor"}, int64(own*float64(t.Steal)*tickNS), t.Steal, 0)
	},
	unseen: true,
	grade:  counted,
	describe: func(s *scene, c *Cause) {
		c.Title = fmt.Sprintf("the hypervisor took CPU %d from this machine", s.w.CPU)
	},
	noRemedy: "on the host: pin this machine's vCPU to a CPU of its own (virsh vcpupin)",
}
