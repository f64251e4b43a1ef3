// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/wait"
)

// ReportedVhost has the figures of "KVM vhost performance tuning to enhance ADC VE throughput" (2017) in Gbit/s through
// a guest: with its vhost threads on the CPUs of the network's softirqs, and on others.
var ReportedVhost = [2]float64{2.72, 8.58}

// Receiver has the rates of a receiver of kernel traffic on the CPU of its softirqs, and after explain's command moved
// it.
type Receiver struct {
	Before  float64         `json:"before"` // datagrams/s
	After   float64         `json:"after"`
	CPUs    [2]string       `json:"cpus"` // of the receiver, before and after
	Seconds float64         `json:"seconds"`
	Report  *explain.Report `json:"report"`
	Command string          `json:"command"`
}

const (
	datagramBytes = 64
	receiverPort  = "9000"
	throughput    = 4 // seconds
)

// MeasureReceiver lets explain find a receiver that is starved by its own softirqs, and runs the command that explain
// gives; o.Repetitions times.
func MeasureReceiver(ctx context.Context, o Options, each func(Receiver)) error {
	if err := o.prepare(); err != nil {
		return err
	}
	for repetition := range o.Repetitions {
		o.say("run %d of %d", repetition+1, o.Repetitions)
		r, err := o.receiver(ctx)
		if err != nil {
			return err
		}
		each(*r)
	}
	return nil
}

func (o *Options) receiver(ctx context.Context) (r *Receiver, err error) {
	dir, err := os.MkdirTemp("", "corelane-intrude-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := newCable()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	if err := c.steer(cpuset.Of(o.WorkerCPU)); err != nil {
		return nil, err
	}
	sink, err := o.intrude(dir, c.to, []int{o.WorkerCPU}, "sink", c.address+":"+receiverPort)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sink.Stop()) }()
	flood, err := o.intrude(dir, c.from, []int{o.GeneratorCPU}, "flood", c.address+":"+receiverPort,
		strconv.Itoa(datagramBytes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, flood.Stop()) }()
	return o.fix(ctx, sink.Pid, filepath.Join(dir, "intruder-sink.log"))
}

// fix runs explain on the receiver and executes the fix.
func (o *Options) fix(ctx context.Context, pid int, log string) (r *Receiver, err error) {
	r = &Receiver{}
	tid, err := procfs.Host.ThreadNamed(pid, receiverThread)
	if err != nil {
		return nil, err
	}
	if r.Before, err = received(ctx, log); err != nil {
		return nil, err
	}
	r.CPUs[0] = allowed(tid)
	begin := time.Now()
	if r.Report, err = explain.Run(ctx, explain.Options{Threads: []int{tid}, Window: o.Window,
		Root: o.Root}); err != nil {
		return nil, err
	}
	r.Seconds, r.Command = time.Since(begin).Seconds(), r.Report.Causes[0].Fix
	if r.Command == "" {
		return r, nil
	}
	if out, err := exec.CommandContext(ctx, "sh", "-ec", r.Command).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w %s", r.Command, err, strings.TrimSpace(string(out)))
	}
	r.CPUs[1] = allowed(tid)
	r.After, err = received(ctx, log)
	return r, err
}

func allowed(tid int) string {
	status, _ := procfs.Host.Status(fmt.Sprintf("proc/%d", tid)) // empty when it has ended
	return status["Cpus_allowed_list"]
}

// received is the mean rate of the next seconds in a sink's log, without the first, incomplete one.
func received(ctx context.Context, log string) (float64, error) {
	from, err := linesOf(log)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 10*throughput*time.Second, errors.New("the receiver writes no rates"))
	defer cancel()
	var now []string
	err = wait.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		now, err = linesOf(log)
		return len(now) > len(from)+throughput, err
	})
	if err != nil {
		return 0, err
	}
	rates, err := numbers(now[len(from)+1 : len(from)+1+throughput])
	return stat.Mean(rates), err
}

func linesOf(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Split(strings.TrimRight(string(text[:strings.LastIndexByte(string(text), '\n')+1]), "\n"), "\n"), err
}

func numbers(lines []string) ([]float64, error) {
	list := make([]float64, len(lines))
	var err error
	for i, line := range lines {
		if list[i], err = strconv.ParseFloat(line, 64); err != nil {
			return nil, err
		}
	}
	return list, nil
}
