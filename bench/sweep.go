package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// SweepReport says what it costs to close all but the standard descriptors, as
// BenchmarkSweep of internal/fds measures it.
type SweepReport struct {
	Header
	Rounds    int        `json:"rounds"`
	BenchTime string     `json:"benchTime"`
	Rows      []SweepRow `json:"rows"`
	// Limits that the machine does not permit, and why.
	Skipped []Skipped `json:"skipped,omitempty"`
}

// SweepRow is one strategy at one limit with so many descriptors open.
type SweepRow struct {
	Strategy string `json:"strategy"`
	Limit    int    `json:"limit"`
	Open     int    `json:"open"`
	Sweeps   int    `json:"sweeps"`
	// Min is that of all sweeps, Mean that of the fastest round.
	Min      float64 `json:"minNanoseconds"`
	Mean     float64 `json:"meanNanoseconds"`
	LeftOpen int     `json:"leftOpen"`
}

// complete says that the strategy did what it is meant to do.
func (x *SweepRow) complete() bool { return x.LeftOpen == 0 || x.Strategy == "cloexec" }

// Skipped is a limit that could not be measured.
type Skipped struct {
	Limit  int    `json:"limit"`
	Count  int    `json:"measurements"`
	Reason string `json:"reason"`
}

// strategy is one way to close descriptors.
type strategy struct {
	name, what string
	// closer says that it is a sweep by itself: it closes everything, given
	// a high enough limit if it depends on one, and needs to know nothing.
	closer bool
	// bounded strategies go up to the limit, the others do not ask for it.
	bounded bool
}

var strategies = []strategy{
	{"range", "`close_range(2)`, fdinit's first choice", true, false},
	{"proc", "a walk through `/proc/self/fd`, its second", true, false},
	{"poll", "probing up to 2^20 with `poll(2)` and a plain loop up to 4096, its last", true, false},
	{"loop", "`close(2)` of every number up to the limit", true, true},
	{"probe", "probing with `poll(2)` up to the limit; `O_PATH` descriptors escape it", false, true},
	{"cloexec", "`close_range(2)` with `CLOSE_RANGE_CLOEXEC`, which leaves the closing to exec", false, false},
	{"exact", "`close(2)` of what is open, known by heart: the kernel's floor for single calls", false, false},
}

type sweepSizes struct {
	rounds    int
	benchTime string
}

var (
	fullSweep  = sweepSizes{rounds: 20, benchTime: "100ms"}
	quickSweep = sweepSizes{rounds: 5, benchTime: "30ms"}
)

// measureSweep runs the benchmark so often, one strategy after the other in a
// new random order every round.
func measureSweep(dir string, size sweepSizes) (*SweepReport, error) {
	binary := filepath.Join(dir, "fds.test")
	build := exec.Command("go", "test", "-c", "-o", binary, "./internal/fds")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the benchmark of internal/fds: %w\n%s", err, out)
	}
	r := &SweepReport{Rounds: size.rounds, BenchTime: size.benchTime}
	for round := range size.rounds {
		progress("sweep: round %d of %d", round+1, size.rounds)
		for _, i := range rand.Perm(len(strategies)) {
			// Verbose, because only then it says what it skips.
			cmd := exec.Command(binary, "-test.run=^$", "-test.v", "-test.benchtime="+size.benchTime,
				"-test.bench=^BenchmarkSweep$/^strategy="+strategies[i].name+"$")
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("running the benchmark of internal/fds: %w\n%s", err, out)
			}
			if err := r.add(bytes.NewReader(out), round == 0); err != nil {
				return nil, err
			}
		}
	}
	if len(r.Rows) == 0 {
		return nil, errors.New("the benchmark of internal/fds has measured nothing")
	}
	place := func(name string) int {
		return slices.IndexFunc(strategies, func(s strategy) bool { return s.name == name })
	}
	slices.SortFunc(r.Rows, func(a, b SweepRow) int {
		if a.Strategy != b.Strategy {
			return place(a.Strategy) - place(b.Strategy)
		}
		if a.Open != b.Open {
			return a.Open - b.Open
		}
		return a.Limit - b.Limit
	})
	return r, nil
}

// skipLine is what the testing package says of a sub-benchmark that skips.
var skipLine = regexp.MustCompile(`^--- SKIP: BenchmarkSweep/.*limit=(\d+)/`)

// add takes in the output of one run.
func (r *SweepReport) add(out io.Reader, countSkipped bool) error {
	var text bytes.Buffer
	results := benchfmt.NewReader(io.TeeReader(out, &text), "BenchmarkSweep")
	for results.Scan() {
		switch x := results.Result().(type) {
		case *benchfmt.SyntaxError:
			return x
		case *benchfmt.Result:
			if err := r.addResult(x); err != nil {
				return err
			}
		}
	}
	if err := results.Err(); err != nil {
		return err
	}
	if !countSkipped {
		return nil
	}
	reason := ""
	for lines := bufio.NewScanner(&text); lines.Scan(); {
		if m := skipLine.FindStringSubmatch(lines.Text()); m != nil {
			limit, err := strconv.Atoi(m[1])
			if err != nil {
				return err
			}
			i := slices.IndexFunc(r.Skipped, func(s Skipped) bool { return s.Limit == limit })
			if i < 0 {
				r.Skipped = append(r.Skipped, Skipped{Limit: limit, Reason: reason})
				i = len(r.Skipped) - 1
			}
			r.Skipped[i].Count++
			continue
		}
		// "    file:line: why"
		if parts := strings.SplitN(strings.TrimSpace(lines.Text()), ": ", 2); len(parts) == 2 {
			reason = parts[1]
		}
	}
	return nil
}

func (r *SweepReport) addResult(x *benchfmt.Result) error {
	var row SweepRow
	_, parts := x.Name.Parts()
	for _, part := range parts {
		key, value, _ := strings.Cut(strings.TrimPrefix(string(part), "/"), "=")
		var err error
		switch key {
		case "strategy":
			row.Strategy = value
		case "limit":
			row.Limit, err = strconv.Atoi(value)
		case "open":
			row.Open, err = strconv.Atoi(value)
		}
		if err != nil {
			return fmt.Errorf("the name %q: %w", x.Name, err)
		}
	}
	if !slices.ContainsFunc(strategies, func(s strategy) bool { return s.name == row.Strategy }) {
		return fmt.Errorf("the name %q: an unknown strategy", x.Name)
	}
	// The package turns nanoseconds into seconds, in the names of units too.
	least, ok1 := x.Value("min-sec/op")
	mean, ok2 := x.Value("sec/op")
	left, ok3 := x.Value("left-open")
	if !ok1 || !ok2 || !ok3 {
		return fmt.Errorf("the benchmark %q lacks one of min-ns/op, ns/op and left-open", x.Name)
	}
	// Whole picoseconds: what is behind them comes from the change of units.
	row.Min, row.Mean = math.Round(least*1e12)/1e3, math.Round(mean*1e12)/1e3
	row.Sweeps, row.LeftOpen = x.Iters, int(left)

	old := r.find(row.Strategy, row.Limit, row.Open)
	if old == nil {
		r.Rows = append(r.Rows, row)
		return nil
	}
	old.Sweeps += row.Sweeps
	old.Min, old.Mean = min(old.Min, row.Min), min(old.Mean, row.Mean)
	old.LeftOpen = max(old.LeftOpen, row.LeftOpen)
	return nil
}

func (r *SweepReport) find(strategy string, limit, open int) *SweepRow {
	i := slices.IndexFunc(r.Rows, func(x SweepRow) bool {
		return x.Strategy == strategy && x.Limit == limit && x.Open == open
	})
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}

// axes returns the limits and the numbers of open descriptors that were measured.
func (r *SweepReport) axes() (limits, opens []int) {
	for _, x := range r.Rows {
		limits, opens = append(limits, x.Limit), append(opens, x.Open)
	}
	slices.Sort(limits)
	slices.Sort(opens)
	return slices.Compact(limits), slices.Compact(opens)
}

// reportSweep measures and writes, or prints when there is no directory.
func reportSweep(dir string, header Header, out string, size sweepSizes) error {
	r, err := measureSweep(dir, size)
	if err != nil {
		return err
	}
	r.Header = header
	return deliver(r, out)
}
