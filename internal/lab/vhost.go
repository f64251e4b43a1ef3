// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"errors"

	"github.com/corelane/corelane/internal/vhostguest"
)

// startVhost starts the driver of a guest with a virtio-net device, whose router is its host's. It makes eth0.
func (l *Lab) startVhost(g Guest) error {
	if !g.Network.Vhost {
		return nil
	}
	driver, err := vhostguest.Start(vhostguest.Config{Socket: l.vhostSocket(g), Netns: l.Netns(g.Name()),
		Serve: g.Host.Ovs, Interface: "eth0", MTU: int(g.Network.MTU)})
	if err != nil {
		return err
	}
	l.guests = append(l.guests, driver)
	return nil
}

// endGuests ends all drivers, and returns the errors that ended some of them before.
func (l *Lab) endGuests() (err error) {
	for _, g := range l.guests {
		err = errors.Join(err, g.Close())
	}
	l.guests = nil
	return err
}
