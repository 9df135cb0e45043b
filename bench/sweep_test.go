package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What the benchmark prints, with a limit that this machine does not permit.
const sweepOutput = `goos: linux
pkg: github.com/fdinit/fdinit/internal/fds
BenchmarkSweep
BenchmarkSweep/strategy=loop/limit=64/open=0
BenchmarkSweep/strategy=loop/limit=64/open=0-2         	    1000	     65813 ns/op	         0 left-open	     16761.5 min-ns/op
BenchmarkSweep/strategy=loop/limit=64/open=1000
BenchmarkSweep/strategy=loop/limit=64/open=1000-2      	       1	     43190 ns/op	       939.0 left-open	     43190 min-ns/op
BenchmarkSweep/strategy=loop/limit=1048576/open=0
    bench_test.go:38: needs a hard RLIMIT_NOFILE of 1048576, has 20000
--- SKIP: BenchmarkSweep/strategy=loop/limit=1048576/open=0
BenchmarkSweep/strategy=loop/limit=1048576/open=50
    bench_test.go:38: needs a hard RLIMIT_NOFILE of 1048576, has 20000
--- SKIP: BenchmarkSweep/strategy=loop/limit=1048576/open=50
PASS
`

func TestSweepOutput(t *testing.T) {
	var r SweepReport
	if err := r.add(strings.NewReader(sweepOutput), true); err != nil {
		t.Fatal(err)
	}
	again := strings.NewReplacer("16761.5 min", "16000 min", "65813 ns/op", "70000 ns/op").Replace(sweepOutput)
	if err := r.add(strings.NewReader(again), false); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 {
		t.Fatalf("%d rows: %+v", len(r.Rows), r.Rows)
	}
	want := SweepRow{Strategy: "loop", Limit: 64, Sweeps: 2000, Min: 16000, Mean: 65813}
	if r.Rows[0] != want {
		t.Errorf("two rounds make %+v, want %+v", r.Rows[0], want)
	}
	if r.Rows[1].LeftOpen != 939 || r.Rows[1].Open != 1000 {
		t.Errorf("what is left open is lost: %+v", r.Rows[1])
	}
	if len(r.Skipped) != 1 || r.Skipped[0] != (Skipped{1048576, 2, "needs a hard RLIMIT_NOFILE of 1048576, has 20000"}) {
		t.Errorf("skipped: %+v", r.Skipped)
	}
	if r.winner(64, 1000) != nil {
		t.Error("a loop that leaves descriptors open wins")
	}
	if x := r.winner(64, 0); x == nil || x.Strategy != "loop" {
		t.Errorf("the only one does not win: %+v", x)
	}

	for _, bad := range []string{
		"BenchmarkSweep/strategy=loop/limit=64/open=0-2 1 5 ns/op\n",
		"BenchmarkSweep/strategy=magic/limit=64/open=0-2 1 5 ns/op 0 left-open 5 min-ns/op\n",
		"BenchmarkSweep/strategy=loop/limit=x/open=0-2 1 5 ns/op 0 left-open 5 min-ns/op\n",
		"BenchmarkSweep/strategy=loop/limit=64/open=0-2 1 five ns/op\n",
	} {
		if err := new(SweepReport).add(strings.NewReader(bad), false); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}

// A loop at 10 a number, and a walk at 1000 and 50 for each open descriptor.
func inventedSweep() *SweepReport {
	r := &SweepReport{Rounds: 1, BenchTime: "1x"}
	for _, limit := range []int{64, 1024, 20000} {
		for _, open := range []int{0, 50, 1000} {
			left := max(0, open+3-limit)
			r.Rows = append(r.Rows,
				SweepRow{Strategy: "loop", Limit: limit, Open: open, Min: float64(limit * 10), LeftOpen: left},
				SweepRow{Strategy: "proc", Limit: limit, Open: open, Min: float64(1000 + 50*open)},
				SweepRow{Strategy: "range", Limit: limit, Open: open, Min: 600},
				SweepRow{Strategy: "poll", Limit: limit, Open: open, Min: 1e6})
		}
	}
	return r
}

func TestBreakEven(t *testing.T) {
	r := inventedSweep()
	for _, tc := range []struct {
		rival string
		open  int
		want  string
	}{
		{"proc", 0, "about 100"},
		{"proc", 50, "about 350"},
		{"proc", 1000, "about 5100"},
		{"poll", 0, "above 20000"},
		{"range", 0, "about 60"},  // below the lowest limit
		{"range", 50, "about 60"}, // 53 would do
		{"range", 1000, "never"},  // at 60 it would leave most of them open
		{"cloexec", 0, "–"},       // not measured
		{"proc", 15000, "–"},      // nor this
	} {
		if got := even(r.loopUpTo(tc.rival, tc.open)); got != tc.want {
			t.Errorf("against %s with %d open: %s, want %s", tc.rival, tc.open, got, tc.want)
		}
	}
	// 10240 = 1000 + 50 n: 184.8, of which two digits are printed.
	for limit, want := range map[int]string{64: "never", 1024: "about 180", 20000: "above 1000"} {
		if got := even(r.walkUpTo(limit)); got != want {
			t.Errorf("the walk at %d: %s, want %s", limit, got, want)
		}
	}
}

func TestSweepDocument(t *testing.T) {
	r := inventedSweep()
	r.Skipped = []Skipped{{64, 7, "needs a hard RLIMIT_NOFILE of 15010, has 10000"}, {1048576, 28, "why"}, {1073741816, 28, "why"}}
	dir := t.TempDir()
	if err := deliver(r, dir); err != nil {
		t.Fatal(err)
	}
	md := r.markdown(true)
	for _, want := range []string{
		"| 64 | range 0.60 | range 0.60 | range 0.60 |", // who wins
		"| 1024 | proc 1.00 | proc 3.50 | loop 10.2 |",  // and where there is no close_range
		"| loop | 0.64, leaves 939 | 10.2 | 200 |",      // what a winner would hide
		"| 50 | about 350 | above 20000 | about 60 |",   // the break-even
		"Skipped: 7 measurements at the limit 64 (needs a hard RLIMIT_NOFILE of 15010, has 10000).",
		"The limits 1048576 and 1073741816 need a hard limit that this machine does not permit; [the lab](../lab.md",
		"with 50 open, the loop wins against the walk up to a limit of: about 350",
	} {
		if !strings.Contains(md, want) {
			t.Errorf("the document lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(md)
	}
	b, err := os.ReadFile(filepath.Join(dir, "sweep.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back SweepReport
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if back.markdown(true) != md {
		t.Error("the JSON does not hold all that the document says")
	}
	for name, curves := range map[string][]string{
		"sweep-limit.svg": {"range", "proc", "poll", "loop"},
		"sweep-open.svg":  {"range", "proc", "poll", "loop to 20000", "loop to 1024"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, curve := range curves {
			if !strings.Contains(string(b), ">"+curve+"<") {
				t.Errorf("%s has no curve %q", name, curve)
			}
		}
	}
}

// The benchmark itself, as briefly as it can be.
func TestMeasureSweep(t *testing.T) {
	r, err := measureSweep(t.TempDir(), sweepSizes{rounds: 1, benchTime: "1x"})
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for _, s := range strategies {
		x := r.find(s.name, 64, 0)
		if x == nil || x.Sweeps < 1 || x.Min <= 0 {
			t.Errorf("%s: %+v", s.name, x)
		}
	}
	// Whatever the machine permits: each limit is either measured or accounted for.
	limits, _ := r.axes()
	if got := len(limits) + len(r.Skipped); got < 7 {
		t.Errorf("measured %v, skipped %+v, hard limit %d", limits, r.Skipped, limit.Max)
	}
	if loop := r.find("loop", 64, 1000); limit.Max > 1010 && (loop == nil || loop.LeftOpen != 939) {
		t.Errorf("a loop to 64 with 1000 open: %+v", loop)
	}
}
