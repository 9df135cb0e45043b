package freestanding

import (
	"unsafe"

	"github.com/fdinit/fdinit/internal/config"
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

	// Verdict is what the command line asks for. If that is Run, Failure says why there
	// is no workload, and Command is the index in argv of its first word.
	Verdict config.Verdict
	Command int
	Failure reaper.Failure
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
}

// process is one variable so that one page holds it all.
var process state

// Result returns the outcome, for package main.
func Result() Outcome { return process.outcome }

// start is the whole life of an init. It returns if the process is to become hosted.
//
//lint:ignore U1000 called by Entry
func start(sp unsafe.Pointer) {
	// First of all: until every signal is blocked, the kernel drops those sent to PID 1.
	inherited, errno := sys.SetSignalMask(sys.AllSignals)
	process.outcome.Entered = true
	if errno != 0 {
		process.outcome.Failure = reaper.Failure{Stage: reaper.BlockSignals, Errno: errno}
		return
	}
	args, env := sys.StackVectors(sp)
	var c config.Config
	process.outcome.Verdict = config.Parse(args, env, &c)
	if process.outcome.Verdict.Action != config.Run {
		sys.SetSignalMask(inherited)
		return
	}
	// After a failure signals stay blocked: one that arrives while the runtime explains
	// it must not change the exit status.
	process.outcome.Command = c.Command
	process.outcome.Failure = reaper.Run(&c, args, env, inherited)
}
