// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
)

func (l *lane) partitionByHand(context.Context) (func() error, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		name, _ := os.ReadFile(d + "/comm")
		if string(name) != "cl-load\n" {
			continue
		}
		tasks, _ := filepath.Glob(d + "/task/*")
		for _, t := range tasks {
			tid, _ := strconv.Atoi(filepath.Base(t))
			if err := affinity(tid, cpuset.Of(l.others()...)); err != nil && err != unix.ESRCH {
				return nil, err
			}
		}
	}
	return func() error { return nil }, err
}
