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

// Read reads the machine below root: "/", or the directory or archive of a captured machine. Machine.Unread lists the
// files that could not be read. Read fails only if no CPU is found or root cannot be opened.
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

// ReadTree is Read for any tree of files.
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
	r.container()
	r.services()
	r.guests()
	r.knobs()
	r.load()
	r.count()
	return r.m, nil
}

// reader reads one machine.
type reader struct {
	tree Tree
	m    *Machine
	seen map[string]int // kind of trouble -> its index in Machine.Unread
	many []int          // number of occurrences of each entry of Machine.Unread
}

// need says whether a missing file is trouble.
type need bool

const (
	needed need = true  // every machine has it
	maybe  need = false // many machines lack it
)

var digits = regexp.MustCompile(`[0-9]+`)

// trouble notes a file that could not be used. The same trouble at other CPUs, queues or threads is noted once and
// counted.
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

// count adds the number of similar cases to each entry.
func (r *reader) count() {
	for i, n := range r.many {
		if n > 1 {
			r.m.Unread[i].Why += fmt.Sprintf("; and %d more like it", n-1)
		}
	}
}

// missing reports whether an error means that a file does not exist. This includes a process or device that vanished
// while it was read, and a setting that the device does not support.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV) ||
		errors.Is(err, syscall.ENOTDIR)
}

// reason returns an error's text without the path.
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

// text returns a file's content without leading and trailing space.
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

// list returns the names in a directory that match a pattern of path.Match.
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

// keeper is a tree that is told which names of a directory were used.
type keeper interface {
	keep(dir string, names []string)
}

// numbered returns the numbers of a directory's entries that consist of prefix and a number (cpu0, cpu1), ascending.
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

// link returns the last part of a symbolic link's target: the name of a driver or bus.
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

// senseless describes a file's content and why it is not valid.
func senseless(text string, err error) string {
	var n *strconv.NumError
	if errors.As(err, &n) {
		if len(text) > 40 {
			text = text[:40] + "..."
		}
		return fmt.Sprintf("'%s' is not a number", strings.ToValidUTF8(text, "?"))
	}
	return err.Error()
}

func number(text string) (int, error)  { return strconv.Atoi(text) }
func large(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// kernelSet parses a list of the kernel. Some files contain "(null)" while nothing is set.
func kernelSet(text string) (cpuset.Set, error) {
	if text == "(null)" {
		return cpuset.Set{}, nil
	}
	return cpuset.Parse(text)
}
