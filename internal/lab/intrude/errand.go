// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cpuset"
)

// flood sends datagrams of so many bytes to an address as fast as the kernel takes them: flood ADDRESS SIZE.
func flood(_ context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("flood: an address and a size, not %v", args)
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	c, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	runtime.LockOSThread()
	for buffer := make([]byte, size); ; {
		if _, err := c.Write(buffer); err != nil { // nobody listens, or no room: it goes on
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// sink takes datagrams and prints once a second how many bytes came: sink ADDRESS.
func sink(_ context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("sink: an address, not %v", args)
	}
	address, err := net.ResolveUDPAddr("udp", args[0])
	if err != nil {
		return err
	}
	c, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	return receiveForever(c)
}

// errand makes a daemon's master work, on a CPU where it does not belong: errand SOCKET PID CPU.
func errand(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("errand: socket, process and CPU, not %v", args)
	}
	pid, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	set, err := cpuset.Parse(args[2])
	if err != nil {
		return err
	}
	client, err := api.Dial(ctx, args[0], "corelane lab intrude")
	if err != nil {
		return err
	}
	defer client.Close()
	go keepThere(pid, set)
	for {
		if _, err := api.Collect(ctx, client, apiv1.NewStatsClient, apiv1.StatsClient.Graph, &apiv1.NodeListRequest{}); err != nil {
			return err
		}
	}
}

// keepThere moves a thread as often as it is moved back.
func keepThere(tid int, set cpuset.Set) {
	for {
		_ = affinity(tid, set)
		time.Sleep(10 * time.Millisecond)
	}
}

func affinity(tid int, set cpuset.Set) error {
	var mask unix.CPUSet
	for _, cpu := range set.IDs() {
		mask.Set(cpu)
	}
	return unix.SchedSetaffinity(tid, &mask)
}
