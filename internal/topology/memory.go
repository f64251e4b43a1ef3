// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Memory is a machine's files in memory: from an archive, or made up by a test. Links are text and are not followed.
type Memory struct{ nodes map[string]*memoryNode }

type memoryNode struct {
	text     string
	link     string
	broken   string // why it cannot be read
	dir      bool
	readOnly bool
	children []string
}

// NewMemory makes a tree without files.
func NewMemory() *Memory { return &Memory{map[string]*memoryNode{".": {dir: true}}} }

// Put adds a file.
func (t *Memory) Put(name, text string) error { return t.add(name, &memoryNode{text: text}) }

// PutReadOnly adds a read-only file.
func (t *Memory) PutReadOnly(name, text string) error {
	return t.add(name, &memoryNode{text: text, readOnly: true})
}

// PutBroken makes a file or directory unreadable.
func (t *Memory) PutBroken(name, why string) error {
	if n := t.nodes[name]; n != nil {
		n.broken = why
		return nil
	}
	return t.add(name, &memoryNode{broken: why})
}

// PutLink adds a symbolic link.
func (t *Memory) PutLink(name, to string) error { return t.add(name, &memoryNode{link: to}) }

// PutDir adds a directory if it does not exist.
func (t *Memory) PutDir(name string) error {
	if n := t.nodes[name]; n != nil && n.dir {
		return nil
	}
	return t.add(name, &memoryNode{dir: true})
}

// add adds a node and its parent directories. It refuses a name that exists.
func (t *Memory) add(name string, n *memoryNode) error {
	if !fs.ValidPath(name) || name == "." {
		return errors.New("'" + name + "' is not a name of a file below the root")
	}
	if t.nodes[name] != nil {
		return errors.New("'" + name + "' occurs twice")
	}
	t.nodes[name] = n
	for child := name; child != "."; {
		dir := path.Dir(child)
		parent := t.nodes[dir]
		if parent != nil && !parent.dir {
			return errors.New("'" + dir + "' is not a directory, but contains '" + name + "'")
		}
		known := parent != nil
		if !known {
			parent = &memoryNode{dir: true}
			t.nodes[dir] = parent
		}
		parent.children = append(parent.children, path.Base(child))
		if known {
			break
		}
		child = dir
	}
	return nil
}

// Close does nothing.
func (t *Memory) Close() error { return nil }

func (t *Memory) Read(name string) (string, error) {
	n, err := t.find("open", name)
	if err == nil && (n.dir || n.link != "") {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return "", err
	}
	return n.text, nil
}

// List returns a directory's entries by name.
func (t *Memory) List(name string) ([]Entry, error) {
	name = path.Clean(name)
	n, err := t.find("open", name)
	if err == nil && !n.dir {
		err = errors.New("is not a directory")
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(n.children)
	list := make([]Entry, len(n.children))
	for i, child := range n.children {
		list[i] = Entry{child, t.nodes[path.Join(name, child)].dir}
	}
	return list, nil
}

// Link returns the target of a symbolic link.
func (t *Memory) Link(name string) (string, error) {
	n, err := t.find("readlink", name)
	if err == nil && n.link == "" {
		err = errors.New("is not a symbolic link")
	}
	if err != nil {
		return "", err
	}
	return n.link, nil
}

// Writable reports whether the file's owner may write it.
func (t *Memory) Writable(name string) (bool, error) {
	n, err := t.find("stat", name)
	return err == nil && !n.readOnly, err
}

func (t *Memory) find(op, name string) (*memoryNode, error) {
	n := t.nodes[strings.TrimSuffix(name, "/")]
	if n == nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	if n.broken != "" {
		return nil, errors.New(n.broken)
	}
	return n, nil
}
