// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// snapshot is what the daemon reported at one time.
type snapshot struct {
	at      time.Time
	workers map[uint32]*apiv1.Worker
	latency map[uint32]*apiv1.WorkerLatency
	past    map[uint32][]Past
	nodes   map[uint32]map[string]*apiv1.Node
	ports   map[string]*apiv1.Port
	polled  map[string]map[uint32]*apiv1.WorkerPort
	drops   map[string]map[string]uint64 // by receiving port and reason
	rings   map[[2]uint32]*apiv1.WorkerRing
	threads map[int32]*apiv1.Thread
	order   []uint32
}

// readSnapshot reads all of a snapshot from the daemon.
func readSnapshot(ctx context.Context, c *api.Client) (*snapshot, error) {
	s := &snapshot{workers: map[uint32]*apiv1.Worker{}, latency: map[uint32]*apiv1.WorkerLatency{},
		past: map[uint32][]Past{}, nodes: map[uint32]map[string]*apiv1.Node{}, ports: map[string]*apiv1.Port{},
		polled: map[string]map[uint32]*apiv1.WorkerPort{}, drops: map[string]map[string]uint64{},
		rings: map[[2]uint32]*apiv1.WorkerRing{}, threads: map[int32]*apiv1.Thread{}}
	for _, step := range []func(context.Context, *api.Client) error{
		s.readWorkers, s.readPorts, s.readDrops, s.readThreads,
	} {
		if err := step(ctx, c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *snapshot) readWorkers(ctx context.Context, c *api.Client) error {
	err := api.Stream(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.List, &apiv1.WorkerListRequest{},
		func(w *apiv1.Worker) error {
			s.workers[w.Id] = w
			s.order = append(s.order, w.Id)
			return nil
		})
	if err != nil {
		return fmt.Errorf("workers: %w", err)
	}
	s.at = time.Now()
	err = api.Stream(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.Latency, &apiv1.WorkerLatencyRequest{},
		func(l *apiv1.WorkerLatency) error {
			s.latency[l.Worker] = l
			return nil
		})
	if err != nil {
		return fmt.Errorf("loops of workers: %w", err)
	}
	err = api.Stream(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.History, &apiv1.WorkerHistoryRequest{},
		func(h *apiv1.WorkerHistory) error {
			s.past[h.Worker] = pastOf(h.Samples)
			return nil
		})
	if err != nil {
		return fmt.Errorf("history of workers: %w", err)
	}
	for id := range s.workers {
		s.nodes[id] = map[string]*apiv1.Node{}
		err := api.Stream(ctx, c, apiv1.NewStatsClient, apiv1.StatsClient.Graph,
			&apiv1.NodeListRequest{Worker: id, OneWorker: true}, func(n *apiv1.Node) error {
				s.nodes[id][n.Name] = n
				return nil
			})
		if err != nil {
			return fmt.Errorf("nodes of worker %d: %w", id, err)
		}
	}
	return nil
}

func (s *snapshot) readPorts(ctx context.Context, c *api.Client) error {
	err := api.Stream(ctx, c, apiv1.NewPortsClient, apiv1.PortsClient.List, &apiv1.PortListRequest{},
		func(p *apiv1.Port) error {
			s.ports[p.Name] = p
			return nil
		})
	if err != nil {
		return fmt.Errorf("ports: %w", err)
	}
	err = api.Stream(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.Ports, &apiv1.WorkerPortsRequest{},
		func(p *apiv1.WorkerPort) error {
			if s.polled[p.Port] == nil {
				s.polled[p.Port] = map[uint32]*apiv1.WorkerPort{}
			}
			s.polled[p.Port][p.Worker] = p
			return nil
		})
	if err != nil {
		return fmt.Errorf("ports of workers: %w", err)
	}
	return nil
}

func (s *snapshot) readDrops(ctx context.Context, c *api.Client) error {
	err := api.Stream(ctx, c, apiv1.NewStatsClient, apiv1.StatsClient.Drops, &apiv1.DropListRequest{ByPort: true},
		func(d *apiv1.Drop) error {
			if s.drops[d.Port] == nil {
				s.drops[d.Port] = map[string]uint64{}
			}
			s.drops[d.Port][d.Reason] += d.Packets
			return nil
		})
	if err != nil {
		return fmt.Errorf("drops: %w", err)
	}
	err = api.Stream(ctx, c, apiv1.NewWorkersClient, apiv1.WorkersClient.Rings, &apiv1.WorkerRingListRequest{},
		func(r *apiv1.WorkerRing) error {
			s.rings[[2]uint32{r.From, r.To}] = r
			return nil
		})
	if err != nil {
		return fmt.Errorf("rings: %w", err)
	}
	return nil
}

// readFlowTable asks for the size of the flow table. The daemon goes through all flows to answer.
func (e *Evidence) readFlowTable(ctx context.Context, c *api.Client) error {
	count, err := api.Call(ctx, c, apiv1.NewFlowsClient, apiv1.FlowsClient.Count, &apiv1.FlowFilter{})
	if err != nil {
		return fmt.Errorf("flows: %w", err)
	}
	e.Flows = count.Capacity
	return nil
}

func (s *snapshot) readThreads(ctx context.Context, c *api.Client) error {
	err := api.Stream(ctx, c, apiv1.NewThreadsClient, apiv1.ThreadsClient.List, &apiv1.ThreadListRequest{},
		func(t *apiv1.Thread) error {
			s.threads[t.Tid] = t
			return nil
		})
	if err != nil {
		return fmt.Errorf("threads: %w", err)
	}
	return nil
}

// events reads the daemon's events after a number, and returns the number of the last one.
func events(ctx context.Context, c *api.Client, after uint64) (out []Event, last uint64, err error) {
	last = after
	err = api.Stream(ctx, c, apiv1.NewEventsClient, apiv1.EventsClient.List, &apiv1.EventListRequest{After: after},
		func(e *apiv1.Event) error {
			out = append(out, Event{e.Kind, e.Subject, e.Text})
			last = max(last, e.Number)
			return nil
		})
	if err != nil {
		return nil, after, fmt.Errorf("events: %w", err)
	}
	return out, last, nil
}
