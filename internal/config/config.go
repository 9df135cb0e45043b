package config

import (
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
)

// Config is what fdinit is to do.
type Config struct {
	Dialect Dialect

	// Command is the index in argv of the workload's first word. With Pause there is no
	// workload: the init reaps until TERM or INT ends it.
	Command int
	Pause   bool

	// Scope is whom signals are forwarded to, and Place where the workload runs.
	Scope Scope
	Place Place

	// TerminalDevice takes /dev/tty for the workload's terminal where it can be opened,
	// and standard input only where it cannot.
	TerminalDevice bool

	// Rewrites are signals to be forwarded as others.
	Rewrites Rewrites

	// TermAtEnd sends TERM to Scope when the workload has ended. SuspendSelf stops the
	// init, too, when it receives one of the terminal's stop signals.
	TermAtEnd, SuspendSelf bool

	// Zero are the exit statuses of the workload that count as 0.
	Zero StatusSet

	// ParentDeathSignal is what fdinit wants when its own parent ends; 0: nothing.
	ParentDeathSignal sys.Signal

	// Keep are the descriptors that the workload inherits besides 0, 1 and 2.
	Keep fds.Set

	// Limits are the limits asked for. NofileKeep turns off the default policy for
	// RLIMIT_NOFILE.
	Limits     rlimit.Requests
	NofileKeep bool

	Log Log

	// given are the options that there were, whose variables lose.
	given given
}

// Log is what is written while supervising, and how.
type Log struct {
	Wanted bool    // without it there is no process to write anything
	Style  Dialect // whose words are used
	Level  events.Level
	JSON   bool
	Notes  Notes
}

// Notes are particulars of a dialect's log.
type Notes uint8

const (
	NoteTrace     Notes = 1 << iota // tini: -vvv
	NoteReaped                      // tini: -w
	NoteSubreaper                   // tini: -s
	NoteQuiet                       // tini: no warnings
	NoteDebugMode                   // dumb-init: asked for with its variable
	NoteNoSession                   // dumb-init: single-child through its variable
)

// Scope is whom signals are forwarded to.
type Scope uint8

const (
	ToProcess Scope = iota // the workload
	ToGroup                // its process group
)

// Place is where the workload runs.
type Place uint8

const (
	InOwnGroup   Place = iota // its own process group, in the foreground
	InOwnSession              // its own session, with the terminal
	WithInit                  // the init's process group
)

// Rewrites maps signals to others. The zero value maps each to itself.
type Rewrites struct {
	to [signals.RTMax + 1]sys.Signal // plus 1, so that 0 is "not rewritten"
}

// Set rewrites a signal; to 0 means that it is not forwarded.
func (r *Rewrites) Set(from, to sys.Signal) { r.to[from] = to + 1 }

// Of is what a signal is forwarded as.
func (r *Rewrites) Of(sig sys.Signal) sys.Signal {
	if int(sig) < len(r.to) && r.to[sig] != 0 {
		return r.to[sig] - 1
	}
	return sig
}

// Rewritten tells whether there is a rule for a signal.
func (r *Rewrites) Rewritten(sig sys.Signal) bool { return r.to[sig] != 0 }

// StatusSet is a set of exit statuses.
type StatusSet struct{ bits [4]uint64 }

// Add puts a status from 0 to 255 into the set.
func (s *StatusSet) Add(status int) { s.bits[status>>6&3] |= 1 << (status & 63) }

// Replace is 0 for a status in the set, else the status.
func (s *StatusSet) Replace(status int) int {
	if s.bits[status>>6&3]>>(status&63)&1 != 0 {
		return 0
	}
	return status
}

// Action is what the command line asks for.
type Action uint8

const (
	Run Action = iota
	Help
	Version
	License
	Install
	Refuse // there is a Problem
)

// Verdict is the outcome of parsing.
type Verdict struct {
	Action  Action
	Problem Problem

	// Path and As are the values of --install and --install-as.
	Path, As Text
}

// Text is a place in argv: argv[Arg] from byte Off on. The zero Text is none, since
// argv[0] is no value.
type Text struct{ Arg, Off int }

// Code says what kind of problem there is.
type Code uint8

const (
	NoProblem Code = iota
	NoCommand
	UnknownOption
	AmbiguousOption
	MissingValue
	UnwantedValue
	UnwantedCommand // there is a command, but nothing is to be run
	UselessOption   // it says how to run a command, but nothing is to be run
	Repeated
	BadKeep    // Reason is a fds.Problem
	BadLimit   // Reason is a rlimit.Problem
	BadSignal  // neither a name nor a number
	BadSwitch  // a variable that is neither 0 nor 1
	BadLevel   // not a log level
	BadFormat  // not a log format
	LimitTwice // one resource limited twice at the same level
	BadStatus  // not an exit status
	BadRewrite // not a pair of signals
	EmptyValue
	LoneInstallAs    // --install-as without --install
	ReservedVariable // a variable that must not be set
)

// Problem is what is wrong, and where: in argv[Arg], or in the environment's string
// Env where Arg is -1. The value that has the problem begins at byte Value of that
// string, and the offending part of it is the string's bytes From to To.
type Problem struct {
	Code     Code
	Reason   uint8
	Arg, Env int
	Value    int
	From, To int
}

// place is where a value stands.
type place struct{ arg, env, off int }

func (p place) refuse(code Code, reason uint8, from, to int) Verdict {
	return Verdict{Action: Refuse, Problem: Problem{
		Code: code, Reason: reason, Arg: p.arg, Env: p.env, Value: p.off, From: p.off + from, To: p.off + to,
	}}
}

// RefuseOption is the verdict on what a Scanner could not read, for other dialects.
func RefuseOption(f Found) Verdict {
	code := UnknownOption
	switch f.ID {
	case NoValue:
		code = MissingValue
	case HasValue:
		code = UnwantedValue
	case Ambiguous:
		code = AmbiguousOption
	}
	return place{arg: f.Arg}.refuse(code, 0, f.From, f.To)
}

// RefuseValue is the verdict on an option's value, for other dialects.
func RefuseValue(f Found, code Code) Verdict {
	return place{arg: f.At, off: f.Off}.refuse(code, 0, 0, len(f.Value))
}

// RefuseVariable is the verdict on the i-th string of the environment.
func RefuseVariable(i int, code Code) Verdict {
	return place{arg: -1, env: i}.refuse(code, 0, 0, 0)
}

// RefuseEmpty is the verdict on a command line without a command.
func RefuseEmpty() Verdict { return place{}.refuse(NoCommand, 0, 0, 0) }
