// SPDX-License-Identifier: Apache-2.0
package state

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// What the contract says of a field in words, for the loader, the JSON schema and the difference.
type rule struct {
	format   *format // of strings
	min, max uint64  // of numbers; max 0: that of the type
	def      any     // what 0, or "", stands for
	required bool
	written  bool   // written even when it has its default: 0 is a value like others
	any      bool   // not given: whatever the node has
	readOnly bool   // said by the node, refused in a file
	ref      string // section that it names an object of
	unique   bool   // list: no value twice
	items    int    // list: at most so many; 0: any number
	number   bool   // string: a lone number needs no quotes
	zero     bool   // 0 is a value of its own: only a file that leaves it out means the default
}

// rules by message and field. A field without a rule takes what its type takes.
var rules = map[string]rule{
	"Settings.mplsoudp_ports":               {min: 1, max: 65535, def: []uint32{6635}, unique: true, items: 8, written: true},
	"Settings.vxlan_ports":                  {min: 1, max: 65535, def: []uint32{4789}, unique: true, items: 8, written: true},
	"Settings.mac_age_seconds":              {min: 10, max: 1000000, def: uint32(300), written: true},
	"Settings.neighbor_age_seconds":         {min: 1, max: 1000000, def: uint32(30), written: true},
	"Settings.icmp_errors_per_second":       {max: 1000000, def: uint32(1000), zero: true, written: true},
	"Settings.label_stack_depth":            {min: 1, max: 16, def: uint32(3), written: true},
	"Settings.flow_tcp_half_open_seconds":   {min: 1, max: 43200, def: uint32(30), written: true},
	"Settings.flow_tcp_established_seconds": {min: 1, max: 43200, def: uint32(7440), written: true},
	"Settings.flow_tcp_closing_seconds":     {min: 1, max: 43200, def: uint32(240), written: true},
	"Settings.flow_udp_seconds":             {min: 1, max: 43200, def: uint32(30), written: true},
	"Settings.flow_udp_answered_seconds":    {min: 1, max: 43200, def: uint32(180), written: true},
	"Settings.flow_icmp_seconds":            {min: 1, max: 43200, def: uint32(30), written: true},
	"Settings.flow_other_seconds":           {min: 1, max: 43200, def: uint32(600), written: true},
	"Settings.rebalance_seconds":            {max: 3600},
	"Settings.flow_denied_seconds":          {min: 1, max: 43200, def: uint32(5), written: true},

	"Worker.id":        {required: true, written: true},
	"Worker.cpu":       {required: true, written: true},
	"Worker.idle":      {written: true},
	"Worker.target":    {format: workerFormat, number: true, any: true},
	"Worker.ring_size": {min: 64, max: 4194304, any: true},
	"Worker.state":     {readOnly: true},

	"Worker.sleep_max_us":      {min: 1, max: 100000, def: uint32(50)},
	"Worker.loop_threshold_us": {min: 1, max: 10000000, def: uint32(100)},

	"Vrf.name":        {format: nameFormat, required: true},
	"Vrf.id":          {min: 1, max: 16383, any: true},
	"Vrf.routes_ipv4": {readOnly: true},
	"Vrf.routes_ipv6": {readOnly: true},
	"Vrf.router_mac":  {readOnly: true},

	"Bridge.name":              {format: nameFormat, required: true},
	"Bridge.id":                {min: 1, max: 16383, any: true},
	"Bridge.flood":             {ref: "nexthops", unique: true, items: 256},
	"Bridge.mac_limit":         {min: 1, max: 1048576, def: uint32(8192)},
	"Bridge.ports":             {readOnly: true},
	"Bridge.macs":              {readOnly: true},
	"Bridge.learn_refused":     {readOnly: true},
	"Bridge.moves":             {readOnly: true},
	"Bridge.learn_unreachable": {readOnly: true},

	"Meter.name":          {format: nameFormat, required: true},
	"Meter.bit_rate":      {min: 8000, max: 1000000000000},
	"Meter.burst_bytes":   {min: 9600, max: 4294967295},
	"Meter.packet_rate":   {min: 1, max: 1000000000},
	"Meter.burst_packets": {min: 1, max: 4294967295},
	"Meter.state":         {readOnly: true},

	"Port.name":            {format: nameFormat, required: true},
	"Port.role":            {required: true, min: 1},
	"Port.device":          {required: true},
	"Port.queues":          {min: 1, max: 16, any: true},
	"Port.mtu":             {min: 576, max: 9600, def: uint32(1500)},
	"Port.vlan":            {max: 4094},
	"Port.addresses":       {format: ifaddrFormat, unique: true, items: 16},
	"Port.mac":             {format: macFormat, any: true},
	"Port.vrf":             {format: nameFormat, ref: "vrfs"},
	"Port.bridge":          {format: nameFormat, ref: "bridges"},
	"Port.gateways":        {format: ifaddrFormat, unique: true, items: 16},
	"Port.guest_mac":       {format: macFormat},
	"Port.guest_addresses": {format: guestFormat, unique: true, items: 16},
	"Port.mss_clamp":       {max: 65535},
	"Port.spread_workers":  {format: weightFormat, unique: true, items: 64, number: true},
	"Port.polled_by":       {format: pollerFormat, unique: true, items: 16},
	"Port.egress_meter":    {format: nameFormat, ref: "meters"},
	"Port.ingress_meter":   {format: nameFormat, ref: "meters"},
	"Port.mirror":          {format: nameFormat, ref: "mirrors"},
	"Port.egress_rules":    {format: nameFormat, ref: "rule_lists"},
	"Port.ingress_rules":   {format: nameFormat, ref: "rule_lists"},
	"Port.fabric":          {format: nameFormat, ref: "ports"},
	"Port.state":           {readOnly: true},

	"Mirror.name":          {format: nameFormat, required: true},
	"Mirror.target":        {required: true},
	"Mirror.port":          {format: nameFormat, ref: "ports", required: true},
	"Mirror.snap_length":   {min: 64, max: 9614},
	"Mirror.state":         {readOnly: true},
	"MirrorVxlan.remote":   {format: ipFormat, required: true},
	"MirrorVxlan.local":    {format: ipFormat},
	"MirrorVxlan.vni":      {min: 1, max: 16777215, required: true},
	"MirrorErspan.remote":  {format: ipFormat, required: true},
	"MirrorErspan.local":   {format: ipFormat},
	"MirrorErspan.session": {max: 1023, written: true},

	"AddressGroup.name":       {format: nameFormat, required: true},
	"AddressGroup.prefixes":   {format: prefixFormat, unique: true, items: 4096},
	"AddressGroup.rules":      {readOnly: true},
	"RuleList.name":           {format: nameFormat, required: true},
	"RuleList.default_action": {written: true},
	"RuleList.rules":          {readOnly: true},
	"RuleList.entries_ipv4":   {readOnly: true},
	"RuleList.entries_ipv6":   {readOnly: true},
	"RuleList.ports":          {readOnly: true},
	"RuleList.default_hits":   {readOnly: true},
	"RuleList.compiling":      {readOnly: true},
	"RuleList.last_error":     {readOnly: true},
	"Rule.list":               {format: nameFormat, ref: "rule_lists", required: true},
	"Rule.id":                 {min: 1, max: 1 << 24, required: true},
	"Rule.action":             {required: true},
	"Rule.protocol":           {format: protocolFormat, number: true},
	"Rule.source":             {format: prefixFormat},
	"Rule.destination":        {format: prefixFormat},
	"Rule.source_group":       {format: nameFormat, ref: "address_groups"},
	"Rule.destination_group":  {format: nameFormat, ref: "address_groups"},
	"Rule.source_ports":       {format: portsFormat, number: true},
	"Rule.destination_ports":  {format: portsFormat, number: true},
	"Rule.icmp_type":          {format: icmpFormat, number: true},
	"Rule.icmp_code":          {format: icmpFormat, number: true},
	"Rule.meter":              {format: nameFormat, ref: "meters"},
	"Rule.mirror":             {format: nameFormat, ref: "mirrors"},
	"Rule.hits":               {readOnly: true},
	"Rule.shadowed_by":        {readOnly: true},

	"DpdkDevice.devargs":      {format: textFormat, required: true},
	"TapDevice.ifname":        {format: ifnameFormat},
	"TapDevice.netns":         {format: textFormat},
	"MemifDevice.socket":      {format: socketFormat, required: true},
	"MemifDevice.secret":      {format: secretFormat},
	"MemifDevice.ring_size":   {min: 32, max: 16384, def: uint32(1024)},
	"MemifDevice.buffer_size": {min: 64, max: 65535, def: uint32(2048)},
	"VhostDevice.socket":      {format: socketFormat, required: true},

	"Nexthop.id":               {min: 1, max: 1048575, required: true},
	"Nexthop.kind":             {required: true},
	"Nexthop.state":            {readOnly: true},
	"PortNexthop.port":         {format: nameFormat, ref: "ports", required: true},
	"PortNexthop.address":      {format: ipFormat},
	"PortNexthop.mac":          {format: macFormat},
	"TunnelNexthop.encap":      {required: true, min: 1},
	"TunnelNexthop.local":      {format: ipFormat, any: true},
	"TunnelNexthop.remote":     {format: ipFormat, required: true},
	"TunnelNexthop.label":      {max: 1048575},
	"TunnelNexthop.vni":        {max: 16777215},
	"TunnelNexthop.router_mac": {format: macFormat},
	"TunnelNexthop.dscp":       {max: 63},
	"TunnelNexthop.ttl":        {min: 1, max: 255, def: uint32(64)},
	"GroupNexthop.members":     {required: true, items: 64},
	"GroupMember.nexthop":      {min: 1, max: 1048575, ref: "nexthops", required: true},
	"GroupMember.weight":       {min: 1, max: 256, def: uint32(1)},
	"Route.vrf":                {format: nameFormat, ref: "vrfs", required: true},
	"Route.prefix":             {format: prefixFormat, required: true},
	"Route.nexthop":            {min: 1, max: 1048575, ref: "nexthops", required: true},
	"Route.origin":             {readOnly: true},
	"Label.label":              {min: 16, max: 1048575, required: true},
	"Label.target":             {required: true},
	"Label.vrf":                {format: nameFormat, ref: "vrfs", required: true},
	"Label.bridge":             {format: nameFormat, ref: "bridges", required: true},
	"Label.nexthop":            {min: 1, max: 1048575, ref: "nexthops", required: true},
	"Vni.vni":                  {min: 1, max: 16777215, required: true},
	"Vni.target":               {required: true},
	"Vni.vrf":                  {format: nameFormat, ref: "vrfs", required: true},
	"Vni.bridge":               {format: nameFormat, ref: "bridges", required: true},
	"Vni.nexthop":              {min: 1, max: 1048575, ref: "nexthops", required: true},
	"NatRule.id":               {min: 1, max: 1048575, required: true},
	"NatRule.vrf":              {format: nameFormat, ref: "vrfs", required: true},
	"NatRule.external_vrf":     {format: nameFormat, ref: "vrfs"},
	"NatRule.kind":             {required: true},
	"NatRule.to":               {format: prefixFormat},
	"NatRule.except":           {format: prefixFormat, unique: true, items: 16},
	"NatRule.first_port":       {max: 65535},
	"NatRule.last_port":        {max: 65535},
	"NatRule.flows":            {readOnly: true},
	"FloatingNat.inside":       {format: hostFormat, required: true},
	"FloatingNat.outside":      {format: hostFormat, required: true},
	"SourceNat.prefix":         {format: prefixFormat, required: true},
	"SourceNat.first":          {format: hostFormat, required: true},
	"SourceNat.last":           {format: hostFormat},
	"SourceNat.first_port":     {min: 1, max: 65535, def: uint32(1024)},
	"SourceNat.last_port":      {min: 1, max: 65535, def: uint32(65535)},
	"DestinationNat.address":   {format: hostFormat, required: true},
	"DestinationNat.port":      {max: 65535},
	"DestinationNat.backends":  {required: true, items: 64},
	"NatBackend.address":       {format: hostFormat, required: true},
	"NatBackend.port":          {max: 65535},
	"NatBackend.weight":        {min: 1, max: 256, def: uint32(1)},
	"Mac.bridge":               {format: nameFormat, ref: "bridges", required: true},
	"Mac.mac":                  {format: macFormat, required: true},
	"Mac.target":               {required: true},
	"Mac.port":                 {format: nameFormat, ref: "ports", required: true},
	"Mac.nexthop":              {min: 1, max: 1048575, ref: "nexthops", required: true},
	"Mac.learnt":               {readOnly: true},
	"Mac.age_seconds":          {readOnly: true},
	"Mac.remote":               {readOnly: true},
	"Neighbor.port":            {format: nameFormat, ref: "ports", required: true},
	"Neighbor.address":         {format: ipFormat, required: true},
	"Neighbor.mac":             {format: macFormat, required: true},
	"Neighbor.status":          {readOnly: true},
	"Neighbor.age_seconds":     {readOnly: true},
	"Neighbor.waiting":         {readOnly: true},
	"HostSteer.address":        {format: ipFormat, required: true},
	"HostSteer.port":           {format: nameFormat, ref: "ports", required: true},
	"HostSteer.state":          {readOnly: true},
}

func ruleOf(fd protoreflect.Descriptor) rule {
	return rules[string(fd.Parent().Name())+"."+string(fd.Name())]
}

// format is a notation of strings: canon gives the usual form or says that the text is not of this notation.
type format struct {
	valid   string // in words
	pattern string // for the JSON schema
	canon   func(string) (string, bool)
}

const octet = `[0-9A-Fa-f]{2}`

var (
	nameFormat   = matchFormat("1 to 31 of A-Z a-z 0-9 . _ -", `^[A-Za-z0-9._-]{1,31}$`)
	ifnameFormat = matchFormat("1 to 15 characters without space, '/' or ':'", `^[^\s/:]{1,15}$`)
	secretFormat = matchFormat("1 to 23 characters", `^.{1,23}$`)
	socketFormat = matchFormat("a path of 1 to 107 bytes", `^.{1,107}$`)
	textFormat   = matchFormat("text on one line", `^[^\n]+$`)
	workerFormat = matchFormat("the id of a worker, 0 to 63", `^([0-9]|[1-5][0-9]|6[0-3])$`)
	pollerFormat = matchFormat(`"QUEUE:WORKER", 0 to 15 and 0 to 63`, `^([0-9]|1[0-5]):([0-9]|[1-5][0-9]|6[0-3])$`)
	weightFormat = &format{`"ID" or "ID:WEIGHT" of a worker, 0 to 63 and 1 to 1000`, `^([0-9]|[1-5][0-9]|6[0-3])(:[0-9]{1,4})?$`, canonWeight}
	macFormat    = &format{`a unicast MAC address such as "02:00:00:00:00:01"`, `^` + octet + `(:` + octet + `){5}$`, canonMac}
	ipFormat     = &format{`an address such as "192.0.2.1" or "2001:db8::1"`, `^[0-9A-Fa-f.:]+$`, canonIP}
	hostFormat   = &format{`the address of a host, such as "192.0.2.1" or "2001:db8::1"`, `^[0-9A-Fa-f.:]+$`, canonHost}
	ifaddrFormat = &format{`an address with its prefix length, such as "192.0.2.1/24"`, `^[0-9A-Fa-f.:]+/[0-9]+$`, canonIfaddr}
	guestFormat  = &format{`an address such as "10.1.0.2" or a prefix such as "10.1.9.0/24" without host bits`,
		`^[0-9A-Fa-f.:]+(/[0-9]+)?$`, canonGuest}
	prefixFormat = &format{`a prefix without host bits, such as "10.1.0.0/16" or "2001:db8::/32"`, `^[0-9A-Fa-f.:]+/[0-9]+$`, canonPrefix}
)

func matchFormat(valid, pattern string) *format {
	re := regexp.MustCompile(pattern)
	return &format{valid, pattern, func(s string) (string, bool) { return s, re.MatchString(s) }}
}

func canonMac(s string) (string, bool) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 || !strings.Contains(s, ":") || mac[0]&1 != 0 || mac.String() == "00:00:00:00:00:00" {
		return "", false
	}
	return mac.String(), true
}

func canonIP(s string) (string, bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return "", false
	}
	return a.String(), true
}

func canonHost(s string) (string, bool) {
	text, ok := canonIP(s)
	if a, err := netip.ParseAddr(text); err != nil || a.IsUnspecified() || a.IsMulticast() {
		return "", false
	}
	return text, ok
}

func canonIfaddr(s string) (string, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return "", false
	}
	return p.String(), true
}

func canonPrefix(s string) (string, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Masked() != p || p.Addr().Is4In6() {
		return "", false
	}
	return p.String(), true
}

func canonGuest(s string) (string, bool) {
	if !strings.Contains(s, "/") {
		return canonIP(s)
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Masked() != p || p.Addr().Is4In6() {
		return "", false
	}
	if p.IsSingleIP() {
		return p.Addr().String(), true
	}
	return p.String(), true
}

// hostBits is the prefix that was probably meant when s has host bits, or "".
func hostBits(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Masked() == p {
		return ""
	}
	return p.Masked().String()
}

// Normalize brings an object into the form that states are compared in: canonical text, defaults filled in, read-only
// fields gone.
func Normalize(m proto.Message) {
	normalize(m.ProtoReflect())
	r := m.ProtoReflect()
	if r.Descriptor().Name() == "Port" {
		normalizePort(r)
	}
	normalizeNat(r)
}

func normalize(r protoreflect.Message) {
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		rule := ruleOf(fd)
		switch {
		case rule.readOnly:
			r.Clear(fd)
		case rule.def != nil && !r.Has(fd):
			if !rule.zero {
				setDefault(r, fd, rule.def)
			}
		case !r.Has(fd):
		case fd.IsList():
			normalizeList(r.Mutable(fd).List(), fd, rule)
		case fd.Kind() == protoreflect.MessageKind:
			normalize(r.Mutable(fd).Message())
		case rule.format != nil:
			if s, ok := rule.format.canon(r.Get(fd).String()); ok {
				r.Set(fd, protoreflect.ValueOfString(s))
			}
		}
	}
}

func normalizeList(l protoreflect.List, fd protoreflect.FieldDescriptor, rule rule) {
	for i := range l.Len() {
		if fd.Kind() == protoreflect.MessageKind {
			normalize(l.Get(i).Message())
		} else if rule.format != nil {
			if s, ok := rule.format.canon(l.Get(i).String()); ok {
				l.Set(i, protoreflect.ValueOfString(s))
			}
		}
	}
	if fd.FullName() == "corelane.v1.AddressGroup.prefixes" {
		sortPrefixes(l)
	}
	if rule.ref == "nexthops" && fd.Kind() == protoreflect.Uint32Kind { // a set
		sortList(l)
	}
}

func sortList(l protoreflect.List) {
	ids := make([]uint64, l.Len())
	for i := range ids {
		ids[i] = l.Get(i).Uint()
	}
	slices.Sort(ids)
	for i, id := range ids {
		l.Set(i, protoreflect.ValueOfUint32(uint32(id)))
	}
}

// DefaultSettings are those of a node that was told nothing.
func DefaultSettings() *apiv1.Settings {
	s := &apiv1.Settings{}
	r := s.ProtoReflect()
	for i := range r.Descriptor().Fields().Len() {
		if fd := r.Descriptor().Fields().Get(i); ruleOf(fd).def != nil {
			setDefault(r, fd, ruleOf(fd).def)
		}
	}
	return s
}

func setDefault(r protoreflect.Message, fd protoreflect.FieldDescriptor, def any) {
	switch def := def.(type) {
	case uint32:
		r.Set(fd, protoreflect.ValueOfUint32(def))
	case []uint32:
		l := r.Mutable(fd).List()
		for _, v := range def {
			l.Append(protoreflect.ValueOfUint32(v))
		}
	default:
		panic(fmt.Sprintf("%s: a default of type %T", fd.FullName(), def))
	}
}

// isDefault says whether a field has the value that leaving it out stands for.
func isDefault(r protoreflect.Message, fd protoreflect.FieldDescriptor, rule rule) bool {
	if !r.Has(fd) {
		return true
	}
	switch def := rule.def.(type) {
	case uint32:
		return r.Get(fd).Uint() == uint64(def)
	case []uint32:
		l := r.Get(fd).List()
		if l.Len() != len(def) {
			return false
		}
		for i, v := range def {
			if l.Get(i).Uint() != uint64(v) {
				return false
			}
		}
		return true
	}
	return false
}

// gatewayMac is the virtual gateway's on tenant ports that name none.
const gatewayMac = "00:00:5e:00:01:01"

func normalizePort(r protoreflect.Message) {
	fields := r.Descriptor().Fields()
	name, mac := r.Get(fields.ByName("name")).String(), fields.ByName("mac")
	if tap := fields.ByName("tap"); r.Has(tap) {
		t := r.Mutable(tap).Message()
		if ifname := t.Descriptor().Fields().ByName("ifname"); !t.Has(ifname) {
			t.Set(ifname, protoreflect.ValueOfString(name))
		}
	}
	if memif := fields.ByName("memif"); r.Has(memif) { // the server takes its client's buffer size
		m := r.Mutable(memif).Message()
		f := m.Descriptor().Fields()
		if m.Get(f.ByName("role")).Enum() == 0 {
			m.Clear(f.ByName("buffer_size"))
		}
	}
	if r.Get(mac).String() == gatewayMac {
		r.Clear(mac)
	}
	if r.Get(fields.ByName("role")).Enum() == apiv1.PortRole_PORT_ROLE_HOST.Number() {
		r.Clear(fields.ByName("mtu")) // its fabric port's
	}
}

// canonWeight leaves out the weight that stands for itself.
func canonWeight(s string) (string, bool) {
	id, weight, given := strings.Cut(s, ":")
	w, err := strconv.Atoi(weight)
	switch n, bad := strconv.Atoi(id); {
	case bad != nil || n < 0 || n > 63 || given && (err != nil || w < 1 || w > 1000):
		return "", false
	case !given || w == 1:
		return strconv.Itoa(n), true
	default:
		return fmt.Sprintf("%d:%d", n, w), true
	}
}

// byWorker orders as the node does.
func byWorker(a, b string) int {
	x, _, _ := strings.Cut(a, ":")
	y, _, _ := strings.Cut(b, ":")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}
