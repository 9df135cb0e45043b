package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
)

// StartupRow is one contender in one setting: what start to exit costs above
// the bare command.
type StartupRow struct {
	Init    string `json:"init"`
	PID1    bool   `json:"pid1"`
	Command string `json:"command"` // true, static or dynamic
	// The bare command's row holds its own absolute cost.
	Wall     Above `json:"wallMicroseconds"`
	CPU      Above `json:"cpuMicroseconds"`
	Faults   Above `json:"pageFaults"`
	Syscalls *int  `json:"systemCalls,omitempty"`
}

// Above is a quantity above that of the bare command.
type Above struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Ratio  *Ratio  `json:"ratioToReference,omitempty"`
}

func above(x, ref, bare []float64, name string) Above {
	a := Above{Min: slices.Min(x), Median: median(x)}
	if name == bareName {
		return a
	}
	a.Min -= slices.Min(bare)
	a.Median -= median(bare)
	a.Ratio = compare(x, ref, bare)
	return a
}

// setting is one of the four ways in which start to exit is measured.
type setting struct {
	command string
	argv    []string
	pid1    bool
}

func settings(w workloads) []setting {
	return []setting{
		{"static", []string{w.staticTrue}, true},
		{"dynamic", []string{w.dynamicTrue}, true},
		{"static", []string{w.staticTrue}, false},
		{"dynamic", []string{w.dynamicTrue}, false},
	}
}

func measureStartup(cs []contender, w workloads, runs int) ([]StartupRow, error) {
	var rows []StartupRow
	for _, s := range settings(w) {
		progress("start to exit: %s", s)
		part, err := s.measure(cs, runs)
		if err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

func (s setting) String() string {
	if s.pid1 {
		return s.command + " command, as PID 1"
	}
	return s.command + " command, not as PID 1"
}

// startupSamples are what the rounds of one contender cost.
type startupSamples struct{ wall, cpu, faults []float64 }

func (s setting) measure(cs []contender, runs int) ([]StartupRow, error) {
	got, err := s.sample(cs, runs)
	if err != nil {
		return nil, err
	}
	bare, ref := got[bareName], got[referenceName]
	var (
		rows         []StartupRow
		bareSyscalls int
	)
	for _, c := range cs {
		g := got[c.name]
		n, err := s.syscalls(c)
		if err != nil {
			return nil, fmt.Errorf("counting the system calls of %s: %w", c.name, err)
		}
		if c.name == bareName {
			bareSyscalls = n
		} else {
			n -= bareSyscalls
		}
		rows = append(rows, StartupRow{
			Init:     c.name,
			PID1:     s.pid1,
			Command:  s.command,
			Wall:     above(g.wall, ref.wall, bare.wall, c.name),
			CPU:      above(g.cpu, ref.cpu, bare.cpu, c.name),
			Faults:   above(g.faults, ref.faults, bare.faults, c.name),
			Syscalls: &n,
		})
	}
	return rows, nil
}

// sample runs all contenders in turn, in a new random order every round.
func (s setting) sample(cs []contender, runs int) (map[string]*startupSamples, error) {
	got := map[string]*startupSamples{}
	argv := map[string][]string{}
	attr := map[string]*syscall.ProcAttr{}
	for _, c := range cs {
		got[c.name] = &startupSamples{}
		argv[c.name] = c.argv(s.argv, s.pid1)
		attr[c.name] = prepareSpawn(spawnOptions{pid1: s.pid1})
	}
	// The warm-up brings every file into the page cache and the clock of the
	// processor up.
	warmup := min(20, runs)
	for round := range warmup + runs {
		for _, i := range rand.Perm(len(cs)) {
			name := cs[i].name
			m, err := runOnce(argv[name], attr[name])
			if err != nil {
				return nil, err
			}
			if round < warmup {
				continue
			}
			g := got[name]
			g.wall = append(g.wall, float64(m.wall.Nanoseconds())/1e3)
			g.cpu = append(g.cpu, float64(m.cpu.Nanoseconds())/1e3)
			g.faults = append(g.faults, float64(m.faults))
		}
	}
	return got, nil
}

// syscalls is the median of several counts, because what a Go runtime calls
// varies.
func (s setting) syscalls(c contender) (int, error) {
	var counts []float64
	for range 5 {
		n, err := countSyscalls(c.argv(s.argv, s.pid1), s.pid1)
		if err != nil {
			return 0, err
		}
		counts = append(counts, float64(n))
	}
	return int(median(counts)), nil
}
