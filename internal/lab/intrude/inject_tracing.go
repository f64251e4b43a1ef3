// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	tracefs   = "/sys/kernel/tracing"
	traced    = "graph_walk" // runs once for each batch of packets
	traceName = "cl_lab/walk"
)

// injectTracing sets a breakpoint in a function of the packet path, by the files of the kernel's tracing: no process
// has them open.
func injectTracing(_ context.Context, b *loadedVictim) (*injection, error) {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", b.PID()))
	if err != nil {
		return nil, err
	}
	offset, err := offsetOf(exe, traced)
	if err != nil {
		return nil, err
	}
	unmount, err := mountTracing()
	if err != nil {
		return nil, err
	}
	enable := filepath.Join(tracefs, "events", traceName, "enable")
	undo := func() (err error) {
		if _, there := os.Stat(enable); there == nil { // a remedy may have removed it
			err = errors.Join(write(enable, "0"), appendTo(filepath.Join(tracefs, "uprobe_events"), "-:"+traceName))
		}
		return errors.Join(err, unmount())
	}
	err = appendTo(filepath.Join(tracefs, "uprobe_events"), fmt.Sprintf("p:%s %s:0x%x", traceName, exe, offset))
	if err == nil {
		err = write(enable, "1")
	}
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	return &injection{undo: undo}, nil
}

// mountTracing mounts the kernel's tracing, if it is not.
func mountTracing() (unmount func() error, err error) {
	if _, err := os.Stat(filepath.Join(tracefs, "uprobe_events")); err == nil {
		return nothing, nil
	}
	if err := unix.Mount("tracefs", tracefs, "tracefs", 0, ""); err != nil {
		return nil, errMissing{"tracefs of the kernel: " + err.Error()}
	}
	if _, err := os.Stat(filepath.Join(tracefs, "uprobe_events")); err != nil {
		return nil, errors.Join(errMissing{"uprobe_events of the kernel"}, unix.Unmount(tracefs, 0))
	}
	return func() error { return unix.Unmount(tracefs, unix.MNT_DETACH) }, nil
}

func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// offsetOf returns where a function is in the file of a program.
func offsetOf(program, function string) (uint64, error) {
	f, err := elf.Open(program)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	for _, s := range symbols {
		if s.Name != function {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				return s.Value - p.Vaddr + p.Off, nil
			}
		}
	}
	return 0, fmt.Errorf("%s has no function %s", program, function)
}
