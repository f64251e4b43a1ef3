// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/namespace"
)

// cable is a veth pair between two network namespaces. RPS chooses the CPUs that receive at its far end.
type cable struct {
	from, to string // namespaces
	address  string // of the far end
}

const (
	nearEnd, farEnd         = "near", "far"
	nearAddress, farAddress = "198.18.0.1", "198.18.0.2"
)

func newCable() (*cable, error) {
	c := &cable{from: fmt.Sprintf("cl-intrude-%d-from", os.Getpid()), to: fmt.Sprintf("cl-intrude-%d-to", os.Getpid()),
		address: farAddress}
	if err := c.make(); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

func (c *cable) make() error {
	for _, name := range []string{c.from, c.to} {
		if err := namespace.New(name, func() error { return nil }); err != nil {
			return err
		}
	}
	far, err := netns.GetFromName(c.to)
	if err != nil {
		return err
	}
	defer far.Close()
	err = namespace.Do(c.from, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = nearEnd
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: farEnd,
			PeerNamespace: netlink.NsFd(int(far))}); err != nil {
			return err
		}
		if err := namespace.SegmentationOff(nearEnd); err != nil {
			return err
		}
		return address(nearEnd, nearAddress)
	})
	if err != nil {
		return err
	}
	return namespace.Do(c.to, func() error { return address(farEnd, farAddress) })
}

func address(ifname, ip string) error {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(ip + "/24")
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link))
}

// steer sets the CPUs that receive at the far end (Documentation/networking/scaling.rst of the kernel). `ip netns
// exec` shows the namespace's /sys.
func (c *cable) steer(cpus cpuset.Set) error {
	script := fmt.Sprintf("echo %s >/sys/class/net/%s/queues/rx-0/rps_cpus", cpus.MaskWords(), farEnd)
	out, err := exec.Command("ip", "netns", "exec", c.to, "sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("RPS of %s: %w %s", farEnd, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// remove deletes both namespaces, and the cable with them.
func (c *cable) remove() error { return errors.Join(namespace.Delete(c.from), namespace.Delete(c.to)) }
