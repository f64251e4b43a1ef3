// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
)

// Read looks at the machine below root: "/", a directory or an archive of a captured one. What it could not find out is in
// Machine.Unread; an error is a machine without any CPU, or a root that is none.
func Read(root string) (*Machine, error) {
	tree, err := Open(root)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	m, err := ReadTree(tree)
	if err != nil {
		return nil, input.Errorf(root, "", "%v", err)
	}
	return m, nil
}

// ReadTree is Read for files from anywhere.
func ReadTree(tree Tree) (*Machine, error) {
	r := &reader{tree: tree, m: &Machine{}, seen: map[string]int{}}
	if err := r.cpus(); err != nil {
		return nil, err
	}
	r.kernel()
	r.nodes()
	r.nics()
	r.interfaces()
	r.irqs()
	r.threads()
	r.cgroups()
	r.services()
	r.guests()
	r.knobs()
	r.load()
	r.count()
	return r.m, nil
}

// reader is one look at a machine.
type reader struct {
	tree Tree
	m    *Machine
	seen map[string]int // kind of trouble -> its place in Machine.Unread
	many []int          // times that each of Machine.Unread was met
}

// need says what it means when a file is not there.
type need bool

const (
	needed need = true  // every machine has it
	maybe  need = false // many do not
)

var digits = regexp.MustCompile(`[0-9]+`)

// trouble notes a file that does not tell. The same at other CPUs, queues or threads is noted once and counted.
func (r *reader) trouble(name, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	kind := digits.ReplaceAllString(name, "*") + " " + digits.ReplaceAllString(why, "*")
	if at, ok := r.seen[kind]; ok {
		r.many[at]++
		return
	}
	r.seen[kind] = len(r.m.Unread)
	r.many = append(r.many, 1)
	r.m.Unread = append(r.m.Unread, Unread{"/" + name, why})
}

// count tells at each trouble how many more there were of its kind.
func (r *reader) count() {
	for i, n := range r.many {
		if n > 1 {
			r.m.Unread[i].Why += fmt.Sprintf("; and %d more like it", n-1)
		}
	}
}

// missing says whether an error means "not there": also that a process or device ended while it was read, or a setting that
// this device does not have.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTDIR)
}

// reason is an error without the path that it repeats.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing"
	}
	return err.Error()
}

// text is a file's content without space around it.
func (r *reader) text(name string, n need) (string, bool) {
	text, err := r.tree.Read(name)
	if err != nil {
		if n == needed || !missing(err) {
			r.trouble(name, "%s", reason(err))
		}
		return "", false
	}
	return strings.TrimSpace(text), true
}

// list is the names in a directory that match a pattern of path.Match.
func (r *reader) list(dir, pattern string, n need) []string {
	all, err := r.tree.List(dir)
	if err != nil {
		if n == needed || !missing(err) {
			r.trouble(dir, "%s", reason(err))
		}
		return nil
	}
	var names []string
	for _, e := range all {
		if ok, _ := path.Match(pattern, e.Name); ok {
			names = append(names, e.Name)
		}
	}
	if k, ok := r.tree.(keeper); ok {
		k.keep(dir, names)
	}
	return names
}

// keeper is a tree that wants to know which names of a directory were of interest.
type keeper interface {
	keep(dir string, names []string)
}

// numbered is the numbers of the directory's entries that are prefix and a number: cpu0, cpu1; ascending.
func (r *reader) numbered(dir, prefix string, n need) []int {
	var ids []int
	for _, name := range r.list(dir, prefix+"[0-9]*", n) {
		if id, err := strconv.Atoi(name[len(prefix):]); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// link is the last part of what a symbolic link says: a driver's or bus's name.
func (r *reader) link(name string) string {
	to, err := r.tree.Link(name)
	if err != nil {
		if !missing(err) {
			r.trouble(name, "%s", reason(err))
		}
		return ""
	}
	return path.Base(to)
}

// value reads a file and parses it.
func value[T any](r *reader, name string, n need, parse func(string) (T, error)) (T, bool) {
	var none T
	text, ok := r.text(name, n)
	if !ok {
		return none, false
	}
	v, err := parse(text)
	if err != nil {
		r.trouble(name, "%s", senseless(text, err))
		return none, false
	}
	return v, true
}

// senseless says what a file holds and why that cannot be.
func senseless(text string, err error) string {
	var n *strconv.NumError
	if errors.As(err, &n) {
		if len(text) > 40 {
			text = text[:40] + "..."
		}
		return fmt.Sprintf("'%s' is no number", strings.ToValidUTF8(text, "?"))
	}
	return err.Error()
}

func number(text string) (int, error)  { return strconv.Atoi(text) }
func large(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// list of the kernel, which some files leave as "(null)" when nothing was ever set.
func kernelSet(text string) (cpuset.Set, error) {
	if text == "(null)" {
		return cpuset.Set{}, nil
	}
	return cpuset.Parse(text)
}
