package reaper

import (
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

const sigchld = sys.Signal(unix.SIGCHLD)

// supervise takes one signal at a time: SIGCHLD is the time to reap, anything else is
// for the workload. It sleeps without a time limit in between. It returns only if the
// kernel refuses to let it do its work, or if an emulator hid that the workload could
// not be started.
func (s *Supervisor) supervise() Failure {
	var info sys.SignalInfo
	for {
		sig, errno := sys.WaitSignal(sys.AllSignals, &info)
		switch {
		case errno == unix.EINTR: // by a debugger or a freezer: no handler is installed
		case errno != 0:
			return s.giveUp(WaitSignals, errno)
		case sig == sigchld:
			if failure := s.reap(); failure.Stage != NoFailure {
				return failure
			}
		case !s.madeHere(sig, &info):
			s.forward(sig, &info)
		}
	}
}

// reap takes every ended child, however many one SIGCHLD stands for, and ends the init
// with the workload's status when the workload is among them.
func (s *Supervisor) reap() Failure {
	for {
		pid, status, errno := sys.Reap()
		switch {
		case errno == unix.ECHILD || errno == 0 && pid == 0:
			return Failure{}
		case errno != 0:
			return s.giveUp(WaitChildren, errno)
		case pid == s.workload:
			if !s.inChild {
				if failure := s.hiddenFailure(status.ExitStatus()); failure.Stage != NoFailure {
					return failure
				}
			}
			sys.Exit(status.ExitStatus())
		}
	}
}

// giveUp ends the workload, since an init that cannot wait is worse than none.
func (s *Supervisor) giveUp(stage Stage, errno sys.Errno) Failure {
	sys.Kill(s.workload, sys.Signal(unix.SIGKILL))
	return Failure{Stage: stage, Errno: errno}
}

// hiddenFailure looks for the reason of a failed start where an emulator has turned
// vfork into fork, so that the child could not tell (qemu-user does). The workload may
// as well have ended with that status itself: then there is nothing to find.
func (s *Supervisor) hiddenFailure(status int) Failure {
	switch status {
	case StatusFailed:
		if failure := rlimit.Apply(&s.config.Limits, false, &s.limits); failure.Errno != 0 {
			return Failure{Stage: SetLimit, Errno: failure.Errno, Limit: failure}
		}
	case StatusNotExecutable, StatusNotFound:
		if errno := find(s.args.From(s.config.Command-1), s.env, tryAccess); errno != 0 {
			return Failure{Stage: Exec, Errno: errno}
		}
	}
	return Failure{}
}

// forward sends a signal on to the workload or, if so configured, to its process
// group. Errors are not fatal: the workload may have ended (ESRCH) or have become
// another user's (EPERM; tini exits then).
func (s *Supervisor) forward(sig sys.Signal, info *sys.SignalInfo) {
	if s.config.Group {
		// There is no way to send a value to a group before Linux 6.9.
		sys.Kill(-s.workload, sig)
		return
	}
	if info.Code == sys.SentByQueue && sys.Queue(s.workload, sig, info) == 0 {
		return
	}
	// Unlike a queued signal, one of kill(2) still arrives when RLIMIT_SIGPENDING is
	// used up.
	sys.Kill(s.workload, sig)
}

// madeHere tells whether the init itself is the cause of a signal, so that it is none
// of the workload's business: the kernel's answer to a fault or a limit of the
// init, or a write to a broken pipe.
func (s *Supervisor) madeHere(sig sys.Signal, info *sys.SignalInfo) bool {
	if info.Code == sys.SentByUser {
		return int(info.Pid) == s.self
	}
	switch unix.Signal(sig) {
	case unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSYS, unix.SIGXCPU, unix.SIGXFSZ:
		return info.Code > 0
	}
	return false
}
