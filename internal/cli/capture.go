// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

var captureFlags = []fieldFlag{
	{flag: "port", help: "only on this port (default: all)", names: portNames},
	{flag: "filter", help: "libpcap expression: 'udp port 6635'"},
	{flag: "reason", help: "only packets dropped for this reason", names: dropReasons},
	{flag: "snaplen", help: "bytes kept of a packet"},
	{flag: "rate", field: "packets_per_second", help: "most packets per second that are copied"},
	{flag: "count", help: "stop after this many packets"},
}

func newCaptureCmd(a *app) *cobra.Command {
	req := &apiv1.CaptureRequest{}
	var file string
	var timeout time.Duration
	points := map[apiv1.CapturePoint]*bool{}
	cmd := verb("capture", "Copy packets to a file, to Wireshark or to the screen", `  corelane capture --port vm1
  corelane capture -w out.pcapng --filter 'udp port 6635' --count 1000
  corelane capture --drop
  ssh host corelane capture --port fab0 -w - | wireshark -k -i -`,
		func(ctx context.Context, _ []string) error {
			for _, p := range []apiv1.CapturePoint{apiv1.CapturePoint_CAPTURE_POINT_RX,
				apiv1.CapturePoint_CAPTURE_POINT_TX, apiv1.CapturePoint_CAPTURE_POINT_DROP} {
				if *points[p] || p == apiv1.CapturePoint_CAPTURE_POINT_DROP && req.Reason != "" {
					req.Points = append(req.Points, p)
				}
			}
			out, err := a.openCapture(ctx, file)
			if err != nil {
				return err
			}
			if timeout > 0 {
				limited, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				ctx = limited
			}
			return a.capture(ctx, req, out)
		})
	cmd.Long = `Copy packets as they are received and sent, or with --drop those that are dropped, with the reason.
Packets of tenant ports are seen without encapsulation, those of fabric ports with it. At most --rate packets per
second are copied; the others are only counted, and the router handles them as usual.`
	a.bind(cmd, req, captureFlags)
	points[apiv1.CapturePoint_CAPTURE_POINT_RX] = cmd.Flags().Bool("rx", false,
		"packets as received (default: rx and tx)")
	points[apiv1.CapturePoint_CAPTURE_POINT_TX] = cmd.Flags().Bool("tx", false, "packets as sent")
	points[apiv1.CapturePoint_CAPTURE_POINT_DROP] = cmd.Flags().Bool("drop", false,
		"packets that are dropped, with the reason")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "stop after this time, 10s (default: when interrupted)")
	cmd.Flags().StringVarP(&file, "write", "w", "", "write a pcapng file, - is standard output")
	_ = cmd.MarkFlagFilename("write", "pcapng")
	return cmd
}

// sink is where captured packets go.
type sink interface {
	packet(p *apiv1.CapturedPacket) error
	close() error
}

func (a *app) openCapture(ctx context.Context, file string) (sink, error) {
	switch {
	case file == "" && a.json():
		return jsonSink{a.stdout}, nil
	case file == "":
		return lineSink{a.stdout}, a.learnPorts(ctx)
	case file == "-" && isTerminal(a.stdout):
		return nil, input.Errorf("--write", "a file, or - with the output going to a pipe",
			"'-' would write binary data to the terminal")
	}
	ports, err := all(ctx, portsNamed(a, ""))
	if err != nil {
		return nil, err
	}
	w := io.WriteCloser(nopCloser{a.stdout})
	if file != "-" {
		if w, err = os.Create(file); err != nil {
			return nil, err
		}
	}
	return newPcapSink(w, ports)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// learnPorts tells the decoder which UDP ports carry tunnels here.
func (a *app) learnPorts(ctx context.Context) error {
	s, err := call(ctx, a, apiv1.NewSystemClient, apiv1.SystemService.GetSettings, &apiv1.Empty{})
	if err != nil {
		return err
	}
	decodeTunnels(s)
	return nil
}

// capture runs until the daemon has sent all, or until interrupted or the time is over, which are its ordinary ends.
func (a *app) capture(ctx context.Context, req *apiv1.CaptureRequest, out sink) error {
	var packets, missed uint64
	if isTerminal(a.stderr) {
		fmt.Fprintf(a.stderr, "capturing on %s; an interrupt (Ctrl-C) ends it\n",
			cmp.Or(optional("port ", req.Port), "all ports"))
	}
	err := stream(ctx, a, apiv1.NewCaptureClient, apiv1.CaptureClient.Packets, req,
		func(p *apiv1.CapturedPacket) error {
			packets++
			missed = max(missed, p.Missed)
			return out.packet(p)
		})
	if ctx.Err() != nil {
		err = nil
	}
	if cerr := out.close(); err == nil {
		err = cerr
	}
	if err == nil {
		fmt.Fprintf(a.stderr, "packets captured: %d; not captured, because of --rate or for want of buffers: %d\n",
			packets, missed)
	}
	return err
}

type jsonSink struct{ w io.Writer }

func (s jsonSink) packet(p *apiv1.CapturedPacket) error { return writeJSON(s.w, p) }
func (s jsonSink) close() error                         { return nil }

// lineSink prints a line for each packet.
type lineSink struct{ w io.Writer }

func (s lineSink) packet(p *apiv1.CapturedPacket) error {
	at := time.Unix(0, int64(p.TimeNs)).Format("15:04:05.000000")
	_, err := fmt.Fprintf(s.w, "%s %s %s %d bytes%s%s: %s\n", at, p.Port, limits.EnumText(p.Point), p.Length,
		optional(" ", p.Reason), optional(", ", offloaded(p)), summary(p.Data))
	return err
}

func (s lineSink) close() error { return nil }

// offloaded tells what the sender of a packet has left to the router; "" if nothing.
func offloaded(p *apiv1.CapturedPacket) string {
	switch {
	case p.SegmentSize != 0:
		return fmt.Sprintf("large segment for packets of %d bytes, checksums not computed", p.SegmentSize)
	case p.ChecksumUnfinished:
		return "checksum not computed"
	}
	return ""
}
