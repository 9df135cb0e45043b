package events

import (
	"unsafe"

	"github.com/fdinit/fdinit/internal/sys"
)

// Kind is what happened. The comments name the fields of Event that it fills, besides
// Time and Dropped.
type Kind uint8

const (
	None             Kind = iota
	Subreaper             // registered; Errno if refused
	Swept                 // Strategy, Values[0]: how many were closed (see fds.Report)
	LimitChanged          // Code: resource, Values: old soft and hard, new soft and hard
	Started               // Pid: of the workload
	Received              // Signal, Pid and Uid of the sender, Code: si_code
	Translated            // Signal became Other (0: is not forwarded)
	Ignored               // Signal, which the terminal's hand-over caused
	Forwarded             // Signal to Pid (negative: a group)
	ForwardFailed         // the same, with Errno
	SentLast              // Signal to Pid, because the workload ended
	Suspending            // stopping itself, because of Signal
	Reaped                // Pid ended with Status; it was not the workload
	WorkloadEnded         // Pid ended with Status
	NothingToReap         // children live, but none has ended
	NoChildren            // no children are left
	Ending                // the init exits, with status Code
	TerminalDetached      // Errno, Code 1: was session leader
	SessionStarted        // by Pid, the workload; Errno of taking the terminal
	ForegroundFailed      // by Pid, Errno
	NoTerminalDevice      // Pid cannot open /dev/tty, Errno
)

var names = [...]string{
	None:             "none",
	Subreaper:        "subreaper",
	Swept:            "swept",
	LimitChanged:     "limit-changed",
	Started:          "started",
	Received:         "received",
	Translated:       "translated",
	Ignored:          "ignored",
	Forwarded:        "forwarded",
	ForwardFailed:    "forward-failed",
	SentLast:         "sent-last",
	Suspending:       "suspending",
	Reaped:           "reaped",
	WorkloadEnded:    "workload-ended",
	NothingToReap:    "nothing-to-reap",
	NoChildren:       "no-children",
	Ending:           "ending",
	TerminalDetached: "terminal-detached",
	SessionStarted:   "session-started",
	ForegroundFailed: "foreground-failed",
	NoTerminalDevice: "no-terminal-device",
}

func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Event is one record, 64 bytes without padding.
type Event struct {
	Time     int64  // nanoseconds since 1970
	Dropped  uint32 // how many events were lost before this one
	Kind     Kind
	Signal   sys.Signal
	Other    sys.Signal
	Strategy uint8
	Pid      int32
	Uid      uint32
	Code     int32
	Errno    int16
	_        int16
	Values   [4]uint64
}

// Of begins an event. What an init does often is written with it: the compiler copies a
// literal from a template, which lies apart from everything else an init reads, and the
// kernel maps 64 KiB around it.
func Of(kind Kind) (e Event) {
	e.Kind = kind
	return e
}

// Size is an Event's size in bytes.
const Size = int(unsafe.Sizeof(Event{}))

// Status is the status that a process ended with.
func (e *Event) Status() sys.WaitStatus { return sys.WaitStatus(e.Values[0]) }

// Level is how much is written.
type Level uint8

const (
	Warn Level = iota
	Info
	Debug
)

// LevelOf is the level from which on a kind is of interest in fdinit's own dialect.
func LevelOf(k Kind) Level {
	switch k {
	case ForwardFailed:
		return Warn
	case Swept, LimitChanged, Started, Received, Forwarded, WorkloadEnded, Translated:
		return Info
	}
	return Debug
}
