// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// Dpvs is the content of dpvs.conf and its command line. Workers are lcores of EAL; --lcores maps them to CPUs.
type Dpvs struct {
	File    string
	Blocks  []DpvsBlock
	Queues  map[string]int // number of rx queues of each device in netif_defs
	Lcores  map[int]cpuset.Set
	Order   []int // lcores in their order
	Where   string
	Master  int // --master-lcore; -1: not given
	Command bool
}

// DpvsBlock is one worker of worker_defs.
type DpvsBlock struct {
	Name, Type string
	Lcore      int // -1: not valid
	Line       int
	Ports      []DpvsPort
}

// DpvsPort is a device of a worker.
type DpvsPort struct {
	Name   string
	Rx, Tx []int
	IsolRx []int
	Ring   int
	Line   int
}

var dpvsKeys = []string{"type", "cpu_id", "port", "icmp_redirect_core"}
var dpvsPortKeys = []string{"rx_queue_ids", "tx_queue_ids", "isol_rx_cpu_ids", "isol_rxq_ring_sz"}

// dpvs reads dpvs.conf, or a file with the command line.
func (s *scanner) dpvs(text string) error {
	if s.Dpvs == nil {
		s.Dpvs = &Dpvs{Queues: map[string]int{}, Lcores: map[int]cpuset.Set{}, Master: -1}
	}
	if strings.Contains(text, "{") {
		s.Dpvs.File = s.file
		s.dpvsConf(text)
	} else {
		s.lcores(text)
	}
	return nil
}

// dpvsConf parses the lines. path holds the words that opened each enclosing block.
func (s *scanner) dpvsConf(text string) {
	var path [][]string
	line := 0
	for l := range strings.Lines(text) {
		line++
		words := dpvsWords(l)
		for len(words) > 0 && words[0] == "}" {
			if len(path) == 0 {
				s.find(Wrong, line, "", "DPVS stops reading here", "there is an extra '}'")
				return
			}
			path, words = path[:len(path)-1], words[1:]
		}
		if len(words) == 0 {
			continue
		}
		open := words[len(words)-1] == "{"
		if open {
			words = words[:len(words)-1]
		}
		s.dpvsLine(path, words, line)
		if open {
			path = append(path, words)
		}
	}
	if len(path) > 0 {
		s.find(Wrong, line, "}", "the following lines belong to the wrong block", "%d '}' missing at the end",
			len(path))
	}
}

// dpvsWords returns the words of a line without comments, which begin with # or !, and without words in <>.
func dpvsWords(line string) []string {
	if i := strings.IndexAny(line, "#!"); i >= 0 {
		line = line[:i]
	}
	for {
		i := strings.Index(line, "<")
		j := strings.Index(line, ">")
		if i < 0 || j < i {
			break
		}
		line = line[:i] + " " + line[j+1:]
	}
	return strings.Fields(strings.NewReplacer("{", " { ", "}", " } ").Replace(line))
}

// isPath reports whether the enclosing blocks begin with these words.
func isPath(path [][]string, names ...string) bool {
	if len(path) != len(names) {
		return false
	}
	for i, name := range names {
		if len(path[i]) == 0 || path[i][0] != name {
			return false
		}
	}
	return true
}

func (s *scanner) dpvsLine(path [][]string, words []string, line int) {
	if len(words) == 0 {
		return
	}
	value := ""
	if len(words) > 1 {
		value = words[1]
	}
	switch {
	case isPath(path, "worker_defs"):
		if words[0] != "worker" {
			s.unknown(words[0], line, []string{"worker"}, Wrong)
			return
		}
		s.Dpvs.Blocks = append(s.Dpvs.Blocks, DpvsBlock{Name: value, Lcore: -1, Line: line})
	case isPath(path, "worker_defs", "worker") && len(s.Dpvs.Blocks) > 0:
		s.dpvsWorker(&s.Dpvs.Blocks[len(s.Dpvs.Blocks)-1], words[0], value, line)
	case isPath(path, "worker_defs", "worker", "port") && len(s.Dpvs.Blocks) > 0:
		if b := &s.Dpvs.Blocks[len(s.Dpvs.Blocks)-1]; len(b.Ports) > 0 {
			s.dpvsPort(&b.Ports[len(b.Ports)-1], words, line)
		}
	case isPath(path, "netif_defs", "device", "rx") && words[0] == "queue_number" && len(path[1]) > 1:
		s.Dpvs.Queues[path[1][1]] = number(value)
	}
}

func (s *scanner) dpvsWorker(b *DpvsBlock, key, value string, line int) {
	switch key {
	case "type":
		if b.Type = value; !slices.Contains([]string{"master", "slave", "kni"}, value) {
			s.find(Wrong, line, "master, slave, kni", "DPVS takes it as 'slave' and reports that in its log only",
				"worker %s: unknown type '%s'", b.Name, value)
			b.Type = "slave"
		}
	case "cpu_id":
		if b.Lcore = number(value); b.Lcore < 0 || b.Lcore > 63 {
			s.find(Wrong, line, "0 to 63", "DPVS takes it as 0 and reports that in its log only",
				"worker %s: cpu_id '%s'", b.Name, value)
			b.Lcore = -1
		}
	case "port":
		b.Ports = append(b.Ports, DpvsPort{Name: value, Line: line})
	case "icmp_redirect_core":
	default:
		s.unknown(key, line, dpvsKeys, Wrong)
	}
}

func (s *scanner) dpvsPort(p *DpvsPort, words []string, line int) {
	switch words[0] {
	case "rx_queue_ids":
		p.Rx = s.dpvsNumbers(words, line, 15, "DPVS takes it as queue 0")
	case "tx_queue_ids":
		p.Tx = s.dpvsNumbers(words, line, 63, "DPVS takes it as queue 0")
	case "isol_rx_cpu_ids":
		p.IsolRx = s.dpvsNumbers(words, line, 63, "the worker then receives by itself, and DPVS does not report it")
	case "isol_rxq_ring_sz":
		value := strings.Join(words[1:], " ")
		p.Ring = number(value)
		const least, most = 1024, 1 << 31
		if p.Ring < least || p.Ring > most || p.Ring&(p.Ring-1) != 0 {
			s.find(Wrong, line, "a power of two from 1024 to 2147483648", "the ring is not created, or is smaller",
				"isol_rxq_ring_sz: '%s'", value)
		}
	default:
		s.unknown(words[0], line, dpvsPortKeys, Wrong)
	}
}

func (s *scanner) dpvsNumbers(words []string, line, most int, why string) []int {
	var list []int
	for _, w := range words[1:] {
		n := number(w)
		if n < 0 || n > most {
			s.find(Wrong, line, "numbers with spaces between them", why, "%s: '%s'", words[0], w)
			continue
		}
		list = append(list, n)
	}
	return list
}

// lcores reads a command line: --lcores 0@1,(2-3)@4, --master-lcore 2.
func (s *scanner) lcores(text string) {
	words := strings.Fields(strings.NewReplacer("=", " ", `\`, " ", `"`, "", "'", "").Replace(text))
	s.Dpvs.Command, s.Dpvs.Where = true, s.file
	for i, w := range words {
		if i+1 == len(words) {
			break
		}
		switch w {
		case "--lcores":
			s.lcoreMap(words[i+1])
		case "--master-lcore", "--main-lcore":
			if s.Dpvs.Master = number(words[i+1]); s.Dpvs.Master < 0 {
				s.find(Wrong, 0, "", "EAL refuses it", "%s: '%s' is not an lcore", w, words[i+1])
			}
		case "-c", "-l":
			s.find(Wrong, 0, "--lcores", "DPVS numbers its workers by lcore, and this option renumbers lcores",
				"%s %s", w, words[i+1])
		}
	}
}

// lcoreMap splits at commas outside of parentheses. Without @ an lcore runs on the CPU with its number.
func (s *scanner) lcoreMap(text string) {
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '(':
			depth++
		case i < len(text) && text[i] == ')':
			depth--
		case i == len(text) || text[i] == ',' && depth <= 0:
			s.lcorePair(text[from:i])
			from = i + 1
		}
	}
}

func (s *scanner) lcorePair(text string) {
	left, right, mapped := strings.Cut(text, "@")
	lcores, err := parseCPUs(left, option)
	cpus := lcores
	if mapped && err == nil {
		cpus, err = parseCPUs(right, option)
	}
	if err != nil || lcores.Empty() || cpus.Empty() || lcores.Len() > 1024 {
		s.find(Wrong, 0, "--lcores 0@1,1@2", "EAL refuses it", "--lcores: '%s'", text)
		return
	}
	for _, id := range lcores.IDs() {
		set := cpus
		if !mapped {
			set = cpuset.Of(id)
		}
		if _, twice := s.Dpvs.Lcores[id]; twice {
			s.find(Wrong, 0, "", "the last one wins", "--lcores: lcore %d occurs twice", id)
		} else {
			s.Dpvs.Order = append(s.Dpvs.Order, id)
		}
		s.Dpvs.Lcores[id] = set
	}
}
