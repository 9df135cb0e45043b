package config

import (
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
)

// Config is what fdinit is to do.
type Config struct {
	// Command is the index in argv of the workload's first word.
	Command int

	// Group forwards signals to the workload's process group, not to it alone.
	Group bool

	// ParentDeathSignal is what fdinit wants when its own parent ends; 0: nothing.
	ParentDeathSignal sys.Signal

	// Keep are the descriptors that the workload inherits besides 0, 1 and 2.
	Keep fds.Set

	// Limits are the limits asked for. NofileKeep turns off the default policy for
	// RLIMIT_NOFILE.
	Limits     rlimit.Requests
	NofileKeep bool

	// given are the settings that an option has made, so that their variable loses.
	given setting
}

// Action is what the command line asks for.
type Action uint8

const (
	Run Action = iota
	Help
	Version
	Refuse // there is a Problem
)

// Verdict is the outcome of parsing.
type Verdict struct {
	Action  Action
	Problem Problem
}

// Code says what kind of problem there is.
type Code uint8

const (
	NoProblem Code = iota
	NoCommand
	UnknownOption
	MissingValue
	UnwantedValue
	Repeated
	BadKeep    // Reason is a fds.Problem
	BadLimit   // Reason is a rlimit.Problem
	BadSignal  // neither a name nor a number
	BadSwitch  // a variable that is neither 0 nor 1
	LimitTwice // one resource limited twice at the same level
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
	return Verdict{Refuse, Problem{
		Code: code, Reason: reason, Arg: p.arg, Env: p.env, Value: p.off, From: p.off + from, To: p.off + to,
	}}
}
