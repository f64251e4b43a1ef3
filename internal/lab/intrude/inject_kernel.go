// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// --- Disturbances by the kernel on the worker's CPU. ---

// injectSoftirq floods one end of a cable, whose other end receives on the worker's CPU.
func injectSoftirq(_ context.Context, b *loadedVictim) (*injection, error) {
	c, err := newCable()
	if err != nil {
		return nil, err
	}
	err = c.steer(cpuset.Of(b.WorkerCPU))
	var i *intrusion
	if err == nil {
		i, err = b.intrude(b.Dir, c.from, []int{b.control()}, "flood", c.address+":9", "64")
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return &injection{culprit: Culprit{Name: "NET_RX"}, netns: c.to, undo: func() error {
		return errors.Join(i.Stop(), c.remove())
	}}, nil
}

// injectIRQ binds a disk's interrupts to the worker's CPU and reads a file without the page cache.
func injectIRQ(_ context.Context, b *loadedVictim) (*injection, error) {
	irqs, err := diskIRQs(b.Root, b.Dir)
	if err != nil {
		return nil, err
	}
	back, err := moveIRQs(irqs, cpuset.Of(b.WorkerCPU))
	if err != nil {
		return nil, errors.Join(err, back())
	}
	i, err := b.intrude(b.Dir, "", []int{b.control()}, "disk", filepath.Join(b.Dir, "blocks"))
	if err != nil {
		return nil, errors.Join(err, back())
	}
	return &injection{culprit: Culprit{disk: irqs}, undo: func() error { return errors.Join(i.Stop(), back()) }}, nil
}

// moveIRQs moves interrupts to CPUs. back moves them back; call it after an error too.
func moveIRQs(irqs []int, to cpuset.Set) (back func() error, err error) {
	was := map[string]string{}
	back = func() (err error) {
		for path, text := range was {
			err = errors.Join(err, write(path, text))
		}
		return err
	}
	for _, irq := range irqs {
		now, err := procfs.Host.Read(fmt.Sprintf("proc/irq/%d/effective_affinity_list", irq))
		if err == nil && strings.TrimSpace(now) == to.String() {
			continue // it is there already, and the kernel may refuse to move it
		}
		path := fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq)
		old, err := procfs.Host.Read(path)
		if err != nil {
			return back, err
		}
		path = "/" + path
		if err := write(path, to.String()); err != nil {
			return back, fmt.Errorf("interrupt %d cannot be moved: %w", irq, err)
		}
		was[path] = strings.TrimSpace(old)
	}
	return back, nil
}

// diskIRQs are the interrupts of the disk that a folder is on: a virtio disk's queues, or an NVMe's.
func diskIRQs(root, folder string) ([]int, error) {
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		return nil, err
	}
	disk := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	block, err := filepath.EvalSymlinks(filepath.Join(root, "sys/dev/block", disk))
	if err != nil {
		return nil, fmt.Errorf("%s is not on a disk: %w", folder, err)
	}
	if _, err := os.Stat(filepath.Join(block, "partition")); err == nil {
		block = filepath.Dir(block)
	}
	target, err := filepath.EvalSymlinks(filepath.Join(block, "device"))
	if err != nil {
		return nil, fmt.Errorf("%s: the disk of block device %s is unknown: %w", folder, filepath.Base(block), err)
	}
	text, err := procfs.Root(root).Read("proc/interrupts")
	list := irqsOf(text, filepath.Base(target))
	if len(list) == 0 {
		err = errors.Join(err, fmt.Errorf("disk %s of %s has no interrupts", filepath.Base(block), folder))
	}
	return list, err
}

// irqsOf returns the interrupts of a device in /proc/interrupts: "virtio1-req.0" of virtio1, "nvme0q3" of nvme0.
func irqsOf(interrupts, device string) (list []int) {
	rows, _, _ := procfs.ParseInterrupts(interrupts) // an invalid table has no interrupts of the device
	for _, row := range rows {
		name := row.Handlers()
		n, numbered := row.IRQ()
		if numbered && (strings.HasPrefix(name, device+"-req.") || strings.HasPrefix(name, device+"q")) {
			list = append(list, n)
		}
	}
	return list
}
