// SPDX-License-Identifier: Apache-2.0
package agent

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// lazy is how far the heap may grow before its garbage is collected, in percent of what is in use, where the memory has
// a limit. Go's default is 100: it does not know of the limit, collects while there is plenty of room, and passes the
// limit when more than half of it is in use.
const lazy = 400

// LimitMemory makes the garbage collector use the memory that this process may have (MemoryMax of the unit): lazily
// while there is room, and in time before the limit. GOMEMLIMIT gives another limit, and GOGC another laziness. It
// returns the limit in bytes; 0: there is none, and nothing changes.
func LimitMemory(root string) int64 {
	limit := debug.SetMemoryLimit(-1) // GOMEMLIMIT
	if limit == math.MaxInt64 && os.Getenv("GOMEMLIMIT") == "" {
		most := memoryMax(root)
		if most == 0 {
			return 0
		}
		limit = most / 10 * 8 // the kernel counts the program's code and some of its own memory, too
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") == "" && limit < math.MaxInt64 {
		debug.SetGCPercent(lazy)
	}
	if limit == math.MaxInt64 { // GOMEMLIMIT=off
		return 0
	}
	return limit
}

// memoryMax is the smallest limit of this process's control group and of those above it; 0: none.
func memoryMax(root string) (least int64) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	var group string
	for line := range bytes.Lines(text) {
		if path, ok := bytes.CutPrefix(line, []byte("0::")); ok { // of version 2
			group = string(bytes.TrimSpace(path))
		}
	}
	for ; strings.HasPrefix(group, "/"); group = filepath.Dir(group) {
		// the root of a machine has no such file; that of a container with a namespace of its own may have one
		text, _ := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", group, "memory.max"))
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && (least == 0 || n < least) {
			least = n // "max" is no number
		}
		if group == "/" {
			break
		}
	}
	return least
}
