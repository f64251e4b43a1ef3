// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/input"
)

// Tree provides the files of a machine. Names have no leading slash: "proc/cmdline".
type Tree interface {
	Read(name string) (string, error)
	List(name string) ([]Entry, error)  // sorted by name
	Link(name string) (string, error)   // target of a symbolic link
	Writable(name string) (bool, error) // whether the owner may write it
	io.Closer
}

// Entry of a directory.
type Entry struct {
	Name string
	Dir  bool // false for a link to a directory
}

// maxFile is the size limit of a file: /proc/interrupts of a machine with hundreds of CPUs has some MiB.
const maxFile = 32 << 20

var errTooLarge = fmt.Errorf("is larger than %d MiB", maxFile>>20)

// Open finds the files of a machine: "/", a directory with its files, or an archive that Capture wrote.
func Open(root string) (Tree, error) {
	const valid = "/, a directory with files of a machine, or an archive of 'corelane topology capture'"
	info, err := os.Stat(root)
	if err != nil {
		return nil, input.Errorf(root, valid, "%v", errors.Unwrap(err))
	}
	if !info.IsDir() {
		f, err := os.Open(root)
		if err != nil {
			return nil, input.Errorf(root, valid, "%v", errors.Unwrap(err))
		}
		defer f.Close()
		t, err := readArchive(f)
		if err != nil {
			return nil, input.Errorf(root, valid, "%v", err)
		}
		return t, nil
	}
	if clean, err := filepath.Abs(root); err == nil && clean == "/" {
		return hostTree{}, nil
	}
	t, err := openDir(root)
	if err != nil {
		return nil, input.Errorf(root, valid, "%v", err)
	}
	return t, nil
}

// hostTree is the tree of the machine itself.
type hostTree struct{}

func (hostTree) Close() error { return nil }

func (hostTree) Read(name string) (string, error) {
	f, err := os.Open("/" + name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readAll(f)
}

func (hostTree) List(name string) ([]Entry, error) {
	list, err := os.ReadDir("/" + name)
	return entries(list), err
}

func (hostTree) Link(name string) (string, error) { return os.Readlink("/" + name) }

func (hostTree) Writable(name string) (bool, error) {
	info, err := os.Lstat("/" + name)
	return err == nil && info.Mode()&0o200 != 0, err
}

// dirTree is a directory; links that lead out of it are not followed.
type dirTree struct {
	root *os.Root
	dir  *os.File // the same
}

func openDir(name string) (*dirTree, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &dirTree{root, dir}, nil
}

func (t *dirTree) Close() error { return errors.Join(t.dir.Close(), t.root.Close()) }

// open takes one system call, where os.Root takes two for each part of the name. What it cannot open, because a link
// leads out of the directory or the kernel is older than 5.6, is left to os.Root.
func (t *dirTree) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat2(int(t.dir.Fd()), name, &unix.OpenHow{Flags: uint64(unix.O_CLOEXEC | flags),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), filepath.Join(t.root.Name(), name)), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fs.PathError{Op: "openat2", Path: name, Err: err}
	}
	return t.root.OpenFile(name, flags, 0)
}

// Read reads regular files only, so that opening one never blocks.
func (t *dirTree) Read(name string) (string, error) {
	f, err := t.open(name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.New("is not a regular file")
	}
	return readAll(f)
}

func (t *dirTree) List(name string) ([]Entry, error) {
	f, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries(list), err
}

func (t *dirTree) Link(name string) (string, error) { return t.root.Readlink(name) }

func (t *dirTree) Writable(name string) (bool, error) {
	info, err := t.root.Lstat(name)
	return err == nil && info.Mode()&0o200 != 0, err
}

func entries(list []fs.DirEntry) []Entry {
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i] = Entry{e.Name(), e.IsDir()}
	}
	return out
}

// readAll reads files of /proc and /sys, whose size is not known before they are read.
func readAll(f io.Reader) (string, error) {
	buffer, n := make([]byte, 4096), 0
	for {
		if n == len(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)
		}
		m, err := f.Read(buffer[n:])
		n += m
		switch {
		case n > maxFile:
			return "", errTooLarge
		case err == io.EOF:
			return string(buffer[:n]), nil
		case err != nil:
			return "", err
		}
	}
}
