// SPDX-License-Identifier: Apache-2.0
package bench

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/bench/generator"
	"github.com/corelane/corelane/internal/bench/manifest"
	"github.com/corelane/corelane/internal/bench/report"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/router"
	"github.com/corelane/corelane/internal/bench/testbed"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/procfs"
)

// Files that a run leaves.
type Files struct{ JSON, HTML string }

// Run runs the benchmark. It returns what was measured and the files with it, also when an error ended it.
func Run(ctx context.Context, o Options, p Progress) (*result.Result, Files, error) {
	s := &comparison{Options: o, Progress: p, settle: 100 * time.Millisecond, watch: 300 * time.Millisecond,
		startGenerator: startGenerator}
	if err := s.validate(); err != nil {
		return nil, Files{}, err
	}
	if os.Geteuid() != 0 {
		return nil, Files{}, input.Errorf("user", "root; try sudo", "the benchmark needs hugepages, CPUs and "+
			"namespaces")
	}
	if err := s.prepare(ctx, router.All()); err != nil {
		return nil, Files{}, err
	}
	if err := keepOff(s.place); err != nil {
		return nil, Files{}, err
	}
	files, err := s.measure(ctx)
	return &s.result, files, err
}

func startGenerator(ctx context.Context, at generator.Place) (testbed.Generator, error) {
	g, err := generator.Start(ctx, at)
	if err != nil {
		return nil, err // g would be a non-nil interface that holds nil
	}
	return g, nil
}

// prepare checks the options against this machine before anything is started.
func (s *comparison) prepare(ctx context.Context, all []router.Router) error {
	c, err := readCPUs(s.Root)
	if err != nil {
		return err
	}
	if s.place, err = place(c, s.RouterCPUs, s.GeneratorCPU, s.workers()); err != nil {
		return err
	}
	if err := s.choose(ctx, all); err != nil {
		return err
	}
	if err := s.possible(); err != nil {
		return err
	}
	free, err := FreeHugepages(s.Root)
	if err != nil {
		return err
	}
	s.memory = share(free, len(s.routers))
	notes, err := doubts(s.Root, c, s.place, s.memory, s.watch)
	for _, n := range notes {
		s.note("%s", n)
	}
	return err
}

// Hugepages of a router in MB: what it works well with, and the least that it can start with.
const (
	enoughMemory = 1024
	leastMemory  = 128
)

// share is the part of the free hugepages for each of n routers. The rest is for the generators.
func share(free, n int) int {
	each := min(enoughMemory, free*3/4/max(n, 1))
	if each < leastMemory {
		return 0
	}
	return each
}

// choose selects the named routers, or all that are installed.
func (s *comparison) choose(ctx context.Context, all []router.Router) error {
	s.versions = map[string]string{}
	for _, name := range s.Routers {
		if !slices.ContainsFunc(all, func(r router.Router) bool { return r.Name() == name }) {
			return input.Errorf("--router", routerNames(all), "'%s' is unknown", name)
		}
	}
	for _, r := range all {
		if s.named() && !slices.Contains(s.Routers, r.Name()) {
			continue
		}
		version, err := r.Version(ctx)
		switch {
		case err != nil && s.named():
			return input.Errorf("--router "+r.Name(), "", "%s", reason(r, err))
		case err != nil:
			s.note("%s left out: %s", r.Name(), reason(r, err))
		default:
			s.routers, s.versions[r.Name()] = append(s.routers, r), version
		}
	}
	return nil
}

// possible refuses a scenario that none of the chosen routers can do.
func (s *comparison) possible() error {
	for _, sc := range s.Scenarios {
		var why []string
		for _, r := range s.routers {
			if err := r.Supports(&sc); err != nil {
				why = append(why, r.Name()+": "+reason(r, err))
			}
		}
		if s.named() && len(why) == len(s.routers) {
			return input.Errorf("--router", "", "none can do %s: %s", sc.Label(), strings.Join(why, "; "))
		}
	}
	return nil
}

func routerNames(all []router.Router) string {
	var names []string
	for _, r := range all {
		names = append(names, r.Name())
	}
	return strings.Join(names, ", ")
}

// RouterNames lists the routers that have an adapter.
func RouterNames() []string { return strings.Split(routerNames(router.All()), ", ") }

var errBrokeDown = errors.New("bench: a router broke down; the notes of the result say how")

// measure runs all scenarios. It writes a result even when it fails.
func (s *comparison) measure(ctx context.Context) (Files, error) {
	now := time.Now()
	if err := os.MkdirAll(s.Out, 0o755); err != nil {
		return Files{}, err
	}
	base := filepath.Join(s.Out, "corelane-bench-"+now.Format("20060102-150405"))
	files := Files{base + ".json", base + ".html"}
	s.path = files.JSON
	s.result.Version, s.result.Started, s.result.Command = result.Version, now, s.Command
	var err error
	if s.result.Manifest, err = s.manifest(); err != nil {
		return Files{}, err
	}
	s.Begin(s.expectedAll())
	err = s.all(ctx)
	if err == nil && s.failed {
		err = errBrokeDown
	}
	s.result.Complete = err == nil
	return files, errors.Join(err, s.save(), writeReport(files.HTML, &s.result))
}

func (s *comparison) manifest() (result.Manifest, error) {
	compiler, err := compilerOf(filepath.Join(s.Bin, "corelaned"))
	if err != nil {
		return result.Manifest{}, err
	}
	_, dpdk, _ := strings.Cut(s.versions["corelane"], ", ") // "corelaned 1.0, DPDK 22.11"
	return manifest.Read(s.Root, result.Manifest{
		DPDK: cmp.Or(dpdk, s.versions["testpmd"]), Commit: s.Commit, Corelane: s.Version, Compiler: compiler,
		RouterCPUs: s.place.routers, GeneratorCPU: s.place.generator, Settings: s.settings(),
	})
}

// compilerOf returns the compiler that a program's .comment section names; empty when the program is not installed.
func compilerOf(path string) (string, error) {
	program, err := elf.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer program.Close()
	comment := program.Section(".comment")
	if comment == nil {
		return "", nil
	}
	text, err := comment.Data()
	first, _, _ := strings.Cut(string(text), "\x00")
	return first, err
}

func writeReport(path string, r *result.Result) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".report")
	if err != nil {
		return err
	}
	err = errors.Join(report.Write(f, r), f.Chmod(0o644), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// keepOff moves this program to the control CPU, off the CPUs that poll where there are others.
func keepOff(p placement) error { return KeepOn(p.control) }

// KeepOn binds all threads of this program to one CPU. New threads inherit that.
func KeepOn(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	threads, err := procfs.Host.Threads(os.Getpid())
	for _, tid := range threads {
		if e := unix.SchedSetaffinity(tid, &set); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("CPU %d: %w", cpu, e))
		}
	}
	return err
}
