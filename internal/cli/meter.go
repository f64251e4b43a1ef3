// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var meterListing = listing[*apiv1.Meter]{
	key: (*apiv1.Meter).GetName,
	columns: []column[*apiv1.Meter]{
		text("name", (*apiv1.Meter).GetName),
		text("rate", meterRate),
		text("burst", meterBurst),
		number("users", func(m *apiv1.Meter) uint32 { return m.GetState().GetUsers() }),
		counter("passed", func(m *apiv1.Meter) uint64 { return m.GetState().GetPassedPackets() }),
		counter("passed bytes", func(m *apiv1.Meter) uint64 { return m.GetState().GetPassedBytes() }),
		counter("dropped", func(m *apiv1.Meter) uint64 { return m.GetState().GetDroppedPackets() }),
		counter("dropped bytes", func(m *apiv1.Meter) uint64 { return m.GetState().GetDroppedBytes() }),
	},
}

var meterFlags = []fieldFlag{
	{flag: "bit-rate", help: "bits of IP packets per second"},
	{flag: "burst-bytes", help: "bytes that may pass at once (default: 50 ms of the rate, at least 65536)"},
	{flag: "packet-rate", help: "packets per second, instead of bits"},
	{flag: "burst-packets", help: "packets that may pass at once (default: 50 ms of the rate, at least 32)"},
}

func newMeterCmd(a *app) *cobra.Command {
	return noun("meter", "Meters: rate limits of ports and rules",
		newList(a, "List meters", "  corelane meter list\n  corelane meter list --watch", meterListing,
			metersNamed(a, "")),
		newShow(a, "METER", "Show a meter with its counters", "  corelane meter show gold --watch", meterNames,
			func(name string) (fetch[*apiv1.Meter], error) { return metersNamed(a, name), nil }),
		newMeterAdd(a), newMeterSet(a),
		newDel(a, "METER", "Remove meters that are not in use",
			"  corelane meter del gold", meterNames, func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewMetersClient, apiv1.MetersClient.Del,
					&apiv1.MeterDelRequest{Name: name}))
			}))
}

func newMeterAdd(a *app) *cobra.Command {
	m := &apiv1.Meter{}
	cmd := verb("add METER", "Add a meter", `  corelane meter add gold --bit-rate 1000000000
  corelane meter add dns --packet-rate 1000 --burst-packets 200
  corelane port set vm1 --egress-meter gold --ingress-meter gold`,
		func(ctx context.Context, args []string) error {
			m.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewMetersClient, apiv1.MetersClient.Add, &apiv1.MeterAddRequest{Meter: m}))
		})
	a.bind(cmd, m, meterFlags)
	return cmd
}

func newMeterSet(a *app) *cobra.Command {
	m := &apiv1.Meter{}
	var cmd *cobra.Command
	cmd = verb("set METER", "Change a meter, at once for all its users",
		`  corelane meter set gold --bit-rate 2000000000
  corelane meter set gold --bit-rate 0 --packet-rate 100000`,
		func(ctx context.Context, args []string) error {
			fields, err := needFields(cmd, meterFlags)
			if err != nil {
				return err
			}
			m.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewMetersClient, apiv1.MetersClient.Set,
				&apiv1.MeterSetRequest{Meter: m, Fields: fields}))
		})
	a.bind(cmd, m, meterFlags)
	cmd.ValidArgsFunction = a.complete(meterNames)
	return cmd
}

func meterRate(m *apiv1.Meter) string {
	if m.PacketRate != 0 {
		return strconv.FormatUint(uint64(m.PacketRate), 10) + " packets/s"
	}
	return strconv.FormatUint(m.BitRate, 10) + " bit/s"
}

func meterBurst(m *apiv1.Meter) string {
	burst := strconv.FormatUint(m.GetState().GetBurst(), 10)
	if m.PacketRate != 0 {
		return burst + " packets"
	}
	return burst + " bytes"
}

func metersNamed(a *app, name string) fetch[*apiv1.Meter] {
	return listOf(a, apiv1.NewMetersClient, apiv1.MetersClient.List, &apiv1.MeterListRequest{Name: name})
}

var meterNames = named(func(a *app) fetch[*apiv1.Meter] { return metersNamed(a, "") }, (*apiv1.Meter).GetName)
