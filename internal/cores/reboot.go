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

// FilesDir is the directory below Dir for files that take effect at the next boot once they are installed.
const FilesDir = "reboot"

// kernelArguments is the name of the file with the arguments alone, for boot loaders without drop-in files.
const kernelArguments = "kernel-arguments"

// Lasting returns the files that apply a plan at the next boot: kernel arguments, and settings of the services that
// decide about CPUs. missing has a sentence for each format that could not be written.
func Lasting(m *topology.Machine, p *plan.Plan) (files []output.File, missing []string) {
	for _, format := range lasting(m, p) {
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

// lasting returns the formats of Lasting: in a container only those of the data plane.
func lasting(m *topology.Machine, p *plan.Plan) []string {
	if inContainer(m, p) {
		return []string{"corelaned"}
	}
	formats := []string{"kernel", "grub", "systemd", "corelaned"}
	if m.Cgroups.Version == 2 && !p.Request.Boot { // a partition of CPUs that isolcpus=domain isolates is invalid
		formats = append(formats, "cgroup")
	}
	if m.Services.Irqbalance {
		formats = append(formats, "irqbalance")
	}
	if m.Services.Tuned != "" {
		formats = append(formats, "tuned")
	}
	return formats
}

// MissingArguments returns the kernel arguments that a plan needs and that this boot does not have; none for a
// container, whose host has them.
func MissingArguments(m *topology.Machine, p *plan.Plan) ([]string, error) {
	if inContainer(m, p) {
		return nil, nil
	}
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

// Place turns files into changes: below the absolute directory dir, or with dir "/" at their final paths. There a
// file of KEY=VALUE lines keeps its other settings.
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

// folders returns the changes that create the missing directories of a file.
func (h host) folders(dir string, made map[string]bool) []Change {
	if _, err := h.stat(dir); err == nil || made[dir] || dir == "." {
		return nil
	}
	made[dir] = true
	c := Change{Kind: Folder, Path: dir, When: Reboot, Why: "the files below need this directory"}
	return append(h.folders(path.Dir(dir), made), c)
}

// merge puts our settings into a file of KEY=VALUE lines and keeps the others. A file that we wrote, or one that has
// another syntax, is replaced.
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

// keyOf returns the name that a line sets, or an empty string.
func keyOf(line string) string {
	line = strings.TrimSpace(line)
	if key, _, found := strings.Cut(line, "="); found && !strings.HasPrefix(line, "#") {
		return strings.TrimSpace(key)
	}
	return ""
}

// assignments reports whether a text consists of KEY=VALUE lines and comments only.
func assignments(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, _, found := strings.Cut(line, "=")
		if line != "" && !strings.HasPrefix(line, "#") &&
			(!found || strings.ContainsAny(strings.TrimSpace(key), " \t")) {
			return false
		}
	}
	return true
}
