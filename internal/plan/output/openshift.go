// SPDX-License-Identifier: Apache-2.0
package output

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// openshift writes a PerformanceProfile, from which the node tuning operator makes the kernel's arguments, a profile of
// TuneD and the kubelet's settings. Its two sets must have all CPUs. The operator reserves only the host's CPUs, so a
// router beside the kubelet must be a pod with exclusive CPUs.
func openshift(v *view) ([]File, error) {
	pages, err := v.hugepagesByNode()
	if err != nil {
		return nil, err
	}
	isolated := v.all.Without(v.host)
	text := v.note()
	if router := v.Of(plan.Forwarding, plan.IsolatedRx, plan.HostPath).Or(v.service).And(isolated); !router.Empty() {
		text += "# Pods get the isolated CPUs: run the router as a pod of class Guaranteed with " +
			fmt.Sprint(router.Len()) + " CPUs.\n"
	}
	text += "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n" +
		"metadata:\n  name: corelane\nspec:\n  cpu:\n" +
		pairs("    ", "isolated", isolated.String(), "reserved", v.host.String()) +
		"  globallyDisableIrqLoadBalancing: true\n"
	for i, p := range pages {
		if i == 0 {
			size := topology.PageSizeText(p.KiB)
			text += "  hugepages:\n" + pairs("    ", "defaultHugepagesSize", size) + "    pages:\n"
		}
		text += fmt.Sprintf("    - size: %q\n      node: %d\n      count: %d\n", topology.PageSizeText(p.KiB), p.Node,
			p.Pages)
	}
	text += "  additionalKernelArgs:\n"
	args, err := v.arguments()
	for _, a := range args { // the operator writes the others itself
		name, _, _ := strings.Cut(a, "=")
		if name == "nosoftlockup" || name == "skew_tick" || strings.HasPrefix(name, "iommu") {
			text += fmt.Sprintf("  - %q\n", a)
		}
	}
	text += "  net:\n    userLevelNetworking: true\n  numa:\n    topologyPolicy: single-numa-node\n" +
		"  realTimeKernel:\n    enabled: false\n  nodeSelector:\n    node-role.kubernetes.io/worker-cnf: \"\"\n"
	return []File{{"", "manifest: oc apply -f", text, false}}, err
}
