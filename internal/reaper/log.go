package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

const (
	// logPipe is the pipe's size in bytes: 16384 events that PID 1 does not wait for.
	logPipe = 1 << 20

	// logPatience is how long the init waits in the end for the log to be written, in
	// nanoseconds, all in all.
	logPatience = 2e9
)

// loggerEnd is the signal that reports the logger's end. It is one that has no name and
// no use but inside C libraries, and not CHLD, so that the logger is not among the
// children that are reaped and told of.
const loggerEnd = sys.Signal(33)

// forkAside makes a copy of the init that is not among the children it tells of.
// qemu-user knows no other end than CHLD (EINVAL): there the copy is, and reap must
// know it.
func forkAside() (pid int, errno sys.Errno) {
	pid, errno = sys.Fork(loggerEnd)
	if errno == unix.EINVAL {
		pid, errno = sys.Fork(sigchld)
	}
	return pid, errno
}

// startLog starts the process that writes the log. In that process, which is to become
// hosted, and on failure it returns false.
func (s *Supervisor) startLog() bool {
	reading, writing, errno := sys.Pipe(logPipe)
	if errno != 0 {
		s.fail(StartLog, errno)
		return false
	}
	pid, errno := forkAside()
	switch {
	case errno != 0:
		s.fail(StartLog, errno)
		return false
	case pid == 0:
		// A session of its own keeps what terminals send to process groups away. What is
		// kept for the workload is not kept for the log, and with the pipe's writing end
		// open here it would never end.
		sys.NewSession()
		var keep fds.Set
		keep.AddOne(reading)
		fds.Sweep(&keep)
		sys.Chdir("/\x00")
		s.handover.Stage = WriteLog
		s.handover.LogInput = reading
		return false
	}
	// This end stays open here, too: if the logger is killed, writing must not become a
	// SIGPIPE, which would hit the workload when it writes its last events before exec.
	s.logInput = reading
	s.logger = pid
	s.log.Open(writing)
	return true
}

// warnOnce has a single event written by a process made for it, at the default level,
// where there is no log. In that process it returns true. That the workload is gone is
// no news but under tini's name, and dumb-init and catatonit say nothing.
func (s *Supervisor) warnOnce(e events.Event) bool {
	if s.log.Enabled() || s.warned {
		return false
	}
	switch s.config.Dialect {
	case config.Native:
		if sys.Errno(e.Errno) == unix.ESRCH {
			return false
		}
	case config.Tini:
		if s.config.Log.Notes&config.NoteQuiet != 0 {
			return false
		}
	default:
		return false
	}
	s.warned = true
	pid, errno := forkAside()
	if errno != 0 {
		return false
	}
	if pid != 0 {
		s.logger = pid
		return false
	}
	s.handover.Stage = WriteOnce
	s.handover.Event = e
	return true
}

// exit ends the init once the log is written.
func (s *Supervisor) exit(status int) {
	s.finishLog(status)
	s.returnForeground()
	sys.Exit(status)
}

// finishLog waits until what the init has to say is written, but not for long: a reader
// that never reads must not keep a container alive.
func (s *Supervisor) finishLog(status int) {
	if s.logger == 0 {
		return
	}
	const retry = 10e6
	left := int64(logPatience)
	if s.log.Enabled() {
		var info sys.SignalInfo
		for !s.log.Write(events.Event{Kind: events.Ending, Code: int32(status)}) && left > 0 {
			sys.WaitSignalFor(sys.SetOf(loggerEnd), &info, retry) // a pause, more or less
			left -= retry
		}
		s.closeLog()
	}
	await(s.logger, left)
}

// loggerEnded tells whether a signal reports the logger's end, and if so lets it go.
func (s *Supervisor) loggerEnded(sig sys.Signal, info *sys.SignalInfo) bool {
	if sig != loggerEnd || s.logger == 0 || int(info.Pid) != s.logger || info.Code <= 0 {
		return false
	}
	sys.Wait(s.logger)
	s.logger = 0
	s.closeLog()
	return true
}

func (s *Supervisor) closeLog() {
	if s.log.Enabled() {
		s.log.Close()
		sys.Close(s.logInput)
	}
}
