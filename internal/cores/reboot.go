// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/plan/output"
	"github.com/corelane/corelane/internal/topology"
)

// FilesDir is below Dir: what waits for a reboot, until somebody puts it in its place.
const FilesDir = "reboot"

// kernelArguments is the name of the file with the arguments alone, for boot loaders that have no drop-ins.
const kernelArguments = "kernel-arguments"

// Lasting is what makes a plan true after the next boot: arguments of the kernel, and files of the services that decide about
// CPUs. Missing is a sentence for each part that could not be written, and why.
func Lasting(m *topology.Machine, p *plan.Plan) (files []output.File, missing []string) {
	formats := []string{"kernel", "grub", "systemd", "corelaned"}
	if m.Cgroups.Version == 2 {
		formats = append(formats, "cgroup")
	}
	if m.Services.Irqbalance {
		formats = append(formats, "irqbalance")
	}
	if m.Services.Tuned != "" {
		formats = append(formats, "tuned")
	}
	for _, format := range formats {
		list, err := output.Write(format, p, output.Options{Machine: m})
		if err != nil {
			missing = append(missing, format+": "+err.Error())
			continue
		}
		for _, f := range list {
			if f.Path == "" && format == "kernel" {
				f.Path = "/" + kernelArguments
			}
			if f.Path != "" {
				files = append(files, f)
			}
		}
	}
	return files, missing
}

// MissingArguments are those of the kernel that a plan needs and that this boot does not have.
func MissingArguments(m *topology.Machine, p *plan.Plan) ([]string, error) {
	list, err := output.Write("kernel", p, output.Options{Machine: m})
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, word := range strings.Fields(m.Kernel.Cmdline) {
		has[word] = true
	}
	var missing []string
	for _, word := range strings.Fields(list[0].Text) {
		if !has[word] {
			missing = append(missing, word)
		}
	}
	return missing, nil
}

// Place turns files into changes: below a directory, or with dir "/" where they belong. There a file that is full of settings
// of others, KEY=VALUE, keeps those. The directory, without root, is absolute.
func Place(root, dir string, files []output.File) ([]Change, error) {
	h, made, list := host{root: root}, map[string]bool{}, []Change{}
	for _, f := range files {
		if dir == "/" && path.Base(f.Path) == kernelArguments {
			continue
		}
		name := strings.TrimPrefix(path.Join(dir, f.Path), "/")
		c := Change{Kind: File, Path: name, New: f.Text, Mode: 0o644, When: Reboot, Why: f.What}
		if f.Exec {
			c.Mode = 0o755
		}
		old, err := h.read(name)
		switch {
		case err == nil && dir == "/":
			c.New = merge(old, f.Text)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		if c.Old = old; old == c.New {
			continue
		}
		list = append(append(list, h.folders(path.Dir(name), made)...), c)
	}
	return list, nil
}

// folders are the directories that have to be made for a file.
func (h host) folders(dir string, made map[string]bool) []Change {
	if _, err := h.stat(dir); err == nil || made[dir] || dir == "." {
		return nil
	}
	made[dir] = true
	return append(h.folders(path.Dir(dir), made), Change{Kind: Folder, Path: dir, When: Reboot, Why: "for the files in it"})
}

// merge puts our settings into a file of KEY=VALUE lines that has others too. A file that we wrote, or one that is of another
// form, is replaced.
func merge(old, text string) string {
	text = strings.TrimSuffix(text, "\n") + "\n"
	if strings.Contains(old, "Written by 'corelane") || !assignments(old) || !assignments(text) {
		return text
	}
	ours := map[string]string{}
	for line := range strings.Lines(text) {
		ours[keyOf(line)] = line
	}
	var out strings.Builder
	for line := range strings.Lines(old) {
		key := keyOf(line)
		if mine, found := ours[key]; found && key != "" {
			line = mine
			delete(ours, key)
		}
		out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	for line := range strings.Lines(text) {
		if key := keyOf(line); key != "" && ours[key] == line {
			out.WriteString(line)
		}
	}
	return out.String()
}

// keyOf is the name that a line sets, empty when it sets none.
func keyOf(line string) string {
	line = strings.TrimSpace(line)
	if key, _, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
		return strings.TrimSpace(key)
	}
	return ""
}

// assignments says whether a text is lines of KEY=VALUE, comments and nothing else.
func assignments(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, _, found := strings.Cut(line, "=")
		if line != "" && !strings.HasPrefix(line, "#") && (!found || strings.ContainsAny(strings.TrimSpace(key), " \t")) {
			return false
		}
	}
	return true
}
