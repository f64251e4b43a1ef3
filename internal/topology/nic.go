// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"path"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const (
	pciDir = "sys/bus/pci/devices" // Documentation/ABI/testing/sysfs-bus-pci
	netDir = "sys/class/net"       // Documentation/ABI/testing/sysfs-class-net-queues
)

// nics reads the network devices of the PCI bus: class 02xxxx.
func (r *reader) nics() {
	for _, address := range r.list(pciDir, "*", maybe) {
		dir := pciDir + "/" + address + "/"
		class, _ := r.text(dir+"class", needed)
		if !strings.HasPrefix(class, "0x02") {
			continue
		}
		n := NIC{Address: address, Driver: r.link(dir + "driver"), Node: r.nodeOfNIC(dir)}
		n.Vendor, _ = r.text(dir+"vendor", needed)
		n.Device, _ = r.text(dir+"device", needed)
		n.LinkSpeed, _ = r.text(dir+"current_link_speed", maybe)
		n.LinkWidth, _ = value(r, dir+"current_link_width", maybe, number)
		n.IRQs = r.irqsOfNIC(dir)
		if n.Interface = r.interfaceOfNIC(dir); n.Interface != "" {
			queues := path.Join(netDir, n.Interface, "queues")
			n.RxQueues = len(r.list(queues, "rx-*", needed))
			n.TxQueues = len(r.list(queues, "tx-*", needed))
		}
		r.m.NICs = append(r.m.NICs, n)
	}
}

// nodeOfNIC returns -1 if the firmware does not set the node. On a machine with one node it returns that node.
func (r *reader) nodeOfNIC(dir string) int {
	if len(r.m.Nodes) == 1 {
		return r.m.Nodes[0].ID
	}
	node, ok := value(r, dir+"numa_node", needed, number)
	if ok && node < 0 {
		r.trouble(dir+"numa_node", "is %d: the firmware does not set the device's node", node)
	}
	if !ok || node < 0 {
		return -1
	}
	return node
}

func (r *reader) irqsOfNIC(dir string) []int {
	if irqs := r.numbered(dir+"msi_irqs", "", maybe); len(irqs) > 0 {
		return irqs
	}
	if irq, ok := value(r, dir+"irq", maybe, number); ok && irq > 0 {
		return []int{irq}
	}
	return nil
}

// interfaceOfNIC returns the device's first interface; that of a virtio device is below its virtio bus.
func (r *reader) interfaceOfNIC(dir string) string {
	if names := r.list(dir+"net", "*", maybe); len(names) > 0 {
		return names[0]
	}
	for _, virtio := range r.list(dir, "virtio[0-9]*", maybe) {
		if names := r.list(dir+virtio+"/net", "*", maybe); len(names) > 0 {
			return names[0]
		}
	}
	return ""
}

// interfaces reads which CPUs receive and send packets in the kernel (Documentation/networking/scaling.rst).
func (r *reader) interfaces() {
	for _, name := range r.list(netDir, "*", needed) {
		if name == "bonding_masters" { // the only entry that is a file
			continue
		}
		i := Interface{Name: name}
		queues := path.Join(netDir, name, "queues")
		for _, q := range r.numbered(queues, "rx-", needed) {
			set, _ := value(r, fmt.Sprintf("%s/rx-%d/rps_cpus", queues, q), maybe, cpuset.ParseMask)
			i.RPS = append(i.RPS, set)
		}
		for _, q := range r.numbered(queues, "tx-", needed) { // an interface with one queue has no xps_cpus
			set, _ := value(r, fmt.Sprintf("%s/tx-%d/xps_cpus", queues, q), maybe, cpuset.ParseMask)
			i.XPS = append(i.XPS, set)
		}
		r.m.Interfaces = append(r.m.Interfaces, i)
	}
}
