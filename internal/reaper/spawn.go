package reaper

import (
	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
)

// vfork starts a process that shares this memory, runs child(s) on this stack while
// this process sleeps, and shares nothing any more once it has exec'd or exited. It
// returns the process's pid or, negated, the errno.
//
//go:noescape
func vfork(s *Supervisor) int

// spawn starts the workload. If that fails it has reaped what it started, and
// s.failure says why.
func (s *Supervisor) spawn() bool {
	pid := vfork(s)
	if pid < 0 {
		s.failure = Failure{Stage: Spawn, Errno: sys.Errno(-pid)}
		return false
	}
	s.workload = pid
	if s.failure.Stage != NoFailure {
		sys.Wait(pid)
		return false
	}
	return true
}

// child turns the vforked process into the workload. It is called by the assembly of
// vfork, so that the parent's frames stay as they were, and does not return.
//
//lint:ignore U1000 called by vfork
func child(s *Supervisor) {
	s.inChild = true
	s.takeForeground()
	s.fixActivation()
	if failure := rlimit.Apply(&s.config.Limits, !s.config.NofileKeep, &s.limits); failure.Errno != 0 {
		s.failure = Failure{Stage: SetLimit, Errno: failure.Errno, Limit: failure}
		sys.Exit(StatusFailed)
	}
	if s.sigchld != sys.Default {
		sys.SetDisposition(sigchld, s.sigchld)
	}
	sys.SetSignalMask(s.inherited)
	errno := find(s.args.From(s.config.Command-1), s.env, tryExec)
	s.failure = Failure{Stage: Exec, Errno: errno}
	sys.Exit(ExecStatus(errno))
}

// takeForeground makes the workload the leader of a process group of its own and
// puts that group into the terminal's foreground, if standard input is a terminal
// and the init is in its foreground: an init that a shell runs in the background
// must not steal the terminal. Nothing here is fatal: a terminal may be of another
// session, or gone (sdc-docker issue 91). SIGTTOU is blocked, so it cannot stop us.
func (s *Supervisor) takeForeground() {
	const stdin = 0
	foreground, errno := sys.ForegroundGroup(stdin)
	mine := errno == 0 && foreground == sys.Getpgrp()
	sys.NewProcessGroup()
	if mine {
		sys.SetForegroundGroup(stdin, sys.Getpid())
	}
}

// decimalVariable is room for NAME= and a 64-bit number.
type decimalVariable [len("LISTEN_PIDFDID=") + 20 + 1]byte

var listenPid, listenPidfdID decimalVariable

// fixActivation makes LISTEN_PID and LISTEN_PIDFDID name the workload where they
// name the init, because sd_listen_fds(3) compares them with its own process. The
// environment's strings stay, only the array's pointers change.
func (s *Supervisor) fixActivation() {
	owner, i := s.env.Lookup("LISTEN_PID")
	if n, digits, fits := ascii.Decimal(owner, fds.Max); i < 0 || !digits || !fits || int(n) != s.self {
		return
	}
	pid := sys.Getpid()
	s.env.Set(i, listenPid.set("LISTEN_PID=", uint64(pid)))
	if _, i := s.env.Lookup("LISTEN_PIDFDID"); i >= 0 {
		if inode, ok := sys.PidfdInode(pid); ok {
			s.env.Set(i, listenPidfdID.set("LISTEN_PIDFDID=", inode))
		} else {
			// A reader without it believes LISTEN_PID; one with a wrong one believes nothing.
			s.env.Delete(i)
		}
	}
}

// set writes NAME=value and returns it as a C string. The buffer is filled from its
// end, so that digits need not be counted first.
func (v *decimalVariable) set(name string, value uint64) *byte {
	i := len(v) - 1
	v[i] = 0
	for {
		i--
		v[i] = byte('0' + value%10)
		if value /= 10; value == 0 {
			break
		}
	}
	i -= len(name)
	copy(v[i:], name)
	return &v[i]
}
