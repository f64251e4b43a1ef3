// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
)

func newTraceCmd(a *app) *cobra.Command {
	req := &apiv1.TraceRequest{}
	var packet string
	timeout := 10 * time.Second
	bytes := false
	cmd := verb("trace", "Follow packets node by node, with the decision at each",
		`  corelane trace --port vm1 --filter 'icmp' -n 3
  corelane trace --port vm1 --packet @ping.pcap
  corelane trace --port fab0 --packet 0200000000010200000000020800...`,
		func(ctx context.Context, _ []string) (err error) {
			if packet != "" {
				if req.Packet, err = parsePacket(packet); err != nil {
					return err
				}
			}
			if timeout < time.Millisecond || timeout > time.Hour {
				return input.Errorf("--timeout", "1ms to 1h", "'%s' is out of range", timeout)
			}
			req.TimeoutMs = uint32(timeout.Milliseconds())
			return a.trace(ctx, req, bytes)
		})
	cmd.Long = `Follow packets through the graph: each node, its decision, and the next node. They are the next
packets received on --port that match, or with --packet one of your own, which is injected there as if it had been
received.`
	a.bind(cmd, req, []fieldFlag{
		{flag: "port", help: "port that the packets come in by", names: portNames},
		{flag: "filter", help: "libpcap expression on the packet as received"},
	})
	required(cmd, "port")
	cmd.Flags().Uint32VarP(&req.Count, "count", "n", 1, "packets to follow")
	cmd.Flags().StringVar(&packet, "packet", "", validBytes)
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for packets")
	cmd.Flags().BoolVarP(&bytes, "bytes", "x", false, "also print the packet's first bytes at each node")
	return cmd
}

func (a *app) trace(ctx context.Context, req *apiv1.TraceRequest, bytes bool) error {
	steps, packet := 0, uint32(0)
	err := stream(ctx, a, apiv1.NewCaptureClient, apiv1.CaptureClient.Trace, req, func(s *apiv1.TraceStep) error {
		steps++
		if a.json() {
			return writeJSON(a.stdout, s)
		}
		if steps == 1 || s.Packet != packet {
			packet = s.Packet
			fmt.Fprintf(a.stdout, "packet %d, worker %d%s\n", s.Packet, s.Worker, optional(": ", summary(s.Data)))
		}
		return writeStep(a.stdout, s, bytes)
	})
	if ctx.Err() != nil && steps > 0 {
		return nil
	}
	if err == nil && steps == 0 {
		return fmt.Errorf("no matching packet came in by %s within %d ms", req.Port, req.TimeoutMs)
	}
	return err
}

func writeStep(w io.Writer, s *apiv1.TraceStep, bytes bool) error {
	line := fmt.Sprintf("  %8d cycles  %-20s -> %-20s %s", s.Cycles, s.Node, s.Next, s.Detail)
	if s.Next == "" {
		line = fmt.Sprintf("  %8d cycles  %-20s    %-20s %s", s.Cycles, s.Node, "", s.Detail)
	}
	text := strings.TrimRight(line, " ") + "\n"
	if bytes {
		for _, l := range strings.SplitAfter(hex.Dump(s.Data), "\n") {
			text += optional("      ", l)
		}
	}
	_, err := io.WriteString(w, text)
	return err
}
