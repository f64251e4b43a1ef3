// SPDX-License-Identifier: Apache-2.0

// reflector is a BGP route reflector for labs: GoBGP's server, with a session of each client.
//
//	reflector [--rtc] [--llgr SECONDS] [--password WORD] ASN ADDRESS CLIENT...
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
)

type options struct {
	rtc      bool
	llgr     uint
	password string
}

func main() {
	var o options
	flag.BoolVar(&o.rtc, "rtc", false, "send a client only what it asks for by route target (RFC 4684)")
	flag.UintVar(&o.llgr, "llgr", 0, "keep the paths of a client so many seconds after its restart time (RFC 9494)")
	flag.StringVar(&o.password, "password", "", "of all sessions, for TCP MD5")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "reflector:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("ASN, ADDRESS and clients are missing")
	}
	asn, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return err
	}
	s := server.NewBgpServer(server.LoggerOption(slog.New(slog.NewTextHandler(os.Stderr, nil)), &slog.LevelVar{}))
	go s.Serve()
	if err := s.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: uint32(asn), RouterId: args[1],
		ListenPort: 179, ListenAddresses: []string{args[1]}}}); err != nil {
		return err
	}
	if o.rtc {
		if err := wantAll(s, args[1]); err != nil {
			return err
		}
	}
	for _, client := range args[2:] {
		if err := s.AddPeer(ctx, &api.AddPeerRequest{Peer: o.peer(uint32(asn), args[1], client)}); err != nil {
			return fmt.Errorf("client %s: %w", client, err)
		}
	}
	<-ctx.Done()
	return nil
}

// wantAll announces the default route target (RFC 4684, section 4): clients that do not know of RT constraint cannot
// say what they want, and hear from the others only by this.
func wantAll(s *server.BgpServer, address string) error {
	self, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	all := bgp.NewRouteTargetMembershipNLRI(0, nil)
	reach, err := bgp.NewPathAttributeMpReachNLRI(bgp.RF_RTC_UC, []bgp.PathNLRI{{NLRI: all}}, self)
	if err != nil {
		return err
	}
	attrs := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0), reach, bgp.NewPathAttributeLocalPref(100)}
	_, err = s.AddPath(apiutil.AddPathRequest{
		Paths: []*apiutil.Path{{Family: bgp.RF_RTC_UC, Nlri: all, Attrs: attrs}}})
	return err
}

func (o options) peer(asn uint32, cluster, client string) *api.Peer {
	p := &api.Peer{
		Conf:           &api.PeerConf{NeighborAddress: client, PeerAsn: asn, AuthPassword: o.password},
		Transport:      &api.Transport{PassiveMode: true},
		RouteReflector: &api.RouteReflector{RouteReflectorClient: true, RouteReflectorClusterId: cluster},
		GracefulRestart: &api.GracefulRestart{Enabled: true, RestartTime: 120, NotificationEnabled: true,
			LonglivedEnabled: o.llgr > 0},
	}
	families := []bgp.Family{bgp.RF_IPv4_VPN, bgp.RF_IPv6_VPN, bgp.RF_EVPN}
	if o.rtc {
		families = append(families, bgp.RF_RTC_UC)
	}
	for _, f := range families {
		family := &api.AfiSafi{
			Config: &api.AfiSafiConfig{Enabled: true,
				Family: &api.Family{Afi: api.Family_Afi(f.Afi()), Safi: api.Family_Safi(f.Safi())}},
			MpGracefulRestart: &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}},
		}
		if o.llgr > 0 {
			family.LongLivedGracefulRestart = &api.LongLivedGracefulRestart{
				Config: &api.LongLivedGracefulRestartConfig{Enabled: true, RestartTime: uint32(o.llgr)}}
		}
		if f == bgp.RF_RTC_UC {
			family.RouteTargetMembership = &api.RouteTargetMembership{
				Config: &api.RouteTargetMembershipConfig{DeferralTime: 10}}
		}
		p.AfiSafis = append(p.AfiSafis, family)
	}
	return p
}
