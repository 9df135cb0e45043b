// The lab runs fdinit on real kernels with real limits on open files: it boots Debian's
// kernels in an emulated machine, with fdinit as the first process, and writes what it
// saw to docs/lab.md and docs/lab.json.
//
//	go run . [-kernel 6.1,5.10,6.12] [-only NAME,...] [-short]
//
// It needs Debian and the packages that it names if they are missing. Kernels and
// programs of other suites are fetched once and kept in the cache folder; nothing is
// installed on the machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fdinit/fdinit/test/lab/internal/container"
)

func main() {
	container.RunStage()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

type options struct {
	kernels     []string
	only        []string
	short       bool
	cache       string
	out         string
	accelerator string
	fdinit      string
	match       string
	verbose     bool
}

func parse() (o options, err error) {
	var kernels, only string
	flag.StringVar(&kernels, "kernel", strings.Join(kernelNames(), ","), "kernels to boot, separated by commas")
	flag.StringVar(&only, "only", "", "scenarios to run, separated by commas: "+strings.Join(scenarioNames(), ", "))
	flag.BoolVar(&o.short, "short", false, "one kernel and the core scenarios, in a few minutes")
	flag.StringVar(&o.cache, "cache", "", "folder for what was fetched (default: fdinit-lab in the user's cache folder)")
	flag.StringVar(&o.out, "out", "", "folder for lab.md and lab.json, where parts of a run replace those of an earlier one (default: the project's docs for a whole run, else none)")
	flag.StringVar(&o.accelerator, "accel", "tcg", "the emulator's accelerator")
	flag.StringVar(&o.fdinit, "fdinit", "", "the binary to test (default: one built from the tree)")
	flag.StringVar(&o.match, "match", "", "regular expression of the tests to run inside of the machines")
	flag.BoolVar(&o.verbose, "v", false, "show the machines' consoles")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.short && !isSet("kernel") {
		kernels = kernelNames()[0]
	}
	for name := range strings.SplitSeq(kernels, ",") {
		if !slices.Contains(kernelNames(), name) {
			return o, fmt.Errorf("no kernel %q: there are %s", name, strings.Join(kernelNames(), ", "))
		}
		o.kernels = append(o.kernels, name)
	}
	if only != "" {
		for name := range strings.SplitSeq(only, ",") {
			if !slices.Contains(scenarioNames(), name) {
				return o, fmt.Errorf("no scenario %q: there are %s", name, strings.Join(scenarioNames(), ", "))
			}
			o.only = append(o.only, name)
		}
	}
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, err
		}
		o.cache = filepath.Join(dir, "fdinit-lab")
	}
	if o.out == "" && !o.partial() {
		root, err := projectRoot()
		if err != nil {
			return o, err
		}
		o.out = filepath.Join(root, "docs")
	}
	return o, nil
}

// partial is whether this is not a whole run.
func (o *options) partial() bool {
	return o.short || o.only != nil || o.match != "" || isSet("kernel")
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func run() error {
	o, err := parse()
	if err != nil {
		return err
	}
	l, err := newLab(o)
	if err != nil {
		return err
	}
	defer l.close()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		l.close()
		os.Exit(130)
	}()
	for _, s := range scenarios {
		if !l.wants(s.name) {
			continue
		}
		if err := s.run(l); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return errors.Join(l.write(), l.verdict())
}
