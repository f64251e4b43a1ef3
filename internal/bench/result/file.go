// SPDX-License-Identifier: Apache-2.0
package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Load reads a result, which may be incomplete.
func Load(path string) (*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func decode(text []byte) (*Result, error) {
	var format struct{ Version *int }
	if err := json.Unmarshal(text, &format); err != nil {
		return nil, plain(err, text)
	}
	switch {
	case format.Version == nil:
		return nil, errors.New("version: missing; this is not a result of corelane bench")
	case *format.Version != Version:
		return nil, fmt.Errorf("version: %d; this corelane reads %d", *format.Version, Version)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	r := &Result{}
	if err := d.Decode(r); err != nil {
		return nil, plain(err, text)
	}
	return r, r.check()
}

// plain replaces the errors of Go's decoder by some that a user understands.
func plain(err error, text []byte) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the file is empty")
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Offset >= int64(len(text)):
		return errors.New("truncated: the file ends in the middle")
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: not JSON: %w", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), err)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: %s; valid: %s", kind.Field, kind.Value, kind.Type)
	}
	return err
}

// Save replaces the file as a whole: a crash leaves the old one or the new one.
func Save(path string, r *Result) (err error) {
	out := *r
	out.Version = Version
	text, err := json.MarshalIndent(&out, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f, append(text, '\n')); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func write(f *os.File, text []byte) error {
	_, err := f.Write(text)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}
