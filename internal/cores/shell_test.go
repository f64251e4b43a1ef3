// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// shell runs the commands that remedies print on the files of a machine, as its kernel and its tools would. It has no
// other commands: an unknown one is an error.
type shell struct {
	host
	plan   *plan.Plan // nil: none was made yet
	state  string     // directory of the journal
	remade bool       // the plan is a new one and not verified yet
	other  bool       // the plan is not the first one
	// the machine of the last look, for its guests and the names of threads; nil: threads were started or ended since
	known *topology.Machine
}

// names returns a machine whose guests, processes and names of threads are right. Reading a machine takes thousands of
// system calls.
func (s *shell) names() (*topology.Machine, error) {
	if s.known != nil {
		return s.known, nil
	}
	m, err := topology.Read(s.root)
	s.known = m
	return m, err
}

// word splits a command line; quotes of one kind group words.
var word = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

func (s *shell) run(line string) error {
	line, note, _ := strings.Cut(line, "   #")
	if strings.HasPrefix(line, "#") {
		return nil
	}
	for part := range strings.SplitSeq(line, " && ") {
		if err := s.command(strings.TrimSpace(part), note); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

func (s *shell) command(line, note string) error {
	args := word.FindAllString(line, -1)
	for len(args) < 8 {
		args = append(args, "")
	}
	switch args[0] + " " + args[1] {
	case "taskset -pc":
		return s.taskset(args[3], args[2])
	case "virsh vcpupin":
		return s.domain(args[2], pinOf("vcpupin vcpu", args[3], args[4]), "CPU "+args[3]+"/KVM", args[4])
	case "virsh iothreadpin":
		return s.domain(args[2], pinOf("iothreadpin iothread", args[3], args[4]), "IO iothread"+args[3], args[4])
	case "virsh emulatorpin":
		return s.domain(args[2], pinOf("emulatorpin", "", args[3]), "", args[3])
	case "virsh setvcpus":
		return s.setvcpus(args[2], args[3])
	case "virsh numatune":
		return s.domain(args[2], func(xml string) string {
			return regexp.MustCompile(`nodeset='[^']*'`).ReplaceAllString(xml, "nodeset='"+args[6]+"'")
		}, "-", "")
	case "virsh edit":
		queues := regexp.MustCompile(`queues='\d+'`).FindString(note)
		return s.domain(args[2], func(xml string) string {
			xml = regexp.MustCompile(`<driver [^>]*>`).ReplaceAllString(xml, "")
			return strings.ReplaceAll(xml, "</interface>", "<driver "+queues+"/></interface>")
		}, "-", "")
	case "crudini --set":
		return s.crudini(args[2], args[3], args[4], args[5])
	case "crudini --del":
		return s.edit(args[2], func(text string) string {
			return regexp.MustCompile(`(?m)^`+args[4]+` *=.*\n`).ReplaceAllString(text, "")
		})
	case "systemctl set-property":
		return s.slice(args[3], strings.TrimPrefix(args[4], "AllowedCPUs="))
	case "systemctl restart":
		return nil // it reads its settings
	case "sed -i":
		parts := strings.Split(strings.Trim(args[2], "'"), "/")
		return s.edit(args[3], func(text string) string {
			return regexp.MustCompile("(?m)"+parts[1]).ReplaceAllString(text, parts[2])
		})
	case "corelane worker":
		if args[2] == "del" {
			return s.delWorker(args[3])
		}
		return s.addWorker(args[4])
	case "corelane plan":
		return s.makePlan(args[3:])
	case "corelane cores":
		if args[2] == "apply" {
			return s.apply()
		}
	}
	if args[0] == "echo" && args[2] == ">" {
		return s.echo(args[1], strings.TrimPrefix(args[3], "/"))
	}
	if args[0] == "echo" && args[2] == ">>" {
		old, _ := s.read(args[3][1:])
		return s.put(args[3], old+args[1]+"\n")
	}
	return fmt.Errorf("unknown command")
}

func (s *shell) put(name, text string) error {
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func (s *shell) edit(name string, change func(string) string) error {
	text, err := s.read(strings.TrimPrefix(name, "/"))
	if err != nil {
		return err
	}
	return s.put(name, change(text))
}

// echo writes a setting. The file exists, as in a kernel's filesystem.
func (s *shell) echo(value, name string) error {
	if _, err := s.stat(name); err != nil {
		return err
	}
	if dir, is := strings.CutSuffix(name, "/smp_affinity_list"); is {
		if err := s.put(dir+"/effective_affinity_list", fmt.Sprintln(setOf(value).First())); err != nil {
			return err
		}
	}
	if dir, is := strings.CutSuffix(name, "/cpuset.cpus"); is {
		for _, effective := range []string{"/cpuset.cpus.effective", "/cpuset.effective_cpus"} {
			if _, err := s.stat(dir + effective); err == nil {
				if err := s.put(dir+effective, value+"\n"); err != nil {
					return err
				}
			}
		}
	}
	return s.put(name, value+"\n")
}

// addWorker starts a worker of the running daemon.
func (s *shell) addWorker(cpu string) error {
	m, err := s.names()
	if err != nil {
		return err
	}
	s.known = nil
	for _, t := range m.Threads {
		if t.Process == daemon && t.TID == t.PID {
			n := len(m.Threads)
			files := map[string]string{}
			task(files, topology.Thread{TID: 50000 + n, PID: t.PID, Name: fmt.Sprintf("pmd-fwd-%d", n),
				Allowed: setOf(cpu), Cgroup: t.Cgroup})
			for name, text := range files {
				if err := s.put(name, text); err != nil {
					return err
				}
			}
			return s.pin(t.PID, 50000+n, setOf(cpu))
		}
	}
	return fmt.Errorf("corelaned does not run")
}

// delWorker ends a worker of the running daemon.
func (s *shell) delWorker(id string) error {
	m, err := s.names()
	if err != nil {
		return err
	}
	s.known = nil
	for _, t := range m.Threads {
		if n, is := workerID(t.Name); is && t.Process == daemon && strconv.Itoa(n) == id {
			return os.RemoveAll(s.path(fmt.Sprintf("proc/%d/task/%d", t.PID, t.TID)))
		}
	}
	return fmt.Errorf("no worker %s", id)
}

func (s *shell) taskset(tid, list string) error {
	found, err := filepath.Glob(s.path("proc/*/task/" + tid))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("no thread %s", tid)
	}
	pid := filepath.Base(filepath.Dir(filepath.Dir(found[0])))
	p, _ := strconv.Atoi(pid)
	t, _ := strconv.Atoi(tid)
	return s.pin(p, t, setOf(list))
}

// pin sets a thread's CPUs. The kernel moves it to one of them at once.
func (s *shell) pin(pid, tid int, cpus cpuset.Set) error {
	if cpus.Empty() {
		return fmt.Errorf("no CPUs")
	}
	if err := s.setAllowed(pid, tid, cpus); err != nil {
		return err
	}
	const lastCPU = 39 // field of proc(5), counted from 1
	return s.edit(fmt.Sprintf("proc/%d/task/%d/stat", pid, tid), func(text string) string {
		head, rest, _ := strings.Cut(text, ") ")
		fields := strings.Fields(rest)
		if at, err := strconv.Atoi(fields[lastCPU-3]); err != nil || !cpus.Has(at) {
			fields[lastCPU-3] = strconv.Itoa(cpus.First())
		}
		return head + ") " + strings.Join(fields, " ") + "\n"
	})
}

// pinOf returns an edit of a domain's XML.
func pinOf(element, number, list string) func(string) string {
	name, _, _ := strings.Cut(element, " ")
	if number != "" {
		element += "='" + number + "'"
	}
	return func(xml string) string {
		xml = regexp.MustCompile(`<`+element+` cpuset='[^']*'/>`).ReplaceAllString(xml, "")
		if !strings.Contains(xml, "</cputune>") {
			xml = strings.Replace(xml, "<devices>", "<cputune></cputune><devices>", 1)
		}
		_ = name
		return strings.Replace(xml, "</cputune>", "<"+element+" cpuset='"+list+"'/></cputune>", 1)
	}
}

// domain edits the definition of a guest, and moves its running threads of a name; an empty name stands for all that
// are neither vCPUs nor I/O threads.
func (s *shell) domain(guest string, edit func(string) string, name, list string) error {
	if err := s.edit("etc/libvirt/qemu/"+guest+".xml", edit); err != nil {
		return err
	}
	m, err := s.names()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(m.Guests, func(g topology.Guest) bool { return g.Name == guest })
	if at < 0 {
		return fmt.Errorf("no guest %s", guest)
	}
	for _, t := range m.Threads {
		pid := m.Guests[at].PID
		mine := t.PID == pid && pid != 0 && (t.Name == name ||
			name == "" && !strings.HasPrefix(t.Name, "CPU ") && !strings.HasPrefix(t.Name, "IO "))
		if mine || name == "" && t.Name == fmt.Sprintf("vhost-%d", pid) {
			if err := s.pin(t.PID, t.TID, setOf(list)); err != nil {
				return err
			}
		}
	}
	return nil
}

// setvcpus gives a guest fewer vCPUs and restarts it.
func (s *shell) setvcpus(guest, count string) error {
	n, _ := strconv.Atoi(count)
	m, err := s.names()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(m.Guests, func(g topology.Guest) bool { return g.Name == guest })
	if at < 0 {
		return fmt.Errorf("no guest %s", guest)
	}
	s.known = nil
	threads, _ := filepath.Glob(s.path(fmt.Sprintf("proc/%d/task/*/stat", m.Guests[at].PID)))
	for _, file := range threads {
		var vcpu int
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), "(")
		if _, err := fmt.Sscanf(rest, "CPU %d/KVM", &vcpu); err == nil && vcpu >= n {
			if err := os.RemoveAll(filepath.Dir(file)); err != nil {
				return err
			}
		}
	}
	return s.edit("etc/libvirt/qemu/"+guest+".xml", func(xml string) string {
		xml = regexp.MustCompile(`(<vcpu[^>]*>)\d+`).ReplaceAllString(xml, "${1}"+count)
		return regexp.MustCompile(`<vcpupin vcpu='(\d+)'[^>]*>`).ReplaceAllStringFunc(xml, func(pin string) string {
			var vcpu int
			if _, _ = fmt.Sscanf(pin, "<vcpupin vcpu='%d'", &vcpu); vcpu >= n {
				return ""
			}
			return pin
		})
	})
}

func (s *shell) crudini(file, section, key, value string) error {
	return s.edit(file, func(text string) string {
		var out []string
		in, done := "", false
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			if strings.HasPrefix(line, "[") {
				in = strings.Trim(line, "[]")
			}
			if k, _, is := strings.Cut(line, "="); is && in == section && strings.TrimSpace(k) == key {
				line, done = key+" = "+value, true
			}
			out = append(out, line)
		}
		if !done {
			out = append(out, "["+section+"]", key+" = "+value)
		}
		return strings.Join(out, "\n") + "\n"
	})
}

// slice confines the threads of a slice.
func (s *shell) slice(name, list string) error {
	m, err := topology.Read(s.root)
	if err != nil {
		return err
	}
	for _, t := range m.Threads {
		if strings.HasPrefix(t.Cgroup, "/"+name) && !t.Fixed {
			both := t.Allowed.And(setOf(list))
			if both.Empty() {
				both = setOf(list)
			}
			if err := s.pin(t.PID, t.TID, both); err != nil {
				return err
			}
		}
	}
	return s.put("sys/fs/cgroup/"+name+"/cpuset.cpus", list)
}

// makePlan makes a plan with the flags that remedies use. It is the first command of a script.
func (s *shell) makePlan(args []string) error {
	m, err := s.names()
	if err != nil {
		return err
	}
	w := plan.Request{Boot: true}
	if s.plan != nil {
		w = s.plan.Request
	}
	args = append(args, "")
	for i := range len(args) - 1 {
		switch args[i] {
		case "--forwarding":
			w.Forwarding, _ = strconv.Atoi(args[i+1])
			w.ForwardingCPUs = cpuset.Set{}
		case "--forwarding-cpus":
			w.Forwarding, w.ForwardingCPUs = 0, setOf(args[i+1])
		case "--allow-overlap":
			w.AllowOverlap = true
		case "--guests":
			w.Guests, _ = strconv.Atoi(args[i+1])
		case "--nic":
			w.NICs = []string{args[i+1]}
		}
	}
	s.plan, err = plan.Make(m, w)
	s.remade, s.other = true, true
	return err
}

// apply applies the plan and boots the machine.
func (s *shell) apply() error {
	if s.plan == nil {
		return fmt.Errorf("there is no plan")
	}
	m, err := topology.Read(s.root)
	if err != nil {
		return err
	}
	files, _ := Lasting(m, s.plan)
	more, err := Place(s.root, "/", files)
	if err != nil {
		return err
	}
	site := Site{Root: s.root, Dir: s.state}
	if err := site.Carry(context.Background(), m, s.plan, Options{Cgroups: true}, more); err != nil {
		return err
	}
	groups, _ := filepath.Glob(s.path("sys/fs/cgroup/cpuset/*/cpuset.effective_cpus"))
	for _, effective := range groups {
		if list, err := os.ReadFile(filepath.Join(filepath.Dir(effective), "cpuset.cpus")); err == nil {
			if err := os.WriteFile(effective, list, 0o644); err != nil {
				return err
			}
		}
	}
	return s.boot(m)
}

// boot starts the machine with the arguments of the plan, and counts interrupts from zero.
func (s *shell) boot(m *topology.Machine) error {
	now, err := topology.Read(s.root)
	if err != nil {
		return err
	}
	for _, t := range now.Threads {
		if !t.Fixed && !t.Allowed.Has(t.LastCPU) {
			if err := s.pin(t.PID, t.TID, t.Allowed); err != nil {
				return err
			}
		}
	}
	missing, err := MissingArguments(m, s.plan)
	if err != nil || m.Container {
		return err
	}
	ours := map[string]bool{"tuned.non_isolcpus": true}
	for _, a := range missing {
		name, _, _ := strings.Cut(a, "=")
		ours[name] = true
	}
	args := missing
	for _, a := range strings.Fields(m.Kernel.Cmdline) {
		if name, _, _ := strings.Cut(a, "="); !ours[name] {
			args = append(args, a)
		}
	}
	k := topology.Kernel{Cmdline: strings.Join(args, " ")}
	if err := s.put("proc/cmdline", k.Cmdline+"\n"); err != nil {
		return err
	}
	for arg, file := range map[string]string{"isolcpus": "isolated", "nohz_full": "nohz_full"} {
		a, err := k.CPUArg(arg, m.LastCPU())
		if err != nil {
			return err
		}
		if err := s.put("sys/devices/system/cpu/"+file, a.CPUs.And(m.Online()).String()+"\n"); err != nil {
			return err
		}
	}
	if m.Services.Tuned != "" { // as the profile's comment says: tuned-adm profile corelane
		if err := s.put("etc/tuned/active_profile", "corelane\n"); err != nil {
			return err
		}
	}
	return ignoreMissing(s.edit("proc/interrupts", func(text string) string {
		return regexp.MustCompile(`( +)\d+\b`).ReplaceAllString(text, "${1}0")
	}))
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
