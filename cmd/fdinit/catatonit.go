package main

import (
	"fmt"
	"os"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/reaper"
)

// catatonitVoice speaks catatonit's dialect.
type catatonitVoice struct{ argv0 string }

const catatonitUsage = "usage: catatonit [-ghLPV] [--] <progname> [<arguments>...]"

// catatonitLongOptions are all that catatonit has.
var catatonitLongOptions = []string{"--version"}

func (v catatonitVoice) help() int {
	fmt.Fprint(os.Stderr, catatonitUsage+`

options:
  -g   forward signals to the program's process group
  -h   print this text
  -L   say how fdinit is licensed
  -P   pause: run no program, only reap, until TERM or INT
  -V   print the version (also --version)

This is fdinit under catatonit's name. FDINIT_NOFILE, FDINIT_RLIMIT,
FDINIT_KEEP_FDS and FDINIT_LOG count here, too: see fdinit --help.
`)
	return 0
}

func (v catatonitVoice) version() int {
	fmt.Println(tiniVersion())
	return 0
}

func (v catatonitVoice) license() int { return printLicense() }

func (v catatonitVoice) complain(pid int, message string) {
	fmt.Fprintf(os.Stderr, "ERROR (catatonit:%d): %s\n", pid, message)
}

func (v catatonitVoice) refuse(p config.Problem) int {
	switch {
	case p.Code == config.ReservedVariable:
		v.complain(os.Getpid(), "CATATONIT_LOG is reserved for future use")
		return 1
	case isVariableProblem(p):
		return nativeVoice{}.refuse(p)
	case isOptionProblem(p):
		fmt.Fprintln(os.Stderr, getoptComplaint(v.argv0, p, catatonitLongOptions))
	default:
		v.complain(os.Getpid(), "missing program name")
	}
	fmt.Fprintln(os.Stderr, catatonitUsage)
	return 1
}

func (v catatonitVoice) execFailed(h reaper.Handover, command []string) int {
	v.complain(h.Child, "failed to exec pid1: "+sentence(h.Errno.Error()))
	explainMore(h, command)
	return h.Status
}
