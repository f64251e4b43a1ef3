// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
)

// Limits of an archive, as a defence against malicious ones. A machine with 384 CPUs and 6,000 threads has about 30,000
// files with 40 MiB.
const (
	maxEntries = 1_000_000
	maxTotal   = 512 << 20
)

// readArchive reads a tar.gz into memory. It writes no files and follows no links, so an entry cannot reach other
// files.
func readArchive(f io.Reader) (*Memory, error) {
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.New("is not an archive (tar.gz)")
	}
	return readTar(z)
}

func readTar(f io.Reader) (*Memory, error) {
	t, in := NewMemory(), tar.NewReader(f)
	total := int64(0)
	for n := 0; ; n++ {
		h, err := in.Next()
		if err == io.EOF && n > 0 {
			return t, t.breakUnread()
		}
		if err != nil {
			return nil, fmt.Errorf("is a damaged archive: %w", err)
		}
		if total += h.Size; n == maxEntries || h.Size > maxFile || total > maxTotal {
			return nil, fmt.Errorf("exceeds the limits of an archive: %d files, %d MiB each, %d MiB in all",
				maxEntries, maxFile>>20, maxTotal>>20)
		}
		if err := t.take(h, in); err != nil {
			return nil, err
		}
	}
}

// take adds an entry of an archive.
func (t *Memory) take(h *tar.Header, in io.Reader) error {
	name := path.Clean(h.Name)
	if name == "." && h.Typeflag == tar.TypeDir {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return t.PutDir(name)
	case tar.TypeSymlink:
		if h.Linkname == "" {
			return fmt.Errorf("'%s' is a link without a target", name)
		}
		return t.PutLink(name, h.Linkname)
	case tar.TypeReg:
		text, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("is a damaged archive: %w", err)
		}
		return t.add(name, &memoryNode{text: string(text), readOnly: h.Mode&0o200 == 0})
	}
	return fmt.Errorf("'%s' is not a file, directory or symbolic link", name)
}

// breakUnread makes the files unreadable that could not be read on the captured machine.
func (t *Memory) breakUnread() error {
	text, err := t.Read(unreadName)
	if err != nil {
		return nil // all files could be read
	}
	var broken map[string]string
	if err := json.Unmarshal([]byte(text), &broken); err != nil {
		return fmt.Errorf("%s is not valid: %w", unreadName, err)
	}
	for name, why := range broken {
		if why == "" {
			return fmt.Errorf("%s is not valid: '%s' has no reason", unreadName, name)
		}
		if err := t.PutBroken(name, why); err != nil {
			return err
		}
	}
	return nil
}
