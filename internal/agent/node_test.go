// SPDX-License-Identifier: Apache-2.0
package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/guard"
)

// The file is applied to each data plane that starts, and to none twice: live changes outlive the agent.
func TestNodeFileOncePerStart(t *testing.T) {
	s := apitest.Start(t)
	s.Status.StartedNs = 1000
	dir := t.TempDir()
	n := node{file: filepath.Join(dir, "node.yaml"), record: filepath.Join(dir, "journal", "node-file")}
	write := func(text string) {
		if err := os.WriteFile(n.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restore := func(kind guard.Kind, words string) {
		t.Helper()
		e := n.restore(context.Background(), s.Dial(t))
		switch {
		case kind == "" && e != nil:
			t.Error("unexpected:", e)
		case kind != "" && (e == nil || e.Kind != kind || !strings.Contains(e.Text+e.Fix, words)):
			t.Errorf("no %s with %q: %v", kind, words, e)
		}
	}
	has := func(name string, want bool) {
		t.Helper()
		s.Lock()
		defer s.Unlock()
		if _, found := s.Vrfs.Get(name); found != want {
			t.Errorf("VRF %s: %t", name, found)
		}
	}
	write("vrfs:\n  - name: red\n")
	restore(guard.Repaired, "1 added") // and settings
	has("red", true)
	restore("", "") // the agent alone was restarted

	s.Lock()
	s.Vrfs.Put("live", &apiv1.Vrf{Name: "live"})
	s.Unlock()
	restore(guard.Notice, "0 added, 0 changed, 1 deleted")
	restore(guard.Notice, "corelane apply -f "+n.file)
	has("live", true)

	write("vrfs:\n  - name: blue\n") // read again for the next data plane
	s.Lock()
	s.Status.StartedNs = 2000
	s.Unlock()
	restore(guard.Repaired, "1 added, 0 changed, 2 deleted")
	has("blue", true)
	has("live", false)

	write("vrf: [\n")
	restore(guard.Failed, "node.yaml:1:")
}

// A data plane that has brought back its whole state keeps its live changes. The file is applied if it was edited
// since, or if something did not come back.
func TestNodeFileAfterRestore(t *testing.T) {
	s := apitest.Start(t)
	dir := t.TempDir()
	n := node{file: filepath.Join(dir, "node.yaml"), record: filepath.Join(dir, "node-file")}
	write := func(text string) {
		if err := os.WriteFile(n.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(ns uint64, kept *apiv1.KeptState) {
		s.Lock()
		defer s.Unlock()
		s.Status.StartedNs, s.Status.Kept = ns, kept
		s.Vrfs.Put("live", &apiv1.Vrf{Name: "live"})
	}
	restore := func(want guard.Kind, live bool) {
		t.Helper()
		if e := n.restore(context.Background(), s.Dial(t)); e == nil || e.Kind != want {
			t.Errorf("no %s: %v", want, e)
		}
		s.Lock()
		defer s.Unlock()
		if _, found := s.Vrfs.Get("live"); found != live {
			t.Errorf("live change: %t", found)
		}
	}
	whole := &apiv1.KeptState{Restored: 5}
	write("vrfs:\n  - name: red\n")
	start(1000, nil)
	restore(guard.Repaired, false)
	start(2000, whole)
	restore(guard.Notice, true)
	restore(guard.Notice, true) // the agent alone was restarted
	start(3000, whole)
	restore(guard.Notice, true)
	start(4000, &apiv1.KeptState{Restored: 4, Refused: 1})
	restore(guard.Repaired, false)
	start(5000, &apiv1.KeptState{}) // a new or a damaged file
	restore(guard.Repaired, false)
	write("vrfs:\n  - name: blue\n")
	start(5000, nil)
	restore(guard.Notice, true) // an edited file waits for the next data plane
	start(6000, whole)
	restore(guard.Repaired, false)
}

// What was refused is tried again by the next agent.
func TestNodeFileRefused(t *testing.T) {
	s := apitest.Start(t)
	s.Status.StartedNs = 1000
	dir := t.TempDir()
	n := node{file: filepath.Join(dir, "node.yaml"), record: filepath.Join(dir, "node-file")}
	if err := os.WriteFile(n.file, []byte("vrfs:\n  - name: red\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Refuse = func(method string, _ proto.Message) error {
		if method == "Vrfs.Add" {
			return apitest.Refusal(codes.FailedPrecondition, &apiv1.Error{Message: "no memory"})
		}
		return nil
	}
	if e := n.restore(context.Background(), s.Dial(t)); e == nil || e.Kind != guard.Failed {
		t.Error(e)
	}
	s.Refuse = nil
	if e := n.restore(context.Background(), s.Dial(t)); e == nil || e.Kind != guard.Repaired {
		t.Error(e)
	}
}
