package reaper

import (
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
)

// Stage is where the freestanding part of a process ended.
type Stage uint8

const (
	NoStage      Stage = iota
	BlockSignals       // rt_sigprocmask(2) was refused
	OutsideRoot        // the working directory lies outside the root
	DeathSignal        // prctl(PR_SET_PDEATHSIG) was refused
	StartLog           // the event log's process could not be started
	Spawn              // vfork was refused
	SetLimit           // a limit could not be set as asked: see Limit
	Exec               // the workload could not be executed
	WaitSignals        // rt_sigtimedwait(2) was refused
	WaitChildren       // wait4(2) was refused

	// The rest are no failures: this process is one that the init forked to have
	// something written by the Go runtime.

	WriteLog  // the event log: events come from LogInput until its end
	WriteOnce // a single event: see Event
)

// Handover is what the freestanding part of a process leaves to the hosted one: why the
// init failed, or what is to be written.
type Handover struct {
	Stage    Stage
	Errno    sys.Errno
	Status   int // to end with after a failure
	Limit    rlimit.Failure
	Init     int // the init's pid
	Child    int // the process that could not become the workload, at SetLimit and Exec
	LogInput int
	Event    events.Event
}
