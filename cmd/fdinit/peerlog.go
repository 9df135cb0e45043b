package main

import (
	"fmt"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// peerLog writes events as another init would, line for line, because scripts match
// these lines. It keeps what it must remember between them.
type peerLog interface {
	lines(e events.Event) []string
}

// strsignal is strsignal(3).
func strsignal(sig sys.Signal) string {
	if sig >= 34 {
		return fmt.Sprintf("Real-time signal %d", sig-34)
	}
	return sentence(unix.Signal(sig).String())
}

// strerror is strerror(3).
func strerror(e events.Event) string { return sentence(errnoText(e)) }

// tiniLog writes tini's lines, all on stderr: tini's own INFO, DEBUG and TRACE go to
// stdout, among the workload's output.
type tiniLog struct {
	how     config.Log
	init    int
	command string
}

func (l *tiniLog) lines(e events.Event) (lines []string) {
	line := func(level, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("[%-5s tini (%d)] %s", level, l.init, fmt.Sprintf(format, args...)))
	}
	info := l.how.Level >= events.Info
	debug := l.how.Level >= events.Debug
	trace := l.how.Notes&config.NoteTrace != 0
	switch e.Kind {
	case events.Subreaper:
		if trace && l.how.Notes&config.NoteSubreaper != 0 {
			line("TRACE", "Registered as child subreaper")
		}
	case events.Started:
		if info {
			line("INFO", "Spawned child process '%s' with pid '%d'", l.command, e.Pid)
		}
	case events.Received:
		switch {
		case !debug:
		case unix.Signal(e.Signal) == unix.SIGCHLD:
			line("DEBUG", "Received SIGCHLD")
		default:
			line("DEBUG", "Passing signal: '%s'", strsignal(e.Signal))
		}
	case events.ForwardFailed:
		if unix.Errno(e.Errno) == unix.ESRCH {
			line("WARN", "Child was dead when forwarding signal")
		} else {
			line("WARN", "Unexpected error when forwarding signal: '%s'", strerror(e))
		}
	case events.Reaped:
		if debug {
			line("DEBUG", "Reaped child with pid: '%d'", e.Pid)
		}
		if l.how.Notes&config.NoteReaped != 0 {
			line("WARN", "Reaped zombie process with pid=%d", e.Pid)
		}
	case events.WorkloadEnded:
		if debug {
			line("DEBUG", "Reaped child with pid: '%d'", e.Pid)
		}
		if info {
			if sig := e.Status().Signal(); sig != 0 {
				line("INFO", "Main child exited with signal (with signal '%s')", strsignal(sig))
			} else {
				line("INFO", "Main child exited normally (with status '%d')", e.Status().ExitStatus())
			}
		}
	case events.NothingToReap:
		if trace {
			line("TRACE", "No child to reap")
		}
	case events.NoChildren:
		if trace {
			line("TRACE", "No child to wait")
		}
	case events.Ending:
		if trace {
			line("TRACE", "Exiting: child has exited")
		}
	}
	return lines
}

// dumbInitLog writes dumb-init's lines.
type dumbInitLog struct {
	how   config.Log
	init  int
	begun bool
}

func (l *dumbInitLog) lines(e events.Event) (lines []string) {
	line := func(format string, args ...any) {
		lines = append(lines, "[dumb-init] "+fmt.Sprintf(format, args...))
	}
	if !l.begun {
		l.begun = true
		if l.how.Notes&config.NoteDebugMode != 0 {
			line("Running in debug mode.")
		}
		if l.how.Notes&config.NoteNoSession != 0 {
			line("Not running in setsid mode.")
		}
	}
	switch e.Kind {
	case events.TerminalDetached:
		switch {
		case e.Errno != 0:
			line("Unable to detach from controlling tty (errno=%d %s).", e.Errno, strerror(e))
		case e.Code == 0:
			line("Detached from controlling tty, but was not session leader.")
		default:
			line("Detached from controlling tty, ignoring the first SIGHUP and SIGCONT we receive.")
		}
	case events.SessionStarted:
		if e.Errno != 0 {
			line("Unable to attach to controlling tty (errno=%d %s).", e.Errno, strerror(e))
		}
		line("setsid complete.")
	case events.Started:
		line("Child spawned with PID %d.", e.Pid)
	case events.Received:
		line("Received signal %d.", e.Signal)
	case events.Ignored:
		line("Ignoring tty hand-off signal %d.", e.Signal)
	case events.Translated:
		line("Translating signal %d to %d.", e.Signal, e.Other)
		if e.Other == 0 {
			line("Not forwarding signal 0 to children (ignored).")
		}
	case events.Forwarded, events.ForwardFailed, events.SentLast:
		line("Forwarded signal %d to children.", e.Signal)
	case events.Suspending:
		line("Suspending self due to TTY signal.")
	case events.Reaped, events.WorkloadEnded:
		if sig := e.Status().Signal(); sig != 0 {
			line("A child with PID %d was terminated by signal %d.", e.Pid, sig)
		} else {
			line("A child with PID %d exited with exit status %d.", e.Pid, e.Status().ExitStatus())
		}
	case events.Ending:
		line("Child exited with status %d. Goodbye.", e.Code)
	}
	return lines
}

// catatonitLog writes catatonit's lines.
type catatonitLog struct {
	init    int
	command string
}

func (l *catatonitLog) lines(e events.Event) (lines []string) {
	line := func(level string, pid int, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%s (catatonit:%d): %s", level, pid, fmt.Sprintf(format, args...)))
	}
	switch e.Kind {
	case events.Started:
		line("DEBUG", l.init, "pid1 (%d) spawned: %s", e.Pid, l.command)
	case events.NoTerminalDevice:
		line("INFO", int(e.Pid), "using stdin as tty fd: could not open /dev/tty: %s", strerror(e))
	case events.ForegroundFailed:
		line("DEBUG", int(e.Pid), "setting foreground process failed: no tty present: %s", strerror(e))
	case events.ForwardFailed:
		line("WARN", l.init, "forwarding of signal %d to pid1 (%d) failed: %s", e.Signal, e.Pid, strerror(e))
	case events.Reaped:
		if sig := e.Status().Signal(); sig != 0 {
			line("DEBUG", l.init, "child process %d exited due to signal %d", e.Pid, sig)
		} else {
			line("DEBUG", l.init, "child process %d exited with code %d", e.Pid, e.Status().ExitStatus())
		}
	case events.NoChildren:
		line("DEBUG", l.init, "got ECHILD: no children left to monitor")
	}
	return lines
}
