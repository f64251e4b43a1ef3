// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/explain/page"
	"github.com/corelane/corelane/internal/input"
)

type explainFlags struct {
	explain.Options
	follow bool
	html   string
}

func newExplainCmd(a *app) *cobra.Command {
	f := &explainFlags{}
	cmd := verb("explain", "Find what slows the workers down, who causes it, and the fix", `  corelane explain
  corelane explain --window 5s --html why.html
  corelane explain --follow -o json
  corelane explain --thread 4711`,
		func(ctx context.Context, _ []string) error { return a.explain(ctx, f) })
	cmd.Long = `Watch the daemon and its workers' CPUs for a while, and report who or what took the workers' time and
packets: the thread or interrupt by name, why it was there, what it cost, how certain that is, and the command that
fixes it. The first line is the verdict. It may also be that nothing is wrong, or that more traffic is offered than a
core can handle.

Each piece of evidence has a grade: seen (the kernel reported each event), counted (counters grew), inferred (it
follows from them, but could have another reason). The kernel's events on the workers' CPUs are watched with eBPF,
which needs root (CAP_BPF and CAP_PERFMON) and a kernel with type information (/sys/kernel/btf/vmlinux). Without eBPF
only the counters in /proc are used, and the verdict says that it is weaker.

--thread watches threads of any program instead, such as a guest's vhost thread or a receiver of the kernel's packets,
and needs no daemon.`
	s := cmd.Flags()
	s.DurationVar(&f.Window, "window", explain.DefaultWindow, "how long to watch, 100ms to 1h")
	s.BoolVar(&f.follow, "follow", false, "watch one window after the other, until interrupted")
	s.BoolVar(&f.NoTrace, "no-trace", false, "do not watch events of the kernel")
	s.StringVar(&f.html, "html", "", "also write a page with a timeline of each worker's gaps to this file")
	s.IntSliceVar(&f.Threads, "thread", nil, "watch this thread instead of corelaned's workers; several: 17,18")
	_ = cmd.MarkFlagFilename("html", "html")
	return cmd
}

func (f *explainFlags) check() error {
	if f.Window < 100*time.Millisecond || f.Window > time.Hour {
		return input.Errorf("--window", "100ms to 1h", "%v is out of range", f.Window)
	}
	for _, tid := range f.Threads {
		if tid <= 0 {
			return input.Errorf("--thread", "the id of a thread that runs", "there is no thread %d", tid)
		}
	}
	return nil
}

func (a *app) explain(ctx context.Context, f *explainFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	f.Socket = a.socket
	s, err := explain.Open(ctx, f.Options)
	if err != nil {
		return err
	}
	ctx, done := untilHangup(ctx)
	defer done()
	return errors.Join(a.explainWindows(ctx, s, f), s.Close())
}

func (a *app) explainWindows(ctx context.Context, s *explain.Session, f *explainFlags) error {
	for {
		r, err := s.Next(ctx)
		if err != nil {
			if f.follow && ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := a.explained(r, f); err != nil || !f.follow {
			return err
		}
	}
}

func (a *app) explained(r *explain.Report, f *explainFlags) error {
	if f.html != "" {
		file, err := os.Create(f.html)
		if err != nil {
			return input.Errorf("--html", "a file that can be written", "%v", err)
		}
		if err := errors.Join(page.Write(file, r), file.Close()); err != nil {
			return err
		}
	}
	if a.json() {
		return json.NewEncoder(a.stdout).Encode(r)
	}
	return r.WriteText(a.stdout)
}
