package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// openTerminal is a descriptor of the terminal that is handed on to the workload, for
// closeTerminal: standard input or, where a dialect wants it, /dev/tty. errno tells why
// that could not be opened. Natively it is not used, since what a script runs in the
// background has another standard input, but is in the script's process group.
func (s *Supervisor) openTerminal() (fd int, errno sys.Errno) {
	if !s.config.TerminalDevice {
		return stdin, 0
	}
	fd, errno = sys.Open("/dev/tty\x00", unix.O_RDWR|unix.O_CLOEXEC)
	if errno != 0 {
		return stdin, errno
	}
	return fd, 0
}

func closeTerminal(fd int) {
	if fd != stdin {
		sys.Close(fd)
	}
}

// takeForeground makes the workload the leader of a process group of its own and puts
// that group into the terminal's foreground, if there is a terminal and the init is in
// its foreground: an init that a shell runs in the background must not steal the
// terminal. Nothing here is fatal: a terminal may be of another session, or gone
// (sdc-docker issue 91). SIGTTOU is blocked, so it cannot stop us.
func (s *Supervisor) takeForeground(pid int) {
	terminal, errno := s.openTerminal()
	if errno != 0 {
		s.log.Write(events.Event{Kind: events.NoTerminalDevice, Pid: int32(pid), Errno: int16(errno)})
	}
	foreground, errno := sys.ForegroundGroup(terminal)
	mine := errno == 0 && inForeground(terminal, foreground)
	if mine && foreground == 0 && s.self != 1 {
		// The init's group has no number here that the terminal could be given back to. Within
		// that group the workload has it whenever the init has.
		s.config.Place = config.WithInit
		closeTerminal(terminal)
		return
	}
	if sys.NewProcessGroup() != 0 { // a filter's: there is no group then to send signals to
		s.config.Scope = config.ToProcess
		mine = false
	}
	if mine {
		errno = sys.SetForegroundGroup(terminal, pid)
	}
	if mine && errno == 0 {
		s.foreground = pid
	}
	if errno != 0 {
		s.log.Write(events.Event{Kind: events.ForegroundFailed, Pid: int32(pid), Errno: int16(errno)})
	}
	closeTerminal(terminal)
}

// inForeground tells whether this process is in a terminal's foreground group. Groups
// outside of the PID namespace are all 0 ("unshare -pf fdinit" in a shell). Then reading
// tells: the kernel refuses a background process even nothing, with EIO since SIGTTIN is
// blocked.
func inForeground(terminal, foreground int) bool {
	if foreground != sys.Getpgrp() {
		return false
	}
	if foreground != 0 {
		return true
	}
	_, errno := sys.Read(terminal, nil)
	return errno == 0
}

// returnForeground gives the terminal back to those who had it, or a script that goes on
// after fdinit could not read from it any more. Process 1 takes everybody with it, and
// when a session's leader ends, the kernel takes the terminal away and sends HUP to its
// foreground: what is left of the workload.
func (s *Supervisor) returnForeground() {
	if s.foreground == 0 || s.self == 1 || sys.LeadsSession(s.self) {
		return
	}
	terminal, _ := s.openTerminal()
	if now, errno := sys.ForegroundGroup(terminal); errno == 0 && now == s.foreground {
		sys.SetForegroundGroup(terminal, sys.Getpgrp())
	}
	closeTerminal(terminal)
}

// stopper is who sent the init the stop signal that it passed on last, until it passes
// on CONT.
type stopper uint8

const (
	nobody         stopper = iota
	process                // with kill(2)
	terminalDriver         // ^Z in a pipeline, where the workload's group has no terminal
)

// noticeStop does what is to be done when the workload has been stopped on its terminal.
//
// A shell that waits for the init gets its prompt back: ^Z reaches the workload's process
// group only, so the init stops, too. The signal is taken as it would have been without
// an init between: by the init's whole group if the terminal sends it, and with its
// default effect, which is none where no shell is left that could go on with the job
// (an orphaned process group, as in "docker exec -it", and process 1). There the workload
// is continued: the terminal would be dead, and by itself the workload would not have
// stopped either.
//
// A workload that somebody else stops may be continued without the init, too, which then
// must be there.
func (s *Supervisor) noticeStop() {
	if s.config.Place != config.InOwnGroup || s.workload == 0 || s.handover.Stage != NoStage || s.self == 1 && s.foreground == 0 {
		return
	}
	sig := sys.StopOf(s.workload)
	if sig == 0 {
		return
	}
	terminal, _ := s.openTerminal()
	foreground, errno := sys.ForegroundGroup(terminal)
	typed := stopSignals.Has(sig) && (errno == 0 && s.stopper == nobody || s.stopper == terminalDriver)
	ours := errno == 0 && foreground == s.workload || s.stopper == terminalDriver
	if s.self != 1 && (typed || ours) && s.suspend(sig, typed) {
		s.resume(terminal)
	} else if typed && ours && unix.Signal(sig) == unix.SIGTSTP {
		s.continueWorkload(-s.workload)
	}
	closeTerminal(terminal)
}

// suspend stops the init, with its whole group if the signal was typed, and tells
// whether it has been continued since.
func (s *Supervisor) suspend(sig sys.Signal, typed bool) (continued bool) {
	whom := 0
	if !typed {
		whom, sig = s.self, sys.Signal(unix.SIGTSTP)
	}
	s.note(events.Suspending, sig, 0)
	sys.Kill(whom, sig)
	sys.SetSignalMask(sys.AllSignals &^ sys.SetOf(sig))
	sys.SetSignalMask(sys.AllSignals) // gets here when it has been continued, or was not stopped

	var info sys.SignalInfo
	cont := sys.Signal(unix.SIGCONT)
	if _, errno := sys.WaitSignalFor(sys.SetOf(cont), &info, 0); errno != 0 {
		return false
	}
	s.log.Write(received(cont, &info))
	return true
}

// resume goes on with the job: "fg" has given the terminal to the init's group, "bg"
// has not.
func (s *Supervisor) resume(terminal int) {
	if now, errno := sys.ForegroundGroup(terminal); errno == 0 && now == sys.Getpgrp() && sys.SetForegroundGroup(terminal, s.workload) == 0 {
		s.foreground = s.workload
	}
	s.continueWorkload(-s.workload)
}

// continueWorkload sends CONT to the workload or, negated, its group.
func (s *Supervisor) continueWorkload(whom int) {
	cont := sys.Signal(unix.SIGCONT)
	s.stopper = nobody
	sys.Kill(whom, cont)
	s.note(events.Forwarded, cont, whom)
}
