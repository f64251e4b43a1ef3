// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// look reads the present state into c.Old, exactly, so that it can be restored. already reports that c has no effect.
func (r *run) look(ctx context.Context, c *Change) (already bool, err error) {
	switch c.Kind {
	case Write:
		c.Old, err = r.read(c.Path)
		return err == nil && c.Form.meets(c.Old, c.New), r.newFile(c, err)
	case Affinity, Worker:
		t, err := r.thread(c.PID, c.TID)
		if err != nil || c.Started != 0 && c.Started != t.started {
			return false, errors.Join(err, otherThread(err))
		}
		c.Old, c.Started = t.allowed.String(), t.started
		return List.same(c.Old, c.New), nil
	case Group, Folder:
		_, err := os.Stat(r.path(c.Path))
		c.Absent = errors.Is(err, fs.ErrNotExist)
		return err == nil, ignore(err, fs.ErrNotExist)
	case Join:
		return r.lookJoin(c)
	case File:
		c.Old, err = r.read(c.Path)
		c.Absent = errors.Is(err, fs.ErrNotExist)
		if info, err := os.Stat(r.path(c.Path)); err == nil {
			c.OldMode = info.Mode()
		}
		return err == nil && c.Old == c.New, ignore(err, fs.ErrNotExist)
	case Service:
		c.Old, err = r.unit(ctx, c.Path)
		return c.Old == c.New, err
	}
	return false, fmt.Errorf("kind '%s' is unknown", c.Kind)
}

// newFile accepts a missing setting of a cgroup in a rehearsal, where no kernel creates it.
func (r *run) newFile(c *Change, err error) error {
	if c.Absent = !r.live() && c.Bundle != "" && errors.Is(err, fs.ErrNotExist); c.Absent {
		return nil
	}
	return err
}

func otherThread(err error) error {
	if err == nil {
		return fs.ErrNotExist
	}
	return nil
}

func ignore(err, which error) error {
	if errors.Is(err, which) {
		return nil
	}
	return err
}

// lookJoin finds the present group of a process or thread in the hierarchy of the group that it is to join.
func (r *run) lookJoin(c *Change) (bool, error) {
	t, err := r.thread(c.PID, max(c.TID, c.PID))
	if err != nil || c.Started != 0 && c.Started != t.started {
		return false, errors.Join(err, otherThread(err))
	}
	c.Started = t.started
	c.Old, err = r.groupOf(c)
	return c.Old == c.Path, err
}

// groupOf returns the present cgroup in the hierarchy of c.Path, as a path below the root.
func (r *run) groupOf(c *Change) (string, error) {
	text, err := r.read(procfs.ThreadDir(c.PID, max(c.TID, c.PID)) + "/cgroup")
	if err != nil {
		return "", err
	}
	mount, controller := hierarchy(c.Path)
	group, version := procfs.ParseCgroup(text, controller)
	if version == 0 {
		return "", fmt.Errorf("/proc/%d/cgroup does not name a group below %s", c.PID, mount)
	}
	return path.Join(mount, group), nil
}

const (
	mountV1 = "sys/fs/cgroup/cpuset"
	mountV2 = "sys/fs/cgroup"
)

// hierarchy returns the mount point of a group's hierarchy, and its controller in /proc/PID/cgroup.
func hierarchy(group string) (mount, controller string) {
	if group == mountV1 || strings.HasPrefix(group, mountV1+"/") {
		return mountV1, "cpuset"
	}
	return mountV2, ""
}

func hasWord(list, word string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if part == word {
			return true
		}
	}
	return false
}

// make makes a change.
func (r *run) make(ctx context.Context, c Change) error {
	switch c.Kind {
	case Write:
		return r.set(c)
	case Affinity:
		return r.pin(c, c.New)
	case Worker:
		return r.worker(ctx, c, c.New)
	case Group, Folder:
		return os.Mkdir(r.path(c.Path), 0o755)
	case Join:
		return r.join(c, c.Path)
	case File:
		return r.replace(c.Path, c.New, c.Mode)
	case Service:
		return r.setUnit(ctx, c.Path, c.New)
	}
	return fmt.Errorf("kind '%s' is unknown", c.Kind)
}

// set writes a setting. In a rehearsal it does what the kernel does with a list of controllers.
func (r *run) set(c Change) error {
	if c.Form == Controller && !r.live() {
		return r.write(c.Path, strings.TrimSpace(strings.TrimSpace(c.Old)+" "+c.New[1:])+"\n")
	}
	return r.write(c.Path, c.New)
}

func (r *run) pin(c Change, list string) error {
	set, err := parseCPUs(list)
	if err != nil {
		return err
	}
	return r.setAllowed(c.PID, c.TID, set)
}

func (r *run) worker(ctx context.Context, c Change, list string) error {
	set, err := parseCPUs(list)
	switch {
	case err != nil:
		return err
	case set.Len() != 1, !r.live():
		return r.pin(c, list) // an unpinned worker; corelaned pins it again
	case r.MoveWorker == nil:
		return errors.New("there is no connection to corelaned; by hand: " + c.ByHand)
	}
	return r.MoveWorker(ctx, c.Worker, set.First())
}

// join moves a process or a thread into a group.
func (r *run) join(c Change, group string) error {
	file, id := "/cgroup.procs", c.PID
	if c.TID != 0 {
		file, id = "/cgroup.threads", c.TID
		if mount, _ := hierarchy(group); mount == mountV1 {
			file = "/tasks"
		}
	}
	if r.live() {
		return gone(r.write(group+file, strconv.Itoa(id)))
	}
	mount, controller := hierarchy(group)
	name := procfs.ThreadDir(c.PID, id) + "/cgroup"
	text, err := r.read(name)
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) == 3 && hasWord(parts[1], controller) {
			line = parts[0] + ":" + parts[1] + ":" + path.Join("/", strings.TrimPrefix(group, mount)) + "\n"
		}
		out.WriteString(line)
	}
	return r.write(name, out.String())
}

// check reads the new state back, because the kernel accepts some values without applying them.
func (r *run) check(ctx context.Context, c Change) error {
	switch c.Kind {
	case Write:
		have, err := r.read(c.Path)
		if err == nil && !c.Form.meets(have, c.New) {
			err = fmt.Errorf("'%s' was written, but '%s' is read back", c.New, strings.TrimSpace(have))
		}
		return err
	case Affinity:
		t, err := r.thread(c.PID, c.TID)
		if err == nil && !t.allowed.Within(setOf(c.New)) { // a cpuset may leave fewer of them
			err = fmt.Errorf("the thread's CPUs are %s, not %s", t.allowed, c.New)
		}
		return err
	}
	return nil
}

// setOf parses a list that is known to be valid.
func setOf(list string) cpuset.Set {
	set, _ := cpuset.Parse(list)
	return set
}
