// SPDX-License-Identifier: Apache-2.0
package flowtable

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const output = `{"what":"machine","tsc_hz":2000000000,"hugepages":true}
{"what":"insert","backend":"corelane-single","text":"ours","flows":921,"slots":2048,"load":90,"family":"ipv4","per_second":5000000}
{"what":"insert","backend":"chained","text":"list","flows":921,"slots":2048,"load":90,"family":"ipv4","per_second":1000000}
{"what":"lookup","backend":"chained","text":"list","flows":921,"slots":2048,"load":90,"family":"ipv4","hit":100,"batch":256,"cycles":300,"low":1,"high":2}
{"what":"lookup","backend":"rte_hash","text":"x","flows":921,"slots":2048,"load":90,"family":"ipv4","hit":100,"batch":256,"cycles":150,"low":1,"high":2}
{"what":"lookup","backend":"corelane-single","text":"ours","flows":921,"slots":2048,"load":90,"family":"ipv4","hit":100,"batch":256,"cycles":100,"low":1,"high":2}
{"what":"lookup","backend":"chained","text":"list","flows":5,"slots":4096,"load":90,"family":"ipv4","hit":0,"batch":256,"cycles":300,"low":1,"high":2}
`

func TestSteps(t *testing.T) {
	seen := 0
	r, err := read(strings.NewReader(output), func(Figure) { seen++ })
	if err != nil || seen != 6 || r.TSC != 2e9 || !r.Hugepages {
		t.Fatalf("%v, %d figures, %+v", err, seen, r)
	}
	points := r.Points()
	if len(points) != 2 || points[0].Steps[0].Backend != "chained" || points[1].Slots != 4096 {
		t.Fatalf("%+v", points)
	}
	if s := points[0].Step("corelane-single"); s.Gain != 3 || s.OfHash[0] != 1.5 || s.Insert != 5e6 {
		t.Errorf("%+v", s)
	}
	if s := points[0].Step("rte_hash"); s.Gain != 2 {
		t.Errorf("%+v", s)
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := read(strings.NewReader("no JSON\n"), nil); err == nil {
		t.Error("accepted")
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	o := Options{Bin: dir, Quick: true, IPv6: true, Sizes: []int{11, 18}, Loads: []int{90}, CPU: 1}
	if _, err := Run(context.Background(), o, nil); err == nil {
		t.Error("ran a program that does not exist")
	}
	script := "#!/bin/sh\necho '{\"what\":\"lookup\",\"text\":\"'\"$*\"'\"}'\necho careful >&2\n"
	if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), o, nil)
	if err != nil || len(r.Notes) != 1 || r.Figures[0].Text != "--cpu 1 --quick --ipv6 --slots 11,18 --load 90" {
		t.Fatalf("%v, %+v", err, r)
	}
}
