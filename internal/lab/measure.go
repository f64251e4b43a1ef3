// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/process"
)

// Path is from one guest of a network to another.
type Path struct{ From, To Guest }

const (
	pings         = 20
	pingInterval  = "0.05" // seconds
	pingDeadline  = "5"
	probeInterval = "0.02" // ping waits for it also after a packet that its own kernel refuses as too large
	probeTimeout  = "5"    // for packets that are dropped without an ICMP error
	iperfSeconds  = 2
	udpPayload    = 1400
	smallestMTU   = 1280 // of every path
	ipv4Echo      = 28   // headers of an echo request
	ipv6Echo      = 48
)

// Ping pings from one guest to the other with addresses of a family.
func (l *Lab) Ping(ctx context.Context, p Path, family Underlay) (Ping, error) {
	return l.ping(ctx, p, pings, "-i", pingInterval, "-w", pingDeadline, p.To.Address(family))
}

func (l *Lab) ping(ctx context.Context, p Path, count int, args ...string) (Ping, error) {
	c := process.Command{Argv: append([]string{"ping", "-n", "-c", strconv.Itoa(count)}, args...),
		Netns: l.Netns(p.From.Name())}
	out, err := c.Output(ctx, nil)
	if ctx.Err() != nil {
		return Ping{}, err
	}
	result, parseErr := parsePing(out, count) // its exit code is an error also when a reply is late
	if parseErr != nil {
		return result, errors.Join(parseErr, err)
	}
	return result, nil
}

// ProbeMTU finds the largest IP packet that passes unfragmented.
func (l *Lab) ProbeMTU(ctx context.Context, p Path, family Underlay) (int, error) {
	headers := map[Underlay]int{IPv4: ipv4Echo, IPv6: ipv6Echo}[family]
	return largest(smallestMTU, int(p.From.Network.MTU), func(size int) (bool, error) {
		result, err := l.ping(ctx, p, 1, "-i", probeInterval, "-W", probeTimeout, "-M", "do", "-s",
			strconv.Itoa(size-headers), p.To.Address(family))
		return result.Received == 1, err
	})
}

// ExpectedMTU is the MTU less the overhead that corelaned reports for the tunnel; for a bridge it is the guests' own.
func (l *Lab) ExpectedMTU(ctx context.Context, p Path) (int, error) {
	n := p.From.Network
	if n.Bridge {
		return int(n.MTU), nil
	}
	c, err := l.Dial(ctx, p.From.Host)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	list, err := api.Collect(ctx, c, apiv1.NewNexthopsClient, apiv1.NexthopsClient.List,
		&apiv1.NexthopListRequest{Id: n.nexthop(p.To.Host)})
	if err != nil {
		return 0, err
	}
	for _, nh := range list {
		if nh.Id == n.nexthop(p.To.Host) {
			return min(int(nh.GetState().GetMtu()), int(n.MTU)), nil
		}
	}
	return 0, fmt.Errorf("%s has no next hop %d", p.From.Host.Name, n.nexthop(p.To.Host))
}

// TCP runs iperf3 from one guest to the other.
func (l *Lab) TCP(ctx context.Context, p Path) (Rate, error) { return l.iperf(ctx, p, 0, 1) }

// UDP runs iperf3 with datagrams at a given rate, which several flows share.
func (l *Lab) UDP(ctx context.Context, p Path, bps float64, flows int) (Rate, error) {
	return l.iperf(ctx, p, bps, flows)
}

func (l *Lab) iperf(ctx context.Context, p Path, udpBps float64, flows int) (Rate, error) {
	log := filepath.Join(l.Ledger.dir, "iperf3.log")
	server, err := l.startLogged(ctx, "iperf3 server", p.To.Name(), log, "Server listening", "iperf3", "-s", "-1",
		"--forceflush")
	if err != nil {
		return Rate{}, err
	}
	defer func() { _ = server.Stop() }() // it ends by itself after one test
	argv := []string{"iperf3", "-J", "-t", strconv.Itoa(iperfSeconds), "-c", p.To.Address(IPv4)}
	if udpBps > 0 {
		argv = append(argv, "-u", "-l", strconv.Itoa(udpPayload), "-P", strconv.Itoa(flows), "-b",
			strconv.FormatFloat(udpBps/float64(flows), 'f', 0, 64))
	}
	return runIperf(ctx, process.Command{Argv: argv, Netns: l.Netns(p.From.Name())}, udpBps > 0)
}

// runIperf runs an iperf3 client.
func runIperf(ctx context.Context, client process.Command, udp bool) (Rate, error) {
	out, err := client.Output(ctx, nil)
	if ctx.Err() != nil {
		return Rate{}, err
	}
	rate, parseErr := parseIperf(out, udp) // its error is iperf3's own
	return rate, cmp.Or(parseErr, err)
}

const readyTimeout = 10 * time.Second

// startLogged starts a process of the lab and waits until its log says that it is ready.
func (l *Lab) startLogged(ctx context.Context, name, place, log, ready string, argv ...string) (*process.Process,
	error) {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("%w: install it (make deps)", err)
	}
	if err := os.Remove(log); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	p, err := l.Ledger.start(name, l.Netns(place), log, argv...)
	if err != nil {
		return nil, err
	}
	err = p.Await(ctx, readyTimeout, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err == nil && !strings.Contains(string(text), ready) {
			err = fmt.Errorf("no '%s' in its log", ready)
		}
		return err
	})
	if err != nil {
		_ = p.Stop() // it may have ended
		return nil, err
	}
	return p, nil
}

// capture captures on the wire of a host until stop is called.
type capture struct {
	lab     *Lab
	file    string
	process *process.Process
}

// Capture filters for each encapsulation.
var wireFilters = map[apiv1.Encap]string{
	apiv1.Encap_ENCAP_MPLSOUDP: "udp dst port 6635",
	apiv1.Encap_ENCAP_MPLSOGRE: "ip proto 47 or ip6 proto 47",
	apiv1.Encap_ENCAP_VXLAN:    "udp dst port 4789",
	apiv1.Encap_ENCAP_GENEVE:   "udp dst port 6081",
}

func (l *Lab) startCapture(ctx context.Context, p Path) (*capture, error) {
	c := &capture{lab: l, file: filepath.Join(l.Dir(p.From.Host), p.From.Network.Name+".pcap")}
	log := c.file + ".log"
	var err error
	c.process, err = l.startLogged(ctx, "tcpdump", p.From.Host.Name, log, "listening on", "tcpdump", "-i", fabricPort,
		"-U", "-n", "-Z", "root", "-w", c.file, wireFilters[p.From.Network.Encap])
	return c, err
}

// stop returns a line for one packet in each direction.
func (c *capture) stop(ctx context.Context, p Path) ([]string, error) {
	_ = c.process.Stop() // what it has captured counts, also when it has ended
	argv := []string{"tshark", "-r", c.file, "-n", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E",
		"aggregator=,"}
	for _, f := range tsharkFields {
		argv = append(argv, "-e", f)
	}
	tshark := process.Command{Argv: argv, Netns: c.lab.Netns(p.From.Host.Name)}
	out, err := tshark.Output(ctx, nil)
	if err != nil {
		return nil, err
	}
	return pickFrames(out, p)
}

// pickFrames describes the first packet from one guest to the other, the first one back, and every malformed one.
func pickFrames(text string, p Path) ([]string, error) {
	there, back := "", ""
	var bad []string
	for line := range strings.Lines(text) {
		frame, err := describeFrame(line)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(frame, "MALFORMED") {
			bad = append(bad, frame)
		}
		if there == "" && strings.Contains(frame, p.From.Address(IPv4)+" > "+p.To.Address(IPv4)) {
			there = frame
		}
		if back == "" && strings.Contains(frame, p.To.Address(IPv4)+" > "+p.From.Address(IPv4)) {
			back = frame
		}
	}
	var list []string
	for _, frame := range append([]string{there, back}, bad...) {
		if frame != "" {
			list = append(list, frame)
		}
	}
	return list, nil
}
