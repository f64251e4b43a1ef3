// SPDX-License-Identifier: Apache-2.0
package manifest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/result"
)

func TestRead(t *testing.T) {
	for tree, c := range map[string]struct{ given, want result.Manifest }{
		"virtual": {
			result.Manifest{DPDK: "22.11.4", Corelane: "0.1", RouterCPUs: []int{1}, TSCHz: 2600000000,
				Settings: map[string]string{"repetitions": "5"}},
			result.Manifest{DPDK: "22.11.4", Corelane: "0.1", RouterCPUs: []int{1}, TSCHz: 2600000000,
				Settings: map[string]string{"repetitions": "5"}, Host: "bench1", CPU: "AMD EPYC 9R14", CPUs: 2,
				Kernel: "6.1.0-18-amd64", Isolated: "1", NoHzFull: "1", Hypervisor: true,
				KernelArgs: "BOOT_IMAGE=/vmlinuz root=/dev/vda1 isolcpus=1 nohz_full=1",
				Hugepages:  map[string]uint64{"2 MB": 512, "1 GB": 0}},
		},
		"arm64": {
			result.Manifest{RouterCPUs: []int{1, 2}, GeneratorCPU: 0},
			result.Manifest{RouterCPUs: []int{1, 2}, Host: "arm1", CPU: "implementer 0x41 part 0xd0c", CPUs: 4,
				Kernel: "6.6.8", KernelArgs: "console=ttyAMA0", Governor: "performance, schedutil",
				Hugepages: map[string]uint64{"64 kB": 7, "16 GB": 1}},
		},
		"bare": {result.Manifest{}, result.Manifest{CPUs: 1, Hugepages: map[string]uint64{}}},
	} {
		got, err := Read(filepath.Join("testdata", tree), c.given)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n%+v, want\n%+v", tree, err, got, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for tree, want := range map[string]string{"no-processor": "lists no processor",
		"bad-hugepages": "hugepages-2048kB/nr_hugepages", "none": "cpuinfo"} {
		if _, err := Read(filepath.Join("testdata", tree), result.Manifest{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", tree, err)
		}
	}
}

// This machine has a CPU and a kernel, whatever else it has.
func TestReadThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/cpuinfo"); err != nil {
		t.Skipf("no Linux: %v", err)
	}
	m, err := Read("/", result.Manifest{})
	if err != nil || m.CPUs == 0 || m.Kernel == "" || m.Host == "" {
		t.Errorf("%v: %+v", err, m)
	}
}
