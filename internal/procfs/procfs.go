// SPDX-License-Identifier: Apache-2.0

// Package procfs parses the files of /proc; see proc(5). The parsers take text, so that they serve the running machine,
// a directory of captured files and an archive in memory alike; Root reads the files of the first two.
//
// github.com/prometheus/procfs does not serve here: it opens paths only, and its tables of interrupts and softirqs have
// values by column without saying which CPU a column is, which differs as soon as a CPU is offline.
package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
)

// Host is the machine that this program runs on.
const Host Root = "/"

// TicksPerSecond is USER_HZ, the unit of times in /proc, which is 100 on every machine that DPDK runs on.
const TicksPerSecond = 100

// Root is the directory with a machine's files: "/" or that of a captured machine.
type Root string

// Read returns a file, "proc/stat". The error is fs.ErrNotExist also when the process of the file ended while it was
// read.
func (r Root) Read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(string(r), name))
	if errors.Is(err, unix.ESRCH) {
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return string(text), err
}

// CPUs reads a list of CPUs below sys/devices/system/cpu: "online", "isolated", "cpu3/topology/thread_siblings_list".
func (r Root) CPUs(name string) (cpuset.Set, error) {
	text, err := r.Read(filepath.Join("sys/devices/system/cpu", name))
	if err != nil {
		return cpuset.Set{}, err
	}
	return cpuset.Parse(text)
}

// ThreadDir is the directory of a thread: "proc/7/task/8".
func ThreadDir(pid, tid int) string { return fmt.Sprintf("proc/%d/task/%d", pid, tid) }

// Process reads the statistics of a process: times and page faults of all threads, the rest of the first thread.
func (r Root) Process(pid int) (Task, error) { return r.task(fmt.Sprintf("proc/%d/stat", pid)) }

// Thread reads the statistics of one thread.
func (r Root) Thread(pid, tid int) (Task, error) { return r.task(ThreadDir(pid, tid) + "/stat") }

func (r Root) task(name string) (Task, error) {
	text, err := r.Read(name)
	if err != nil {
		return Task{}, err
	}
	t, err := ParseTask(text)
	if err != nil {
		err = fmt.Errorf("/%s %w", name, err)
	}
	return t, err
}

// Status reads the status file of a process or thread in dir, as values by key.
func (r Root) Status(dir string) (map[string]string, error) {
	text, err := r.Read(dir + "/status")
	return ParseStatus(text), err
}

// Name is the name of a process, "" when it has ended.
func (r Root) Name(pid int) string {
	text, _ := r.Read(fmt.Sprintf("proc/%d/comm", pid)) // it may have ended
	return strings.TrimSuffix(text, "\n")
}

// CommandLine is the program and the arguments of a process, with a space between them; "" for a thread of the kernel
// and a process that has ended.
func (r Root) CommandLine(pid int) string {
	text, _ := r.Read(fmt.Sprintf("proc/%d/cmdline", pid)) // it may have ended
	return strings.TrimSpace(strings.ReplaceAll(text, "\x00", " "))
}

// Uptime is the time since the machine started, in seconds.
func (r Root) Uptime() (float64, error) {
	text, err := r.Read("proc/uptime")
	if err != nil {
		return 0, err
	}
	return ParseUptime(text)
}

// ParseUptime reads /proc/uptime.
func ParseUptime(text string) (float64, error) {
	first, _, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(first), 64)
	if err != nil || !(seconds >= 0 && seconds < 1e12) {
		return 0, fmt.Errorf("'%.40s' is not an uptime", strings.ToValidUTF8(text, "?"))
	}
	return seconds, nil
}

// Files returns what each open file of a process links to, by descriptor: "socket:[4711]". Files that are closed
// meanwhile are left out.
func (r Root) Files(pid int) (map[int]string, error) {
	dir := fmt.Sprintf("proc/%d/fd", pid)
	numbers, err := r.numbers(dir)
	links := make(map[int]string, len(numbers))
	for _, fd := range numbers {
		if link, err := os.Readlink(filepath.Join(string(r), dir, strconv.Itoa(fd))); err == nil {
			links[fd] = link
		}
	}
	return links, err
}

// Processes are the ids of all processes, ascending.
func (r Root) Processes() ([]int, error) { return r.numbers("proc") }

// Threads are the ids of a process' threads, ascending. The error is fs.ErrNotExist when it has ended.
func (r Root) Threads(pid int) ([]int, error) { return r.numbers(fmt.Sprintf("proc/%d/task", pid)) }

// ThreadNamed finds a thread of a process by its name.
func (r Root) ThreadNamed(pid int, name string) (int, error) {
	tids, err := r.Threads(pid)
	for _, tid := range tids {
		if text, err := r.Read(ThreadDir(pid, tid) + "/comm"); err == nil && strings.TrimSuffix(text, "\n") == name {
			return tid, nil
		}
	}
	return 0, errors.Join(err, fmt.Errorf("process %d has no thread %s", pid, name))
}

// numbers are the names in a directory that are numbers. It does not look at the files, which would cost a system call
// for each.
func (r Root) numbers(dir string) ([]int, error) {
	d, err := os.Open(filepath.Join(string(r), dir))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	ids := make([]int, 0, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil && id >= 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}
