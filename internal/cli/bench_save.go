// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// saveBench writes the result of a benchmark to base.json and, if it has a page, the page to base.html.
func saveBench(base string, result any, page func(io.Writer) error) error {
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(base+".json", append(text, '\n'), 0o644); err != nil || page == nil {
		return err
	}
	f, err := os.Create(base + ".html")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := page(f); err != nil {
		return err
	}
	return f.Close()
}
