package reaper

import (
	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// vfork starts a process that shares this memory, runs child(s) on this stack while
// this process sleeps, and shares nothing any more once it has exec'd or exited. It
// returns the process's pid or, negated, the errno.
//
//go:noescape
func vfork(s *Supervisor) int

// spawn starts the workload. If that fails it has reaped what it started.
func (s *Supervisor) spawn() bool {
	pid := vfork(s)
	if pid < 0 {
		s.fail(Spawn, sys.Errno(-pid))
		return false
	}
	if s.handover.Stage != NoStage {
		s.handover.Child = pid
		status, _ := sys.Wait(pid)
		if s.config.Log.Style != config.Native {
			// The other inits fork before they know, and tell of it.
			s.note(events.Started, 0, pid)
			s.note(events.Received, sigchld, 0)
			s.workload = pid
			s.wrapUp(status)
		}
		return false
	}
	s.workload = pid
	for i := range s.limits.Len() {
		c := s.limits.At(i)
		s.log.Write(events.Event{
			Kind: events.LimitChanged, Pid: int32(pid), Code: int32(c.Resource),
			Values: [4]uint64{c.Old.Soft, c.Old.Hard, c.New.Soft, c.New.Hard},
		})
	}
	s.note(events.Started, 0, pid)
	return true
}

// child turns the vforked process into the workload. It is called by the assembly of
// vfork, so that the parent's frames stay as they were, and does not return.
//
//lint:ignore U1000 called by vfork
func child(s *Supervisor) {
	s.inChild = true
	pid := sys.Getpid()
	switch s.config.Place {
	case config.InOwnGroup:
		s.takeForeground(pid)
	case config.InOwnSession:
		if sys.NewSession() != 0 {
			s.config.Scope = config.ToProcess
		}
		errno := sys.TakeTerminal(stdin)
		s.log.Write(events.Event{Kind: events.SessionStarted, Pid: int32(pid), Errno: int16(errno)})
	}
	if s.diesWithParent {
		// The init is killed by it and cannot pass it on. It may have been just now.
		sys.SetParentDeathSignal(sys.Signal(unix.SIGKILL))
		if parent := sys.Getppid(); parent >= 0 && parent != s.self {
			sys.Exit(config.StatusFailed)
		}
	}
	if s.activated {
		s.fixActivation(pid)
	}
	if i := s.namesInit("WATCHDOG_PID"); i >= 0 {
		s.env.Set(i, watchdogPid.set("WATCHDOG_PID=", uint64(pid)))
	}
	if failure := rlimit.Apply(&s.config.Limits, !s.config.NofileKeep, &s.limits); failure.Errno != 0 {
		s.fail(SetLimit, failure.Errno)
		s.handover.Limit = failure
		sys.Exit(config.StatusFailed)
	}
	if s.sigchld != sys.Default {
		sys.SetDisposition(sigchld, s.sigchld)
	}
	sys.SetSignalMask(s.inherited)
	errno := find(s.args.From(s.config.Command-1), s.env, tryExec)
	s.fail(Exec, errno)
	sys.Exit(s.config.Dialect.ExecStatus(errno))
}

// decimalVariable is room for NAME= and a 64-bit number.
type decimalVariable [len("LISTEN_PIDFDID=") + 20 + 1]byte

var listenPid, listenPidfdID, watchdogPid decimalVariable

// namesInit is the index of a variable that holds the init's pid, -1 if it does not.
func (s *Supervisor) namesInit(name string) int {
	value, i := s.env.Lookup(name)
	if n, digits, fits := ascii.Decimal(value, fds.Max); i < 0 || !digits || !fits || int(n) != s.self {
		return -1
	}
	return i
}

// fixActivation makes LISTEN_PID and LISTEN_PIDFDID name the workload where they
// name the init, because sd_listen_fds(3) compares them with its own process. The
// environment's strings stay, only the array's pointers change. Where the variables are
// not believed they stay wrong, too: a workload that believed them would take its own
// descriptors for sockets.
func (s *Supervisor) fixActivation(pid int) {
	i := s.namesInit("LISTEN_PID")
	if i < 0 {
		return
	}
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
	for j := range len(name) {
		v[i+j] = name[j]
	}
	return &v[i]
}
