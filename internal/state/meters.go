// SPDX-License-Identifier: Apache-2.0
package state

import (
	"go.yaml.in/yaml/v3"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func (l *loader) checkMeter(path string, n *yaml.Node, m *apiv1.Meter) {
	switch {
	case m.BitRate == 0 && m.PacketRate == 0:
		l.fail(l.at(n), path, "bit_rate or packet_rate", "a meter needs a rate")
	case m.BitRate != 0 && m.PacketRate != 0:
		l.fail(l.at(child(n, "packet_rate")), path+".packet_rate", "bit_rate or packet_rate",
			"a meter limits bits or packets, not both")
	case m.BitRate != 0 && m.BurstPackets != 0:
		l.fail(l.at(child(n, "burst_packets")), path+".burst_packets", "burst_bytes", "the meter limits bits")
	case m.PacketRate != 0 && m.BurstBytes != 0:
		l.fail(l.at(child(n, "burst_bytes")), path+".burst_bytes", "burst_packets", "the meter limits packets")
	}
}
