package reaper

import (
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// The statuses that fdinit itself ends with, as docker, env(1) and timeout(1) use them.
const (
	StatusFailed        = 125 // bad usage, or a failure of its own
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// ExecStatus is the status for a workload that could not be executed.
func ExecStatus(errno sys.Errno) int {
	if errno == unix.ENOENT || errno == unix.ENOTDIR {
		return StatusNotFound
	}
	return StatusNotExecutable
}

// Stage is what the init was doing when it failed.
type Stage uint8

const (
	NoFailure    Stage = iota
	BlockSignals       // rt_sigprocmask(2) was refused
	OutsideRoot        // the working directory lies outside the root
	DeathSignal        // prctl(PR_SET_PDEATHSIG) was refused
	Spawn              // vfork was refused
	SetLimit           // a limit could not be set as asked: see Failure.Limit
	Exec               // the workload could not be executed
	WaitSignals        // rt_sigtimedwait(2) was refused
	WaitChildren       // wait4(2) was refused
)

// Failure is why there is no workload, or no longer one.
type Failure struct {
	Stage Stage
	Errno sys.Errno
	Limit rlimit.Failure
}
