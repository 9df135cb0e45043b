package freestanding

import (
	"unsafe"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/persona"
	"github.com/fdinit/fdinit/internal/reaper"
	"github.com/fdinit/fdinit/internal/sys"
)

// Entry is the process's entry point, for the linker only: it expects the stack as
// execve(2) leaves it. It calls start and, if that returns, boots the Go runtime as if
// nothing had happened.
func Entry()

// Outcome is what the freestanding part leaves to package main.
type Outcome struct {
	// Entered is false in a binary that was linked without Entry.
	Entered bool

	// Verdict is what the command line asks for, in Dialect. If that is Run, Handover
	// says why the process is hosted all the same, Command is the index in argv of the
	// workload's first word, and Log is how its log is to be written.
	Verdict  config.Verdict
	Dialect  config.Dialect
	Command  int
	Log      config.Log
	Handover reaper.Handover
}

// state is everything that outlives start or that the assembly of Entry needs.
//
//lint:ignore U1000 the assembly uses its fields
type state struct {
	// blankG stands for the runtime's g, whose size in Go 1.26 is under 512 bytes.
	// threadLocal[0] is the slot that points at it where g has no register of its own.
	blankG      [1024]byte
	threadLocal [2]uintptr

	// initialStack is the stack pointer to go back to before the runtime is booted.
	initialStack uintptr

	outcome Outcome

	nothing byte // an empty string
}

// process is one variable so that one page holds it all.
var process state

// Result returns the outcome, for package main.
func Result() Outcome { return process.outcome }

// Environ is the environment as it was passed, which is what a Problem's Env counts in:
// os.Environ leaves out empty strings and whatever is set a second time. It is nil in a
// binary that was linked without Entry. For package main, as it allocates.
func Environ() []string {
	if !process.outcome.Entered {
		return nil
	}
	_, env := sys.StackVectors(*(*unsafe.Pointer)(unsafe.Pointer(&process.initialStack)))
	strings := make([]string, env.Len())
	for i := range strings {
		strings[i] = env.String(i)
	}
	return strings
}

// start is the whole life of an init. It returns if the process is to become hosted.
//
//lint:ignore U1000 called by Entry
func start(sp unsafe.Pointer) {
	args, env := sys.StackVectors(sp)
	supervise(args, env)
	hideFromRuntime(env)
}

// hideFromRuntime empties the variables that are meant for a workload written in Go:
// they would let the process that writes the log use the memory that the workload is
// granted, mix traces into it, or end it (GOMEMLIMIT=2G instead of 2GiB).
func hideFromRuntime(env sys.Vector) {
	for _, name := range [...]string{"GOGC", "GOMEMLIMIT", "GODEBUG", "GOMAXPROCS", "GOTRACEBACK"} {
		// Not removed, since a Problem counts them.
		for _, i := env.Lookup(name); i >= 0; _, i = env.Lookup(name) {
			env.Set(i, &process.nothing)
		}
	}
}

func supervise(args, env sys.Vector) {
	// First of all: until every signal is blocked, the kernel drops those sent to PID 1.
	inherited, errno := sys.SetSignalMask(sys.AllSignals)
	o := &process.outcome
	o.Entered = true
	if errno != 0 {
		// The Go runtime faults if it cannot do this.
		reaper.ExplainPlainly(reaper.Handover{Stage: reaper.BlockSignals, Errno: errno}, "")
		sys.Exit(config.StatusFailed)
	}
	var c config.Config
	o.Verdict = persona.Parse(args, env, &c)
	o.Dialect, o.Command, o.Log = c.Dialect, c.Command, c.Log
	if o.Verdict.Action != config.Run {
		sys.SetSignalMask(inherited)
		return
	}
	// Signals stay blocked from here on: one that arrives while the runtime explains a
	// failure must not change the exit status, nor one to the group end the log.
	o.Handover = reaper.Run(&c, args, env, inherited)
}
