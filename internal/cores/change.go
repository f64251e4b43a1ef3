// SPDX-License-Identifier: Apache-2.0

// Package cores applies a CPU plan to a machine and rolls it back. Changes decides what has to change, without touching
// the machine. Apply writes each change to a journal before making it, so that Rollback can undo all of them however
// Apply ended.
package cores

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// Kind says what a change touches, and therefore how it is made and undone.
type Kind string

// The kinds. A change of kind Note is reported only: Apply cannot make it.
const (
	Write    Kind = "write"    // write New into the file Path, a kernel setting
	Affinity Kind = "affinity" // set the CPUs of the thread TID with sched_setaffinity(2)
	Worker   Kind = "worker"   // make corelaned move a worker; it would undo a change of the thread's affinity
	Group    Kind = "group"    // create the cgroup Path
	Join     Kind = "join"     // move the process PID, or the thread TID if set, into the cgroup Path
	Folder   Kind = "folder"   // create the directory Path
	File     Kind = "file"     // replace the whole file Path
	Service  Kind = "service"  // bring the systemd unit Path to the state New: "active" or "inactive"
	Note     Kind = "note"     // a finding that Apply cannot fix
)

// When says when a change takes effect.
type When string

// The moments.
const (
	Now     When = "now"
	Reboot  When = "reboot"
	Restart When = "restart" // of the service that reads it
)

// Form says how two texts of a setting are compared.
type Form string

// The forms. Exact compares the texts without leading and trailing space.
const (
	Exact      Form = ""
	Mask       Form = "mask"       // hexadecimal CPU mask
	List       Form = "list"       // CPU list
	Choice     Form = "choice"     // all words, the chosen one in brackets: "always [madvise] never"
	Least      Form = "least"      // a number; a larger one is right too
	Controller Form = "controller" // cgroup.subtree_control: reads as a list of words, "+cpuset" is written
)

// Change is one difference between a machine and its plan, and how to remove it.
type Change struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path,omitempty"` // below the root, without the first slash
	PID  int    `json:"pid,omitempty"`
	TID  int    `json:"tid,omitempty"`
	Name string `json:"name,omitempty"` // of the thread, interrupt or unit
	// Started is the thread's start in clock ticks after boot. It differs for a later thread with the same TID.
	Started int64       `json:"started,omitempty"`
	Worker  int         `json:"worker,omitempty"` // id, kind Worker only
	Old     string      `json:"old"`              // as topology reads it; in a journal, exactly as it was found
	New     string      `json:"new"`
	Form    Form        `json:"form,omitempty"`
	Absent  bool        `json:"absent,omitempty"` // there was nothing at Path
	Mode    fs.FileMode `json:"mode,omitempty"`   // of a File
	OldMode fs.FileMode `json:"old_mode,omitempty"`
	When    When        `json:"when"`
	Why     string      `json:"why"`               // one sentence
	ByHand  string      `json:"by_hand,omitempty"` // the command that does the same
	// Optional marks a change that the kernel may refuse while the others still help: Apply reports it and continues.
	Optional bool `json:"optional,omitempty"`
	// Bundle names changes that need each other: when one is refused, those made before it are undone.
	Bundle string `json:"bundle,omitempty"`
	Needs  string `json:"needs,omitempty"` // the bundle that this change depends on
}

// What names the thing that changes.
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

// same reports whether two texts of a setting mean the same.
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

// meets reports whether a setting that reads as have satisfies want.
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

// back returns the text to write so that a setting reads as old again.
func (f Form) back(old, written string) string {
	switch f {
	case Choice:
		return chosen(old)
	case Controller:
		return "-" + written[1:]
	}
	return old
}

// chosen returns the word in brackets, or the whole text when it has no brackets.
func chosen(text string) string {
	if _, rest, found := strings.Cut(text, "["); found {
		word, _, _ := strings.Cut(rest, "]")
		return word
	}
	return strings.TrimSpace(text)
}
