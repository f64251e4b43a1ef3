// SPDX-License-Identifier: Apache-2.0
package vpn_test

import (
	"net/netip"
	"testing"

	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/vpn"
)

// What a path costs from its reception to the operations of the data plane, when a thousand come at a time.
func BenchmarkPaths(b *testing.B) {
	const hosts, together = 5000, 1000
	for _, c := range []struct {
		name   string
		unique bool
	}{{"unique", true}, {"shared", false}} {
		b.Run(c.name, func(b *testing.B) {
			e := engine(b, func(s *intent.Set) {
				s.Bgp.MaxPaths, s.Bgp.NexthopMax = uint32(b.N), 5000+hosts
				s.Instances[0].RouteLimit = uint32(b.N)
			})
			e.SetReach([]netip.Prefix{netip.MustParsePrefix("100.64.0.0/10")})
			state.Diff(e.Desired(), &state.State{})
			paths := make([]vpn.Path, b.N)
			for i := range paths {
				p := path(2, "10.0.0.0/24", nil)
				p.Nexthop = netip.MustParseAddr("100.65.0.2")
				if !c.unique && i%200 > 0 {
					p.Attrs = paths[i-1].Attrs
				}
				if c.unique {
					p.Nexthop = netip.AddrFrom4([4]byte{100, 65, byte(i % hosts >> 8), byte(i % hosts)})
					p.RD.Value = [6]byte{100, 65, byte(i % hosts >> 8), byte(i % hosts), 0, 1}
					p.MED = uint32(i)
				}
				p.Prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{20 + byte(i>>24), byte(i >> 16), byte(i >> 8),
					byte(i)}), 32)
				paths[i] = p
			}
			b.ReportAllocs()
			b.ResetTimer()
			routes := 0
			for i := 0; i < len(paths); i += together {
				e.Update(paths[i:min(i+together, len(paths))]...)
				for _, op := range state.Diff(e.Changes()) {
					routes += len(op.Routes)
				}
			}
			if routes != b.N {
				b.Fatalf("%d routes of %d paths", routes, b.N)
			}
		})
	}
}
