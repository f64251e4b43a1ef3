// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"time"
)

// The ordinary load of a host, as threads that work periodically. Together they use a little more than half a CPU.
var ordinary = []struct {
	threads int
	busy    time.Duration
	each    time.Duration
	what    string
}{
	{6, 1 * time.Millisecond, 20 * time.Millisecond, "agents that wake up often"},
	{1, 20 * time.Millisecond, 200 * time.Millisecond, "a job that works for longer"},
}

const datagramsEach = time.Millisecond // period of a burst over the loopback
const datagrams = 5

// LoadText describes the ordinary load.
func LoadText() string {
	var parts []string
	for _, p := range ordinary {
		parts = append(parts, fmt.Sprintf("%d x %v of each %v (%s)", p.threads, p.busy, p.each, p.what))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", %d UDP datagrams over the loopback each %v", datagrams,
		datagramsEach)
}

// load runs the ordinary load.
func load(context.Context, []string) error {
	for _, p := range ordinary {
		for range p.threads {
			go func() {
				runtime.LockOSThread()
				for {
					spin(p.busy)
					rest(p.each - p.busy)
				}
			}()
		}
	}
	return talk()
}

// talk sends datagrams to itself, which causes softirqs on its CPU.
func talk() error {
	runtime.LockOSThread()
	to, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := net.Dial("udp", to.LocalAddr().String())
	if err != nil {
		return err
	}
	defer from.Close()
	buffer := make([]byte, 512)
	for {
		for range datagrams {
			if _, err := from.Write(buffer); err != nil {
				return fmt.Errorf("loopback: %w", err)
			}
			if _, _, err := to.ReadFrom(buffer); err != nil {
				return fmt.Errorf("loopback: %w", err)
			}
		}
		rest(datagramsEach)
	}
}
