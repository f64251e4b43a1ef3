// SPDX-License-Identifier: Apache-2.0
package state

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// Nearly all of a large file are routes. Routes in the layout of Write (one per line, fields in order) are read
// without a YAML parser. Lines in another layout, and faulty ones, take the usual way, which reports errors.

// plainRoutes reads a piece of such lines. ok is false if one of them has another layout.
func (l *loader) plainRoutes(p piece) (routes []Route, ok bool) {
	line := p.line
	for rest := p.text; len(rest) > 0; line++ {
		var text []byte
		text, rest = cutLine(rest)
		if isBlank(text) {
			continue
		}
		r, ok := l.plainRoute(text)
		if !ok {
			return nil, false
		}
		r.Line = uint32(line)
		routes = append(routes, r)
	}
	return routes, true
}

func (l *loader) plainRoute(text []byte) (r Route, ok bool) {
	text = bytes.TrimLeft(text, " ")
	text, ok = bytes.CutPrefix(text, []byte("- {vrf: "))
	if !ok {
		return r, false
	}
	vrf, text, ok1 := plainValue(text, ", prefix: ")
	prefix, text, ok2 := plainValue(text, ", nexthop: ")
	nexthop, text, ok3 := plainValue(text, "}")
	if !ok1 || !ok2 || !ok3 || len(bytes.TrimLeft(text, " ")) > 0 {
		return r, false
	}
	p, err := netip.ParsePrefix(string(prefix))
	if err != nil || p.Masked() != p || p.Addr().Is4In6() {
		return r, false
	}
	id, known := l.ids[string(nexthop)]
	name, found := l.vrfs[string(vrf)]
	return Route{Vrf: name, Prefix: p, Nexthop: id}, known && found
}

// plainValue cuts off a value that ends before a given text: plain characters, or the same in double quotes.
func plainValue(text []byte, after string) (value, rest []byte, ok bool) {
	value, rest, ok = bytes.Cut(text, []byte(after))
	quoted := len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"'
	if quoted {
		value = value[1 : len(value)-1]
	}
	for _, c := range value {
		if c <= ' ' || c > '~' || strings.IndexByte(`"'\{}[],#&*!|>%@`+"`", c) >= 0 {
			return nil, nil, false
		}
	}
	return value, rest, ok && len(value) > 0 && !(quoted && after == "}")
}

// prepareRoutes collects what plainRoute looks up: VRF names that YAML reads as text, and ids in decimal.
func (l *loader) prepareRoutes() {
	l.vrfs, l.ids = map[string]string{FabricVrf: FabricVrf}, map[string]uint32{}
	for _, v := range l.state.Vrfs {
		if plainWord(v.Name) {
			l.vrfs[v.Name] = v.Name
		}
	}
	for _, n := range l.state.Nexthops {
		l.ids[strconv.Itoa(int(n.Id))] = n.Id
	}
}
