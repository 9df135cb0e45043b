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

var outcome Outcome

// Result returns the outcome, for package main.
func Result() Outcome { return outcome }

// The assembly of Entry uses these: a block that stands for the runtime's g (its size
// in Go 1.26 is under 512 bytes), the thread-local slot that points at it where g has
// no register of its own, and the stack pointer to go back to.
var (
	blankG       [1024]byte
	threadLocal  [2]uintptr
	initialStack uintptr
)

// start is the whole life of an init. It returns if the process is to become hosted.
func start(sp unsafe.Pointer) {
	// First of all: until every signal is blocked, the kernel drops those sent to PID 1.
	inherited, errno := sys.SetSignalMask(sys.AllSignals)
	outcome.Entered = true
	if errno != 0 {
		outcome.Failure = reaper.Failure{Stage: reaper.BlockSignals, Errno: errno}
		return
	}
	args, env := sys.StackVectors(sp)
	var c config.Config
	outcome.Verdict = config.Parse(args, env, &c)
	if outcome.Verdict.Action != config.Run {
		sys.SetSignalMask(inherited)
		return
	}
	// After a failure signals stay blocked: one that arrives while the runtime explains
	// it must not change the exit status.
	outcome.Command = c.Command
	outcome.Failure = reaper.Run(&c, args, env, inherited)
}
