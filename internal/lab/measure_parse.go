// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Ping is what ping(8) found.
type Ping struct {
	Sent     int     `json:"sent"`
	Received int     `json:"received"`
	MinMs    float64 `json:"min_ms"`
	AvgMs    float64 `json:"avg_ms"`
	MaxMs    float64 `json:"max_ms"`
}

// Lost is the number of echo requests without a reply.
func (p Ping) Lost() int { return p.Sent - p.Received }

// LossPercent is the share of the requests without a reply.
func (p Ping) LossPercent() float64 {
	if p.Sent == 0 {
		return 100
	}
	return 100 * float64(p.Lost()) / float64(p.Sent)
}

var (
	pingStart   = regexp.MustCompile(`(?m)^PING `)
	pingReply   = regexp.MustCompile(`(?m)^\d+ bytes from .* icmp_seq=(\d+) .*time=[\d.]+ ms$`)
	pingTimes   = regexp.MustCompile(`= ([\d.]+)/([\d.]+)/([\d.]+)/[\d.]+ ms`)
	pingSummary = regexp.MustCompile(`(?m)^\d+ packets transmitted, `)
)

// parsePing reads the lines of ping -w, which goes on sending until it has the wanted number of replies. It counts
// replies to the first `sent` requests, so that a late reply does not count as lost.
func parsePing(text string, sent int) (Ping, error) {
	p := Ping{Sent: sent}
	if !pingStart.MatchString(text) || !pingSummary.MatchString(text) {
		return p, fmt.Errorf("ping wrote no statistics: '%s'", firstLine(text))
	}
	seen := map[int]bool{}
	for _, m := range pingReply.FindAllStringSubmatch(text, -1) {
		seq, err := strconv.Atoi(m[1])
		if err == nil && seq <= sent && !seen[seq] {
			seen[seq] = true
			p.Received++
		}
	}
	if t := pingTimes.FindStringSubmatch(text); t != nil {
		if _, err := fmt.Sscan(strings.Join(t[1:], " "), &p.MinMs, &p.AvgMs, &p.MaxMs); err != nil {
			return p, fmt.Errorf("ping's '%s': %w", t[0], err)
		}
	}
	return p, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Rate is what iperf3 found at the receiver.
type Rate struct {
	BitsPerSecond float64 `json:"bits_per_second"`
	Retransmits   int     `json:"retransmits,omitempty"`        // TCP
	OfferedBps    float64 `json:"offered_bps,omitempty"`        // UDP
	LostPercent   float64 `json:"lost_percent,omitempty"`       // UDP
	PacketsPerSec float64 `json:"packets_per_second,omitempty"` // UDP, received
	Packets       int     `json:"packets,omitempty"`            // UDP, sent
	OutOfOrder    int     `json:"out_of_order,omitempty"`       // UDP
}

// iperfReport is the part of iperf3 -J that is used. UDP fills sum, and in later versions also sum_received.
type iperfReport struct {
	Error string `json:"error"`
	End   struct {
		Sum         *iperfSum `json:"sum"`
		SumSent     *iperfSum `json:"sum_sent"`
		SumReceived *iperfSum `json:"sum_received"`
		Streams     []struct {
			UDP struct {
				OutOfOrder int `json:"out_of_order"`
			} `json:"udp"`
		} `json:"streams"`
	} `json:"end"`
}

type iperfSum struct {
	Seconds       float64 `json:"seconds"`
	BitsPerSecond float64 `json:"bits_per_second"`
	Retransmits   int     `json:"retransmits"`
	Packets       int     `json:"packets"`
	LostPackets   int     `json:"lost_packets"`
	LostPercent   float64 `json:"lost_percent"`
}

func parseIperf(text string, udp bool) (Rate, error) {
	var r iperfReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Rate{}, fmt.Errorf("iperf3 did not write its report: %w: '%s'", err, firstLine(text))
	}
	if r.Error != "" {
		return Rate{}, fmt.Errorf("iperf3: %s", r.Error)
	}
	if udp {
		return udpRate(r)
	}
	if r.End.SumReceived == nil || r.End.SumSent == nil {
		return Rate{}, fmt.Errorf("iperf3's report has no sums")
	}
	return Rate{BitsPerSecond: r.End.SumReceived.BitsPerSecond, Retransmits: r.End.SumSent.Retransmits}, nil
}

func udpRate(r iperfReport) (Rate, error) {
	sum := r.End.Sum
	if sum == nil || sum.Seconds == 0 {
		return Rate{}, fmt.Errorf("iperf3's report has no sum")
	}
	out := Rate{OfferedBps: sum.BitsPerSecond, LostPercent: sum.LostPercent}
	out.BitsPerSecond = sum.BitsPerSecond * (1 - sum.LostPercent/100)
	out.PacketsPerSec = float64(sum.Packets-sum.LostPackets) / sum.Seconds
	out.Packets = sum.Packets
	for _, s := range r.End.Streams {
		out.OutOfOrder += s.UDP.OutOfOrder
	}
	return out, nil
}

// largest finds the largest size in [low, high] that fits, if all smaller ones fit; low-1 when none fits.
func largest(low, high int, fits func(int) (bool, error)) (int, error) {
	for low <= high {
		size := low + (high-low)/2
		ok, err := fits(size)
		switch {
		case err != nil:
			return 0, err
		case ok:
			low = size + 1
		default:
			high = size - 1
		}
	}
	return high, nil
}

// tsharkFields are the columns for describeFrame, in this order, separated by tabs. Commas separate several values.
var tsharkFields = []string{"frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "udp.srcport", "udp.dstport",
	"mpls.label", "vxlan.vni", "geneve.vni", "icmp.type", "icmpv6.type", "frame.len", "_ws.malformed"}

// describeFrame writes the layers of a line of tshark -T fields, from the outermost on.
func describeFrame(line string) (string, error) {
	columns := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
	if len(columns) != len(tsharkFields) {
		return "", fmt.Errorf("tshark wrote %d columns of %d: '%s'", len(columns), len(tsharkFields), line)
	}
	values := map[string][]string{}
	for i, name := range tsharkFields {
		values[name] = strings.Split(columns[i], ",")
	}
	next := func(name string) string { // the outermost layer of a kind comes first
		list := values[name]
		if len(list) == 0 {
			return "?"
		}
		values[name] = list[1:]
		return list[0]
	}
	var parts []string
	for i, layer := range strings.Split(columns[0], ":") {
		switch layer {
		case "ip", "ipv6":
			parts = append(parts, map[string]string{"ip": "IPv4 ", "ipv6": "IPv6 "}[layer]+next(layer+".src")+" > "+
				next(layer+".dst"))
		case "udp":
			parts = append(parts, "UDP "+next("udp.srcport")+" > "+next("udp.dstport"))
		case "mpls":
			parts = append(parts, "MPLS "+label(next("mpls.label")))
		case "vxlan":
			parts = append(parts, "VXLAN "+next("vxlan.vni"))
		case "geneve":
			parts = append(parts, "Geneve "+label(next("geneve.vni")))
		case "gre":
			parts = append(parts, "GRE")
		case "icmp", "icmpv6":
			parts = append(parts, icmpName(layer, next(layer+".type")))
		case "arp":
			parts = append(parts, "ARP")
		case "eth":
			if i > 0 {
				parts = append(parts, "Ethernet")
			}
		}
	}
	text := strings.Join(parts, " | ") + " | " + next("frame.len") + " bytes"
	if columns[len(columns)-1] != "" {
		text += " MALFORMED"
	}
	return text, nil
}

func icmpName(layer, kind string) string {
	known := map[string]string{"icmp 8": "ICMP echo request", "icmp 0": "ICMP echo reply",
		"icmpv6 128": "ICMPv6 echo request", "icmpv6 129": "ICMPv6 echo reply"}
	if name := known[layer+" "+kind]; name != "" {
		return name
	}
	return strings.Replace(layer, "icmp", "ICMP", 1) + " type " + kind
}

// label writes a label as a number: some versions of tshark write it in hexadecimal.
func label(text string) string {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return text
	}
	return strconv.FormatUint(n, 10)
}
