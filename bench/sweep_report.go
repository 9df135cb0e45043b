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

func (r *SweepReport) names() (data, text string) { return "sweep.json", "sweep.md" }

func (r *SweepReport) markdown(withCharts bool) string {
	p := &page{withCharts: withCharts}
	_, opens := r.axes()
	r.introduction(p)
	r.winnersSection(p)
	r.breakEvenSection(p)
	for _, open := range opens {
		r.openSection(p, open)
	}
	return p.String()
}

func (r *SweepReport) introduction(p *page) {
	p.title("Closing what was inherited", r.Header)
	p.line("All figures are **minima**, in µs, of %d interleaved rounds of the benchmark `Sweep` in `internal/fds` (%s for each measurement and round): on a machine that others use too, the fastest sweep is the one that nobody disturbed, while means tell of the neighbours. `sweep.json` has the means as well. The opening of the descriptors, all of them on `/dev/null`, is not counted.", r.Rounds, r.BenchTime)
	r.skipped(p)
	if limits, _ := r.axes(); len(limits) > 0 && limits[len(limits)-1] > 1<<20 {
		p.line("Above the limit 1048576 loop and probe are cut off there, and the rest of their time is extrapolated.")
	}
	t := newTable("strategy", "what it does", "goes up to the limit")
	for _, s := range strategies {
		t.row(s.name, s.what, yes(s.bounded))
	}
	p.table(t)
	p.chart("sweep-limit", "Cost of a sweep against the limit")
	p.chart("sweep-open", "Cost of a sweep against the number of open descriptors")
	if p.withCharts {
		p.line("Dashed lines are no sweep by themselves: they close nothing, miss some or have to be told.")
	}
}

// skipped accounts for what was not measured.
func (r *SweepReport) skipped(p *page) {
	limits, _ := r.axes()
	var whole []string
	for _, s := range r.Skipped {
		if slices.Contains(limits, s.Limit) {
			p.line("Skipped: %d measurements at the limit %d (%s).", s.Count, s.Limit, s.Reason)
		} else {
			whole = append(whole, fmt.Sprint(s.Limit))
		}
	}
	const lab = `[the lab](../lab.md#what-each-way-to-close-descriptors-costs)`
	switch last := len(whole) - 1; {
	case last == 0:
		p.line("The limit %s needs a hard limit that this machine does not permit; %s measures it.", whole[0], lab)
	case last > 0:
		p.line("The limits %s and %s need a hard limit that this machine does not permit; %s measures them.", strings.Join(whole[:last], ", "), whole[last], lab)
	}
}

func (r *SweepReport) winnersSection(p *page) {
	p.line("## Which strategy wins where")
	p.line("Of those that are a sweep by themselves and left nothing open. A loop that ends at the limit misses what lies above, so it takes no part where more is open than the limit allows.")
	p.table(r.winners())
	p.line("Where `close_range` is refused, by an old kernel or a filter:")
	p.table(r.winners("range"))
}

func (r *SweepReport) winners(without ...string) *table {
	limits, opens := r.axes()
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
	return t
}

func (r *SweepReport) breakEvenSection(p *page) {
	limits, opens := r.axes()
	p.line("## Where the plain loop breaks even")
	p.line("The limit up to which a plain loop is cheaper; between the measured limits by straight lines, below 64 by the price of one number more. \"Never\" means that at every limit that covers the open descriptors the loop is dearer.")
	head := []string{"open descriptors"}
	rivals := []string{"proc", "poll", "range"}
	for _, rival := range rivals {
		head = append(head, "loop against "+rival)
	}
	t := newTable(head...)
	for _, open := range opens {
		cells := []string{fmt.Sprint(open)}
		for _, rival := range rivals {
			cells = append(cells, even(r.loopUpTo(rival, open)))
		}
		t.row(cells...)
	}
	p.table(t)
	p.line("The other way round, the number of open descriptors up to which a walk through `/proc` is cheaper than the loop, at each limit. A loop pays for every number, a walk for every open descriptor, since the kernel makes a directory entry and an inode for each.")
	t = newTable("limit", "walk against loop")
	for _, limit := range limits {
		t.row(fmt.Sprint(limit), even(r.walkUpTo(limit)))
	}
	p.table(t)
	p.line("Beside the history: the measurement for gcj in 2007, with 50 files open and limits of 100, 1024 and 10240, found that the loop won below a limit of about 3000. That for rpm in 2018 found the break-even at about 60, with a limit of 64. Neither had `close_range`, both were made on other processors and kernels, and rpm marked descriptors instead of closing them, so only the order of magnitude may be compared.")
	if e, ok := r.loopUpTo("proc", openForChart); ok {
		p.line("Here, with %d open, the loop wins against the walk up to a limit of: %s. Against `close_range`: %s.", openForChart, e, even(r.loopUpTo("range", openForChart)))
	}
}

// openSection has every figure with so many descriptors open.
func (r *SweepReport) openSection(p *page, open int) {
	limits, _ := r.axes()
	p.line("## %d open", open)
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
	p.table(t)
	if missed {
		p.line("\"Leaves\" is how many descriptors above the limit were not found.")
	}
}

func (r *SweepReport) charts(dir string) error {
	if err := r.limitChart(dir); err != nil {
		return err
	}
	return r.openChart(dir)
}

func (r *SweepReport) limitChart(dir string) error {
	limits, _ := r.axes()
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
	return logChart(filepath.Join(dir, "sweep-limit"), title, "RLIMIT_NOFILE", "µs", ticks, curves)
}

func (r *SweepReport) openChart(dir string) error {
	limits, opens := r.axes()
	// Nothing has no place on a logarithmic axis; it stands where 5 would.
	at := func(open int) float64 { return max(float64(open), 5) }
	var ticks []plot.Tick
	for _, open := range opens {
		ticks = append(ticks, plot.Tick{Value: at(open), Label: fmt.Sprint(open)})
	}
	// The highest limit is the only one at which nothing is left open.
	most := limits[len(limits)-1]
	var curves []curve
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
	return logChart(filepath.Join(dir, "sweep-open"), "Cost of a sweep by what is open (minimum)", "open descriptors", "µs", ticks, curves)
}
