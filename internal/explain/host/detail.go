// SPDX-License-Identifier: Apache-2.0
package host

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// Thread has the details of a thread that explain why it runs where it does.
type Thread struct {
	TID     int        `json:"tid"`
	PID     int        `json:"pid"`
	Name    string     `json:"name"`
	Command string     `json:"command,omitempty"` // of its process
	Parent  string     `json:"parent,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Allowed cpuset.Set `json:"allowed"`
	Cgroup  string     `json:"cgroup,omitempty"`
	Kernel  bool       `json:"kernel,omitempty"`
	State   string     `json:"state,omitempty"`
	Tracer  int        `json:"tracer,omitempty"` // process that traces it
	LastCPU int        `json:"last_cpu"`
	Policy  int        `json:"policy,omitempty"` // SCHED_ of sched(7)
	Nice    int        `json:"nice,omitempty"`
	Fixed   bool       `json:"fixed,omitempty"` // the kernel refuses changes of its CPUs
	Ended   bool       `json:"ended,omitempty"` // since its details were read
}

// Thread returns the details of a thread; false: it has ended.
func (r Root) Thread(tid int) (t Thread, ok bool) {
	dir := "proc/" + strconv.Itoa(tid) // /proc has threads too, though it does not list them
	keys, err := r.proc().Status(dir)
	if err != nil {
		return t, false
	}
	t = Thread{TID: tid, PID: int(count(keys["Tgid"])), Name: keys["Name"], State: keys["State"]}
	t.Allowed, _ = cpuset.Parse(keys["Cpus_allowed_list"])
	t.Tracer = int(count(keys["TracerPid"]))
	if f := strings.Fields(keys["Uid"]); len(f) > 0 {
		t.Owner = owner(f[0])
	}
	t.Command = r.proc().CommandLine(tid)
	if task, err := r.proc().Process(tid); err == nil {
		t.Kernel, t.LastCPU, t.Policy, t.Nice = task.Kernel(), task.LastCPU, task.Policy, task.Nice
		t.Fixed = task.Fixed()
	}
	t.Parent = r.proc().Name(int(count(keys["PPid"])))
	groups, _ := r.proc().Read(dir + "/cgroup")
	t.Cgroup, _ = procfs.ParseCgroup(groups, "cpuset")
	return t, true
}

// Threads returns the threads of a process.
func (r Root) Threads(pid int) ([]int, error) { return r.proc().Threads(pid) }

// Dead says whether the thread has ended and only its status is left, which its parent has not read (a zombie).
func (t *Thread) Dead() bool {
	return strings.HasPrefix(t.State, "Z") || strings.HasPrefix(t.State, "X")
}

// CPU returns the only CPU that the thread may run on; if there are several, the one where it last ran.
func (t *Thread) CPU() int {
	if t.Allowed.Len() == 1 {
		return t.Allowed.First()
	}
	return t.LastCPU
}

func owner(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return "uid " + uid
}

// IRQAffinity returns the CPUs that an interrupt may go to, and those that it goes to.
func (r Root) IRQAffinity(irq int) (allowed, effective cpuset.Set) {
	dir := "proc/irq/" + strconv.Itoa(irq)
	a, _ := r.proc().Read(dir + "/smp_affinity_list")
	e, _ := r.proc().Read(dir + "/effective_affinity_list")
	allowed, _ = cpuset.Parse(a)
	effective, _ = cpuset.Parse(e)
	return allowed, effective
}

// Online returns the CPUs that are online.
func (r Root) Online() cpuset.Set {
	set, _ := r.proc().CPUs("online")
	return set
}

func rootFS(r Root) fs.FS { return os.DirFS(r.path()) }

func maskHas(mask string, cpu int) bool {
	set, err := cpuset.ParseMask(mask)
	return err == nil && set.Has(cpu)
}
