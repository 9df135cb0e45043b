package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// suspend stops the init when its workload has been stopped on its terminal, so that the
// shell that waits for the init gets the terminal back: ^Z reaches the workload's process
// group only. The signal is taken as it would have been without an init between, by the
// init's whole group if a terminal sends it, and with its default effect: the kernel
// ignores it where no shell is left that could go on with the job (an orphaned process
// group, as in "docker exec -it").
//
// A workload that somebody else stops may be continued without the init, too, which then
// must be there.
func (s *Supervisor) suspend() {
	if s.self == 1 || s.config.Place != config.InOwnGroup || s.workload == 0 || s.handover.Stage != NoStage {
		return
	}
	sig := sys.StopOf(s.workload)
	foreground, errno := sys.ForegroundGroup(stdin)
	switch {
	case sig == 0 || errno != 0:
		return
	case stopSignals.Has(sig):
		sys.Kill(0, sig)
	case foreground == s.workload: // a shell that suspends itself by STOP
		sig = sys.Signal(unix.SIGTSTP)
		sys.Kill(s.self, sig)
	default:
		return
	}
	s.log.Write(events.Event{Kind: events.Suspending, Signal: sig})
	sys.SetSignalMask(sys.AllSignals &^ sys.SetOf(sig))
	sys.SetSignalMask(sys.AllSignals) // gets here only when it has been continued, or not stopped
	s.resume()
}

// resume goes on with the job if it was continued: "fg" gives the terminal to the
// init's group, "bg" does not, and either sends CONT to it.
func (s *Supervisor) resume() {
	var info sys.SignalInfo
	cont := sys.Signal(unix.SIGCONT)
	if _, errno := sys.WaitSignalFor(sys.SetOf(cont), &info, 0); errno != 0 {
		return
	}
	s.log.Write(received(cont, &info))
	if now, errno := sys.ForegroundGroup(stdin); errno == 0 && now == sys.Getpgrp() && sys.SetForegroundGroup(stdin, s.workload) == 0 {
		s.foreground = s.workload
	}
	sys.Kill(-s.workload, cont)
	s.log.Write(events.Event{Kind: events.Forwarded, Signal: cont, Pid: int32(-s.workload)})
}
