// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fixture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParsePing(t *testing.T) {
	tests := []struct {
		file string
		sent int
		want Ping
	}{
		{"ping6_ok.txt", 3, Ping{Sent: 3, Received: 3, MinMs: 0.339, AvgMs: 0.392, MaxMs: 0.459}},
		{"ping_dead.txt", 2, Ping{Sent: 2}},
		{"ping_toobig.txt", 1, Ping{Sent: 1}},
		{"ping_toobig_local.txt", 1, Ping{Sent: 1}},
		// The replies came late, all at once: ping had sent more by then, but none of the first five is lost.
		{"ping_late.txt", 5, Ping{Sent: 5, Received: 5, MinMs: 52.744, AvgMs: 520.335, MaxMs: 984.774}},
	}
	for _, test := range tests {
		got, err := parsePing(fixture(t, test.file), test.sent)
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v", test.file, got, err)
		}
	}
}

func TestParsePingLosesTheRightOnes(t *testing.T) {
	text := `PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.
64 bytes from 10.0.0.1: icmp_seq=1 ttl=62 time=1.00 ms
64 bytes from 10.0.0.1: icmp_seq=1 ttl=62 time=1.10 ms (DUP!)
64 bytes from 10.0.0.1: icmp_seq=3 ttl=62 time=1.00 ms
64 bytes from 10.0.0.1: icmp_seq=4 ttl=62 time=1.00 ms

--- 10.0.0.1 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 600ms
rtt min/avg/max/mdev = 1.000/1.000/1.000/0.000 ms
`
	got, err := parsePing(text, 3)
	if err != nil || got.Received != 2 || got.Lost() != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "ping: connect: Network is unreachable\n",
		"PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n"} {
		if p, err := parsePing(bad, 3); err == nil {
			t.Errorf("%q gives %+v", bad, p)
		}
	}
}

func TestParseIperf(t *testing.T) {
	tcp, err := parseIperf(fixture(t, "iperf_tcp.json"), false)
	if err != nil || tcp.BitsPerSecond < 513e6 || tcp.BitsPerSecond > 514e6 || tcp.Retransmits != 0 {
		t.Errorf("%+v, %v", tcp, err)
	}
	udp, err := parseIperf(fixture(t, "iperf_udp.json"), true)
	if err != nil || BitRate(udp.BitsPerSecond) != "50 Mbit/s" || udp.LostPercent != 0 ||
		int(udp.PacketsPerSec) != 4459 {
		t.Errorf("%+v, %v", udp, err)
	}
	_, err = parseIperf(fixture(t, "iperf_refused.json"), false)
	if err == nil || err.Error() != "iperf3: unable to connect to server: Connection refused" {
		t.Error(err)
	}
	for _, bad := range []string{"", "{", "{}", `{"end":{"sum":{"seconds":0}}}`} {
		for _, udp := range []bool{false, true} {
			if r, err := parseIperf(bad, udp); err == nil {
				t.Errorf("%q gives %+v", bad, r)
			}
		}
	}
}

func TestLargest(t *testing.T) {
	for real := 1279; real <= 1601; real++ {
		probes := 0
		got, err := largest(1280, 1600, func(size int) (bool, error) { probes++; return size <= real, nil })
		if want := min(real, 1600); err != nil || got != want || probes > 9 {
			t.Fatalf("%d: found %d with %d probes, %v", real, got, probes, err)
		}
	}
	broken := errors.New("broken")
	if _, err := largest(1, 10, func(int) (bool, error) { return false, broken }); err != broken {
		t.Error(err)
	}
}

func TestDescribeFrame(t *testing.T) {
	var got []string
	for line := range strings.Lines(fixture(t, "tshark.txt")) {
		text, err := describeFrame(line)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	want := []string{
		"IPv4 192.0.2.1 > 192.0.2.2 | UDP 65336 > 6635 | MPLS 1012 | IPv4 10.1.1.11 > 10.1.2.12 | ICMP echo request " +
			"| 130 bytes",
		"IPv4 192.0.2.2 > 192.0.2.1 | UDP 54097 > 6635 | MPLS 1011 | IPv4 10.1.2.12 > 10.1.1.11 | ICMP echo reply | " +
			"130 bytes",
		"IPv4 192.0.2.1 > 192.0.2.2 | GRE | MPLS 1022 | IPv4 10.2.1.11 > 10.2.2.12 | ICMP echo request | 126 bytes",
		"IPv4 192.0.2.2 > 192.0.2.1 | GRE | MPLS 1021 | IPv4 10.2.2.12 > 10.2.1.11 | ICMP echo reply | 126 bytes",
		"IPv4 192.0.2.1 > 192.0.2.2 | UDP 50333 > 4789 | VXLAN 3000 | Ethernet | IPv4 10.3.1.11 > 10.3.2.12 | ICMP " +
			"echo request | 148 bytes",
		"IPv4 192.0.2.2 > 192.0.2.1 | UDP 62656 > 4789 | VXLAN 3000 | Ethernet | IPv4 10.3.2.12 > 10.3.1.11 | ICMP " +
			"echo reply | 148 bytes",
		"IPv4 192.0.2.1 > 192.0.2.2 | UDP 52342 > 4789 | VXLAN 5000 | Ethernet | ARP | 92 bytes",
		"IPv4 192.0.2.1 > 192.0.2.3 | UDP 52342 > 4789 | VXLAN 5000 | Ethernet | ARP | 92 bytes",
		"IPv4 192.0.2.1 > 192.0.2.2 | UDP 51358 > 6081 | Geneve 4000 | Ethernet | IPv4 10.5.1.11 > 10.5.2.12 | ICMP " +
			"echo request | 148 bytes",
		"IPv4 192.0.2.2 > 192.0.2.1 | UDP 52164 > 6081 | Geneve 4000 | Ethernet | IPv4 10.5.2.12 > 10.5.1.11 | ICMP " +
			"echo reply | 148 bytes",
	}
	if strings.Join(got[4:], "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s", strings.Join(got[4:], "\n"))
	}
	bad, err := describeFrame("eth:ethertype:ipv6:udp:mpls:ipv6:icmpv6\t\t\t" +
		"2001:db8::1,fd00::1\t2001:db8::2,fd00::2\t1\t6635\t0x3e9\t\t\t\t135\t99\t1")
	if err != nil || bad != "IPv6 2001:db8::1 > 2001:db8::2 | UDP 1 > 6635 | MPLS 1001 | IPv6 fd00::1 > fd00::2 | "+
		"ICMPv6 type 135 | 99 bytes MALFORMED" {
		t.Errorf("%s, %v", bad, err)
	}
	if text, err := describeFrame("eth:ip\t1\t2"); err == nil {
		t.Errorf("too few columns give %s", text)
	}
}

func TestPickFrames(t *testing.T) {
	overlay, err := Find("overlay")
	if err != nil {
		t.Fatal(err)
	}
	p := overlay.paths(overlay.Networks[1])[0]
	got, err := pickFrames(fixture(t, "tshark.txt"), p)
	if err != nil || len(got) != 2 || !strings.Contains(got[0], "MPLS 1022") || !strings.Contains(got[1], "MPLS 1021") {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTexts(t *testing.T) {
	for bps, want := range map[float64]string{12: "12 bit/s", 1234: "1.23 kbit/s", 735e6: "735 Mbit/s",
		1.121e9: "1.12 Gbit/s"} {
		if got := BitRate(bps); got != want {
			t.Errorf("%v: %s", bps, got)
		}
	}
	if got := LossText(map[string]uint64{"b": 2, "a": 2, "c": 30}); got != "c 30, a 2, b 2" {
		t.Error(got)
	}
	if got := LossText(nil); got != "none" {
		t.Error(got)
	}
	if a, b := (MTU{1568, 1568, 1568}).String(), (MTU{1568, 1500, 1568}).String(); a != "1568" ||
		b != "1500/1568, not 1568" {
		t.Error(a, b)
	}
}

func TestRowIsOnlyWellWithAllPings(t *testing.T) {
	good := Ping{Sent: 20, Received: 20}
	for _, test := range []struct {
		row  Row
		want bool
	}{
		{Row{Ping4: good, Ping6: good}, true},
		{Row{Ping4: good, Ping6: Ping{Sent: 20, Received: 19}}, false},
		{Row{Ping4: good}, false},
		{Row{Ping4: good, Ping6: good, Error: "iperf3 is not there"}, false},
	} {
		if test.row.OK() != test.want {
			t.Errorf("%+v", test.row)
		}
	}
	if (Report{}).OK() {
		t.Error("nothing was measured")
	}
}

func TestSwitchingIsOnlyWellWithBothWorkers(t *testing.T) {
	good := Switching{Changes: 9, UDP: Rate{PacketsPerSec: 1000}, Second: 5}
	if !good.OK() {
		t.Error("all was well")
	}
	for what, spoil := range map[string]func(*Switching){
		"nothing changed":           func(s *Switching) { s.Changes = 0 },
		"no packet":                 func(s *Switching) { s.UDP.PacketsPerSec = 0 },
		"none at the second worker": func(s *Switching) { s.Second = 0 },
		"lost":                      func(s *Switching) { s.Lost = 1 },
		"reordered":                 func(s *Switching) { s.UDP.OutOfOrder = 1 },
		"an error":                  func(s *Switching) { s.Error = "iperf3 is not there" },
	} {
		s := good
		spoil(&s)
		if s.OK() {
			t.Error(what)
		}
	}
}

func TestLastTable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "",
		"ID  CPU\n 0  1\n":                     "ID  CPU\n 0  1",
		"ID  CPU\n 0  1\n\nID  CPU\n 0  2\n":   "ID  CPU\n 0  2",
		"ID  CPU\n 0  1\n\nID   CPU\n 10  2\n": "ID   CPU\n 10  2", // columns have grown
	} {
		if got := lastTable(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
