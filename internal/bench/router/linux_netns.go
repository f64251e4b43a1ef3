// SPDX-License-Identifier: Apache-2.0
package router

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/corelane/corelane/internal/namespace"
)

// Names of namespaces have our process id and a counter, so that a later benchmark can remove those of one that was
// killed.
const netnsPrefix = "corelane-bench-"

var netnsCount atomic.Uint32

// addNetns makes a namespace and returns its name. IPv6 is off where it is not needed, because it sends packets by
// itself.
func addNetns(what string, ipv6 bool) (string, error) {
	name := fmt.Sprintf("%s%d-%s%d", netnsPrefix, os.Getpid(), what, netnsCount.Add(1))
	old, err := abandoned(namespace.Dir, "/proc")
	for _, n := range old {
		err = errors.Join(err, namespace.Delete(n))
	}
	err = errors.Join(err, namespace.New(name, func() error { return ipv6Settings(ipv6) }))
	if err != nil {
		return "", errors.Join(err, namespace.Delete(name))
	}
	return name, nil
}

func ipv6Settings(on bool) error {
	if !on {
		return errors.Join(sysctl("net/ipv6/conf/all/disable_ipv6", "1"),
			sysctl("net/ipv6/conf/default/disable_ipv6", "1"))
	}
	for name, value := range map[string]string{
		"accept_dad": "0", "accept_ra": "0", "router_solicitations": "0",
		// ms: before the generator listens
		"mldv1_unsolicited_report_interval": "1", "mldv2_unsolicited_report_interval": "1",
	} {
		if err := sysctl("net/ipv6/conf/default/"+name, value); err != nil {
			return err
		}
	}
	return nil
}

// sysctl sets a value in the thread's namespace, if this kernel has it.
func sysctl(name, value string) error {
	if err := namespace.Sysctl(name, value); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// abandoned returns the namespaces of benchmarks that do not run any more.
func abandoned(dir, proc string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, netnsPrefix+"*"))
	var names []string
	for _, path := range paths {
		name := filepath.Base(path)
		pid, _, _ := strings.Cut(strings.TrimPrefix(name, netnsPrefix), "-")
		if _, err := strconv.Atoi(pid); err != nil {
			continue // not one of ours
		}
		if _, err := os.Stat(filepath.Join(proc, pid)); errors.Is(err, fs.ErrNotExist) {
			names = append(names, name)
		}
	}
	return names, err
}

// delNetns removes a namespace, if one was made.
func delNetns(name string) error {
	if name == "" {
		return nil
	}
	return namespace.Delete(name)
}
