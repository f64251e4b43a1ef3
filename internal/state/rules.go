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
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// rule has the options of a field (api/options.proto) in the form that Load and Diff need.
type rule struct {
	format   *format // of strings
	def      any     // default: the meaning of 0 or ""
	required bool
	written  bool   // written even if it has its default: 0 is a value like others
	any      bool   // if not given, the node chooses
	readOnly bool   // set by the node, refused in a file
	ref      string // section of the object that it refers to
	unique   bool   // list: no value twice
	items    int    // list: largest number of items; 0: no limit
	longest  int    // text: largest length in bytes; 0: no limit
	zero     bool   // 0 is not the default: only a field that is left out has the default
}

// rules has the rule of each field and oneof of the API.
var rules = sync.OnceValue(readRules)

func ruleOf(d protoreflect.Descriptor) rule {
	if r, known := rules()[d]; known {
		return r
	}
	switch d := d.(type) { // of a package that may be loaded after this one
	case protoreflect.FieldDescriptor:
		return readRule(d)
	case protoreflect.OneofDescriptor:
		return rule{required: limits.OfChoice(d).Required}
	}
	return rule{}
}

func readRules() map[protoreflect.Descriptor]rule {
	all := map[protoreflect.Descriptor]rule{}
	protoregistry.GlobalFiles.RangeFilesByPackage("corelane.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Messages().Len() {
			md := file.Messages().Get(i)
			for j := range md.Fields().Len() {
				all[md.Fields().Get(j)] = readRule(md.Fields().Get(j))
			}
			for j := range md.Oneofs().Len() {
				of := md.Oneofs().Get(j)
				all[of] = rule{required: limits.OfChoice(of).Required}
			}
		}
		return true
	})
	return all
}

func readRule(fd protoreflect.FieldDescriptor) rule {
	l := limits.Of(fd)
	r := rule{format: formats()[limits.Notation(fd)], required: (l.Key || l.Required) && l.Default == nil,
		written: l.Written, any: l.Automatic && !l.Key, readOnly: l.ReadOnly, ref: l.Ref, unique: l.Distinct,
		items: int(l.Items), zero: l.Zero}
	if fd.Kind() == protoreflect.StringKind {
		r.longest = int(l.Max)
	}
	var def []uint32
	for _, n := range l.Default {
		def = append(def, uint32(n))
	}
	switch {
	case fd.IsList() && def != nil:
		r.def = def
	case def != nil:
		r.def = def[0]
	}
	return r
}

// format is a notation of strings. canon returns the canonical form; false: the text is not in this notation.
type format struct {
	valid   string // in words
	pattern string // for the JSON schema
	number  bool   // a number needs no quotes
	canon   func(string) (string, bool)
}

// canons has the notations that need a parser. The others are defined by their pattern.
var canons = map[apiv1.Notation]func(string) (string, bool){
	apiv1.Notation_NOTATION_WEIGHT:            canonWeight,
	apiv1.Notation_NOTATION_MAC:               canonMac,
	apiv1.Notation_NOTATION_ADDRESS:           canonIP,
	apiv1.Notation_NOTATION_HOST:              canonHost,
	apiv1.Notation_NOTATION_INTERFACE_ADDRESS: canonIfaddr,
	apiv1.Notation_NOTATION_PREFIX:            canonPrefix,
	apiv1.Notation_NOTATION_HOST_OR_PREFIX:    canonGuest,
	apiv1.Notation_NOTATION_PREFIX_OR_ANY:     canonPrefixOrAny,
	apiv1.Notation_NOTATION_PROTOCOL:          canonProtocol,
	apiv1.Notation_NOTATION_PORT_RANGE:        canonRange(65535),
	apiv1.Notation_NOTATION_ICMP_RANGE:        canonRange(255),
	apiv1.Notation_NOTATION_ROUTE:             canonRoute,
}

var formats = sync.OnceValue(readFormats)

func readFormats() map[apiv1.Notation]*format {
	all := map[apiv1.Notation]*format{}
	for number := range apiv1.Notation_name {
		n := apiv1.Notation(number)
		t := limits.Text(n)
		if t == nil {
			continue
		}
		f := &format{valid: t.Valid, pattern: limits.Pattern(t), number: t.Number, canon: canons[n]}
		if f.canon == nil {
			re := regexp.MustCompile(f.pattern)
			f.canon = func(s string) (string, bool) {
				return s, re.MatchString(s) && (t.Longest == 0 || len(s) <= int(t.Longest))
			}
		}
		all[n] = f
	}
	return all
}

func canonPrefixOrAny(s string) (string, bool) {
	if s == "any" {
		return "", true
	}
	return canonPrefix(s)
}

func canonMac(s string) (string, bool) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 || !strings.Contains(s, ":") || mac[0]&1 != 0 ||
		mac.String() == "00:00:00:00:00:00" {
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
	if err != nil || p.Addr().Is4In6() || !onLink(p) {
		return "", false
	}
	return p.String(), true
}

// onLink tells whether a host can have the address: it is not the network's own or its broadcast address.
func onLink(p netip.Prefix) bool {
	a := p.Addr()
	switch {
	case a.IsUnspecified(), a.IsMulticast(), a.IsLoopback():
		return false
	case p.Bits()+1 >= a.BitLen():
		return true // RFC 3021, RFC 6164: both addresses are hosts
	case p.Masked().Addr() == a:
		return false
	}
	return a.Is6() || p.Contains(a.Next())
}

func canonPrefix(s string) (string, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Masked() != p || p.Addr().Is4In6() {
		return "", false
	}
	return p.String(), true
}

func canonRoute(s string) (string, bool) {
	prefix, router, _ := strings.Cut(s, " via ")
	p, ok := canonPrefix(prefix)
	a, isIP := canonIP(router)
	return p + " via " + a, ok && isIP && strings.Contains(p, ":") == strings.Contains(a, ":")
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

// hostBits returns the prefix without host bits if s has some, otherwise "".
func hostBits(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Masked() == p {
		return ""
	}
	return p.Masked().String()
}

// Normalize brings an object into the form in which states are compared: canonical text, defaults filled in, without
// read-only fields.
func Normalize(m proto.Message) {
	normalize(m.ProtoReflect())
	r := m.ProtoReflect()
	if r.Descriptor().Name() == "Port" {
		normalizePort(r)
	}
	normalizeNat(r)
	normalizeService(r)
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

// DefaultSettings returns the settings of a node to which none were given.
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

// isDefault says whether leaving a field out has the same meaning as its value.
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

// gatewayMac is the MAC address of the virtual gateway on tenant ports without one of their own.
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
	if memif := fields.ByName("memif"); r.Has(memif) { // the server uses its client's buffer size
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
		r.Clear(fields.ByName("mtu")) // a host port has its fabric port's
	}
}

// canonWeight leaves out the weight 1, which is the default.
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

// byWorker compares by the worker's number, as the node does.
func byWorker(a, b string) int {
	x, _, _ := strings.Cut(a, ":")
	y, _, _ := strings.Cut(b, ":")
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}
