package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Report is everything that one run of the benchmark found out.
type Report struct {
	Header
	Inits    []Init       `json:"inits"`
	Missing  []string     `json:"notInstalled,omitempty"`
	Sizes    sizes        `json:"parameters"`
	Startup  []StartupRow `json:"startup,omitempty"`
	Idle     []IdleRow    `json:"idle,omitempty"`
	Fleet    []FleetRow   `json:"fleet,omitempty"`
	Latency  []LatencyRow `json:"latency,omitempty"`
	Reaping  []ReapingRow `json:"reaping,omitempty"`
	FileSize []SizeRow    `json:"size,omitempty"`
}

// Init names a contender and the version it says it is.
type Init struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

func (r *Report) names() (data, text string) { return "bench.json", "README.md" }

func (r *Report) markdown(withCharts bool) string {
	p := &page{withCharts: withCharts}
	r.introduction(p)
	for _, part := range []struct {
		measured bool
		add      func(p *page)
	}{
		{len(r.Startup) > 0, r.startupSection},
		{len(r.Idle) > 0, r.idleSection},
		{len(r.Fleet) > 0, r.fleetSection},
		{len(r.Latency) > 0, r.latencySection},
		{len(r.Reaping) > 0, r.reapingSection},
		{len(r.FileSize) > 0, r.sizeSection},
	} {
		if part.measured {
			part.add(p)
		}
	}
	return p.String()
}

func (r *Report) introduction(p *page) {
	p.title("fdinit beside other inits", r.Header)
	var names []string
	for _, in := range r.Inits {
		if in.Version != "" {
			names = append(names, fmt.Sprintf("%s (`%s`)", in.Name, in.Version))
		} else {
			names = append(names, in.Name)
		}
	}
	p.line("Measured: %s. plain-go is `bench/goinit`, an init as one writes it on the ordinary Go runtime.", strings.Join(names, ", "))
	if len(r.Missing) > 0 {
		p.line("Not installed, and so not measured: %s.", strings.Join(r.Missing, ", "))
	}
	if p.withCharts {
		p.line("Beside this: [what it costs to close what was inherited](sweep.md), and [a JVM that executes commands](jvm.md).")
	}
	p.line("Compare within a table, not between machines. Ratios are to %s; in brackets the 95 %% bootstrap interval.", referenceName)
}

func (r *Report) startupSection(p *page) {
	p.line("## Start to exit, above the bare command")
	p.line("%d interleaved runs each, in a new random order every round. Times in µs from clone to the return of wait4. The bare row is absolute, all others are what the init adds. \"static\" runs a hand-made ELF of 129 bytes, \"dynamic\" `/bin/true`.", r.Sizes.Runs)
	p.chart("startup", "Start to exit above the bare command")
	p.chart("faults", "Page faults above the bare command")
	for _, pid1 := range []bool{true, false} {
		for _, command := range []string{"static", "dynamic"} {
			rows := slices.DeleteFunc(slices.Clone(r.Startup), func(x StartupRow) bool {
				return x.PID1 != pid1 || x.Command != command
			})
			if len(rows) == 0 {
				continue
			}
			p.line("### %s", setting{command: command, pid1: pid1})
			t := newTable("init", "wall median", "ratio", "wall min", "ratio", "CPU median", "ratio", "CPU min", "page faults", "ratio", "system calls")
			for _, x := range rows {
				calls := "–"
				if x.Syscalls != nil {
					calls = num(*x.Syscalls)
				}
				t.row(x.Init, fmt.Sprintf("%.0f", x.Wall.Median), interval(x.Wall.Ratio), fmt.Sprintf("%.0f", x.Wall.Min), minRatio(x.Wall.Ratio),
					fmt.Sprintf("%.0f", x.CPU.Median), interval(x.CPU.Ratio), fmt.Sprintf("%.0f", x.CPU.Min),
					fmt.Sprintf("%.0f", x.Faults.Median), medianRatio(x.Faults.Ratio), calls)
			}
			p.table(t)
		}
	}
}

func (r *Report) idleSection(p *page) {
	p.line("## Idle")
	p.line("One instance around a command that waits for a signal, given 0, 1, 2 and %d descriptors that its parent forgot to close; wake-ups in %d s. Memory in kB. \"After work\" is the same instance when it waits again, after it has forwarded one signal and reaped one orphan: an init touches more of its pages then. Every init is a fresh copy, written as an engine unpacks a layer, so that nobody else shares its pages.", leakedFiles, r.Sizes.WatchSeconds)
	p.chart("idle", "Memory of an idle init")
	t := newTable("init", "RSS", "ratio", "PSS", "private dirty", "ratio", "RSS after work", "private dirty after work", "private clean", "page tables", "threads", "wake-ups", "descriptors")
	for _, x := range r.Idle {
		t.row(x.Init, num(x.RSS), ratio(x.RSSRatio), num(x.PSS), num(x.PrivateDirty), ratio(x.DirtyRatio),
			num(x.WorkedRSS), num(x.WorkedPrivateDirty), num(x.PrivateClean), num(x.PageTables), num(x.Threads), num(x.Wakeups), num(x.Descriptors))
	}
	p.table(t)
}

func (r *Report) fleetSection(p *page) {
	p.line("## %d instances at once", r.Fleet[0].Instances)
	p.line("Each in a PID namespace of its own around a sleep, as containers on a node; kB for each instance, without the sleep.")
	t := newTable("init", "PSS", "ratio", "private dirty", "page tables")
	for _, x := range r.Fleet {
		t.row(x.Init, fmt.Sprintf("%.1f", x.PSS), ratio(x.PSSRatio), fmt.Sprintf("%.1f", x.PrivateDirty), fmt.Sprintf("%.1f", x.PageTables))
	}
	p.table(t)
}

func (r *Report) latencySection(p *page) {
	p.line("## Signal latency")
	p.line("From `kill(2)` on the init to the workload's waking up, in µs; the bare row is a signal sent to the workload itself. The storm is a process beside the workload that makes orphans as fast as it can.")
	p.chart("latency", "Signal latency")
	t := newTable("init", "state", "samples", "median", "ratio", "p99")
	for _, x := range r.Latency {
		state := "idle"
		if x.Storm {
			state = "storm"
		}
		t.row(x.Init, state, num(x.Samples), fmt.Sprintf("%.1f", x.Median), ratio(x.Ratio), fmt.Sprintf("%.0f", x.P99))
	}
	p.table(t)
}

func (r *Report) reapingSection(p *page) {
	p.line("## Reaping")
	p.line("%d orphans, made one after the other as fast as possible; the maker sets the pace, so look at the processor time. Zombies are sampled every 2 ms.", r.Reaping[0].Orphans)
	p.chart("reaping", "CPU time of the init for each orphan")
	t := newTable("init", "orphans a second", "peak zombies", "CPU of the init for each, µs", "ratio")
	for _, x := range r.Reaping {
		t.row(x.Init, fmt.Sprintf("%.0f", x.PerSecond), num(x.PeakZombies), fmt.Sprintf("%.2f", x.CPU), ratio(x.CPURatio))
	}
	p.table(t)
}

func (r *Report) sizeSection(p *page) {
	p.line("## Size")
	p.line("The image is FROM scratch with that one file; a dynamically linked init does not run in it.")
	t := newTable("init", "file, kB", "ratio", "image, kB")
	for _, x := range r.FileSize {
		image := "–"
		if x.ImageBytes != nil {
			image = num(*x.ImageBytes / 1000)
		}
		t.row(x.Init, num(x.Bytes/1000), ratio(x.Ratio), image)
	}
	p.table(t)
}

// charts draws a picture for every section that was measured and has one.
func (r *Report) charts(dir string) error {
	for _, part := range []struct {
		measured bool
		draw     func(dir string) error
	}{
		{len(r.Startup) > 0, r.startupCharts},
		{len(r.Idle) > 0, r.idleChart},
		{len(r.Latency) > 0, r.latencyChart},
		{len(r.Reaping) > 0, r.reapingChart},
	} {
		if !part.measured {
			continue
		}
		if err := part.draw(dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) startupCharts(dir string) error {
	var names []string
	static, dynamic := series{name: "static command"}, series{name: "dynamic command"}
	faults := series{}
	for _, x := range r.Startup {
		if x.Init == bareName || !x.PID1 {
			continue
		}
		if x.Command == "static" {
			names = append(names, x.Init)
			static.values = append(static.values, x.Wall.Median/1e3)
			faults.values = append(faults.values, x.Faults.Median)
		} else {
			dynamic.values = append(dynamic.values, x.Wall.Median/1e3)
		}
	}
	if err := barChart(filepath.Join(dir, "startup"), "Start to exit above the bare command, as PID 1 (median)", "ms", "%.2f", names, static, dynamic); err != nil {
		return err
	}
	return barChart(filepath.Join(dir, "faults"), "Page faults above the bare command, as PID 1 (median)", "page faults", "%.0f", names, faults)
}

func (r *Report) idleChart(dir string) error {
	var names []string
	rss, dirty := series{name: "resident"}, series{name: "private dirty"}
	for _, x := range r.Idle {
		names = append(names, x.Init)
		rss.values = append(rss.values, float64(x.RSS))
		dirty.values = append(dirty.values, float64(x.PrivateDirty))
	}
	return barChart(filepath.Join(dir, "idle"), "Memory of an idle init", "kB", "%.0f", names, rss, dirty)
}

func (r *Report) latencyChart(dir string) error {
	var names []string
	mid, tail := series{name: "median"}, series{name: "99th percentile"}
	for _, x := range r.Latency {
		if x.Storm {
			continue
		}
		names = append(names, x.Init)
		mid.values = append(mid.values, x.Median)
		tail.values = append(tail.values, x.P99)
	}
	return barChart(filepath.Join(dir, "latency"), "From kill(2) to the workload's waking up, idle", "µs", "%.0f", names, mid, tail)
}

func (r *Report) reapingChart(dir string) error {
	var names []string
	cpu := series{}
	for _, x := range r.Reaping {
		names = append(names, x.Init)
		cpu.values = append(cpu.values, x.CPU)
	}
	return barChart(filepath.Join(dir, "reaping"), "CPU time of the init for each orphan", "µs", "%.1f", names, cpu)
}
