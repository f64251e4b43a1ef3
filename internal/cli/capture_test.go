// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// A capture file has an interface per port and keeps time, length, direction and the reason of a drop.
func TestCaptureFile(t *testing.T) {
	s := fixture(t)
	file := filepath.Join(t.TempDir(), "a.pcapng")
	if r := run(s, "", "capture", "-w", file); r.code != 0 {
		t.Fatal(r)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(s, "", "capture", "-w", "-"); r.stdout != string(data) {
		t.Error("standard output got something else than the file")
	}

	ng, err := pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		port, comment string
		direction     pcapgo.NgEpbFlag
		length        int
	}{
		{"fab0", "", pcapgo.NgEpbFlagDirectionOutbound, 74},
		{"vm1", "dropped: label_unknown", pcapgo.NgEpbFlagDirectionInbound, 1400},
		{"vm1", "large segment for packets of 1448 bytes, checksums not computed", pcapgo.NgEpbFlagDirectionInbound,
			40000},
		{"vm1", "checksum not computed", pcapgo.NgEpbFlagDirectionInbound, 74},
	} {
		got, ci, opts, err := ng.ReadPacketDataWithOptions()
		if err != nil {
			t.Fatal(err)
		}
		sent := s.Packets[i]
		intf, err := ng.Interface(ci.InterfaceIndex)
		if err != nil || intf.Name != want.port || intf.LinkType != layers.LinkTypeEthernet {
			t.Errorf("packet %d: interface %+v, %v", i, intf, err)
		}
		if !bytes.Equal(got, sent.Data) || ci.Length != want.length || uint64(ci.Timestamp.UnixNano()) != sent.TimeNs {
			t.Errorf("packet %d: %d bytes, %+v", i, len(got), ci)
		}
		if opts.Flags == nil || opts.Flags.Direction != want.direction {
			t.Errorf("packet %d: flags %+v", i, opts.Flags)
		}
		if comment := append(opts.Comments, "")[0]; comment != want.comment {
			t.Errorf("packet %d: comment %q", i, comment)
		}
	}
	if _, _, err := ng.ReadPacketData(); err != io.EOF {
		t.Error("more packets:", err)
	}
}

// Without ports and packets the file is still valid.
func TestCaptureNothing(t *testing.T) {
	s := fixture(t)
	s.Packets = nil
	for _, p := range s.Ports.All() {
		s.Ports.Delete(p.Name)
	}
	r := run(s, "", "capture", "-w", "-")
	if _, err := pcapgo.NewNgReader(bytes.NewReader([]byte(r.stdout)), pcapgo.DefaultNgReaderOptions); err != nil ||
		r.code != 0 {
		t.Error(err, r)
	}
}

// A capture that is interrupted has succeeded; any other command has not.
func TestInterrupted(t *testing.T) {
	s := fixture(t)
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"capture"}, 0}, {[]string{"route", "list"}, 130}} {
		ctx, cancel := context.WithCancelCause(context.Background())
		out := &blocks{after: func(int) { cancel(ErrInterrupted) }}
		var errs bytes.Buffer
		s.Packets = slices.Repeat(s.Packets[:1], 5000)
		for i := range 5000 {
			p := fmt.Sprintf("10.9.%d.%d/32", i>>8, i&255)
			s.Routes.Put(apitest.RouteKey{Vrf: "red", Prefix: p}, &apiv1.Route{Vrf: "red", Prefix: p})
		}
		if code := New(out, &errs, Dial).Run(ctx, append([]string{"--socket", s.Socket}, c.args...)); code != c.code {
			t.Errorf("%v: exit code %d, %s", c.args, code, errs.String())
		}
		if c.code != 0 && errs.String() != "interrupted\n" {
			t.Errorf("%v: %s", c.args, errs.String())
		}
		cancel(nil)
	}
}

// Each tunnel over UDP is decoded on the ports that the settings give it.
func TestTunnelsAreDecoded(t *testing.T) {
	decodeTunnels(&apiv1.Settings{MplsoudpPorts: []uint32{60001}, VxlanPorts: []uint32{60002, 60003},
		GenevePorts: []uint32{60004}})
	for port, want := range map[layers.UDPPort]gopacket.LayerType{60001: layers.LayerTypeMPLS,
		60002: layers.LayerTypeVXLAN, 60003: layers.LayerTypeVXLAN, 60004: layers.LayerTypeGeneve,
		60005: gopacket.LayerTypePayload} {
		if got := port.LayerType(); got != want {
			t.Errorf("port %d: %s, want %s", port, got, want)
		}
	}
}

// A capture ends when its time is over, although no packet comes.
func TestCaptureTimeout(t *testing.T) {
	s := fixture(t)
	over := make(chan struct{})
	s.Refuse = func(method string, _ proto.Message) error {
		if method == "Capture.Packets" {
			<-over
		}
		return nil
	}
	r := run(s, "", "capture", "--timeout", "50ms")
	close(over)
	if r.code != 0 || r.stdout != "" || !strings.Contains(r.stderr, "packets captured: 0;") {
		t.Error(r)
	}
}
