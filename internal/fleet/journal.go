// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/corelane/corelane/internal/vpn"
)

const journalFile = "fleet.json"

func loadJournal(path string) (*vpn.Journal, error) {
	j := vpn.NewJournal()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err == nil {
		err = json.Unmarshal(text, j)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w; remove it to give new labels to all instances", path, err)
	}
	if j.Instances == nil {
		j.Instances = map[string]vpn.Numbers{}
	}
	if j.Resting == nil {
		j.Resting = map[string]time.Time{}
	}
	if j.Macs == nil {
		j.Macs = map[string]vpn.Mobility{}
	}
	if j.Unconstrained == nil {
		j.Unconstrained = map[string]bool{}
	}
	return j, nil
}

func (f *Fleet) saveJournal() error {
	f.enter()
	text, err := json.MarshalIndent(f.journal, "", "  ")
	f.journal.Changed = false // what changes while the file is written is in the next one
	f.mu.Unlock()
	if err == nil {
		err = os.MkdirAll(f.Journal, 0o700)
	}
	path := filepath.Join(f.Journal, journalFile)
	if err == nil {
		err = writeDurably(path+".new", append(text, '\n'))
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.enter()
		f.journal.Changed = true
		f.mu.Unlock()
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// writeDurably returns after the disk has the text, so that a loss of power leaves the old file or the whole new one.
func writeDurably(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
