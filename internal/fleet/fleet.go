// SPDX-License-Identifier: Apache-2.0

// Package fleet makes a node a member of a fleet: it reads the intent, exchanges paths with peers, and gives the data
// plane what follows from both. It does the I/O for internal/vpn, which decides.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	agentv1 "github.com/corelane/corelane/internal/api/v1/agent"
	"github.com/corelane/corelane/internal/bgp"
	"github.com/corelane/corelane/internal/intent"
	"github.com/corelane/corelane/internal/state"
	"github.com/corelane/corelane/internal/vpn"
	"github.com/corelane/corelane/internal/wait"
)

const (
	// Owner of the agent's objects in the data plane.
	Owner = "agent"

	gather   = 5 * time.Millisecond // changes that come within this time are applied together
	retry    = time.Second          // after a refusal, or when the data plane does not answer
	underlay = time.Second          // between two looks at the routes of the underlay
	recheck  = time.Minute          // between two looks at what the data plane has
)

// Options of Run.
type Options struct {
	Intent  string // directory
	Journal string // directory
	Socket  string // where the agent answers; empty: nowhere
	Dial    func(context.Context) (*api.Client, error)
	Report  func(string) // what an operator should know
}

// Fleet is the running agent. mu protects everything below it; no call that waits for others is made with it held. Only
// enter locks it, so that the engine has heard of everything that peers did.
type Fleet struct {
	Options
	wake  chan struct{}
	inbox inbox

	mu       sync.Mutex
	engine   *vpn.Engine
	intent   *intent.Set
	journal  *vpn.Journal
	speaker  *bgp.Speaker
	sessions map[netip.Addr]*session
	refused  map[string]string // objects that the data plane refused, and why
	sync     agentv1.SyncStatus
	faults   uint64 // received paths that could not be read

	// Of the goroutine of Run alone.
	client  *api.Client
	started uint64          // of the data plane
	inStep  bool            // the data plane has what the engine returned last
	have    *state.State    // what the data plane has, if it was read and not compared yet
	read    time.Time       // when it was read
	ports   map[string]bool // those of the agent that the data plane has
	looked  time.Time       // at the underlay
	config  string          // of the speaker
}

type session struct {
	state  string
	reason string // why it ended; empty: it has not, or nothing is known
	since  time.Time
	eor    bool
}

// Run works until ctx ends.
func Run(ctx context.Context, o Options) error {
	journal, err := loadJournal(filepath.Join(o.Journal, journalFile))
	if err != nil {
		return err
	}
	f := &Fleet{Options: o, wake: make(chan struct{}, 1), engine: vpn.New(journal), journal: journal,
		intent: &intent.Set{}, sessions: map[netip.Addr]*session{}, refused: map[string]string{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, err := intent.Watch(ctx, o.Intent)
	if err != nil {
		return err
	}
	if o.Socket != "" {
		stop, err := f.serve(ctx, o.Socket)
		if err != nil {
			return err
		}
		defer stop()
	}
	go f.followMacs(ctx)
	f.loop(ctx, changed)
	if f.speaker != nil {
		f.speaker.Stop()
	}
	return nil
}

func (f *Fleet) loop(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTicker(retry)
	defer timer.Stop()
	f.load(ctx)
	for {
		if f.step(ctx) {
			if wait.For(ctx, retry) != nil { // after a failure no event hurries
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			f.load(ctx)
		case <-f.wake:
			_ = wait.For(ctx, gather)
			select {
			case <-f.wake:
			default:
			}
		case <-timer.C:
		}
	}
}

func (f *Fleet) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// load reads the intent again.
func (f *Fleet) load(ctx context.Context) {
	set, err := intent.Load(f.Intent)
	if err != nil {
		f.Report(fmt.Sprintf("intent: %v; the previous intent stays in force", err))
		return
	}
	f.enter()
	f.intent = set
	f.engine.Tick(time.Now())
	f.engine.SetIntent(set)
	f.mu.Unlock()
	for _, o := range set.Objects {
		if o.Error != "" {
			f.Report(fmt.Sprintf("%s '%s' of %s, line %d: %s", o.Kind, o.Name, o.File, o.Line, o.Error))
		}
	}
}

// step brings the data plane and the peers in line. It returns true if something is left to do.
func (f *Fleet) step(ctx context.Context) bool {
	if err := f.observe(ctx); err != nil {
		f.note(err)
		return true
	}
	f.enter()
	f.engine.Tick(time.Now())
	var want, was *state.State
	if was = f.have; was != nil { // all is compared
		want = f.engine.Desired()
	} else {
		want, was = f.engine.Changes()
	}
	f.have = nil
	save := f.journal.Changed
	f.mu.Unlock()
	if save { // before peers hear of new labels
		if err := f.saveJournal(); err != nil {
			f.inStep = false
			f.note(err)
			return true
		}
	}
	err := f.apply(ctx, want, was)
	if err == nil {
		err = f.converse(ctx)
	}
	f.note(err)
	return err != nil
}

func (f *Fleet) note(err error) {
	f.enter()
	defer f.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
		f.sync.InStepSinceNs = 0
	} else if f.sync.InStepSinceNs == 0 {
		f.sync.InStepSinceNs = uint64(time.Now().UnixNano())
	}
	if text != "" && text != f.sync.Error {
		go f.Report(text)
	}
	f.sync.Error = text
}

// observe connects to the data plane if need be, and reads what the agent has to know of it.
func (f *Fleet) observe(ctx context.Context) error {
	if f.client == nil {
		c, err := f.Dial(ctx)
		if err != nil {
			return err
		}
		f.client = c
	}
	if !f.inStep && f.have == nil || time.Since(f.read) > recheck {
		if err := f.readAll(ctx); err != nil {
			return f.lost(err)
		}
	}
	if time.Since(f.looked) >= underlay {
		if err := f.look(ctx); err != nil {
			return f.lost(err)
		}
	}
	return nil
}

// lost closes the connection after an error that is no refusal.
func (f *Fleet) lost(err error) error {
	var refused *api.Error
	f.have, f.inStep = nil, false
	if !errors.As(err, &refused) && f.client != nil {
		_ = f.client.Close()
		f.client = nil
	}
	return err
}

func (f *Fleet) readAll(ctx context.Context) error {
	have, err := state.Read(ctx, f.client)
	if err != nil {
		return err
	}
	status, err := api.Call(ctx, f.client, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err != nil {
		return err
	}
	router, err := routerMac(ctx, f.client)
	if err != nil {
		return err
	}
	f.have, f.read = have, time.Now()
	f.enter()
	defer f.mu.Unlock()
	if f.started == 0 { // this agent has just started: what the data plane has is right until peers speak
		f.engine.Tick(f.read)
		f.engine.Hold(have)
	}
	f.started = status.StartedNs
	f.engine.SetRouterMac(router)
	f.ports = map[string]bool{}
	for _, p := range have.Ports {
		f.ports[p.Name] = true
	}
	f.engine.SetPorts(f.ports)
	return nil
}

// routerMac returns the MAC address that the data plane has in packets between VRFs, which is that of all of them.
func routerMac(ctx context.Context, c *api.Client) (mac string, err error) {
	err = api.Stream(ctx, c, apiv1.NewVrfsClient, apiv1.VrfsClient.List, &apiv1.VrfListRequest{Name: state.FabricVrf},
		func(v *apiv1.Vrf) error {
			mac = v.RouterMac
			return nil
		})
	return mac, err
}

// look reads the routes of the underlay, and whether the data plane is still the same one.
func (f *Fleet) look(ctx context.Context) error {
	status, err := api.Call(ctx, f.client, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err != nil {
		return err
	}
	if status.StartedNs != f.started {
		if err := f.readAll(ctx); err != nil {
			return err
		}
	}
	var reach []netip.Prefix
	err = api.Stream(ctx, f.client, apiv1.NewRoutesClient, apiv1.RoutesClient.List,
		&apiv1.RouteListRequest{Vrf: state.FabricVrf}, func(r *apiv1.Route) error {
			if p, err := netip.ParsePrefix(r.Prefix); err == nil && r.Origin != "local" {
				reach = append(reach, p)
			}
			return nil
		})
	if err != nil {
		return err
	}
	f.looked = time.Now()
	f.enter()
	f.engine.SetReach(reach)
	f.mu.Unlock()
	return nil
}

// converse starts what speaks BGP if need be, and tells peers what has changed.
func (f *Fleet) converse(ctx context.Context) error {
	f.enter()
	set := f.intent
	paths, imports := f.engine.Announcements(), f.engine.Imports()
	f.mu.Unlock()
	config := set.Bgp.String()
	if f.speaker != nil && config != f.config {
		f.speaker.Stop()
		f.enter()
		f.speaker = nil
		for a := range f.sessions {
			f.engine.PeerDown(a)
		}
		f.sessions = map[netip.Addr]*session{}
		f.mu.Unlock()
	}
	if set.Bgp == nil {
		return nil
	}
	if f.speaker == nil {
		s, err := bgp.Start(ctx, set.Bgp, f.event)
		if err != nil {
			return err
		}
		f.enter()
		for text := range f.journal.Unconstrained {
			if a, err := netip.ParseAddr(text); err == nil {
				s.Unconstrained(a)
			}
		}
		f.speaker, f.config = s, config
		f.mu.Unlock()
	}
	err := f.speaker.Want(imports) // both first, so that a session's first words are complete
	if _, announced := f.speaker.Announce(paths); err == nil {
		err = announced
	}
	if peers := f.speaker.SetPeers(ctx, set.Peers); err == nil {
		err = peers
	}
	return err
}

// event takes what a peer did.
func (f *Fleet) event(ev bgp.Event) {
	if f.inbox.add(ev) {
		f.enter()
		f.mu.Unlock()
	}
	f.nudge()
}

// enter locks mu, and tells the engine what peers did since the last time.
func (f *Fleet) enter() {
	f.mu.Lock()
	events := f.inbox.take()
	if len(events) == 0 {
		return
	}
	f.engine.Tick(time.Now())
	for i := range events {
		f.tell(&events[i])
	}
}

func (f *Fleet) tell(ev *bgp.Event) {
	s := f.sessions[ev.Peer]
	if s == nil {
		s = &session{since: time.Now()}
		f.sessions[ev.Peer] = s
	}
	if ev.State != "" && ev.State != s.state {
		s.state, s.since = ev.State, time.Now()
	}
	switch {
	case ev.Up:
		s.eor, s.reason = false, ""
		f.journal.NoteConstraint(ev.Peer, !ev.Unconstrained)
		f.engine.PeerUp(ev.Peer)
	case ev.Down:
		s.reason = cmp.Or(ev.Reason, s.reason)
		f.engine.PeerDown(ev.Peer)
	case ev.EndOfRib:
		s.eor = true
		f.engine.EndOfRib(ev.Peer)
	}
	f.engine.Withdraw(ev.Withdrawn...)
	f.engine.Update(ev.Updates...)
	f.faults += uint64(ev.Faults)
}
