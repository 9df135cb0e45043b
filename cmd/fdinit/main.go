// Command fdinit is the init of a container. Its life as an init is in
// internal/freestanding and below; what is here runs on the Go runtime, in a process
// that is not, or no longer, an init: it answers --help, --version and --install, finds
// words for what went wrong, and writes the event log.
//
// Messages go to stderr, one line each, in lower case and without a period: the thing,
// what happened to it, and what helps. Only what was asked for goes to stdout. Under
// another init's name its forms are kept, because scripts match them.
package main

import (
	"os"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/fdinit/fdinit/internal/persona"
	"github.com/fdinit/fdinit/internal/reaper"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

func main() {
	os.Exit(run(freestanding.Result()))
	// Only where a filter refuses exit_group(2), without which the Go runtime does not end
	// but faults for ever.
	sys.Kill(os.Getpid(), sys.Signal(unix.SIGKILL))
}

// run is what remains to be done after the freestanding part, and returns the exit
// status.
func run(o freestanding.Outcome) int {
	if !o.Entered {
		var c config.Config
		o.Verdict = persona.Parse(sys.VectorOf(os.Args...), sys.VectorOf(os.Environ()...), &c)
		o.Dialect = c.Dialect
	}
	complaintsInJSON = o.Log.JSON
	v := voiceOf(o)
	switch o.Verdict.Action {
	case config.Help:
		return v.help()
	case config.Version:
		return v.version()
	case config.License:
		return v.license()
	case config.Install:
		return install(o.Verdict)
	case config.Refuse:
		return v.refuse(o.Verdict.Problem)
	}
	if !o.Entered {
		complain("this binary was linked without its entry point and cannot be an init: build it with " + buildCommand)
		return config.StatusFailed
	}
	switch o.Handover.Stage {
	case reaper.WriteLog:
		return writeLog(o)
	case reaper.WriteOnce:
		return writeOnce(o)
	case reaper.Exec:
		return v.execFailed(o.Handover, os.Args[o.Command:])
	}
	complain(describeFailure(o.Handover))
	return o.Handover.Status
}
