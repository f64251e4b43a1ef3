// SPDX-License-Identifier: Apache-2.0
package namespace

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// offloads merge packets, or postpone their segmentation and checksums.
var offloads = []string{"rx-checksum", "tx-checksum-ip-generic", "tx-checksum-sctp", "tx-scatter-gather",
	"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation",
	"tx-udp-segmentation", "tx-generic-segmentation", "rx-gro", "rx-gro-list", "rx-udp-gro-forwarding"}

// OffloadsOff turns off all offloads of a device in the thread's namespace, so that the far end of a wire receives
// exactly the packets that the near end sends.
func OffloadsOff(device string) error { return turnOff(device, offloads) }

// SegmentationOff turns off segmentation, so that packets pass the wire one by one. Checksums may still be postponed.
func SegmentationOff(device string) error {
	return turnOff(device, []string{"tx-udp-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation",
		"tx-generic-segmentation"})
}

// ReceiveTogether lets the kernel join the datagrams that a device receives (UDP GRO).
func ReceiveTogether(device string) error {
	return turn(device, []string{"rx-gro", "rx-udp-gro-forwarding"}, true)
}

func turnOff(device string, names []string) error { return turn(device, names, false) }

func turn(device string, names []string, on bool) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	have, err := e.Features(device)
	if err != nil {
		return fmt.Errorf("offloads of %s: %w", device, err)
	}
	change := map[string]bool{}
	for _, name := range names {
		if state, known := have[name]; known && state != on {
			change[name] = on
		}
	}
	if len(change) == 0 {
		return nil
	}
	if err := e.Change(device, change); err != nil {
		return fmt.Errorf("offloads of %s: %w", device, err)
	}
	return nil
}
