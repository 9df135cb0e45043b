package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

const (
	stdin   = 0
	stderr  = 2
	sigchld = sys.Signal(unix.SIGCHLD)
)

// Supervisor is the state of an init. It lives on the stack of the one thread.
type Supervisor struct {
	config    *config.Config
	args, env sys.Vector

	self      int             // this process's pid: 1 in a container
	inherited sys.SignalSet   // the signal mask to give to the workload
	sigchld   sys.Disposition // what SIGCHLD did, to give to the workload
	workload  int             // its pid, 0 without one
	activated bool            // the workload gets the descriptors of socket activation

	// diesWithParent is set if the end of the init's parent kills the init, and so must
	// the workload: bubblewrap --die-with-parent, Go's Pdeathsig.
	diesWithParent bool

	// foreground is the workload's process group if it was put into the terminal's
	// foreground.
	foreground int

	stopper stopper

	log      events.Writer
	logger   int  // the pid of the process that writes for the init, 0 without one
	logInput int  // the end of the pipe that it reads
	warned   bool // the one warning without a log was given

	// fromTerminal are the signals that the kernel sends once because the terminal was given
	// up.
	fromTerminal sys.SignalSet

	// recent are the signals taken in the last turns, for next.
	recent sys.SignalSet
	turns  int

	limits   rlimit.Changes
	handover Handover

	// inChild is set by the workload's process before it execs. It shares this memory,
	// unless an emulator has turned vfork into fork (qemu-user does).
	inChild bool
}

// Run is the whole life of the init. All signals must be blocked; inherited is the
// mask from before. It returns only if the process is to become hosted, and says why.
func Run(c *config.Config, args, env sys.Vector, inherited sys.SignalSet) Handover {
	s := Supervisor{config: c, args: args, env: env, inherited: inherited, self: sys.Getpid()}
	s.handover.Init = s.self
	if s.prepare() && (c.Pause || s.spawn()) {
		s.settle()
		s.supervise()
	}
	if s.handover.Stage < WriteLog {
		s.handover.Status = s.status()
		s.finishLog(s.handover.Status)
		s.returnForeground()
		s.explain()
	}
	forgetSignals()
	return s.handover
}

// forgetSignals drops what is pending before the process becomes hosted. The Go runtime
// unblocks the signals that end a program, and dying of one that was meant for the
// workload must not hide why there is none. Of later ones it lets be ignored HUP and INT.
func forgetSignals() {
	var info sys.SignalInfo
	for {
		if _, errno := sys.WaitSignalFor(sys.AllSignals, &info, 0); errno != 0 && errno != unix.EINTR {
			break
		}
	}
	sys.SetDisposition(sys.Signal(unix.SIGHUP), sys.Ignored)
	sys.SetDisposition(sys.Signal(unix.SIGINT), sys.Ignored)
}

// status is the status to end with after a failure.
func (s *Supervisor) status() int {
	if s.handover.Stage == Exec {
		return s.config.Zero.Replace(s.config.Dialect.ExecStatus(s.handover.Errno))
	}
	return s.config.Dialect.FailureStatus()
}

// fail notes why there is no workload, or no longer one.
func (s *Supervisor) fail(stage Stage, errno sys.Errno) {
	s.handover.Stage = stage
	s.handover.Errno = errno
}

// prepare makes the process fit for an init and for having a workload.
func (s *Supervisor) prepare() bool {
	openStandardDescriptors()

	// With SIGCHLD ignored the kernel reaps children by itself and says nothing: wait4
	// would never report the workload's end (tini and catatonit hang then).
	s.sigchld, _ = sys.SetDisposition(sigchld, sys.Default)

	if outsideRoot() {
		s.fail(OutsideRoot, 0)
		return false
	}
	s.activated = s.config.Keep.All() || fds.Activation(s.env, s.self, &s.config.Keep) > 0
	if s.config.Pause {
		s.config.Keep = fds.Set{} // for whom?
	}
	report := fds.Sweep(&s.config.Keep)
	if s.config.Log.Wanted && !s.startLog() {
		return false
	}
	e := events.Of(events.Swept)
	e.Strategy, e.Values[0] = uint8(report.Strategy), uint64(report.Closed)
	s.log.Write(e)

	var errno sys.Errno
	if s.self != 1 {
		// Refused only before Linux 3.4 and by old gVisor: orphans then go to PID 1.
		errno = sys.SetSubreaper()
	}
	e = events.Of(events.Subreaper)
	e.Errno = int16(errno)
	s.log.Write(e)
	if sig := s.config.ParentDeathSignal; sig != 0 {
		if errno := sys.SetParentDeathSignal(sig); errno != 0 {
			s.fail(DeathSignal, errno)
			return false
		}
	}
	if s.self != 1 {
		sig, _ := sys.ParentDeathSignal()
		s.diesWithParent = unix.Signal(sig) == unix.SIGKILL
	}
	if s.config.Place == config.InOwnSession {
		s.releaseTerminal()
	}
	return true
}

// openStandardDescriptors opens /dev/null in place of a missing standard input,
// output or error, so that nothing opened later becomes one of them. Without
// /dev/null the workload goes without, and here something holds their place.
func openStandardDescriptors() {
	for fd := range fds.First {
		if sys.IsOpen(fd) {
			continue
		}
		// The lowest free number is fd, since those below it are open.
		got, errno := sys.Open("/dev/null\x00", unix.O_RDWR)
		if errno != 0 {
			got, errno = sys.Open("/\x00", unix.O_PATH|unix.O_CLOEXEC)
		}
		if errno == 0 && got != fd {
			sys.Close(got)
		}
	}
}

// outsideRoot tells whether the working directory lies outside the root: the mark of
// a leaked descriptor used to escape from a container (CVE-2024-21626). A deleted
// directory is ENOENT and harmless.
func outsideRoot() bool {
	var short [128]byte // long enough for most, so that scratch is not touched
	_, errno := sys.Getcwd(short[:])
	first := short[0]
	if errno == unix.ERANGE {
		_, errno = sys.Getcwd(scratch[:])
		first = scratch[0]
	}
	return errno == 0 && first != '/'
}

// releaseTerminal gives the controlling terminal up, so that the workload's session can
// take it. A session's leader is sent HUP and CONT for it, which must not reach the
// workload (dumb-init issue 136).
func (s *Supervisor) releaseTerminal() {
	leader := sys.LeadsSession(s.self)
	errno := sys.ReleaseTerminal(stdin)
	e := events.Event{Kind: events.TerminalDetached, Errno: int16(errno)}
	if errno == 0 && leader {
		e.Code = 1
		s.fromTerminal = sys.SetOf(sys.Signal(unix.SIGHUP)) | sys.SetOf(sys.Signal(unix.SIGCONT))
	}
	s.log.Write(e)
}

// settle lets go of what only the workload needs, once there is one.
func (s *Supervisor) settle() {
	if !s.config.Keep.Empty() {
		// What was kept is the workload's alone: an activation socket that PID 1 still
		// holds stays open after the workload closed it (catatonit issue 12).
		var keep fds.Set
		if s.log.Enabled() {
			keep.AddOne(s.log.Descriptor())
			keep.AddOne(s.logInput)
		}
		fds.Sweep(&keep)
	}
	// The working directory would pin its mount (catatonit pull request 33).
	sys.Chdir("/\x00")
}
