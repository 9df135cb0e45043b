package main

import (
	"bufio"
	"bytes"
	"encoding/json"
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
	"time"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// SweepReport says what it costs to close all but the standard descriptors, as
// BenchmarkSweep of internal/fds measures it.
type SweepReport struct {
	Command   string     `json:"command"`
	Date      string     `json:"date"`
	Machine   Machine    `json:"machine"`
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

// winner is the cheapest of the strategies that closed everything.
func (r *SweepReport) winner(limit, open int, without ...string) *SweepRow {
	var best *SweepRow
	for _, s := range strategies {
		x := r.find(s.name, limit, open)
		if x == nil || !s.closer || x.LeftOpen > 0 || slices.Contains(without, s.name) {
			continue
		}
		if best == nil || x.Min < best.Min {
			best = x
		}
	}
	return best
}

// breakEven is where two lines of costs cross.
type breakEven struct {
	at float64
	// never: the first is dearer everywhere; always: cheaper as far as measured.
	never, always bool
}

func (b breakEven) String() string {
	switch {
	case b.never:
		return "never"
	case b.always:
		return fmt.Sprintf("above %.0f", b.at)
	case b.at < 100:
		return fmt.Sprintf("about %.0f", b.at)
	}
	digits := math.Pow(10, math.Floor(math.Log10(b.at))-1)
	return fmt.Sprintf("about %.0f", math.Round(b.at/digits)*digits)
}

// point is the costs of two strategies at the same place.
type point struct{ at, first, second float64 }

// crossing finds up to where the first is the cheaper one, going up a line.
// Between two points costs are straight lines; below the first the rise goes on
// downwards, as far as floor.
func crossing(ps []point, rise, floor float64) breakEven {
	for i, p := range ps {
		d := p.first - p.second
		if d < 0 {
			continue
		}
		if i == 0 {
			if rise <= 0 || p.at-d/rise < floor {
				return breakEven{never: true}
			}
			return breakEven{at: p.at - d/rise}
		}
		before := ps[i-1]
		e := before.second - before.first
		return breakEven{at: before.at + (p.at-before.at)*e/(e+d)}
	}
	return breakEven{at: ps[len(ps)-1].at, always: true}
}

// loopUpTo is the limit up to which the plain loop is cheaper than a rival.
func (r *SweepReport) loopUpTo(rival string, open int) (breakEven, bool) {
	limits, _ := r.axes()
	complete := func(open int) (ps []point) {
		for _, limit := range limits {
			a, b := r.find("loop", limit, open), r.find(rival, limit, open)
			if a != nil && b != nil && a.LeftOpen == 0 && b.LeftOpen == 0 {
				ps = append(ps, point{float64(limit), a.Min, b.Min})
			}
		}
		return ps
	}
	ps := complete(open)
	if len(ps) == 0 {
		return breakEven{}, false
	}
	// What a number costs that is not open; one point has no slope.
	slope := ps
	if len(slope) < 2 {
		slope = complete(0)
	}
	if len(slope) < 2 {
		return breakEven{}, false
	}
	last := len(slope) - 1
	rise := (slope[last].first - slope[0].first) / (slope[last].at - slope[0].at)
	// A loop to a lower limit than this would leave some of them open.
	return crossing(ps, rise, float64(open+3)), true
}

// walkUpTo is the number of open descriptors up to which the walk through /proc
// is cheaper than the loop.
func (r *SweepReport) walkUpTo(limit int) (breakEven, bool) {
	_, opens := r.axes()
	var ps []point
	for _, open := range opens {
		a, b := r.find("proc", limit, open), r.find("loop", limit, open)
		if a != nil && b != nil && a.LeftOpen == 0 && b.LeftOpen == 0 {
			ps = append(ps, point{float64(open), a.Min, b.Min})
		}
	}
	if len(ps) == 0 {
		return breakEven{}, false
	}
	return crossing(ps, 0, 0), true
}

func (r *SweepReport) write(dir string) error {
	if err := writeReport(dir, "sweep", r, r.markdown(true)); err != nil {
		return err
	}
	return r.charts(dir)
}

// writeReport writes the two readable forms of a report.
func writeReport(dir, name string, data any, markdown string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	js, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(js, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".md"), []byte(markdown), 0o644)
}

// openForChart is where the cost is drawn against the limit: what gcj was
// measured with.
const openForChart = 50

func (r *SweepReport) charts(dir string) error {
	limits, opens := r.axes()
	var ticks []plot.Tick
	for _, limit := range limits {
		tick := plot.Tick{Value: float64(limit), Label: fmt.Sprint(limit)}
		// 100 and 20000 stand too close to their neighbours for a label.
		if limit == 100 || limit == 20000 {
			tick.Label = "\n" + tick.Label
		}
		ticks = append(ticks, tick)
	}
	var curves []curve
	for i, s := range strategies {
		c := curve{name: s.name, dashed: !s.closer, color: i}
		for _, limit := range limits {
			if x := r.find(s.name, limit, openForChart); x != nil && x.complete() {
				c.points = append(c.points, plotter.XY{X: float64(limit), Y: x.Min / 1e3})
			}
		}
		if len(c.points) > 0 {
			curves = append(curves, c)
		}
	}
	title := fmt.Sprintf("Cost of a sweep with %d descriptors open (minimum)", openForChart)
	if err := logChart(filepath.Join(dir, "sweep-limit"), title, "RLIMIT_NOFILE", "µs", ticks, curves); err != nil {
		return err
	}

	// Nothing has no place on a logarithmic axis; it stands where 5 would.
	at := func(open int) float64 { return max(float64(open), 5) }
	ticks = nil
	for _, open := range opens {
		ticks = append(ticks, plot.Tick{Value: at(open), Label: fmt.Sprint(open)})
	}
	// The highest limit is the only one at which nothing is left open.
	most := limits[len(limits)-1]
	curves = nil
	for i, s := range strategies {
		ofLimits := []int{most}
		if s.name == "loop" && len(limits) > 1 && most != 1024 && slices.Contains(limits, 1024) {
			ofLimits = []int{1024, most}
		}
		for _, limit := range ofLimits {
			c := curve{name: s.name, dashed: !s.closer, color: i}
			if s.bounded {
				c.name = fmt.Sprintf("%s to %d", s.name, limit)
			}
			for _, open := range opens {
				// With nothing open there is nothing to know by heart.
				if s.name == "exact" && open == 0 {
					continue
				}
				if x := r.find(s.name, limit, open); x != nil && x.complete() {
					c.points = append(c.points, plotter.XY{X: at(open), Y: x.Min / 1e3})
				}
			}
			if len(c.points) > 0 {
				curves = append(curves, c)
			}
		}
	}
	title = "Cost of a sweep by what is open (minimum)"
	return logChart(filepath.Join(dir, "sweep-open"), title, "open descriptors", "µs", ticks, curves)
}

// micro prints nanoseconds as microseconds, with three digits that mean something.
func micro(ns float64) string {
	switch us := ns / 1e3; {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.0f", us)
	}
}

func (r *SweepReport) markdown(withCharts bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	limits, opens := r.axes()

	line("# Closing what was inherited")
	line("Made by `%s` in `bench/` on %s: %s, %d cores, Linux %s, %s, %s %s.", r.Command, r.Date,
		r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Distribution, r.Machine.Go, r.Machine.Arch)
	line("All figures are **minima**, in µs, of %d interleaved rounds of the benchmark `Sweep` in `internal/fds` (%s for each measurement and round): on a machine that others use too, the fastest sweep is the one that nobody disturbed, while means tell of the neighbours. `sweep.json` has the means as well. The opening of the descriptors, all of them on `/dev/null`, is not counted.", r.Rounds, r.BenchTime)
	for _, s := range r.Skipped {
		line("Skipped: %d measurements at the limit %d (%s).", s.Count, s.Limit, s.Reason)
	}
	t := newTable("strategy", "what it does", "goes up to the limit")
	for _, s := range strategies {
		t.row(s.name, s.what, map[bool]string{true: "yes", false: "no"}[s.bounded])
	}
	line("%s", strings.TrimSpace(t.b.String()))
	if withCharts {
		line("![Cost of a sweep against the limit](sweep-limit.svg)")
		line("![Cost of a sweep against the number of open descriptors](sweep-open.svg)")
		line("Dashed lines are no sweep by themselves: they close nothing, miss some or have to be told.")
	}

	line("## Which strategy wins where")
	line("Of those that are a sweep by themselves and left nothing open. A loop that ends at the limit misses what lies above, so it takes no part where more is open than the limit allows.")
	r.winners(line, limits, opens)
	line("Where `close_range` is refused, by an old kernel or a filter:")
	r.winners(line, limits, opens, "range")

	line("## Where the plain loop breaks even")
	line("The limit up to which a plain loop is cheaper; between the measured limits by straight lines, below 64 by the price of one number more. \"Never\" means that at every limit that covers the open descriptors the loop is dearer.")
	head := []string{"open descriptors"}
	rivals := []string{"proc", "poll", "range"}
	for _, rival := range rivals {
		head = append(head, "loop against "+rival)
	}
	t = newTable(head...)
	for _, open := range opens {
		cells := []string{fmt.Sprint(open)}
		for _, rival := range rivals {
			cells = append(cells, even(r.loopUpTo(rival, open)))
		}
		t.row(cells...)
	}
	line("%s", strings.TrimSpace(t.b.String()))
	line("The other way round, the number of open descriptors up to which a walk through `/proc` is cheaper than the loop, at each limit. A loop pays for every number, a walk for every open descriptor, since the kernel makes a directory entry and an inode for each.")
	t = newTable("limit", "walk against loop")
	for _, limit := range limits {
		t.row(fmt.Sprint(limit), even(r.walkUpTo(limit)))
	}
	line("%s", strings.TrimSpace(t.b.String()))
	line("Beside the history: the measurement for gcj in 2007, with 50 files open and limits of 100, 1024 and 10240, found that the loop won below a limit of about 3000. That for rpm in 2018 found the break-even at about 60, with a limit of 64. Neither had `close_range`, both were made on other processors and kernels, and rpm marked descriptors instead of closing them, so only the order of magnitude may be compared.")
	if e, ok := r.loopUpTo("proc", openForChart); ok {
		line("Here, with %d open, the loop wins against the walk up to a limit of: %s. Against `close_range`: %s.", openForChart, e, even(r.loopUpTo("range", openForChart)))
	}

	for _, open := range opens {
		line("## %d open", open)
		head := []string{"strategy"}
		for _, limit := range limits {
			head = append(head, fmt.Sprint(limit))
		}
		t := newTable(head...)
		missed := false
		for _, s := range strategies {
			cells := []string{s.name}
			for _, limit := range limits {
				x := r.find(s.name, limit, open)
				switch {
				case x == nil:
					cells = append(cells, "–")
				case !x.complete():
					missed = true
					cells = append(cells, fmt.Sprintf("%s, leaves %d", micro(x.Min), x.LeftOpen))
				default:
					cells = append(cells, micro(x.Min))
				}
			}
			t.row(cells...)
		}
		line("%s", strings.TrimSpace(t.b.String()))
		if missed {
			line("\"Leaves\" is how many descriptors above the limit were not found.")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func even(b breakEven, ok bool) string {
	if !ok {
		return "–"
	}
	return b.String()
}

func (r *SweepReport) winners(line func(string, ...any), limits, opens []int, without ...string) {
	head := []string{"limit"}
	for _, open := range opens {
		head = append(head, fmt.Sprintf("%d open", open))
	}
	t := newTable(head...)
	for _, limit := range limits {
		cells := []string{fmt.Sprint(limit)}
		for _, open := range opens {
			if x := r.winner(limit, open, without...); x == nil {
				cells = append(cells, "–")
			} else {
				cells = append(cells, x.Strategy+" "+micro(x.Min))
			}
		}
		t.row(cells...)
	}
	line("%s", strings.TrimSpace(t.b.String()))
}

// reportSweep measures and writes, or prints when there is no directory.
func reportSweep(dir, command, out string, size sweepSizes) error {
	r, err := measureSweep(dir, size)
	if err != nil {
		return err
	}
	r.Command, r.Date, r.Machine = command, time.Now().UTC().Format(time.DateOnly), thisMachine()
	if out == "" {
		fmt.Print(r.markdown(false))
		return nil
	}
	return r.write(out)
}
