// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"io"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// pcapSink writes a pcapng file: an interface per port, the direction in the packet's flags; the reason of a drop, and
// what the sender has left to the router, as its comments.
type pcapSink struct {
	w      io.WriteCloser
	ng     *pcapgo.NgWriter
	ifaces map[string]int
}

func newPcapSink(w io.WriteCloser, ports []*apiv1.Port) (*pcapSink, error) {
	s := &pcapSink{w: w, ifaces: map[string]int{}}
	for _, p := range ports {
		if _, err := s.iface(p.Name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// iface finds the interface of a port, and adds it when the port is new.
func (s *pcapSink) iface(port string) (int, error) {
	if i, ok := s.ifaces[port]; ok {
		return i, nil
	}
	intf := pcapgo.NgInterface{Name: port, OS: runtime.GOOS, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
	i, err := 0, error(nil)
	if s.ng == nil {
		s.ng, err = pcapgo.NewNgWriterInterface(s.w, intf, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
			Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "corelane " + Version}})
	} else {
		i, err = s.ng.AddInterface(intf)
	}
	if err == nil {
		s.ifaces[port] = i
		err = s.ng.Flush()
	}
	return i, err
}

func (s *pcapSink) packet(p *apiv1.CapturedPacket) error {
	i, err := s.iface(p.Port)
	if err != nil {
		return err
	}
	ci := gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(p.TimeNs)), CaptureLength: len(p.Data),
		Length: max(int(p.Length), len(p.Data)), InterfaceIndex: i}
	opts := pcapgo.NgPacketOptions{Flags: &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}}
	if p.Point == apiv1.CapturePoint_CAPTURE_POINT_TX {
		opts.Flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	if p.Reason != "" {
		opts.Comments = append(opts.Comments, "dropped: "+p.Reason)
	}
	if what := offloaded(p); what != "" {
		opts.Comments = append(opts.Comments, what)
	}
	if err := s.ng.WritePacketWithOptions(ci, p.Data, opts); err != nil {
		return err
	}
	return s.ng.Flush() // a reader at the other end of a pipe sees it at once
}

func (s *pcapSink) close() error {
	var err error
	if s.ng == nil { // a file without an interface would not open
		_, err = s.iface("none")
	}
	if cerr := s.w.Close(); err == nil {
		err = cerr
	}
	return err
}
