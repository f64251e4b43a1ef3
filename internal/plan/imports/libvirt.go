// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"encoding/xml"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

// Guest is a guest's definition of libvirt.
type Guest struct {
	Name    string
	File    string
	VCPUs   int
	Pinned  map[int]cpuset.Set // by vCPU
	PinLine map[int]int
}

// libvirt reads a domain: <vcpu>, and <vcpupin>, <emulatorpin>, <iothreadpin> in <cputune>.
func (s *scanner) libvirt(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = true
	g := &Guest{File: s.file, Pinned: map[int]cpuset.Set{}, PinLine: map[int]int{}}
	var path []string
	for {
		token, err := d.Token()
		if err != nil {
			if len(path) == 0 && token == nil && strings.Contains(err.Error(), "EOF") {
				break
			}
			return input.Errorf(s.file, "a definition as printed by virsh dumpxml", "is not XML: %v", err)
		}
		line, _ := d.InputPos()
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
			s.element(g, strings.Join(path, "/"), e, line)
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			s.content(g, strings.Join(path, "/"), strings.TrimSpace(string(e)), line)
		}
	}
	s.Guest = g
	return nil
}

func (s *scanner) content(g *Guest, path, text string, line int) {
	switch {
	case text == "":
	case path == "domain/name":
		g.Name = text
	case path == "domain/vcpu":
		if g.VCPUs = number(text); g.VCPUs < 1 {
			s.find(Wrong, line, "<vcpu>4</vcpu>", "libvirt refuses it", "vcpu: '%s' is not a number of vCPUs", text)
		}
	}
}

func (s *scanner) element(g *Guest, path string, e xml.StartElement, line int) {
	attr := map[string]string{}
	for _, a := range e.Attr {
		attr[a.Name.Local] = a.Value
	}
	switch path {
	case "domain/vcpu":
		if attr["cpuset"] != "" {
			s.claim(Guests, "vcpu cpuset", attr["cpuset"], exclude, line)
		}
	case "domain/cputune/vcpupin":
		set, err := parseCPUs(attr["cpuset"], exclude)
		n := number(attr["vcpu"])
		if err != nil || set.Empty() || n < 0 {
			s.find(Wrong, line, "<vcpupin vcpu='0' cpuset='6'/>", "libvirt refuses it",
				"vcpupin: vcpu '%s', cpuset '%s'", attr["vcpu"], attr["cpuset"])
			return
		}
		g.Pinned[n], g.PinLine[n] = set, line
		s.add(Claim{Guests, set, "vcpupin " + attr["vcpu"], s.file, line})
	case "domain/cputune/emulatorpin":
		s.claim(Emulator, "emulatorpin", attr["cpuset"], exclude, line)
	case "domain/cputune/iothreadpin":
		s.claim(Emulator, "iothreadpin "+attr["iothread"], attr["cpuset"], exclude, line)
	default:
		if parent := strings.TrimSuffix(path, "/"+e.Name.Local); parent == "domain/cputune" {
			if near := nearest(e.Name.Local, []string{"vcpupin", "emulatorpin", "iothreadpin"}); near != "" {
				s.unknown(e.Name.Local, line, []string{"vcpupin", "emulatorpin", "iothreadpin"}, Note)
			}
		}
	}
}

// number parses a number from 0 on; otherwise it returns -1.
func number(text string) int {
	n := 0
	if text == "" || len(text) > 9 {
		return -1
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}
