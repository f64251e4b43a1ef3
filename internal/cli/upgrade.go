// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/verify"
)

// upgraded is what an upgrade did.
type upgraded struct {
	Unit    string  `json:"unit"`
	Before  int     `json:"before"` // process
	Process int     `json:"process"`
	Seconds float64 `json:"seconds"`
	Lacks   string  `json:"lacks,omitempty"` // hugepages
}

// upgradable is where an upgrade looks for what it would take over.
type upgradable struct {
	unit, socket string
	root         procfs.Root
}

func newUpgradeCmd(a *app) *cobra.Command {
	unit := "corelaned.service"
	cmd := verb("upgrade", "Let the installed corelaned take over from the one that runs",
		"  sudo corelane upgrade", func(ctx context.Context, _ []string) error {
			h := upgradable{unit, a.socket, procfs.Host}
			u, err := h.upgrade(ctx)
			if err != nil {
				return err
			}
			if a.json() {
				return json.NewEncoder(a.stdout).Encode(u)
			}
			_, err = fmt.Fprintf(a.stdout, "%s: process %d has taken over from process %d; the upgrade took %.1f s\n",
				u.Unit, u.Process, u.Before, u.Seconds)
			if err == nil && u.Lacks != "" {
				_, err = fmt.Fprintf(a.stdout,
					"note: process %d runs without hugepages (%s); see the guide on upgrades\n", u.Process, u.Lacks)
			}
			return err
		})
	cmd.Long = `Start the installed corelaned beside the one that runs, with the options of its service
(systemctl reload). The new one prepares itself while the old one forwards, and then takes its ports, flows and learnt
addresses. If it cannot start, or cannot read the kept state, the old one stays. Both need their memory meanwhile: if
too few hugepages are free, the new one runs without them, and a note says so.
Connections to the API end; clients connect again.

Use it after 'make install' or a change of the options of the service. An upgrade of the Debian package does it by
itself. It is refused while systemd does not know the process that forwards, and while 'corelane cores apply' has made
a partition of the workers' CPUs in the control group of the service: restart the service then.`
	cmd.Flags().StringVar(&unit, "unit", unit, "unit of the data plane")
	return cmd
}

func systemctl(ctx context.Context, args ...string) (string, error) {
	c := process.Command{Argv: append([]string{"systemctl"}, args...)}
	out, err := c.Output(ctx, nil)
	return strings.TrimSpace(out), err
}

// unitState returns properties of a unit by name.
func unitState(ctx context.Context, unit string) (map[string]string, error) {
	out, err := systemctl(ctx, "show", "--property=MainPID,ActiveState,CanReload,ControlGroup", unit)
	state := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		name, value, _ := strings.Cut(line, "=")
		state[name] = value
	}
	return state, err
}

// stranger refuses to take over from a process that answers on the socket and that systemd does not know as the unit's
// main one. That of another unit, another instance, is not meant.
func (h upgradable) stranger(state map[string]string) error {
	pid, err := explain.Listener(h.socket)
	if err != nil || strconv.Itoa(pid) == state["MainPID"] {
		return nil
	}
	text, _ := h.root.Read(fmt.Sprintf("proc/%d/cgroup", pid)) // it may have ended
	group, _ := procfs.ParseCgroup(text, "name=systemd")
	if name := path.Base(group); strings.HasSuffix(name, ".service") && name != h.unit {
		return nil
	}
	if path.Base(group) == h.unit && state["MainPID"] == "0" { // a restart failed, and the standby forwards for a while
		return fmt.Errorf("process %d, a standby in the control group '%s', answers on %s, and %s is %s; start it "+
			"before the standby ends: systemctl start %s", pid, group, h.socket, h.unit, state["ActiveState"], h.unit)
	}
	return fmt.Errorf("process %d answers on %s, in the control group '%s', and %s is %s with process %s: systemd "+
		"does not know the process that forwards; end it and start the unit, or let a corelaned with its options "+
		"and --takeover take over", pid, h.socket, group, h.unit, state["ActiveState"], state["MainPID"])
}

func (h upgradable) upgrade(ctx context.Context) (*upgraded, error) {
	unit, begin := h.unit, time.Now()
	before, err := unitState(ctx, unit)
	if err != nil {
		return nil, err
	}
	if err := h.stranger(before); err != nil {
		return nil, err
	}
	if before["ActiveState"] != "active" || before["MainPID"] == "0" {
		return nil, fmt.Errorf("%s is %s: there is nothing to take over; start it: systemctl start %s", unit,
			before["ActiveState"], unit)
	}
	if before["CanReload"] != "yes" {
		return nil, fmt.Errorf("the unit file of %s has no ExecReload, so it cannot be reloaded; restart it: "+
			"systemctl restart %s", unit, unit)
	}
	// systemd starts a process for a reload in a group below the unit's, into which the kernel lets no process.
	kind, _ := h.root.Read(path.Join("sys/fs/cgroup", before["ControlGroup"], "cgroup.type"))
	if strings.TrimSpace(kind) == "domain threaded" {
		return nil, fmt.Errorf("the control group of %s has a partition of the workers' CPUs, and systemd cannot "+
			"start a second process in it; restart it: systemctl restart %s", unit, unit)
	}
	process, _ := strconv.Atoi(before["MainPID"])
	lacks := verify.ReserveFor(h.root, process).Lacks()
	if _, err := systemctl(ctx, "reload", unit); err != nil {
		return nil, fmt.Errorf("%w; the log says why: journalctl --unit %s", err, unit)
	}
	after, err := unitState(ctx, unit)
	if err != nil {
		return nil, err
	}
	if after["ActiveState"] != "active" || after["MainPID"] == before["MainPID"] {
		return nil, fmt.Errorf("%s is %s with process %s, and no new process has taken over; the log says why: "+
			"journalctl --unit %s", unit, after["ActiveState"], after["MainPID"], unit)
	}
	u := &upgraded{Unit: unit, Before: process, Seconds: time.Since(begin).Seconds(), Lacks: lacks}
	u.Process, _ = strconv.Atoi(after["MainPID"])
	return u, nil
}
