// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func is(t *testing.T, what string, got any, want string) {
	t.Helper()
	if fmt.Sprint(got) != want {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

func TestCmdline(t *testing.T) {
	k :=
		Kernel{Cmdline: `ro a="b c" "d=e f" hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=512 isolcpus=managed_irq,domain,2-5 ` +
			`nohz-full=2-N rcu_nocbs intel_idle.max_cstate=0 x=1=2 -- isolcpus=9`}
	is(t, "in order", k.All("hugepages"), "[8 512]")
	for name, want := range map[string]string{"a": "b c", "d": "e f", "ro": "", "intel-idle.max_cstate": "0",
		"x": "1=2"} {
		if got, ok := k.Arg(name); !ok || got != want {
			t.Errorf("%s: %q %v, want %q", name, got, ok, want)
		}
	}
	for name, want := range map[string]string{
		"isolcpus": "{true [managed_irq domain] 2-5} <nil>", "nohz_full": "{true [] 2-7} <nil>",
		"rcu_nocbs": "{true [] } <nil>", "irqaffinity": "{false [] } <nil>",
	} {
		a, err := k.CPUArg(name, 7)
		is(t, name, fmt.Sprint(a, " ", err), want)
	}
	for _, line := range []string{"isolcpus=2-", "isolcpus=fast,2-3", "isolcpus=domain", "isolcpus=domain,",
		"isolcpus=2-3,domain"} {
		k := Kernel{Cmdline: line}
		if a, err := k.CPUArg("isolcpus", 7); err == nil {
			t.Errorf("%s: %v", line, a)
		}
	}
}

func TestPolicy(t *testing.T) {
	const rest = " S 1 1 1 0 -1 69238848 0 0 0 0 5 7 0 0 -51 0 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 " +
		"0 17 3 50 1 0 0 0"
	if s, err := parseStat("12 (a) b (c))" + rest); err != nil || policies[s.Policy] != "fifo" {
		t.Error(s, err)
	}
	if _, err := parseStat("12 (a)" + strings.Replace(rest, " 50 1 ", " 50 44 ", 1)); err == nil {
		t.Error("an unknown policy is not an error")
	}
}

func TestQEMU(t *testing.T) {
	for line, want := range map[string]string{
		"qemu\x00-name\x00guest=a,debug-threads=on":                                             "{a []}",
		"qemu\x00-name\x00a b,process=x":                                                        "{a b []}",
		"qemu\x00--netdev\x00tap,fds=23:24:25,id=n\x00-netdev\x00vhost-user,chardev=c,queues=4": "{ [3 4]}",
		"qemu\x00-netdev\x00{\"type\":\"tap\",\"fds\":\"23:24\",\"id\":\"n\"}":                  "{ [2]}",
		"qemu\x00-netdev\x00{\"type\":\"vhost-user\",\"queues\":8}\x00-name":                    "{ [8]}",
		"qemu\x00-netdev\x00tap,ifname=t0":                                                      "{ [1]}",
	} {
		is(t, line, parseQEMU(line), want)
	}
}

const domainXML = `<domain type='kvm'><name>vm</name><vcpu cpuset='0-7,^3'>3</vcpu><iothreads>2</iothreads>
<cputune><vcpupin vcpu='1' cpuset='4'/><iothreadpin iothread='2' cpuset='6'/><emulatorpin cpuset='0-1'/></cputune>
<numatune><memory mode='strict' nodeset='0-1'/></numatune>
<devices><interface type='vhostuser'><driver queues='2'/></interface><interface type='bridge'/></devices></domain>`

func TestDomain(t *testing.T) {
	const want = "{vm 0 libvirt [0-2,4-7 4 0-2,4-7] 0-1 [0-2,4-7 6] [] [0 1] [2 1]}"
	for _, text := range []string{domainXML, "<domstatus state='running' pid='77'><vcpus/>" + domainXML +
		"</domstatus>"} {
		d, err := parseDomain(text)
		if err != nil {
			t.Fatal(err)
		}
		g, err := d.guest()
		is(t, "guest", fmt.Sprint(g, " ", err), want+" <nil>")
		kept, _ := filterDomain(text)
		if d, err = parseDomain(kept); err != nil {
			t.Fatal(err, kept)
		}
		g, _ = d.guest()
		is(t, "captured guest", g, want)
	}
	for _, text := range []string{"", "<a/>", "<domain/>", "<domain><name>a</name><vcpu>0</vcpu></domain>",
		"<domain><name>a</name><vcpu>4097</vcpu></domain>"} {
		if d, err := parseDomain(text); err == nil {
			t.Errorf("%s: %v", text, d)
		}
	}
}

func TestHypervisor(t *testing.T) {
	for _, c := range [][4]string{{"QEMU", "Standard PC", "", "kvm"}, {"Amazon EC2", "c5.metal", "", ""},
		{"Amazon EC2", "c5.large", "", "kvm"},
		{"VMware, Inc.", "VMware20,1", "", "vmware"},
		{"Microsoft Corporation", "Virtual Machine", "", "hyperv"}, {"Dell Inc.", "PowerEdge R640", "", ""},
		{"", "", "xen", "xen"}} {
		is(t, c[0]+c[1], hypervisor(c[0], c[1], c[2]), c[3])
	}
}

func FuzzCmdline(f *testing.F) {
	for _, s := range []string{`a="b c" isolcpus=managed_irq,domain,2-5`, "isolcpus=0-31:2/8", `"" = "`,
		"isolcpus=all -- x", "nohz_full=N", "isolcpus=domain,often,1", "nohz_full=5-x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		k := Kernel{Cmdline: line}
		for _, name := range []string{"isolcpus", "nohz_full", ""} {
			if a, err := k.CPUArg(name, 383); err == nil && !a.Given && !a.CPUs.Empty() {
				t.Errorf("%q has CPUs %s, but is reported as not given", line, a.CPUs)
			}
		}
		kept, _ := filterKernel(line + " password=hunter2")
		if strings.Contains(kept, "hunter2") && !strings.ContainsAny(line, `"`) {
			t.Errorf("%q is captured as %q", line, kept)
		}
	})
}

func FuzzTask(f *testing.F) {
	f.Add("Cpus_allowed_list:\t0-3\nnonvoluntary_ctxt_switches:\t7\n")
	f.Add("Cpus_allowed_list:\t3-0\n")
	f.Add("Cpus_allowed_list:\t0\nnonvoluntary_ctxt_switches:\tmany\n")
	f.Add("5:cpuset:/x\n0::/z")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseStatus(text); err == nil {
			if again, err := parseStatus(filterStatusOf(text)); err != nil || !again.allowed.Equal(s.allowed) ||
				again.involuntary != s.involuntary {
				t.Errorf("%q is captured as %v %v", text, again, err)
			}
		}
		kept, _ := filterCgroup(text)
		if a, b := parseCgroup(text), parseCgroup(kept); a != b && a == strings.TrimSpace(a) {
			t.Errorf("%q is in %q, captured in %q", text, a, b)
		}
	})
}

func filterStatusOf(text string) string {
	kept, _ := filterStatus(text)
	return kept
}

func FuzzDomain(f *testing.F) {
	f.Add(domainXML)
	f.Add("<domstatus pid='1'><domain><name>a</name><vcpu>1</vcpu></domain></domstatus>")
	f.Add("<domain>")
	f.Add("<domain><name>a</name><vcpu>4097</vcpu></domain>")
	for _, wrong := range []string{"<vcpu cpuset='x'>1</vcpu>", "<cputune><vcpupin vcpu='2' cpuset='4'/></cputune>",
		"<cputune><vcpupin cpuset='4'/></cputune>",
		"<iothreads>1</iothreads><cputune><iothreadpin iothread='1' cpuset='x'/></cputune>",
		"<cputune><emulatorpin cpuset='9-8'/></cputune>", "<numatune><memory nodeset='x'/></numatune>"} {
		f.Add("<domain><name>a</name><vcpu>1</vcpu>" + wrong + "</domain>")
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDomain(text)
		if err != nil {
			if kept, _ := filterDomain(text); kept != "" {
				t.Errorf("%q is captured as %q", text, kept)
			}
			return
		}
		g, err := d.guest()
		if err != nil {
			return
		}
		kept, _ := filterDomain(text)
		if d, err = parseDomain(kept); err != nil {
			t.Fatalf("%q is captured as %q: %v", text, kept, err)
		}
		if again, err := d.guest(); err != nil || fmt.Sprint(again) != fmt.Sprint(g) {
			t.Errorf("%q is %v, captured %v, %v", text, g, again, err)
		}
	})
}

func FuzzQEMU(f *testing.F) {
	f.Add("qemu\x00-name\x00guest=a,x=y\x00-netdev\x00tap,fds=1:2\x00-netdev\x00{\"queues\":4}")
	f.Add("qemu\x00--name\x00a,x=y\x00-netdev\x00tap,queues=x")
	f.Add("qemu\x00-name\x00x=y")
	f.Fuzz(func(t *testing.T, line string) {
		q := parseQEMU(line)
		kept, _ := filterQEMU(line)
		if again := parseQEMU(kept); fmt.Sprint(again) != fmt.Sprint(q) {
			t.Errorf("%q is %v, captured %v", line, q, again)
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add("[main]\ninclude=a,b\n[scheduler]\nps_blacklist=x;y\\\nz\n# c\nexport A='b'\n")
	f.Add("kind: KubeletConfiguration\ncpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n")
	f.Add(`{"policyName":"static","defaultCpuSet":"0-3","entries":{"a":{"b":"4"}}}`)
	f.Add("kind: KubeletConfiguration\ncpuCFSQuota: true\nkubeReserved: {cpu: 1}\nsystemReserved: {1: 2}\n")
	f.Add("kind: KubeletConfiguration\ncpuCFSQuota: false\n")
	f.Add(`{"policyName":"none","defaultCpuSet":"x"}`)
	f.Add(`{"policyName":"none","entries":{"a":{"b":"x"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range parseSettings(text) {
			if strings.Contains(s.key, "=") || s.key != strings.TrimSpace(s.key) {
				t.Errorf("%q has key %q", text, s.key)
			}
		}
		_, _ = parseKubelet(text)
		_, _ = filterKubelet(text)
		_, _ = systemdSet(text)
		kept, _ := filterCPUManager(text)
		if s, err := parseCPUManager(text); err == nil {
			if again, err := parseCPUManager(kept); err != nil || !again.given().Equal(s.given()) {
				t.Errorf("%q is captured as %q: %v", text, kept, err)
			}
		}
	})
}

// archiveOf is an archive of one entry; a file is as long as its header says.
func archiveOf(f *testing.F, h tar.Header, text string) []byte {
	f.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	if h.Typeflag == tar.TypeReg {
		h.Size = int64(len(text))
	}
	if err := out.WriteHeader(&h); err != nil {
		f.Fatal(err)
	}
	if _, err := out.Write([]byte(text)); err != nil {
		f.Fatal(err)
	}
	if err := out.Close(); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

func FuzzArchive(f *testing.F) {
	f.Add(archiveOf(f, tar.Header{Typeflag: tar.TypeReg, Name: "proc/cpuinfo"}, "processor : 0\n"))
	for _, text := range []string{"{", `{"proc/stat":""}`, `{"proc/stat":"denied","/x":"y","a":"b"}`, `{"..":"x"}`} {
		f.Add(archiveOf(f, tar.Header{Typeflag: tar.TypeReg, Name: unreadName}, text))
	}
	for _, h := range []tar.Header{{Typeflag: tar.TypeSymlink, Name: "a/driver", Linkname: "/x"},
		{Typeflag: tar.TypeSymlink, Name: "a"}, {Typeflag: tar.TypeDir, Name: "."},
		{Typeflag: tar.TypeDir, Name: "sys/"}, {Typeflag: tar.TypeDir, Name: "../x"},
		{Typeflag: tar.TypeFifo, Name: "a"}} {
		f.Add(archiveOf(f, h, ""))
	}
	cut := archiveOf(f, tar.Header{Typeflag: tar.TypeReg, Name: "a"}, strings.Repeat("long", 500))
	f.Add(cut[:700])
	f.Add(cut[:300])
	large := tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: maxFile + 1}
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&large); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := readTar(bytes.NewReader(data))
		if err != nil {
			return
		}
		for name := range tree.nodes {
			if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
				t.Errorf("'%s' leads out of the tree", name)
			}
		}
		_, _ = ReadTree(tree)
	})
}
