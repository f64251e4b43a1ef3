// SPDX-License-Identifier: Apache-2.0
package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/procfs"
)

// movers are programs that move threads, interrupts or queues.
var movers = []string{"taskset", "tuna", "cset", "chrt", "chcpu", "numactl", "virsh", "tuned-adm", "ethtool", "sysctl",
	"systemctl", "cgexec", "cpuset", "cpupower"}

// tool is one start of a mover.
type tool struct {
	at   time.Time
	pid  int
	line string
	by   string // the parent process
}

const (
	toolsKept   = 64
	toolIsCause = 3 * time.Second // a change is detected within two looks
)

// toolLog receives the start of each program from the kernel (netlink connector,
// Documentation/driver-api/connector.rst, linux/cn_proc.h) and keeps the movers.
type toolLog struct {
	mu     sync.Mutex
	recent []tool
}

// about describes the last tool that was started shortly before now and whose command names the thread or the subject.
func (l *toolLog) about(subject string, tid int, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range slices.Backward(l.recent) {
		if now.Sub(t.at) > toolIsCause {
			break
		}
		if tid != 0 && slices.Contains(strings.Fields(t.line), strconv.Itoa(tid)) ||
			tid == 0 && mentions(subject, t.line) {
			return fmt.Sprintf("'%s' (pid %d, started by %s) at %s", t.line, t.pid, t.by, t.at.Format("15:04:05.000"))
		}
	}
	return ""
}

// mentions reports whether a command contains a word of a subject: an interface or a setting.
func mentions(subject, line string) bool {
	words := strings.FieldsFunc(subject, func(r rune) bool { return r == ' ' || r == '/' })
	for _, word := range words {
		if len(word) > 3 && slices.Contains(strings.FieldsFunc(line, func(r rune) bool {
			return strings.ContainsRune(" =/.", r)
		}), word) {
			return true
		}
	}
	return false
}

func (l *toolLog) add(t tool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recent = append(l.recent, t); len(l.recent) > toolsKept {
		l.recent = l.recent[1:]
	}
}

// From linux/connector.h and linux/cn_proc.h.
const (
	cnIdxProc    = 1
	cnValProc    = 1
	procListen   = 1
	procExec     = 2
	nlmsgHeader  = 16
	cnHeader     = 20
	eventHeader  = 16 // fields what, cpu, timestamp
	mostOfEvents = 2000
)

// listen subscribes and fills the log until stop is called. It misses starts on a machine that starts more than
// mostOfEvents programs per second.
func listen() (l *toolLog, stop func(), err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_CONNECTOR)
	if err != nil {
		return nil, nil, err
	}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: cnIdxProc}); err == nil {
		err = unix.Sendto(fd, subscription(kernelFilters()), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 500_000})
	}
	if err != nil {
		unix.Close(fd)
		return nil, nil, err
	}
	l = &toolLog{}
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(fd)
		l.read(fd, &ended)
	}()
	return l, func() { ended.Store(true); <-done }, nil
}

// kernelFilters reports whether the kernel can send starts of programs only (since Linux 6.6).
func kernelFilters() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 6
}

// subscription builds the message: netlink header, connector header, PROC_CN_MCAST_LISTEN.
func subscription(filter bool) []byte {
	payload := binary.NativeEndian.AppendUint32(nil, procListen)
	if filter {
		payload = binary.NativeEndian.AppendUint32(payload, procExec)
	}
	b := make([]byte, nlmsgHeader+cnHeader, nlmsgHeader+cnHeader+len(payload))
	binary.NativeEndian.PutUint32(b[0:], uint32(nlmsgHeader+cnHeader+len(payload)))
	binary.NativeEndian.PutUint16(b[4:], unix.NLMSG_DONE)
	binary.NativeEndian.PutUint32(b[12:], uint32(os.Getpid()))
	binary.NativeEndian.PutUint32(b[16:], cnIdxProc)
	binary.NativeEndian.PutUint32(b[20:], cnValProc)
	binary.NativeEndian.PutUint16(b[32:], uint16(len(payload)))
	return append(b, payload...)
}

// read runs on its own thread with a high priority: taskset ends a millisecond after its start, and its command line
// is then gone.
func (l *toolLog) read(fd int, ended *atomic.Bool) {
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))) // do not wait for a look, even on one CPU
	runtime.LockOSThread()                            // not unlocked: the thread ends with its priority
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20)
	buffer := make([]byte, 64<<10)
	events, second := 0, time.Now()
	for !ended.Load() {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOBUFS):
			continue
		case err != nil:
			return
		}
		if time.Since(second) > time.Second {
			events, second = 0, time.Now()
		}
		if events++; events > mostOfEvents {
			time.Sleep(time.Until(second.Add(time.Second)))
			continue
		}
		if pid := execOf(buffer[:n]); pid != 0 {
			l.started(pid)
		}
	}
}

// execOf returns the process that has started a program, or 0 when the message is about something else.
func execOf(message []byte) int {
	const at = nlmsgHeader + cnHeader
	if len(message) < at+eventHeader+8 || binary.NativeEndian.Uint32(message[at:]) != procExec {
		return 0
	}
	return int(binary.NativeEndian.Uint32(message[at+eventHeader+4:])) // process_tgid
}

func (l *toolLog) started(pid int) {
	line := commandLine(pid)
	words := strings.Fields(line)
	if len(words) == 0 || !slices.ContainsFunc(words[:min(2, len(words))], func(w string) bool {
		return slices.Contains(movers, filepath.Base(w))
	}) {
		return
	}
	by := "a process that has ended"
	if process, err := procfs.Host.Process(pid); err == nil {
		by = fmt.Sprintf("%s (%d)", procfs.Host.Name(process.PPID), process.PPID)
	}
	l.add(tool{time.Now(), pid, line, by})
}
