// SPDX-License-Identifier: Apache-2.0
package host

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPeersOfASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := Peers(os.Getpid(), path)
	if err != nil || !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = Peers(os.Getpid(), path+"-none"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
