package main

import (
	"fmt"
	"os"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/reaper"
)

// dumbInitVoice speaks dumb-init's dialect, which puts everything on stderr.
type dumbInitVoice struct{ argv0 string }

// dumbInitLongOptions are in the order of dumb-init's own table.
var dumbInitLongOptions = []string{"--help", "--single-child", "--rewrite", "--verbose", "--version"}

func dumbInitVersion() string { return "dumb-init v" + version + "_fdinit" }

func (v dumbInitVoice) help() int {
	fmt.Fprintf(os.Stderr, `%[2]s
Usage: %[1]s [option] command [[arg] ...]

fdinit under dumb-init's name: run a command in a session of its own, forward
signals to the session's process group, and reap.

Options:
   -c, --single-child   no session; forward signals to the command alone.
   -r, --rewrite s:r    forward signal number s as r, or not at all if r is 0;
                        repeatable.
   -v, --verbose        say what happens.
   -h, --help           print this text.
   -V, --version        print the version.

Environment variables:
   DUMB_INIT_DEBUG=1    the same as --verbose.
   DUMB_INIT_SETSID=0   the same as --single-child.
   FDINIT_NOFILE, FDINIT_RLIMIT, FDINIT_KEEP_FDS, FDINIT_LOG: see fdinit --help.
`, v.argv0, dumbInitVersion())
	return 0
}

func (v dumbInitVoice) version() int {
	fmt.Fprintln(os.Stderr, dumbInitVersion())
	return 0
}

func (v dumbInitVoice) license() int { return printLicense() }

func (v dumbInitVoice) refuse(p config.Problem) int {
	switch {
	case isVariableProblem(p):
		return nativeVoice{}.refuse(p)
	case isOptionProblem(p):
		fmt.Fprintln(os.Stderr, getoptComplaint(v.argv0, p, dumbInitLongOptions))
	case p.Code == config.BadRewrite:
		fmt.Fprintln(os.Stderr, "Usage: -r option takes <signum>:<signum>, where <signum> is between 1 and 31.")
		fmt.Fprintln(os.Stderr, "This option can be specified multiple times.")
		fmt.Fprintln(os.Stderr, "Use --help for full usage.")
	default:
		fmt.Fprintf(os.Stderr, "Usage: %[1]s [option] program [args]\nTry %[1]s --help for full usage.\n", v.argv0)
	}
	return 1
}

func (v dumbInitVoice) execFailed(h reaper.Handover, command []string) int {
	fmt.Fprintf(os.Stderr, "[dumb-init] %s: %s\n", command[0], sentence(h.Errno.Error()))
	explainMore(h, command)
	return h.Status
}
