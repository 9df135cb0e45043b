package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// sections are the parts of the benchmark, in the order of the report.
var sections = []string{"startup", "idle", "fleet", "latency", "reaping", "size"}

// documents are parts with a report of their own, which no other init takes
// part in. They are measured only when asked for.
var documents = []string{"sweep", "jvm"}

// sizes says how much is measured.
type sizes struct {
	Runs         int `json:"runs"`
	WatchSeconds int `json:"watchSeconds"`
	Instances    int `json:"instances"`
	Signals      int `json:"signals"`
	Orphans      int `json:"orphans"`
	OrphanRounds int `json:"orphanRounds"`
}

var (
	full  = sizes{Runs: 1000, WatchSeconds: 60, Instances: 200, Signals: 2000, Orphans: 100_000, OrphanRounds: 3}
	quick = sizes{Runs: 200, WatchSeconds: 10, Instances: 50, Signals: 300, Orphans: 10_000, OrphanRounds: 3}
)

var errBroken = errors.New("a claim does not hold")

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	// What a careless parent left open would be swept, and counted, too.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("marking inherited descriptors (Linux 5.11): %w", err)
	}
	killOnInterrupt()
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if isDocument(o.wanted[0]) {
		return o.reportDocuments(dir)
	}
	return o.reportInits(dir)
}

// reportInits measures the inits beside one another, for the report or for the
// claims.
func (o *options) reportInits(dir string) error {
	// The collector would run in the middle of a measurement.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)

	size := full
	if o.quick || o.check != "" {
		size = quick
	}
	if o.runs > 0 {
		size.Runs = o.runs
	}
	goinit, err := buildGoInit(dir)
	if err != nil {
		return err
	}
	found, missing, err := findContenders(dir, o.fdinit, goinit, o.pabloruth)
	if err != nil {
		return err
	}
	programs, err := buildWorkloads(dir, size.Orphans)
	if err != nil {
		return err
	}
	b := &bench{inits: found, programs: programs, size: size}
	r := &Report{
		Header:  newHeader("bench", o.flags, o.quick),
		Missing: missing,
		Sizes:   size,
	}
	for _, c := range found {
		if c.name != bareName {
			r.Inits = append(r.Inits, Init{c.name, c.version})
		}
	}
	if o.check != "" {
		return b.check(o.check, r)
	}
	if err := b.measure(r, o.wanted); err != nil {
		return err
	}
	return deliver(r, o.out)
}

// reportDocuments measures the parts that have a report of their own.
func (o *options) reportDocuments(dir string) error {
	for _, name := range o.wanted {
		header := newHeader("bench-"+name, o.flags, o.quick)
		var err error
		switch name {
		case "sweep":
			size := fullSweep
			if o.quick {
				size = quickSweep
			}
			if o.runs > 0 {
				size.rounds = o.runs
			}
			err = reportSweep(dir, header, o.out, size)
		case "jvm":
			size := fullJVM
			if o.quick {
				size = quickJVM
			}
			if o.runs > 0 {
				size.executions = o.runs
			}
			err = reportJVM(dir, header, o.out, o.fdinit, size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	inits    []contender
	programs workloads
	size     sizes
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// measure fills in the sections of the report.
func (b *bench) measure(r *Report, wanted []string) error {
	for _, s := range wanted {
		if s != "startup" {
			progress("%s", s)
		}
		var err error
		switch s {
		case "startup":
			r.Startup, err = measureStartup(b.inits, b.programs, b.size.Runs)
		case "idle":
			r.Idle, err = measureIdle(b.inits, b.programs, time.Duration(b.size.WatchSeconds)*time.Second)
		case "fleet":
			r.Fleet, err = measureFleet(b.inits, b.programs, b.size.Instances)
		case "latency":
			r.Latency, err = measureLatency(b.inits, b.programs, b.size.Signals)
		case "reaping":
			r.Reaping, err = measureReaping(b.inits, b.programs, b.size.Orphans, b.size.OrphanRounds)
		case "size":
			r.FileSize, err = measureSize(b.inits)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
