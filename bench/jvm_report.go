package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

func (r *JVMReport) charts(dir string) error {
	var ticks []plot.Tick
	type key struct {
		proc  bool
		front string
	}
	var keys []key
	points := map[key]plotter.XYs{}
	for _, x := range r.Rows {
		k := key{x.Proc, x.Front}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		points[k] = append(points[k], plotter.XY{X: float64(x.Limit), Y: x.Min / 1e3})
		if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == float64(x.Limit) }) {
			ticks = append(ticks, plot.Tick{Value: float64(x.Limit), Label: fmt.Sprint(x.Limit)})
		}
	}
	var curves []curve
	for i, k := range keys {
		name := "JVM alone"
		switch k.front {
		case fdinitFront:
			name = "with fdinit"
		case cappedFront:
			name = "--nofile=" + strings.SplitN(k.front, "=", 2)[1]
		}
		if !k.proc {
			name += ", no /proc"
		}
		curves = append(curves, curve{name: name, points: points[k], dashed: !k.proc, color: i})
	}
	title := fmt.Sprintf("One execution by a JVM with %d files open (minimum)", r.Files)
	return logChart(filepath.Join(dir, "jvm"), title, "ulimit -n", "ms", ticks, curves)
}

func (r *JVMReport) names() (data, text string) { return "jvm.json", "jvm.md" }

func (r *JVMReport) markdown(withCharts bool) string {
	p := &page{withCharts: withCharts}
	r.introduction(p)
	r.expectation(p)
	for _, proc := range []bool{true, false} {
		if slices.ContainsFunc(r.Rows, func(x JVMRow) bool { return x.Proc == proc }) {
			r.procSection(p, proc)
		}
	}
	if e, ok := r.breakEven(); ok {
		p.line("Up to which limit the loop without `/proc` is the cheaper of the two, whole executions with nothing in front compared by their minima: %s. For gcj it was about 3000.", e)
	}
	return p.String()
}

func (r *JVMReport) introduction(p *page) {
	p.title("A JVM that executes commands", r.Header)
	p.line("Java: %s with `%s`. fdinit: `%s`.", r.Java, strings.Join(r.Options, " "), r.Init)
	p.line("In 2007 it was measured for gcj, a Java of that time, what a child costs that closes all descriptors up to the limit before it executes a command, under limits of 100, 1024 and 10240 and with 50 files open. This is that test: a Java program (`bench/jvm/Exec.java`) holds %d files open and executes `/bin/true` through `ProcessBuilder`, under `ulimit -n` of several sizes, soft and hard alike, with and without fdinit in front. A time is from before `start()` to after `waitFor()`.", r.Files)
	p.line("All virtual machines of a part exist at the same time and have their turns in a random order, at most %d executions each; the first turn is not counted, and all are started anew %d times. On a computer that others use too, look at the **minima**; medians and totals contain the neighbours. In brackets the 95 %% bootstrap interval of the ratio of medians.", r.Block, r.Starts)
	for _, s := range r.Skipped {
		p.line("Skipped: %s.", s)
	}
	p.chart("jvm", "Cost of an execution against the limit")
}

// procSection has the figures with /proc or without it.
func (r *JVMReport) procSection(p *page, proc bool) {
	if proc {
		p.line("## As it is")
	} else {
		p.line("## Without /proc")
		p.line("With `/proc` hidden the JVM falls back to what gcj did. A fifth of the executions.")
	}
	t := newTable("limit", "in front", "limit seen", "executions", "min, ms", "ratio", "median, ms", "ratio", "total, s")
	for _, x := range r.Rows {
		if x.Proc == proc {
			t.row(fmt.Sprint(x.Limit), x.Front, fmt.Sprint(x.Seen), fmt.Sprint(x.Executions), fmt.Sprintf("%.2f", x.Min/1e3), minRatio(x.Ratio),
				fmt.Sprintf("%.2f", x.Median/1e3), interval(x.Ratio), fmt.Sprintf("%.1f", x.Total))
		}
	}
	p.table(t)
}

// breakEven is the limit up to which a virtual machine that has no /proc, and
// loops, executes a command faster than one that has it.
func (r *JVMReport) breakEven() (breakEven, bool) {
	var ps []point
	for _, x := range r.Rows {
		i := slices.IndexFunc(r.Rows, func(y JVMRow) bool { return y.Proc && y.Limit == x.Limit && y.Front == x.Front })
		if !x.Proc && x.Front == aloneFront && i >= 0 {
			ps = append(ps, point{float64(x.Limit), x.Min, r.Rows[i].Min})
		}
	}
	if len(ps) < 2 {
		return breakEven{}, false
	}
	last := len(ps) - 1
	rise := (ps[last].first - ps[0].first) / (ps[last].at - ps[0].at)
	return crossing(ps, rise, float64(r.Files+3)), true
}

// expectation tells what was seen in the traces, and what follows from it.
func (r *JVMReport) expectation(p *page) {
	p.line("## What to expect, and what not")
	t := newTable("limit", "/proc", "child runs", "lists /proc/self/fd", "closes", "closes in vain", "marks", "close_range")
	var with, without *Calls
	traced := false
	for _, x := range r.Rows {
		c := x.Calls
		if c == nil {
			continue
		}
		traced = true
		if x.Proc {
			with = c
		} else {
			without = c
		}
		helper := c.Helper
		if helper == "" {
			helper = "the command"
		}
		t.row(fmt.Sprint(x.Limit), yes(x.Proc), helper, yes(c.Walked), fmt.Sprint(c.Closed), fmt.Sprint(c.Vain), fmt.Sprint(c.Marks), fmt.Sprint(c.Ranges))
	}
	if traced {
		p.line("What the child does, as `strace` saw it with nothing in front, up to the execution of the command:")
		p.table(t)
	}
	if with != nil && with.Walked && with.Ranges == 0 {
		how := "The JVM starts the command itself"
		if with.Helper != "" {
			how = "The JVM starts a helper, `" + with.Helper + "`, that starts the command"
		}
		p.line("%s. The child lists `/proc/self/fd` and closes what it finds there, so the limit does not matter to it, and nothing that fdinit does to the limit can help. Nor does the sweep: the %d files are the program's own, opened after fdinit was done. So the ratio to be expected is 1: fdinit in front neither speeds up nor slows down what a JVM executes, and if its intervals below lay clear of 1 in several rows, that would be a finding.", how, r.Files)
	}
	if without != nil && !without.Walked && without.Vain > 0 {
		p.line("Without `/proc` the same child closes every number up to the limit, one call for each, as gcj did. fdinit does not touch the limits measured here by itself, since none is above 1048576; asked with `--nofile=%d:%d` it brings the cost down to that of the lower limit. The hard limit has to be named, because the JVM raises its soft limit to the hard one (the column \"limit seen\"). Not measured here, but it follows: under a limit of 1073741816 fdinit's own default leaves 1048576 as the hard limit, which is a thousandth, but still a million calls for each execution. For a JVM without `/proc`, name a limit.", jvmCap, jvmCap)
	}
}
