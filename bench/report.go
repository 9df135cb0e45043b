package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is everything that one run of the benchmark found out.
type Report struct {
	Command  string       `json:"command"`
	Date     string       `json:"date"`
	Machine  Machine      `json:"machine"`
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

// write puts the report into a directory in all its forms.
func (r *Report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	js, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), append(js, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte(r.markdown(true)), 0o644); err != nil {
		return err
	}
	return r.charts(dir)
}

func (r *Report) markdown(withCharts bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	chart := func(name, alt string) {
		if withCharts {
			line("![%s](%s.svg)", alt, name)
		}
	}

	line("# fdinit beside other inits")
	line("Made by `%s` in `bench/` on %s: %s, %d cores, Linux %s, %s, %s %s.", r.Command, r.Date,
		r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Distribution, r.Machine.Go, r.Machine.Arch)
	var names []string
	for _, in := range r.Inits {
		if in.Version != "" {
			names = append(names, fmt.Sprintf("%s (`%s`)", in.Name, in.Version))
		} else {
			names = append(names, in.Name)
		}
	}
	line("Measured: %s. plain-go is `bench/goinit`, an init as one writes it on the ordinary Go runtime.", strings.Join(names, ", "))
	if len(r.Missing) > 0 {
		line("Not installed, and so not measured: %s.", strings.Join(r.Missing, ", "))
	}
	if withCharts {
		line("Beside this: [what it costs to close what was inherited](sweep.md), and [a JVM that executes commands](jvm.md).")
	}
	line("Compare within a table, not between machines. Ratios are to %s; in brackets the 95 %% bootstrap interval.", referenceName)

	if len(r.Startup) > 0 {
		r.startupMarkdown(line, chart)
	}
	if len(r.Idle) > 0 {
		line("## Idle")
		line("One instance around a command that waits for a signal, given 0, 1, 2 and %d descriptors that its parent forgot to close; wake-ups in %d s. Memory in kB. \"After work\" is the same instance when it waits again, after it has forwarded one signal and reaped one orphan: an init touches more of its pages then. Every init is a fresh copy, written as an engine unpacks a layer, so that nobody else shares its pages.", leakedFiles, r.Sizes.WatchSeconds)
		chart("idle", "Memory of an idle init")
		t := newTable("init", "RSS", "ratio", "PSS", "private dirty", "ratio", "RSS after work", "private dirty after work", "private clean", "page tables", "threads", "wake-ups", "descriptors")
		for _, x := range r.Idle {
			t.row(x.Init, num(x.RSS), ratio(x.RSSRatio), num(x.PSS), num(x.PrivateDirty), ratio(x.DirtyRatio),
				num(x.WorkedRSS), num(x.WorkedPrivateDirty), num(x.PrivateClean), num(x.PageTables), num(x.Threads), num(x.Wakeups), num(x.Descriptors))
		}
		line("%s", strings.TrimSpace(t.b.String()))
	}
	if len(r.Fleet) > 0 {
		line("## %d instances at once", r.Fleet[0].Instances)
		line("Each in a PID namespace of its own around a sleep, as containers on a node; kB for each instance, without the sleep.")
		t := newTable("init", "PSS", "ratio", "private dirty", "page tables")
		for _, x := range r.Fleet {
			t.row(x.Init, fmt.Sprintf("%.1f", x.PSS), ratio(x.PSSRatio), fmt.Sprintf("%.1f", x.PrivateDirty), fmt.Sprintf("%.1f", x.PageTables))
		}
		line("%s", strings.TrimSpace(t.b.String()))
	}
	if len(r.Latency) > 0 {
		line("## Signal latency")
		line("From `kill(2)` on the init to the workload's waking up, in µs; the bare row is a signal sent to the workload itself. The storm is a process beside the workload that makes orphans as fast as it can.")
		chart("latency", "Signal latency")
		t := newTable("init", "state", "samples", "median", "ratio", "p99")
		for _, x := range r.Latency {
			state := "idle"
			if x.Storm {
				state = "storm"
			}
			t.row(x.Init, state, num(x.Samples), fmt.Sprintf("%.1f", x.Median), ratio(x.Ratio), fmt.Sprintf("%.0f", x.P99))
		}
		line("%s", strings.TrimSpace(t.b.String()))
	}
	if len(r.Reaping) > 0 {
		line("## Reaping")
		line("%d orphans, made one after the other as fast as possible; the maker sets the pace, so look at the processor time. Zombies are sampled every 2 ms.", r.Reaping[0].Orphans)
		chart("reaping", "CPU time of the init for each orphan")
		t := newTable("init", "orphans a second", "peak zombies", "CPU of the init for each, µs", "ratio")
		for _, x := range r.Reaping {
			t.row(x.Init, fmt.Sprintf("%.0f", x.PerSecond), num(x.PeakZombies), fmt.Sprintf("%.2f", x.CPU), ratio(x.CPURatio))
		}
		line("%s", strings.TrimSpace(t.b.String()))
	}
	if len(r.FileSize) > 0 {
		line("## Size")
		line("The image is FROM scratch with that one file; a dynamically linked init does not run in it.")
		t := newTable("init", "file, kB", "ratio", "image, kB")
		for _, x := range r.FileSize {
			image := "–"
			if x.ImageBytes != nil {
				image = num(*x.ImageBytes / 1000)
			}
			t.row(x.Init, num(x.Bytes/1000), ratio(x.Ratio), image)
		}
		line("%s", strings.TrimSpace(t.b.String()))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *Report) startupMarkdown(line func(string, ...any), chart func(name, alt string)) {
	line("## Start to exit, above the bare command")
	line("%d interleaved runs each, in a new random order every round. Times in µs from clone to the return of wait4. The bare row is absolute, all others are what the init adds. \"static\" runs a hand-made ELF of 129 bytes, \"dynamic\" `/bin/true`.", r.Sizes.Runs)
	chart("startup", "Start to exit above the bare command")
	chart("faults", "Page faults above the bare command")
	for _, pid1 := range []bool{true, false} {
		for _, command := range []string{"static", "dynamic"} {
			rows := slices.DeleteFunc(slices.Clone(r.Startup), func(x StartupRow) bool {
				return x.PID1 != pid1 || x.Command != command
			})
			if len(rows) == 0 {
				continue
			}
			line("### %s", setting{command: command, pid1: pid1})
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
			line("%s", strings.TrimSpace(t.b.String()))
		}
	}
}

// charts draws one picture for every section that was measured.
func (r *Report) charts(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	if len(r.Startup) > 0 {
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
		if err := barChart(at("startup"), "Start to exit above the bare command, as PID 1 (median)", "ms", "%.2f", names, static, dynamic); err != nil {
			return err
		}
		if err := barChart(at("faults"), "Page faults above the bare command, as PID 1 (median)", "page faults", "%.0f", names, faults); err != nil {
			return err
		}
	}
	if len(r.Idle) > 0 {
		var names []string
		rss, dirty := series{name: "resident"}, series{name: "private dirty"}
		for _, x := range r.Idle {
			names = append(names, x.Init)
			rss.values = append(rss.values, float64(x.RSS))
			dirty.values = append(dirty.values, float64(x.PrivateDirty))
		}
		if err := barChart(at("idle"), "Memory of an idle init", "kB", "%.0f", names, rss, dirty); err != nil {
			return err
		}
	}
	if len(r.Latency) > 0 {
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
		if err := barChart(at("latency"), "From kill(2) to the workload's waking up, idle", "µs", "%.0f", names, mid, tail); err != nil {
			return err
		}
	}
	if len(r.Reaping) > 0 {
		var names []string
		cpu := series{}
		for _, x := range r.Reaping {
			names = append(names, x.Init)
			cpu.values = append(cpu.values, x.CPU)
		}
		if err := barChart(at("reaping"), "CPU time of the init for each orphan", "µs", "%.1f", names, cpu); err != nil {
			return err
		}
	}
	return nil
}
