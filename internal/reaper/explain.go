package reaper

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

const (
	// explainPatience is how long finding words may take, in nanoseconds.
	explainPatience = 10e9

	// explained is what a copy ends with that has found words, whatever status the init
	// ends with.
	explained = 0
)

// explain has a failure put into words by a copy of this process, and ends. It returns
// in the copy only, which is to become hosted. The Go runtime wants threads, memory and
// system calls that a container may refuse (pids.max, RLIMIT_AS, seccomp); it then dies
// with a status and a pile of words of its own. So what the copy writes is held back
// until it has succeeded, and if it does not, a plain line has to do.
func (s *Supervisor) explain() {
	reading, writing, errno := sys.Pipe(logPipe)
	if errno != 0 {
		s.explainPlainly()
	}
	pid, errno := forkAside()
	if errno != 0 {
		s.explainPlainly()
	}
	if pid == 0 {
		if sys.Duplicate(writing, stderr) != 0 {
			sys.Exit(config.StatusFailed)
		}
		sys.Close(reading)
		sys.Close(writing)
		s.handover.Status = explained
		s.limitStack()
		return
	}
	sys.Close(writing)
	if status, ended := await(pid, explainPatience); !ended || status != explained {
		sys.Kill(pid, sys.Signal(unix.SIGKILL))
		s.explainPlainly()
	}
	n, errno := sys.Read(reading, scratch[:])
	if errno != 0 {
		s.explainPlainly()
	}
	for errno == 0 && n > 0 {
		sys.Write(stderr, scratch[:n])
		n, errno = sys.Read(reading, scratch[:])
	}
	sys.Exit(s.handover.Status)
}

// limitStack limits this process's stack as the workload's would have been: how many
// bytes of arguments fit depends on it. Other limits would hinder the Go runtime.
func (s *Supervisor) limitStack() {
	for i := range s.limits.Len() {
		if c := s.limits.At(i); c.Resource == unix.RLIMIT_STACK {
			sys.SetRlimit(c.Resource, &c.New)
		}
	}
}

// await waits for the end of a process that loggerEnd reports, and tells the status
// that it exited with. ended is false if it did not exit by itself and in time. Time is
// counted in pauses because a filter may refuse the clock.
func await(pid int, nanoseconds int64) (status int, ended bool) {
	const pause = 10e6
	var info sys.SignalInfo
	for left := nanoseconds; ; left -= pause {
		// The signal is no more than a hint: as a real-time one it is dropped when
		// RLIMIT_SIGPENDING is used up.
		status, over, errno := sys.WaitNow(pid)
		switch {
		case over:
			return status.ExitStatus(), status.Signal() == 0
		case errno != 0 && int(info.Pid) == pid && info.Code == sys.ChildExited:
			return int(info.Status), true // where wait4 is refused
		case left <= 0:
			return 0, false
		}
		switch _, errno := sys.WaitSignalFor(sys.SetOf(loggerEnd), &info, pause); errno {
		case 0, unix.EAGAIN, unix.EINTR:
		default: // a filter's: without pauses there is no counting of time
			status, errno := sys.Wait(pid)
			return status.ExitStatus(), errno == 0 && status.Signal() == 0
		}
	}
}

// explainPlainly says in a line what went wrong, without the Go runtime, and ends.
func (s *Supervisor) explainPlainly() {
	what := ""
	switch s.handover.Stage {
	case Exec:
		what = s.args.String(s.config.Command)
	case SetLimit:
		what = rlimit.Type(s.handover.Limit.Resource)
	}
	ExplainPlainly(s.handover, what)
	sys.Exit(s.handover.Status)
}

// plainWords are for where a process ended, plainErrors for why.
var (
	plainWords = [...]string{
		BlockSignals: "blocking signals",
		OutsideRoot:  "the working directory lies outside the root directory (CVE-2024-21626)",
		DeathSignal:  "asking for a parent death signal",
		StartLog:     "starting the log",
		Spawn:        "starting a process",
		SetLimit:     "setting ",
		Exec:         "exec ",
		WaitSignals:  "waiting for signals, the command was killed",
		WaitChildren: "waiting for children, the command was killed",
	}
	plainErrors = [...]string{
		unix.EPERM:  "operation not permitted: does a seccomp filter refuse it?",
		unix.ENOENT: "no such file or directory",
		unix.EAGAIN: "resource temporarily unavailable: the limit on processes is reached (RLIMIT_NPROC, pids.max or kernel.pid_max)",
		unix.ENOMEM: "cannot allocate memory: memory or the PID namespace is exhausted",
		unix.EACCES: "permission denied",
		unix.ENOSYS: "function not implemented: does a seccomp filter refuse it?",
	}
)

// ExplainPlainly writes a line about a failure to stderr. what is the workload's first
// word at Exec, and the resource at SetLimit.
func ExplainPlainly(h Handover, what string) {
	n := appendScratch(0, "fdinit: ")
	n = appendScratch(n, plainWords[h.Stage])
	n = appendScratch(n, what[:min(len(what), len(scratch)/2)])
	if h.Errno != 0 {
		n = appendScratch(n, ": ")
		if int(h.Errno) < len(plainErrors) && plainErrors[h.Errno] != "" {
			n = appendScratch(n, plainErrors[h.Errno])
		} else {
			n = appendScratch(n, "error ")
			n = appendDecimal(n, uint64(h.Errno))
		}
	}
	n = appendScratch(n, "\n")
	sys.Write(stderr, scratch[:n])
}

func appendDecimal(n int, value uint64) int {
	if value >= 10 {
		n = appendDecimal(n, value/10)
	}
	return appendScratch(n, "0123456789"[value%10:][:1])
}
