// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/namespace"
	"github.com/corelane/corelane/internal/process"
	"github.com/corelane/corelane/internal/stat"
)

// hostPath has a Corelane host with a host port on the fabric, and a Linux host on the same wire.
var hostPath = Topology{Name: "host-path", Title: "a Corelane host with a host port, and a Linux host", WireMTU: 1500,
	Hosts: []Host{{Name: "h1", Index: 1}, {Name: "peer", Index: 2, Linux: true}}}

const (
	hostPort     = "host0"
	hostKernel   = "kernel" // namespace of the host port
	forwarder    = 0        // worker ids
	hostWorker   = 9
	overload     = 1000 // microseconds in each loop of the forwarding worker
	overloadName = "overloaded data plane"
)

// HostPathCase is a row of the table in DPVS's doc/Worker-Performance-Tuning.md, with the figures found there.
type HostPathCase struct {
	Name            string  `json:"name"`
	Worker          bool    `json:"host_path_worker"`
	Steered         bool    `json:"steered"`
	Overloaded      bool    `json:"overloaded"`
	PublishedPingMs float64 `json:"published_ping_avg_ms"`
	PublishedBps    float64 `json:"published_bits_per_second"`
	PublishedPps    float64 `json:"published_packets_per_second"`
}

// HostPathCases are the rows in their order.
var HostPathCases = []HostPathCase{
	{"no host-path worker, idle data plane", false, false, false, 3.196, 2.64e9, 243e3},
	{"host-path worker, idle data plane", true, false, false, 2.102, 4.54e9, 413e3},
	{"host-path worker and steering, idle data plane", true, true, false, 2.346, 4.57e9, 416e3},
	{"host-path worker, " + overloadName, true, false, true, 29.880, 341e6, 29e3},
	{"host-path worker and steering, " + overloadName, true, true, true, 2.139, 4.53e9, 410e3},
}

// HostPathPlacement says which CPUs are used. The forwarding worker has a CPU of its own, so that its overload slows
// nothing else. Everything else has the other CPUs, the host-path worker too when there are only two.
type HostPathPlacement struct {
	Forwarding int   `json:"forwarding_cpu"`
	HostPath   int   `json:"host_path_cpu"`
	Others     []int `json:"other_cpus"` // for ping and iperf3, and the kernel's work for them
}

// PlaceHostPath chooses from the CPUs that this process may use, which must be two or more.
func PlaceHostPath() (HostPathPlacement, error) {
	cpus, err := allowedCPUs() // the last one first
	if err != nil {
		return HostPathPlacement{}, err
	}
	return placeHostPath(cpus)
}

func placeHostPath(cpus []int) (HostPathPlacement, error) {
	switch len(cpus) {
	case 0, 1:
		return HostPathPlacement{}, fmt.Errorf("%d CPUs; valid: two or more, since the forwarding worker needs one "+
			"for itself", len(cpus))
	case 2:
		return HostPathPlacement{Forwarding: cpus[0], HostPath: cpus[1], Others: cpus[1:]}, nil
	}
	return HostPathPlacement{Forwarding: cpus[0], HostPath: cpus[1], Others: cpus[2:]}, nil
}

// HostPathSample is one measurement of one case.
type HostPathSample struct {
	Ping Ping    `json:"ping"`
	TCP  Rate    `json:"tcp"`
	Pps  float64 `json:"packets_per_second"` // to the kernel while TCP ran
}

// HostPathRow is a case with its samples, and how packets were steered.
type HostPathRow struct {
	HostPathCase
	Steering string           `json:"steering,omitempty"`
	Samples  []HostPathSample `json:"samples"`
}

// Median returns the median of one figure over the samples.
func (r HostPathRow) Median(figure func(HostPathSample) float64) float64 {
	return stat.SpreadOf(r.Samples, figure).Median
}

// PingMs, Bps and Pps are the figures of the table.
func (r HostPathRow) PingMs() float64 {
	return r.Median(func(s HostPathSample) float64 { return s.Ping.AvgMs })
}
func (r HostPathRow) Bps() float64 {
	return r.Median(func(s HostPathSample) float64 { return s.TCP.BitsPerSecond })
}
func (r HostPathRow) Pps() float64 { return r.Median(func(s HostPathSample) float64 { return s.Pps }) }

// HostPathReport is the whole table.
type HostPathReport struct {
	Placement HostPathPlacement `json:"placement"`
	Underlay  Underlay          `json:"underlay"`
	Rows      []HostPathRow     `json:"rows"`
}

// Ratio is the median ratio of two rows over the rounds. Drift of the machine is in both samples of a round.
func (r HostPathReport) Ratio(of, to int, figure func(HostPathSample) float64) float64 {
	both := HostPathRow{}
	for i := range min(len(r.Rows[of].Samples), len(r.Rows[to].Samples)) {
		if below := figure(r.Rows[to].Samples[i]); below > 0 {
			both.Samples = append(both.Samples, HostPathSample{Pps: figure(r.Rows[of].Samples[i]) / below})
		}
	}
	return both.Pps()
}

// HostPathOptions of a measurement.
type HostPathOptions struct {
	Options
	Placement HostPathPlacement
	Rounds    int // each measures all cases in turn
	Seconds   int // of TCP in each
	Pings     int // in each
	Measured  func(round int, row HostPathRow)
}

// RunHostPath measures all cases in a lab of its own, which it removes afterwards.
func RunHostPath(ctx context.Context, o HostPathOptions) (r HostPathReport, err error) {
	o.defaults()
	o.Idle = "yield"
	o.WorkerCPU, o.DaemonArgs = &o.Placement.Forwarding, []string{"--allow-debug"}
	l, err := BringUp(ctx, hostPath, o.Options)
	if err != nil {
		return r, err
	}
	defer func() {
		if down := TakeDown(l.Name, o.Options); err == nil {
			err = down
		}
	}()
	b := &hostPathBench{lab: l, o: o, host: l.Hosts[0], peer: l.Hosts[1]}
	r = HostPathReport{Placement: o.Placement, Underlay: o.Underlay}
	for _, c := range HostPathCases {
		r.Rows = append(r.Rows, HostPathRow{HostPathCase: c})
	}
	if err = b.plugHost(ctx); err != nil {
		return r, err
	}
	for round := range o.Rounds {
		for i := range r.Rows {
			if err = b.measure(ctx, &r.Rows[i]); err != nil {
				return r, fmt.Errorf("%s: %w", r.Rows[i].Name, err)
			}
			if o.Measured != nil {
				o.Measured(round, r.Rows[i])
			}
		}
	}
	return r, nil
}

type hostPathBench struct {
	lab        *Lab
	o          HostPathOptions
	host, peer Host
	client     *api.Client
}

// plugHost gives the kernel of the Corelane host a host port, with the address of the fabric port. The port is in a
// namespace of its own: in that of the NIC the kernel would receive the packets itself, beside net_af_packet.
func (b *hostPathBench) plugHost(ctx context.Context) (err error) {
	if b.client, err = b.lab.Dial(ctx, b.host); err != nil {
		return err
	}
	if err := b.lab.Ledger.addNetns(b.lab.Netns(hostKernel)); err != nil {
		return err
	}
	port := &apiv1.Port{Name: hostPort, Role: apiv1.PortRole_PORT_ROLE_HOST, Fabric: fabricPort,
		Device: &apiv1.Port_Tap{Tap: &apiv1.TapDevice{Ifname: hostPort, Netns: b.lab.Netns(hostKernel)}}}
	if _, err := api.Call(ctx, b.client, apiv1.NewPortsClient, apiv1.PortsClient.Add,
		&apiv1.PortAddRequest{Port: port}); err != nil {
		return err
	}
	return namespace.Do(b.lab.Netns(hostKernel), func() error {
		return addresses(hostPort, b.host.cidr(IPv4), b.host.cidr(IPv6))
	})
}

func (b *hostPathBench) measure(ctx context.Context, row *HostPathRow) (err error) {
	if err := b.prepare(ctx, row); err != nil {
		return err
	}
	defer func() {
		if reset := b.reset(ctx, row.HostPathCase); err == nil {
			err = reset
		}
	}()
	s := HostPathSample{}
	if _, err := b.ping(ctx, 3); err != nil { // resolves the addresses before the measurement
		return err
	}
	if s.Ping, err = b.ping(ctx, b.o.Pings); err != nil {
		return err
	}
	before, err := b.sentToKernel(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if s.TCP, err = b.tcp(ctx); err != nil {
		return err
	}
	after, err := b.sentToKernel(ctx)
	if err != nil {
		return err
	}
	s.Pps = float64(after-before) / min(time.Since(start).Seconds(), float64(b.o.Seconds))
	row.Samples = append(row.Samples, s)
	return nil
}

// prepare configures the host for a case.
func (b *hostPathBench) prepare(ctx context.Context, row *HostPathRow) error {
	if row.Worker {
		w := &apiv1.Worker{Id: hostWorker, Cpu: uint32(b.o.Placement.HostPath),
			Idle: apiv1.IdlePolicy_IDLE_POLICY_SLEEP, Role: apiv1.WorkerRole_WORKER_ROLE_HOST_PATH,
			Target: strconv.Itoa(forwarder)}
		if _, err := api.Call(ctx, b.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Add,
			&apiv1.WorkerAddRequest{Worker: w}); err != nil {
			return err
		}
	}
	if row.Steered {
		s := &apiv1.HostSteer{Address: b.address(), Port: fabricPort}
		done, err := api.Call(ctx, b.client, apiv1.NewHostSteersClient, apiv1.HostSteersClient.Add,
			&apiv1.HostSteerAddRequest{Steer: s})
		if err != nil {
			return err
		}
		row.Steering = "hardware"
		if done.GetState().GetMode() != apiv1.HostSteerMode_HOST_STEER_MODE_HARDWARE {
			row.Steering = "software: " + done.GetState().GetWhy()
		}
	}
	if row.Overloaded {
		return b.delay(ctx, overload)
	}
	return nil
}

func (b *hostPathBench) reset(ctx context.Context, c HostPathCase) error {
	if c.Overloaded {
		if err := b.delay(ctx, 0); err != nil {
			return err
		}
	}
	if c.Steered {
		if _, err := api.Call(ctx, b.client, apiv1.NewHostSteersClient, apiv1.HostSteersClient.Del,
			&apiv1.HostSteerDelRequest{Address: b.address(), Port: fabricPort}); err != nil {
			return err
		}
	}
	if c.Worker {
		if _, err := api.Call(ctx, b.client, apiv1.NewWorkersClient, apiv1.WorkersClient.Del,
			&apiv1.WorkerDelRequest{Id: hostWorker}); err != nil {
			return err
		}
	}
	return nil
}

func (b *hostPathBench) delay(ctx context.Context, us uint32) error {
	_, err := api.Call(ctx, b.client, apiv1.NewDebugClient, apiv1.DebugService.Delay,
		&apiv1.DebugDelayRequest{Worker: forwarder, Us: us})
	return err
}

func (b *hostPathBench) address() string { return b.host.Address(b.o.Underlay) }

// pinned is a command on the other CPUs.
func (b *hostPathBench) pinned(argv ...string) []string {
	list := ""
	for i, cpu := range b.o.Placement.Others {
		if i > 0 {
			list += ","
		}
		list += strconv.Itoa(cpu)
	}
	return append([]string{"taskset", "-c", list}, argv...)
}

// command runs on the peer, on the other CPUs.
func (b *hostPathBench) command(argv ...string) process.Command {
	return process.Command{Argv: argv, CPUs: b.o.Placement.Others, Netns: b.lab.Netns(b.peer.Name)}
}

func (b *hostPathBench) ping(ctx context.Context, count int) (Ping, error) {
	n := strconv.Itoa(count)
	c := b.command("ping", "-n", "-c", n, "-i", pingInterval, "-w", "30", b.address())
	out, err := c.Output(ctx, nil)
	if ctx.Err() != nil {
		return Ping{}, err
	}
	p, parseErr := parsePing(out, count)
	if parseErr == nil && p.Received == 0 {
		parseErr = errors.Join(fmt.Errorf("no echo reply from %s", b.address()), err)
	}
	return p, parseErr
}

func (b *hostPathBench) tcp(ctx context.Context) (Rate, error) {
	log := b.lab.Dir(b.host) + "/iperf3.log"
	server, err := b.lab.startLogged(ctx, "iperf3 server", hostKernel, log, "Server listening",
		b.pinned("iperf3", "-s", "-1", "--forceflush")...)
	if err != nil {
		return Rate{}, err
	}
	defer func() { _ = server.Stop() }() // it ends by itself after one test
	return runIperf(ctx, b.command("iperf3", "-J", "-t", strconv.Itoa(b.o.Seconds), "-c", b.address()), false)
}

func (b *hostPathBench) sentToKernel(ctx context.Context) (uint64, error) {
	list, err := api.Collect(ctx, b.client, apiv1.NewPortsClient, apiv1.PortsClient.List,
		&apiv1.PortListRequest{Name: hostPort})
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].GetState().GetCounters().GetTxPackets(), nil
}
