package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/reaper"
)

// tiniVoice speaks tini's dialect.
type tiniVoice struct{ argv0 string }

func tiniVersion() string {
	return "tini version " + version + "_fdinit" + commitSuffix()
}

func (v tiniVoice) usage(out io.Writer) {
	name := ascii.Base(v.argv0)
	fmt.Fprintf(out, `%[1]s (%[2]s)
Usage: %[1]s [OPTIONS] PROGRAM -- [ARGS] | --version

fdinit under tini's name: the init of a container

Command line options:

  --version: print the version, if it is the only word.
  -h: print this text.
  -s: adopt orphans although not PID 1; fdinit always does.
  -p SIGNAL: ask for SIGNAL when the parent ends.
  -v: log more; up to three times.
  -w: warn of every zombie that is reaped.
  -g: forward signals to the program's process group.
  -e EXIT_CODE: count this status of the program as 0; repeatable.
  -l: say how fdinit is licensed.

Environment variables:

  TINI_SUBREAPER: the same as -s.
  TINI_VERBOSITY: how much is logged (default: 1).
  TINI_KILL_PROCESS_GROUP: the same as -g.
  FDINIT_NOFILE, FDINIT_RLIMIT, FDINIT_KEEP_FDS, FDINIT_LOG: see fdinit --help.

`, name, tiniVersion())
}

func (v tiniVoice) help() int {
	v.usage(os.Stdout)
	return 0
}

func (v tiniVoice) version() int {
	fmt.Println(tiniVersion())
	return 0
}

func (v tiniVoice) license() int { return printLicense() }

func (v tiniVoice) fatal(pid int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[FATAL tini (%d)] %s\n", pid, fmt.Sprintf(format, args...))
}

func (v tiniVoice) refuse(p config.Problem) int {
	switch {
	case isVariableProblem(p):
		return nativeVoice{}.refuse(p)
	case isOptionProblem(p):
		fmt.Fprintln(os.Stderr, getoptComplaint(v.argv0, p, nil))
		v.usage(os.Stderr)
	case p.Code == config.BadStatus:
		v.fatal(os.Getpid(), "Not a valid option for -e: %s", problemValue(p))
	case p.Code == config.BadSignal:
		v.fatal(os.Getpid(), "Not a valid option for -p: %s", problemValue(p))
	default:
		v.usage(os.Stderr)
	}
	return 1
}

func (v tiniVoice) execFailed(h reaper.Handover, command []string) int {
	v.fatal(h.Child, "exec %s failed: %s", command[0], sentence(h.Errno.Error()))
	explainMore(h, command)
	return h.Status
}
