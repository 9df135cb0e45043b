package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
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
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	var (
		fdinit    = fs.String("fdinit", "../bin/fdinit", "the fdinit `binary` to measure")
		pabloruth = fs.String("go-init", "go-init", "the `binary` of github.com/pablo-ruth/go-init, left out when there is none")
		out       = fs.String("out", "../docs/bench", "write the report into this `directory`")
		runs      = fs.Int("runs", 0, "repeat start to exit so often (1000, quick 200); sweep: rounds (20, quick 5); jvm: executions (10000, quick 500)")
		isQuick   = fs.Bool("quick", false, "a short run, to look at rather than to publish")
		only      = fs.String("only", "", "measure only these `sections`, of "+strings.Join(sections, ",")+", or these documents, of "+strings.Join(documents, ",")+", and print to stdout unless -out is given")
		check     = fs.String("check", "", "a quick run against the claims in this `file`; no report is written")
	)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	// What a careless parent left open would be swept, and counted, too.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("marking inherited descriptors (Linux 5.11): %w", err)
	}
	size := full
	if *isQuick || *check != "" {
		size = quick
	}
	if *runs < 0 {
		return fmt.Errorf("-runs=%d: a positive number is needed", *runs)
	}
	if *runs > 0 {
		size.Runs = *runs
	}
	wanted := sections
	outGiven := false
	fs.Visit(func(f *flag.Flag) { outGiven = outGiven || f.Name == "out" })
	if *only != "" {
		wanted = strings.Split(*only, ",")
		if slices.ContainsFunc(wanted, isDocument) {
			if !outGiven {
				*out = ""
			}
			return writeDocuments(wanted, *isQuick, *runs, commandLine(fs), *fdinit, *out)
		}
		// 200 instances are part of what idle means.
		if slices.Contains(wanted, "idle") && !slices.Contains(wanted, "fleet") {
			wanted = append(wanted, "fleet")
		}
		for _, s := range wanted {
			if !slices.Contains(sections, s) {
				return fmt.Errorf("-only=%s: %q is none of %s", *only, s, strings.Join(slices.Concat(sections, documents), ", "))
			}
		}
	}

	// The collector would run in the middle of a measurement.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	killOnInterrupt()

	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	goinit, err := buildGoInit(dir)
	if err != nil {
		return err
	}
	found, missing, err := findContenders(dir, *fdinit, goinit, *pabloruth)
	if err != nil {
		return err
	}
	programs, err := buildWorkloads(dir, size.Orphans)
	if err != nil {
		return err
	}
	b := &bench{inits: found, programs: programs, size: size}
	r := &Report{
		Command: commandLine(fs),
		Date:    time.Now().UTC().Format(time.DateOnly),
		Machine: thisMachine(),
		Missing: missing,
		Sizes:   size,
	}
	for _, c := range found {
		if c.name != bareName {
			r.Inits = append(r.Inits, Init{c.name, c.version})
		}
	}

	if *check != "" {
		return b.check(*check, r)
	}
	if err := b.measure(r, wanted); err != nil {
		return err
	}
	if *only != "" && !outGiven {
		// A part must not replace the whole that is checked in.
		fmt.Print(r.markdown(false))
		return nil
	}
	return r.write(*out)
}

func isDocument(name string) bool { return slices.Contains(documents, name) }

// writeDocuments measures the parts that have a report of their own.
func writeDocuments(wanted []string, isQuick bool, runs int, command, fdinit, out string) error {
	for _, name := range wanted {
		if !isDocument(name) {
			return fmt.Errorf("-only: %q has no report of its own, unlike %s", name, strings.Join(documents, " and "))
		}
	}
	killOnInterrupt()
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range wanted {
		switch name {
		case "sweep":
			size := fullSweep
			if isQuick {
				size = quickSweep
			}
			if runs > 0 {
				size.rounds = runs
			}
			err = reportSweep(dir, command, out, size)
		case "jvm":
			size := fullJVM
			if isQuick {
				size = quickJVM
			}
			if runs > 0 {
				size.executions = runs
			}
			err = reportJVM(dir, command, out, fdinit, size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commandLine is what made the report, without the paths of the machine.
func commandLine(fs *flag.FlagSet) string {
	words := []string{"go", "run", "."}
	fs.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "fdinit", "go-init", "out":
		default:
			words = append(words, "-"+f.Name+"="+f.Value.String())
		}
	})
	return strings.Join(words, " ")
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
			r.Startup, err = measureStartup(b.inits, b.programs, b.size.Runs, progress)
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
