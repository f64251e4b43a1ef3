// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const (
	groupService = "Host services"
	tunedDoc     = "TuneD: profiles/cpu-partitioning"
)

var serviceRules = []rule{
	{id: "tuned.variables", group: groupService, title: "TuneD's variables name the intended CPUs",
		check:  checkTunedVariables,
		source: vrouterSpec + ", section 14; " + tunedDoc,
		fixes:  []string{"corelane cores apply {plan}   # writes the variables"},
		why: "Each time TuneD starts it moves threads and interrupts and writes kernel arguments according to " +
			"isolated_cores."},
	{id: "tuned.isolcpus", group: groupService, title: "TuneD's isolated_cores are really isolated",
		check:  checkTunedIsolates,
		source: tunedDoc + ": no_balance_cores",
		fixes:  []string{reboot},
		why: "isolated_cores sets nohz_full and rcu_nocbs, but not isolcpus; only no_balance_cores does. The " +
			"scheduler still uses these CPUs."},
	{id: "tuned.blacklist", group: groupService, title: "TuneD leaves the data plane's threads alone",
		check:  checkTunedBlacklist,
		source: tunedDoc + ": ps_blacklist",
		fixes: []string{"corelane cores apply {plan}   # writes a child profile that spares these " +
			"names"},
		why: "When TuneD starts after the data plane it moves every thread that its ps_blacklist does not name, " +
			"workers included, " +
			"to the host's CPUs. " +
			"'tuned-adm verify' does not detect it: of the scheduler plugin's settings it compares interrupts only."},
	{id: "systemd.affinity", group: groupService, title: "systemd keeps services off isolated CPUs (CPUAffinity)",
		check:  checkSystemd,
		source: vrouterSpec + ", section 14; systemd-system.conf(5)",
		fixes:  []string{"corelane cores apply {plan}   # writes system.conf.d for the next boot"},
		why: "Every service inherits CPUAffinity. A service may change it; AllowedCPUs= of its slice cannot be " +
			"exceeded."},
	{id: "vrouter.cpu_list", group: groupService, title: "CPU_LIST of ifcfg-vhost0 names the intended CPUs",
		check:  checkVrouterList,
		source: vrouterSpec + ", section 14",
		fixes:  []string{"corelane cores apply {plan}   # isolates these CPUs"},
		why: "The vRouter's container starts its forwarding lcores on these CPUs. The default, mask 0x01, is CPU " +
			"0."},
	{id: "irqbalance.bans", group: groupService, title: "irqbalance keeps off workers' CPUs", workers: true,
		check:  checkIrqbalance,
		source: "irqbalance(1); cgroup-v2.rst",
		why: "irqbalance avoids only the CPUs of isolcpus and nohz_full. It does not know the CPUs that a cgroup " +
			"partition " +
			"isolates, and moves interrupts back to them."},
	{id: "nova.sets", group: groupService, title: "Nova gives guests the CPUs that are meant for them",
		check:  checkNova,
		source: "nova.conf: [compute] cpu_dedicated_set, cpu_shared_set",
		why: "Nova pins vCPUs to its dedicated set and lets other threads of guests run on all of its shared set. " +
			"The kernel does not know Nova's sets, nor Nova the kernel's."},
	{id: "nova.power", group: groupService, title: "Nova does not take planned CPUs offline",
		check:  checkNovaPower,
		source: "nova.conf: [libvirt] cpu_power_management",
		why: "With the strategy cpu_state Nova takes unused dedicated CPUs offline: threads on them are moved " +
			"and do not come back."},
	{id: "kubelet.reserved", group: groupService, title: "kubelet gives no worker's CPU to pods", workers: true,
		check:  checkKubelet,
		source: "Kubernetes: control CPU management policies, reservedSystemCPUs",
		why:    "With the static policy pods get all CPUs that are not reserved; without it pods run on every CPU."},
}

func checkTunedVariables(v *view, r *result) {
	s := v.m.Services
	if s.Tuned == "" {
		r.pass("TuneD has no active profile")
		return
	}
	for _, name := range []string{"isolated_cores", "no_balance_cores"} {
		text := s.TunedVariables[name]
		set, err := v.list(text)
		switch {
		case text == "" && name == "isolated_cores":
			r.fail("profile %s is active, but isolated_cores is not set", s.Tuned)
		case text == "" || strings.Contains(text, "${"):
		case err != nil:
			r.fail("%s=%s: %v", name, text, err)
		case v.in.Planned && !set.Equal(v.in.Isolated):
			r.fail("%s=%s, but the plan isolates CPUs %s", name, text, v.in.Isolated)
		case !v.in.Workers.Within(set):
			r.fail("%s=%s lacks workers' CPUs %s", name, text, v.in.Workers.Without(set))
		default:
			r.pass("%s=%s", name, text)
		}
	}
	if len(r.items) == 0 {
		r.pass("profile %s calculates isolated_cores", s.Tuned)
	}
}

func checkTunedIsolates(v *view, r *result) {
	text := v.m.Services.TunedVariables["isolated_cores"]
	set, err := v.list(text)
	if v.m.Services.Tuned == "" || err != nil || set.Empty() {
		r.pass("TuneD isolates no CPU")
		return
	}
	if nohz := v.m.Kernel.NohzFull; !set.Equal(nohz) && strings.Contains(v.m.Services.Tuned, "partitioning") {
		r.warn("isolated_cores=%s, but nohz_full is %s: the machine was not booted with the arguments that "+
			"TuneD wrote", text, orNone(nohz))
	}
	if missing := set.Without(v.isolated); !missing.Empty() {
		r.warn("isolated_cores=%s, but CPUs %s are neither in isolcpus nor in a cgroup partition", text, missing)
		return
	}
	r.pass("isolated CPUs now: %s", v.isolated)
}

func checkTunedBlacklist(v *view, r *result) {
	s := v.m.Services
	if s.Tuned == "" || len(s.TunedVariables) == 0 && len(s.TunedBlacklist) == 0 {
		r.pass("no profile of TuneD that moves threads is active")
		return
	}
	spared := spares(s.TunedBlacklist)
	seen := map[string]bool{}
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if t.Kernel || !v.own[t.PID] || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		switch {
		case spared(t.Name):
		case IsWorker(t):
			r.fail("worker %s (%d): no expression of ps_blacklist matches its name; TuneD would move it to CPUs %s",
				t.Name, t.TID,
				v.in.Host).about("name %s", t.Name)
		case !t.Allowed.Within(v.in.Host):
			r.warn("%s (%d): no expression of ps_blacklist matches its name", t.Name, t.TID).about("name %s", t.Name)
		}
	}
	if len(v.own) == 0 {
		r.unknown("no data plane is running, so there are no thread names to compare")
	} else if len(r.items) == 0 {
		r.pass("ps_blacklist spares all threads of the data plane: %s", strings.Join(s.TunedBlacklist, ";"))
	}
}

// spares returns a function that reports whether TuneD leaves a thread name alone. It searches anywhere in the name,
// like Python's re.search.
func spares(expressions []string) func(string) bool {
	var all []*regexp.Regexp
	for _, e := range expressions {
		if re, err := regexp.Compile(e); err == nil {
			all = append(all, re)
		}
	}
	return func(name string) bool {
		for _, re := range all {
			if re.MatchString(name) {
				return true
			}
		}
		return false
	}
}

func checkSystemd(v *view, r *result) {
	set := v.m.Services.SystemdAffinity
	switch bad := set.And(v.in.Isolated); {
	case set.Empty() && v.in.Isolated.Within(v.isolated) && !v.in.Isolated.Empty():
		r.pass("CPUAffinity is not set and not needed: CPUs %s are isolated", v.in.Isolated)
	case set.Empty() && v.in.Isolated.Empty():
		r.pass("CPUAffinity is not set, and no CPU is to be isolated")
	case set.Empty():
		r.warn("CPUAffinity is not set: services start on all CPUs that are not isolated (workers' CPUs among them: "+
			"%s)",
			orNone(v.in.Workers.Without(v.isolated)))
	case !bad.Empty():
		r.fail("CPUAffinity=%s includes CPUs %s that should be isolated", set, bad)
	default:
		r.pass("CPUAffinity=%s", set)
	}
}

func checkVrouterList(v *view, r *result) {
	text := v.m.Services.VRouter["CPU_LIST"]
	set, err := cpuset.Parse(text)
	switch {
	case text == "":
		r.pass("there is no CPU_LIST in an ifcfg-vhost0")
	case err != nil && strings.HasPrefix(text, "0x"):
		if set, err = cpuset.ParseMask(text); err == nil {
			v.judgeList(r, text, set)
			return
		}
		fallthrough
	case err != nil:
		r.fail("CPU_LIST=%s: %v", text, err)
	default:
		v.judgeList(r, text, set)
	}
}

func (v *view) judgeList(r *result, text string, set cpuset.Set) {
	if v.in.Planned && !set.Equal(v.in.Workers) {
		r.fail("CPU_LIST=%s, but the plan's workers have CPUs %s", text, v.in.Workers).Command =
			fmt.Sprintf("sed -i 's/^CPU_LIST=.*/CPU_LIST=%s/' /etc/sysconfig/network-scripts/ifcfg-vhost0   # then "+
				"restart the vRouter", strings.Trim(strings.ReplaceAll(fmt.Sprint(v.in.Workers.IDs()), " ", ","), "[]"))
	}
	if open := set.Without(v.isolated); !open.Empty() {
		r.fail("CPU_LIST=%s, but CPUs %s are not isolated", text, open)
	}
	if len(r.items) == 0 {
		r.pass("CPU_LIST=%s", text)
	}
}

func checkIrqbalance(v *view, r *result) {
	s := v.m.Services
	if !s.Irqbalance {
		r.pass("irqbalance does not run")
		return
	}
	bans := s.IrqbalanceBans
	if bans.Empty() { // its default
		bans = v.m.Kernel.Isolated.Or(v.m.Kernel.NohzFull)
	}
	if open := v.in.Workers.Without(bans); !open.Empty() {
		r.fail("irqbalance runs, and its banned CPUs (%s) do not include workers' CPUs %s", orNone(bans), open).
			about("irqbalance").Command =
			fmt.Sprintf("echo IRQBALANCE_BANNED_CPULIST=%s >> /etc/default/irqbalance   # RHEL: "+
				"/etc/sysconfig/irqbalance\nsystemctl restart irqbalance",
				bans.Or(v.in.Isolated))
		return
	}
	r.pass("irqbalance keeps off CPUs %s", bans)
}

var novaSets = []string{"cpu_dedicated_set", "cpu_shared_set", "vcpu_pin_set"}

func checkNova(v *view, r *result) {
	for _, name := range novaSets {
		text := v.m.Services.Nova[name]
		if text == "" {
			continue
		}
		set, err := cpuset.ParseExcluding(text)
		if err != nil {
			r.fail("%s=%s: %v", name, text, err)
			continue
		}
		v.judgeNova(r, name, set.And(v.online))
	}
	if len(r.items) == 0 {
		r.pass("nova.conf sets no CPUs on this machine")
	}
}

// judgeNova compares one of Nova's sets with the CPUs that it should have, and without a plan with those that the
// kernel isolates.
func (v *view) judgeNova(r *result, name string, set cpuset.Set) {
	should, whose := v.novaShould(name, set)
	var i *Item
	switch bad := set.And(v.in.Workers); {
	case !bad.Empty():
		i = r.fail("%s=%s includes workers' CPUs %s", name, set, bad)
	case set.Equal(should):
		r.pass("%s=%s", name, set)
		return
	case should.Empty():
		i = r.warn("%s=%s, but the plan has no CPUs for %s", name, set, whose)
	case v.in.Planned:
		i = r.fail("%s=%s, but the plan gives %s CPUs %s", name, set, whose, orNone(should))
	case name == "cpu_shared_set":
		i = r.warn("%s=%s includes CPUs %s, which are isolated: threads there are not balanced", name, set,
			set.And(v.isolated))
	default:
		i = r.fail("%s=%s, but CPUs %s are not isolated: the scheduler uses them for everything%s", name, set,
			set.Without(v.isolated), v.unused(set))
	}
	other := map[string]string{"cpu_dedicated_set": "cpu_shared_set", "cpu_shared_set": "cpu_dedicated_set"}[name]
	if i.about("nova %s", name); !should.Empty() {
		i.Command = novaSet(name, should)
	} else if i.Verdict == Fail && v.m.Services.Nova[other] != "" {
		i.Command = fmt.Sprintf("crudini --del /etc/nova/nova.conf compute %s   # no CPU is left for it; then restart "+
			"nova-compute", name)
	}
}

// novaShould returns the CPUs that a set of Nova should have, and the role that uses them.
func (v *view) novaShould(name string, set cpuset.Set) (should cpuset.Set, whose string) {
	switch free := v.isolated.Without(v.siblings(v.in.Workers)); {
	case name == "cpu_shared_set" && v.in.Planned:
		return v.in.Emulator, "emulators"
	case name == "cpu_shared_set":
		return set.Without(v.in.Workers).Without(v.isolated), "emulators"
	case v.in.Planned:
		return v.in.Guests, "guests"
	case free.Overlaps(set):
		return set.And(free), "guests"
	}
	return set.Without(v.in.Workers), "guests" // nothing is isolated for guests
}

// unused names isolated CPUs that neither Nova nor a pinned thread uses.
func (v *view) unused(set cpuset.Set) string {
	idle := v.isolated.Without(set).Without(v.siblings(v.in.Workers))
	for i := range v.m.Threads {
		if t := &v.m.Threads[i]; !t.Kernel && t.Allowed.Within(v.isolated) {
			idle = idle.Without(t.Allowed)
		}
	}
	return ifText(!idle.Empty(), fmt.Sprintf("; CPUs %s are isolated, but no program uses them", idle))
}

// novaSet returns the command that changes a set of Nova.
func novaSet(name string, to cpuset.Set) string {
	section := "compute"
	if name == "vcpu_pin_set" {
		section = "DEFAULT"
	}
	return fmt.Sprintf("crudini --set /etc/nova/nova.conf %s %s %s   # then restart nova-compute", section, name, to)
}

func checkNovaPower(v *view, r *result) {
	n := v.m.Services.Nova
	if !strings.EqualFold(n["cpu_power_management"], "true") {
		r.pass("cpu_power_management is off")
		return
	}
	set, err := cpuset.ParseExcluding(n["cpu_dedicated_set"])
	if bad := set.And(v.in.Workers); err == nil && !bad.Empty() {
		should, _ := v.novaShould("cpu_dedicated_set", set)
		r.fail("cpu_power_management is on, and cpu_dedicated_set includes workers' CPUs %s", bad).Command =
			novaSet("cpu_dedicated_set", should)
	} else if strings.Contains(n["cpu_power_management_strategy"], "governor") {
		r.pass("cpu_power_management changes only the governor of CPUs %s", set)
	} else {
		r.warn("cpu_power_management is on: CPUs %s go offline while no guest uses them", orNone(set)).Command =
			"crudini --set /etc/nova/nova.conf libvirt cpu_power_management_strategy governor   # then restart " +
				"nova-compute"
	}
}

func checkKubelet(v *view, r *result) {
	k := v.m.Services.Kubelet
	if len(k) == 0 {
		r.pass("there is no kubelet")
		return
	}
	reserved, err := cpuset.Parse(strings.Trim(k["reservedSystemCPUs"], `"' `))
	need := v.siblings(v.in.Workers)
	if v.in.Planned {
		need = v.online.Without(v.in.Guests)
	}
	switch missing := need.And(v.online).Without(reserved); {
	case err != nil:
		r.fail("reservedSystemCPUs: %v", err)
	case k["cpuManagerPolicy"] != "static":
		r.warn("cpuManagerPolicy is %s: pods may use every CPU of their group", orNone(k["cpuManagerPolicy"]))
	case !missing.Empty():
		text := fmt.Sprintf("workers' CPUs %s", missing.And(v.in.Workers))
		if !missing.Overlaps(v.in.Workers) {
			text = fmt.Sprintf("CPUs %s, which are not for guests", missing)
		}
		r.fail("reservedSystemCPUs is %s: pods may get %s", orNone(reserved), text).Command =
			fmt.Sprintf("sed -i 's/^reservedSystemCPUs:.*/reservedSystemCPUs: \"%s\"/' /var/lib/kubelet/config.yaml "+
				"&& systemctl restart kubelet", reserved.Or(need).Or(v.in.Host))
	default:
		r.pass("reservedSystemCPUs is %s", reserved)
	}
}
