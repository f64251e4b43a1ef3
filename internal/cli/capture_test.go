// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
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

// Without ports and packets the file is still one that opens.
func TestCaptureNothing(t *testing.T) {
	s := fixture(t)
	s.Packets = nil
	for _, p := range s.Ports.All() {
		s.Ports.Delete(p.Name)
	}
	r := run(s, "", "capture", "-w", "-")
	if _, err := pcapgo.NewNgReader(bytes.NewReader([]byte(r.stdout)), pcapgo.DefaultNgReaderOptions); err != nil || r.code != 0 {
		t.Error(err, r)
	}
}
