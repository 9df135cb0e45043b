// Command fdinit is the init of a container. Its life as an init is in
// internal/freestanding and below; what is here runs on the Go runtime, in a process
// that is not, or no longer, an init: it answers --help and --version and finds words
// for what went wrong.
//
// Messages go to stderr, one line each, in lower case and without a period: the thing,
// what happened to it, and what helps. Only what was asked for goes to stdout.
package main

import (
	"fmt"
	"os"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/fdinit/fdinit/internal/reaper"
	"github.com/fdinit/fdinit/internal/sys"
)

func main() {
	os.Exit(run(freestanding.Result()))
}

// run is what remains to be done after the freestanding part, and returns the exit
// status.
func run(o freestanding.Outcome) int {
	log := newLogger(os.Stderr)
	verdict := o.Verdict
	if !o.Entered {
		var c config.Config
		verdict = config.Parse(sys.VectorOf(os.Args...), sys.VectorOf(), &c)
	}
	switch verdict.Action {
	case config.Help:
		fmt.Print(usage)
		return 0
	case config.Version:
		fmt.Println(versionLine())
		return 0
	case config.Refuse:
		log.Error(describeProblem(verdict.Problem, os.Args, os.Environ()))
		return reaper.StatusFailed
	}
	if !o.Entered {
		log.Error("this binary was linked without its entry point and cannot be an init: build it with " + buildCommand)
		return reaper.StatusFailed
	}
	message, status := describeFailure(o.Failure, os.Args[o.Command:])
	log.Error(message)
	return status
}
