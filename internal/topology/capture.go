// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/input"
)

// Captured describes the contents of an archive, and what was left out.
type Captured struct {
	Hostname string   `json:"hostname"`
	Files    int      `json:"files"`
	Bytes    int64    `json:"bytes"`              // before compression
	Left     []string `json:"left_out,omitempty"` // the file, and what was left out of it
}

// unreadName is the file of an archive that lists which files could not be read on the machine, and why.
const unreadName = "corelane-unread.json"

// Capture writes the files below root that Read reads to a tar.gz, without secrets and without what Read does not use.
func Capture(root string, w io.Writer) (*Captured, error) {
	tree, err := Open(root)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	c, err := CaptureTree(tree, w)
	if err != nil {
		return nil, input.Errorf(root, "", "%v", err)
	}
	return c, nil
}

// CaptureTree is Capture for any tree of files.
func CaptureTree(tree Tree, w io.Writer) (*Captured, error) {
	rec := &recorder{Tree: tree, files: map[string]*recorded{}, broken: map[string]string{}}
	m, err := ReadTree(rec)
	if err != nil {
		return nil, err
	}
	c := &Captured{Hostname: m.Hostname}
	return c, rec.write(w, c)
}

// recorder is a tree that records what is read from it.
type recorder struct {
	Tree
	files  map[string]*recorded
	broken map[string]string // file -> why it could not be read
}

type recorded struct {
	text, link string
	kind       byte // type flag of tar
	readOnly   bool
}

func (r *recorder) Read(name string) (string, error) {
	text, err := r.Tree.Read(name)
	switch {
	case err == nil:
		r.files[name] = &recorded{text: text, kind: tar.TypeReg}
	case !missing(err):
		r.broken[name] = reason(err)
	}
	return text, err
}

func (r *recorder) List(name string) ([]Entry, error) {
	list, err := r.Tree.List(name)
	if err != nil && !missing(err) {
		r.broken[name] = reason(err)
	}
	return list, err
}

func (r *recorder) Link(name string) (string, error) {
	to, err := r.Tree.Link(name)
	if err == nil {
		r.files[name] = &recorded{link: path.Base(to), kind: tar.TypeSymlink}
	}
	return to, err
}

func (r *recorder) Writable(name string) (bool, error) {
	writable, err := r.Tree.Writable(name)
	if f := r.files[name]; f != nil && err == nil {
		f.readOnly = !writable
	}
	return writable, err
}

// keep puts names of a directory into the archive even when they are not read: MSI interrupts, queues.
func (r *recorder) keep(dir string, names []string) {
	for _, name := range append(names, ".") {
		if full := path.Join(dir, name); r.files[full] == nil {
			r.files[full] = &recorded{kind: tar.TypeDir}
		}
	}
}

// write packs the recorded files, sorted by name.
func (r *recorder) write(w io.Writer, c *Captured) error {
	z := gzip.NewWriter(w)
	out := tar.NewWriter(z)
	if len(r.broken) > 0 {
		text, err := json.MarshalIndent(r.broken, "", "  ")
		if err != nil {
			return err
		}
		r.files[unreadName] = &recorded{text: string(text) + "\n", kind: tar.TypeReg}
	}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		f := r.files[name]
		if f.kind == tar.TypeReg {
			var left string
			if f.text, left = filter(name, f.text); left != "" {
				c.Left = append(c.Left, "/"+name+": "+left)
			}
			c.Files++
			c.Bytes += int64(len(f.text))
		}
		if c.Bytes > maxTotal || c.Files > maxEntries {
			return fmt.Errorf("the machine's files exceed the limits of an archive: %d MiB, %d files", maxTotal>>20,
				maxEntries)
		}
		if err := f.write(out, name); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), z.Close())
}

func (f *recorded) write(out *tar.Writer, name string) error {
	h := &tar.Header{Typeflag: f.kind, Name: name, Linkname: f.link, Size: int64(len(f.text)), Mode: 0o644}
	switch {
	case f.kind == tar.TypeDir:
		h.Mode = 0o755
	case f.readOnly:
		h.Mode = 0o444
	}
	if f.kind == tar.TypeDir {
		h.Name = strings.TrimSuffix(name, "/") + "/"
	}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(out, f.text)
	return err
}
