package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

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

// openForChart is where the cost is drawn against the limit: what gcj was
// measured with.
const openForChart = 50

func (r *SweepReport) write(dir string) error {
	if err := writeReport(dir, "sweep", r, r.markdown(true)); err != nil {
		return err
	}
	return r.charts(dir)
}

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
