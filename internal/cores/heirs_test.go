// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"os"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
)

// What the kernel keeps where it is has not failed: kworkers begin and end all the time.
func TestHeirThatTheKernelKeeps(t *testing.T) {
	var got []Outcome
	r := &run{Site: &Site{Root: "/", Report: func(o Outcome) { got = append(got, o) }}, host: host{"/"}}
	self, err := r.thread(os.Getpid(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	nowhere := cpuset.Of(cpuset.Max - 1) // no machine has it: EINVAL, as for a thread with PF_NO_SETAFFINITY
	if err := r.inherit(os.Getpid(), os.Getpid(), self, nowhere); err != nil || len(got) != 1 || got[0].Result != Refused {
		t.Errorf("%v, %v", err, got)
	}
}
