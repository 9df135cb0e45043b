package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Supervisor is the state of an init. It lives on the stack of the one thread.
type Supervisor struct {
	config    *config.Config
	args, env sys.Vector

	self      int             // this process's pid: 1 in a container
	inherited sys.SignalSet   // the signal mask to give to the workload
	sigchld   sys.Disposition // what SIGCHLD did, to give to the workload
	workload  int             // its pid

	failure Failure
	limits  rlimit.Changes

	// inChild is set by the workload's process before it execs. It shares this memory,
	// unless an emulator has turned vfork into fork (qemu-user does).
	inChild bool
}

// Run is the whole life of the init. All signals must be blocked; inherited is the
// mask from before. It returns only if there is no workload, and says why.
func Run(c *config.Config, args, env sys.Vector, inherited sys.SignalSet) Failure {
	s := Supervisor{config: c, args: args, env: env, inherited: inherited, self: sys.Getpid()}
	s.openStandardDescriptors()

	// With SIGCHLD ignored the kernel reaps children by itself and says nothing: wait4
	// would never report the workload's end (tini and catatonit hang then).
	s.sigchld, _ = sys.SetDisposition(sigchld, sys.Default)

	if outsideRoot() {
		return Failure{Stage: OutsideRoot}
	}
	fds.Activation(env, s.self, &c.Keep)
	fds.Sweep(&c.Keep)
	if s.self != 1 {
		// Refused only before Linux 3.4 and by old gVisor: orphans then go to PID 1.
		sys.SetSubreaper()
	}
	if sig := c.ParentDeathSignal; sig != 0 {
		if errno := sys.SetParentDeathSignal(sig); errno != 0 {
			return Failure{Stage: DeathSignal, Errno: errno}
		}
	}

	if !s.spawn() {
		return s.failure
	}
	if !c.Keep.Empty() {
		// What was kept is the workload's alone: an activation socket that PID 1 still
		// holds stays open after the workload closed it (catatonit issue 12).
		var nothing fds.Set
		fds.Sweep(&nothing)
	}
	// The working directory would pin its mount (catatonit pull request 33).
	sys.Chdir("/\x00")
	return s.supervise()
}

// openStandardDescriptors opens /dev/null in place of a missing standard input,
// output or error, so that nothing opened later becomes one of them. Without
// /dev/null they stay closed.
func (s *Supervisor) openStandardDescriptors() {
	for fd := range fds.First {
		if sys.IsOpen(fd) {
			continue
		}
		// The lowest free number is fd, since those below it are open.
		if got, errno := sys.Open("/dev/null\x00", unix.O_RDWR); errno == 0 && got != fd {
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
