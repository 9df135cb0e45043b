package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Sets instead of switches: the compiler makes a table of a long switch, far away from
// everything else, and 64 KiB of memory around it come with the first signal.
const (
	// stopSignals are what a terminal stops processes with.
	stopSignals = sys.SignalSet(1<<(unix.SIGTSTP-1) | 1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1))

	// endSignals are what processes are asked to end with.
	endSignals = sys.SignalSet(1<<(unix.SIGTERM-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGHUP-1) | 1<<(unix.SIGQUIT-1))

	// ownSignals are those that the kernel sends to the one who caused them.
	ownSignals = sys.SignalSet(1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) |
		1<<(unix.SIGSEGV-1) | 1<<(unix.SIGSYS-1) | 1<<(unix.SIGXCPU-1) | 1<<(unix.SIGXFSZ-1) |
		1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1))
)

// supervise takes one signal at a time: SIGCHLD is the time to reap, anything else is
// for the workload. It sleeps without a time limit in between. It returns only if the
// process is to become hosted: when the kernel refuses to let it do its work, when
// an emulator hid that the workload could not be started, or in a process forked for
// a warning.
func (s *Supervisor) supervise() {
	var info sys.SignalInfo
	for s.handover.Stage == NoStage {
		sig, errno := s.next(&info)
		switch {
		case errno == unix.EINTR: // by a debugger or a freezer: no handler is installed
		case errno != 0:
			s.giveUp(WaitSignals, errno)
		case sig == sigchld:
			s.log.Write(received(sig, &info))
			s.reap()
			s.noticeStop()
		case s.loggerEnded(sig, &info):
		case !s.madeHere(sig, &info):
			s.log.Write(received(sig, &info))
			s.pass(sig, &info)
		case s.fromTerminal.Has(sig):
			s.fromTerminal &^= sys.SetOf(sig)
			s.log.Write(received(sig, &info))
			s.note(events.Ignored, sig, 0)
		}
	}
}

const (
	// fairEvery is after how many signals those that were not among them come first.
	fairEvery = 32

	standardSignals = sys.SignalSet(1<<31 - 1) // unlike real-time ones they have no order
)

// next takes the next signal. The kernel hands out the lowest number first, so a
// sender that repeats HUP without a pause would hide TERM and CHLD for ever.
func (s *Supervisor) next(info *sys.SignalInfo) (sys.Signal, sys.Errno) {
	if s.turns++; s.turns > fairEvery {
		recent := s.recent
		s.turns, s.recent = 0, 0
		if recent&^standardSignals == 0 {
			if sig, errno := sys.WaitSignalFor(^recent, info, 0); errno == 0 {
				return sig, 0
			}
		}
	}
	sig, errno := sys.WaitSignal(sys.AllSignals, info)
	if errno == 0 {
		s.recent |= sys.SetOf(sig)
	}
	return sig, errno
}

func received(sig sys.Signal, info *sys.SignalInfo) events.Event {
	e := events.Of(events.Received)
	e.Signal, e.Pid, e.Uid, e.Code = sig, info.Pid, info.Uid, info.Code
	return e
}

// reap takes every ended child, however many one SIGCHLD stands for. When the workload
// is among them the init ends with its status.
func (s *Supervisor) reap() {
	for {
		pid, status, errno := sys.Reap()
		switch {
		case errno == unix.ECHILD:
			s.note(events.NoChildren, 0, 0)
			return
		case errno != 0:
			s.giveUp(WaitChildren, errno)
			return
		case pid == 0:
			s.note(events.NothingToReap, 0, 0)
			return
		case pid == s.workload:
			s.end(status)
			return
		case pid == s.logger:
			s.logger = 0
			s.closeLog()
		default:
			s.log.Write(ended(events.Reaped, pid, status))
		}
	}
}

// note writes an event that has a signal and a process, or neither.
func (s *Supervisor) note(kind events.Kind, sig sys.Signal, pid int) {
	e := events.Of(kind)
	e.Signal, e.Pid = sig, int32(pid)
	s.log.Write(e)
}

func ended(kind events.Kind, pid int, status sys.WaitStatus) events.Event {
	e := events.Of(kind)
	e.Pid, e.Values[0] = int32(pid), uint64(status)
	return e
}

// end ends the init because the workload has ended.
func (s *Supervisor) end(status sys.WaitStatus) {
	code := status.ExitStatus()
	if !s.inChild && s.findHiddenFailure(code) {
		return
	}
	s.wrapUp(status)
	s.exit(s.config.Zero.Replace(code))
}

// wrapUp is the last that an init does for the workload's companions.
func (s *Supervisor) wrapUp(status sys.WaitStatus) {
	s.log.Write(ended(events.WorkloadEnded, s.workload, status))
	if s.config.TermAtEnd {
		s.sendLast(sys.Signal(unix.SIGTERM))
	} else if s.log.Enabled() {
		s.reapRest()
	}
}

// sendLast sends the workload's group a signal. A single process is not sent one: it
// has been reaped, and its pid may be another's by now.
func (s *Supervisor) sendLast(sig sys.Signal) {
	to := s.rewrite(sig)
	if to == 0 {
		return
	}
	if s.config.Scope == config.ToGroup {
		sys.Kill(-s.workload, to)
	}
	s.note(events.SentLast, to, s.target())
}

// reapRest tells the log which other children have ended by now. It is bounded, since
// those that still run may fork for ever.
func (s *Supervisor) reapRest() {
	for range 1000 {
		pid, status, errno := sys.Reap()
		switch {
		case errno != 0:
			s.note(events.NoChildren, 0, 0)
			return
		case pid == 0:
			s.note(events.NothingToReap, 0, 0)
			return
		case pid == s.logger:
			s.logger = 0
		default:
			s.log.Write(ended(events.Reaped, pid, status))
		}
	}
}

// giveUp ends the workload, since an init that cannot wait is worse than none.
func (s *Supervisor) giveUp(stage Stage, errno sys.Errno) {
	if s.workload != 0 {
		sys.Kill(s.workload, sys.Signal(unix.SIGKILL))
	}
	s.fail(stage, errno)
}

// findHiddenFailure looks for the reason of a failed start where an emulator has
// turned vfork into fork, so that the child could not tell (qemu-user does). The
// workload may as well have ended with that status itself: then there is nothing to
// find.
func (s *Supervisor) findHiddenFailure(status int) bool {
	if status == config.StatusFailed {
		if failure := rlimit.Apply(&s.config.Limits, false, &s.limits); failure.Errno != 0 {
			s.fail(SetLimit, failure.Errno)
			s.handover.Limit = failure
			return true
		}
	}
	errno := find(s.args.From(s.config.Command-1), s.env, tryAccess)
	if errno == 0 || status != s.config.Dialect.ExecStatus(errno) {
		return false
	}
	s.fail(Exec, errno)
	s.handover.Child = s.workload
	return true
}

// pass decides what becomes of a signal that is not the init's own.
func (s *Supervisor) pass(sig sys.Signal, info *sys.SignalInfo) {
	if s.config.Pause {
		if unix.Signal(sig) == unix.SIGTERM || unix.Signal(sig) == unix.SIGINT {
			s.exit(0)
		}
		return
	}
	switch to := s.rewrite(sig); to {
	case 0:
	case sig:
		s.forward(sig, info)
	default:
		s.forward(to, nil)
	}
	if s.config.SuspendSelf && stopSignals.Has(sig) {
		s.note(events.Suspending, sig, 0)
		sys.Kill(s.self, sys.Signal(unix.SIGSTOP)) // without effect on PID 1
	}
}

// rewrite is what a signal is forwarded as, 0 for not at all.
func (s *Supervisor) rewrite(sig sys.Signal) sys.Signal {
	to := s.config.Rewrites.Of(sig)
	if s.config.Rewrites.Rewritten(sig) {
		s.log.Write(events.Event{Kind: events.Translated, Signal: sig, Other: to})
	}
	return to
}

// target is whom signals are for: a process, or the group that it leads, negated.
func (s *Supervisor) target() int {
	if s.config.Scope == config.ToGroup {
		return -s.workload
	}
	return s.workload
}

// forward sends a signal on, as it came if there is info. Errors are not fatal: the
// workload may have ended (ESRCH) or have become another user's (EPERM; tini exits
// then).
func (s *Supervisor) forward(sig sys.Signal, info *sys.SignalInfo) {
	whom, errno := s.send(sig, info)
	e := events.Of(events.Forwarded)
	e.Signal, e.Pid = sig, int32(whom)
	if errno != 0 {
		e.Kind, e.Errno = events.ForwardFailed, int16(errno)
		if s.warnOnce(e) {
			return
		}
	}
	s.log.Write(e)
	switch {
	case stopSignals.Has(sig):
		s.stopper = process
		if info != nil && info.Code == sys.SentByKernel {
			s.stopper = terminalDriver
		}
	case unix.Signal(sig) == unix.SIGCONT:
		s.stopper = nobody
	case endSignals.Has(sig) && s.self == 1 && sys.StopOf(s.workload) != 0:
		// Process 1 cannot be stopped, so that "docker stop" always ends it in time (Yelp
		// dumb-init issue 184).
		s.continueWorkload(whom)
	}
}

// send returns whom it was for, as kill(2) takes it.
func (s *Supervisor) send(sig sys.Signal, info *sys.SignalInfo) (whom int, errno sys.Errno) {
	// There is no way to send a value to a group before Linux 6.9.
	if info != nil && info.Code == sys.SentByQueue && s.config.Scope == config.ToProcess {
		if errno := sys.Queue(s.workload, sig, info); errno == 0 || errno == unix.ESRCH {
			return s.workload, errno
		}
	}
	// Unlike a queued signal, one of kill(2) still arrives when RLIMIT_SIGPENDING is
	// used up.
	whom = s.target()
	errno = sys.Kill(whom, sig)
	if errno == unix.ESRCH && whom < 0 {
		// The workload leads no group, or has left the one that it led.
		whom = s.workload
		errno = sys.Kill(whom, sig)
	}
	return whom, errno
}

// madeHere tells whether the init itself is the cause of a signal, so that it is none
// of the workload's business: the kernel's answer to a fault or a limit of the
// init, to its touching a terminal from the background or giving it up, or to a write
// to a broken pipe.
func (s *Supervisor) madeHere(sig sys.Signal, info *sys.SignalInfo) bool {
	if info.Code == sys.SentByUser {
		return int(info.Pid) == s.self
	}
	return ownSignals.Has(sig) && info.Code > 0
}
