// SPDX-License-Identifier: Apache-2.0
package intent

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Target is a route target or route distinguisher without its type and subtype: what stands on both sides of the colon,
// as in RFC 4360 and RFC 4364. The first byte says which of the three forms it has.
type Target struct {
	Form  byte // 0: 2-byte AS and 4 bytes; 1: IPv4 address and 2 bytes; 2: 4-byte AS and 2 bytes
	Value [6]byte
}

// ParseTarget reads "65000:100", "192.0.2.1:7" and "4200000000:5".
func ParseTarget(text string) (t Target, err error) {
	const valid = "valid: AS:NUMBER or ADDRESS:NUMBER, such as 65000:100 or 192.0.2.1:7"
	left, right, ok := strings.Cut(text, ":")
	number, err := strconv.ParseUint(right, 10, 32)
	if !ok || err != nil {
		return t, fmt.Errorf("'%s' is not a route target or distinguisher; %s", text, valid)
	}
	var first uint64
	a, aerr := netip.ParseAddr(left)
	switch {
	case aerr == nil && a.Is4():
		t.Form, first = 1, uint64(binary.BigEndian.Uint32(a.AsSlice()))
	default:
		if first, err = strconv.ParseUint(left, 10, 32); err != nil {
			return t, fmt.Errorf("'%s' is not a route target or distinguisher; %s", text, valid)
		}
		if first > 65535 {
			t.Form = 2
		}
	}
	if t.Form == 0 {
		binary.BigEndian.PutUint16(t.Value[:], uint16(first))
		binary.BigEndian.PutUint32(t.Value[2:], uint32(number))
		return t, nil
	}
	if number > 65535 {
		return t, fmt.Errorf("'%s': the number after the colon is above 65535; %s", text, valid)
	}
	binary.BigEndian.PutUint32(t.Value[:], uint32(first))
	binary.BigEndian.PutUint16(t.Value[4:], uint16(number))
	return t, nil
}

func (t Target) String() string {
	v := t.Value[:]
	switch t.Form {
	case 0:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(v), binary.BigEndian.Uint32(v[2:]))
	case 1:
		return fmt.Sprintf("%v:%d", netip.AddrFrom4([4]byte(v)), binary.BigEndian.Uint16(v[4:]))
	}
	return fmt.Sprintf("%d:%d", binary.BigEndian.Uint32(v), binary.BigEndian.Uint16(v[4:]))
}
