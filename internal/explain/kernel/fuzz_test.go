// SPDX-License-Identifier: Apache-2.0
package kernel

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cilium/ebpf/ringbuf"
)

// FuzzRecord reads records as the ring buffer of the eBPF programs gives them.
func FuzzRecord(f *testing.F) {
	var b bytes.Buffer
	gap := workersGap{Start: 2_000, End: 52_000, Cpu: 3, Worker: 100, Kind: uint8(KindThread), Why: uint8(WhyTaken),
		Id: 200, Pid: 150, Name: [16]int8{'h', 'o', 'g'}}
	if err := binary.Write(&b, binary.LittleEndian, &gap); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), int64(1_000))
	f.Add(b.Bytes(), int64(60_000))
	f.Add(bytes.Repeat([]byte{0xff}, b.Len()), int64(0))
	f.Add(b.Bytes()[:b.Len()-1], int64(0))
	f.Add([]byte{}, int64(0))
	f.Fuzz(func(t *testing.T, sample []byte, begin int64) {
		w := &Watcher{begin: max(0, begin)}
		got, err := w.gap(ringbuf.Record{RawSample: sample})
		if (err == nil) != (len(sample) >= binary.Size(gap)) {
			t.Fatalf("%d bytes: %v", len(sample), err)
		}
		if err != nil {
			return
		}
		if strings.ContainsRune(got.Name, 0) || len(got.Name) > len(gap.Name) {
			t.Errorf("name %q", got.Name)
		}
		start, after := int64(binary.LittleEndian.Uint64(sample)), int64(0)
		if start > w.begin {
			after = start - w.begin
		}
		if got.From != after {
			t.Errorf("a gap since %d, in a window since %d, begins %d after it", start, w.begin, got.From)
		}
	})
}
