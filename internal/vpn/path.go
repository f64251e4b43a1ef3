// SPDX-License-Identifier: Apache-2.0

// Package vpn decides what a node of a fleet forwards and announces. Its inputs are the intent, the paths that peers
// have sent, and which hosts the underlay reaches; its outputs are the objects that the data plane should have, the
// paths to announce, and a verdict on each received path. It does no I/O.
package vpn

import (
	"cmp"
	"net"
	"net/netip"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/limits"
)

// Target is a route target or a route distinguisher.
type Target = intent.Target

// Kind says what a path leads to. The numbers above 0 are route types of EVPN.
type Kind uint8

// Kinds of paths.
const (
	KindIP    Kind = 0 // a prefix of a VRF (RFC 4364, RFC 4659)
	KindMac   Kind = 2 // a MAC address, and an IP address of its owner if the prefix is valid (RFC 7432, section 7.2)
	KindFlood Kind = 3 // a host that wants what is flooded; the prefix is its address (RFC 7432, section 7.3)
	// KindPrefix is a prefix of a VRF over VXLAN (RFC 9136), in the model without an interface (section 4.4.1).
	KindPrefix Kind = 5
)

func (k Kind) String() string {
	switch k {
	case KindMac:
		return "mac"
	case KindFlood:
		return "flood"
	case KindPrefix:
		return "prefix"
	}
	return "ip"
}

// Mac is an Ethernet address.
type Mac [6]byte

func (m Mac) String() string { return net.HardwareAddr(m[:]).String() }

// Key tells paths apart.
type Key struct {
	Peer   netip.Addr // zero: announced by this node
	RD     Target
	Kind   Kind
	Prefix netip.Prefix
	Mac    Mac
	Tag    uint32 // Ethernet tag of EVPN
	ID     uint32 // of add-path; 0 without
}

// subject is what paths are compared for: a prefix, a MAC address, or the flooding to a host.
type subject struct {
	kind   Kind
	prefix netip.Prefix
	mac    Mac
}

func (k Key) subject() subject {
	switch k.Kind {
	case KindMac:
		return subject{kind: KindMac, mac: k.Mac}
	case KindPrefix:
		return prefixSubject(k.Prefix)
	}
	return subject{k.Kind, k.Prefix, k.Mac}
}

func prefixSubject(p netip.Prefix) subject { return subject{prefix: p} }

// Path is a route of a VPN. Paths of one update share their attributes.
type Path struct {
	Key
	Nexthop netip.Addr
	Label   uint32   // of MPLS; EVPN: the VNI. 0: none that can be used
	ESI     [10]byte // Ethernet segment of EVPN; zero: one with a single host
	Overlay bool     // of KindPrefix: it leads to a gateway's address, which needs another path
	*Attrs
}

// Attrs are what a path says about itself. They do not change.
type Attrs struct {
	Targets    []Target
	Encaps     []apiv1.Encap // in no order: reflectors change it
	LocalPref  uint32
	ASPath     int // length
	MED        uint32
	Originator netip.Addr // the router that a reflector had it from; else the peer's router id
	Sequence   uint32     // of MAC mobility
	Sticky     bool       // the MAC address does not move
	RouterMac  Mac        // inner destination of packets to a prefix; zero: none
	LongStale  bool       // its host's session with a reflector has ended long ago (RFC 9494)
}

// Verdict says what became of a path in one VRF. Used and Shared forward packets.
type Verdict string

const (
	Used          Verdict = "used"
	Own           Verdict = "own"          // this node announced it, and a reflector returned it
	NotImported   Verdict = "not imported" // no instance imports one of its targets
	BadLabel      Verdict = "bad label"    // a reserved label
	BadNexthop    Verdict = "bad next hop" // no host has that address
	NoEncap       Verdict = "no encapsulation"
	Unreachable   Verdict = "unreachable"    // the underlay has no route to its next hop
	Local         Verdict = "local"          // a port of this node has the prefix
	Stale         Verdict = "stale"          // a path that its host still announces is preferred
	LostPref      Verdict = "local pref"     // lost to a higher one
	LostASPath    Verdict = "AS path"        // lost to a shorter one
	LostMED       Verdict = "MED"            // lost to a lower one
	Duplicate     Verdict = "duplicate"      // the same tunnel as a path that is used
	TooManyPaths  Verdict = "too many paths" // beyond the largest group
	TooManyRoutes Verdict = "route limit"    // of the instance
	NoNexthop     Verdict = "no next hop id" // all ids of the agent are taken
	BadVni        Verdict = "bad VNI"        // none, or no ingress replication
	BadTag        Verdict = "bad tag"        // an Ethernet tag: the bridge has one broadcast domain
	BadMac        Verdict = "bad MAC"        // no guest can have it
	BadRouterMac  Verdict = "bad router MAC" // a prefix over VXLAN without one
	OtherKind     Verdict = "other kind"     // labelled, and the instance has a VNI; or the other way round
	Overlay       Verdict = "overlay index"  // it needs another path to be resolved, which is not done
	LostSticky    Verdict = "sticky"         // lost to one that does not move
	LostSequence  Verdict = "sequence"       // the address has moved since
	LostAddress   Verdict = "address"        // as good as the one of a host with a lower address
	TooManyMacs   Verdict = "remote limit"   // of the segment
	TooManyEnds   Verdict = "too many flood ends"
)

// MaxGroup is the largest number of tunnels that share the traffic of a prefix.
var MaxGroup = limits.Items(&apiv1.GroupNexthop{}, "members")

// losesTo says by which step of the selection a path loses to another one that can be used too; "": it does not.
func (e *entry) losesTo(b *entry) Verdict {
	switch {
	case e.age() != b.age():
		return pick(e.age() > b.age(), Stale)
	case e.LocalPref != b.LocalPref:
		return pick(e.LocalPref < b.LocalPref, LostPref)
	case e.ASPath != b.ASPath:
		return pick(e.ASPath > b.ASPath, LostASPath)
	case e.MED != b.MED:
		return pick(e.MED > b.MED, LostMED)
	}
	return ""
}

func pick(loses bool, v Verdict) Verdict {
	if loses {
		return v
	}
	return ""
}

// compare is an order in which no two paths are equal, so that equal inputs give equal choices.
func (e *entry) compare(b *entry) int {
	switch {
	case e.losesTo(b) != "":
		return 1
	case b.losesTo(e) != "":
		return -1
	}
	return e.order(&b.Path)
}

// order ranks paths of a subject that are equally good.
func (p *Path) order(b *Path) int {
	return cmp.Or(p.Nexthop.Compare(b.Nexthop), cmp.Compare(p.Label, b.Label), p.Key.compare(b.Key))
}

// entry is a path with what the engine knows of it.
type entry struct {
	Path
	stale int // so many sessions with its peer have ended since it was sent
}

// age is 0 for what its host announces now as far as is known, and else higher for what was heard earlier.
func (e *entry) age() int {
	if e.LongStale {
		return e.stale + 1
	}
	return e.stale
}
