// SPDX-License-Identifier: Apache-2.0

// Package cores makes a machine what a plan of its CPUs says, and makes it again what it was before. What has to change is
// decided without touching anything (Changes); it is then done step by step, each written down before it is done, so that
// Rollback finds its way back whatever ended Apply.
package cores

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// Kind is what a change touches, and with that how it is done and undone.
type Kind string

// The kinds. A change of kind Note cannot be done by Apply: it is there to be said.
const (
	Write    Kind = "write"    // a setting of the kernel: New is written into the file Path
	Affinity Kind = "affinity" // CPUs of the thread TID: sched_setaffinity(2)
	Worker   Kind = "worker"   // CPU of a worker of corelaned, told to corelaned, which else moves the thread back
	Group    Kind = "group"    // the cgroup Path is made
	Join     Kind = "join"     // the process PID, or with TID that thread, enters the cgroup Path
	Folder   Kind = "folder"   // the directory Path is made
	File     Kind = "file"     // the file Path is replaced as a whole
	Service  Kind = "service"  // the systemd unit Path becomes New: "active" or "inactive"
	Note     Kind = "note"     // nothing that Apply could do
)

// When is the moment from which a change counts.
type When string

// The moments.
const (
	Now     When = "now"
	Reboot  When = "reboot"
	Restart When = "restart" // of the service that reads it
)

// Form is how the text of a setting is to be compared.
type Form string

// The forms. Exact is the text without the space around it.
const (
	Exact      Form = ""
	Mask       Form = "mask"       // hexadecimal CPU mask
	List       Form = "list"       // CPU list
	Choice     Form = "choice"     // all words, the chosen one in brackets: "always [madvise] never"
	Least      Form = "least"      // a number that may be more
	Controller Form = "controller" // cgroup.subtree_control: "+cpuset" is written, a list of words read
)

// Change is one thing that must become different for a plan to be true.
type Change struct {
	Kind    Kind        `json:"kind"`
	Path    string      `json:"path,omitempty"` // below the root, without the first slash
	PID     int         `json:"pid,omitempty"`
	TID     int         `json:"tid,omitempty"`
	Name    string      `json:"name,omitempty"`    // of the thread, interrupt or unit
	Started int64       `json:"started,omitempty"` // of the thread, clock ticks after boot: tells it from a later one of this number
	Worker  int         `json:"worker,omitempty"`  // id, kind Worker only
	Old     string      `json:"old"`               // as the machine was read; in a journal, exactly as it was found
	New     string      `json:"new"`
	Form    Form        `json:"form,omitempty"`
	Absent  bool        `json:"absent,omitempty"` // there was nothing at Path
	Mode    fs.FileMode `json:"mode,omitempty"`   // of a File
	OldMode fs.FileMode `json:"old_mode,omitempty"`
	When    When        `json:"when"`
	Why     string      `json:"why"`               // one sentence
	ByHand  string      `json:"by_hand,omitempty"` // the command that does it
	// Optional marks what the kernel may refuse without the rest being in vain: the refusal is said and Apply goes on.
	Optional bool `json:"optional,omitempty"`
	// Bundle names changes that have no use without each other: when one is refused, those before it are undone.
	Bundle string `json:"bundle,omitempty"`
	Needs  string `json:"needs,omitempty"` // the bundle without which it cannot be
}

// What is the thing that changes, in few words.
func (c *Change) What() string {
	switch c.Kind {
	case Affinity:
		return fmt.Sprintf("thread %s (%d)", c.Name, c.TID)
	case Worker:
		return fmt.Sprintf("worker %d (thread %d)", c.Worker, c.TID)
	case Join:
		if c.TID != 0 {
			return fmt.Sprintf("cgroup of thread %s (%d)", c.Name, c.TID)
		}
		return fmt.Sprintf("cgroup of process %s (%d)", c.Name, c.PID)
	case Group:
		return "cgroup /" + c.Path
	case Service:
		return "service " + c.Path
	case Note:
		return c.Name
	}
	if c.Name != "" {
		return c.Name
	}
	return "/" + c.Path
}

// same says whether two texts of a setting mean the same.
func (f Form) same(a, b string) bool {
	switch f {
	case Mask:
		return sameSet(cpuset.ParseMask, a, b)
	case List:
		return sameSet(cpuset.Parse, a, b)
	case Choice:
		return chosen(a) == chosen(b)
	}
	return strings.TrimSpace(a) == strings.TrimSpace(b)
}

func sameSet(parse func(string) (cpuset.Set, error), a, b string) bool {
	x, err := parse(a)
	y, err2 := parse(b)
	return err == nil && err2 == nil && x.Equal(y)
}

// meets says whether a setting that reads have is what want asks for.
func (f Form) meets(have, want string) bool {
	switch f {
	case Least:
		var h, w int64
		_, err := fmt.Sscan(have, &h)
		_, err2 := fmt.Sscan(want, &w)
		return err == nil && err2 == nil && h >= w
	case Controller:
		has := false
		for _, word := range strings.Fields(have) {
			has = has || word == want[1:]
		}
		return has == (want[0] == '+')
	}
	return f.same(have, want)
}

// back is what has to be written for a setting to read old again.
func (f Form) back(old, written string) string {
	switch f {
	case Choice:
		return chosen(old)
	case Controller:
		return "-" + written[1:]
	}
	return old
}

// chosen is the word in brackets, or the whole text without any.
func chosen(text string) string {
	if _, rest, found := strings.Cut(text, "["); found {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return strings.TrimSpace(text)
}
