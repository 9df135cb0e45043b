package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SignalSet is the kernel's sigset_t: bit n-1 stands for signal n.
type SignalSet uint64

const (
	// AllSignals blocks whatever can be blocked; the kernel leaves KILL and STOP out.
	AllSignals = ^SignalSet(0)

	signalSetSize = unsafe.Sizeof(SignalSet(0))
)

// SetOf is the set of one signal.
func SetOf(sig Signal) SignalSet { return 1 << (sig - 1) }

// Has tells whether a signal is in the set.
func (s SignalSet) Has(sig Signal) bool { return s&SetOf(sig) != 0 }

// The si_code values that signal forwarding tells apart (sigaction(2)).
const (
	SentByUser   = 0    // SI_USER: kill(2)
	SentByQueue  = -1   // SI_QUEUE: sigqueue(3), carries a value
	SentByKernel = 0x80 // SI_KERNEL: a terminal, for one

	// ChildExited is CLD_EXITED: a child has exited by itself.
	ChildExited = 1

	childStopped = 5 // CLD_STOPPED
)

// SetSignalMask replaces the blocked set and returns the former one.
func SetSignalMask(set SignalSet) (old SignalSet, errno Errno) {
	errno = errnoOf(syscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&set)), uintptr(unsafe.Pointer(&old)), signalSetSize, 0, 0))
	return old, errno
}

// SignalInfo is the kernel's siginfo_t. It is kept whole, because a signal sent
// with a value is passed on as it came.
type SignalInfo struct {
	Signo int32
	Errno int32
	Code  int32
	_     int32
	Pid   int32  // of the sender, where Code tells of one
	Uid   uint32 // of the sender, where Code tells of one

	// Status is a child's exit status, where Code is ChildExited.
	Status int32
	_      [100]byte
}

// WaitSignal takes the next pending signal of set, sleeping without a time limit
// until there is one.
func WaitSignal(set SignalSet, info *SignalInfo) (Signal, Errno) {
	return waitSignal(set, info, nil)
}

// WaitSignalFor is WaitSignal for a limited time; EAGAIN when it is over.
func WaitSignalFor(set SignalSet, info *SignalInfo, nanoseconds int64) (Signal, Errno) {
	limit := unix.Timespec{Sec: nanoseconds / 1e9, Nsec: nanoseconds % 1e9}
	return waitSignal(set, info, &limit)
}

func waitSignal(set SignalSet, info *SignalInfo, limit *unix.Timespec) (Signal, Errno) {
	sig := syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(limit)), signalSetSize, 0, 0)
	return Signal(sig), errnoOf(sig)
}

// Kill sends a signal to a process, or to the process group -pid.
func Kill(pid int, sig Signal) Errno {
	return errnoOf(syscall6(unix.SYS_KILL, uintptr(pid), uintptr(sig), 0, 0, 0, 0))
}

// Queue sends a signal with somebody else's info, value included. EPERM for info
// that only the kernel may claim; EAGAIN when RLIMIT_SIGPENDING is used up.
func Queue(pid int, sig Signal, info *SignalInfo) Errno {
	return errnoOf(syscall6(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig), uintptr(unsafe.Pointer(info)), 0, 0, 0))
}

// Disposition is what a process does with a signal. Freestanding code installs no
// handlers, so there are only these two.
type Disposition uintptr

const (
	Default Disposition = 0 // SIG_DFL
	Ignored Disposition = 1 // SIG_IGN
)

// sigaction is the kernel's struct sigaction, which has the same four words in an
// order that depends on the architecture but begins with the handler on all but MIPS.
// Dispositions without a handler leave the rest zero, so the order does not matter.
type sigaction struct {
	handler Disposition
	_       [3]uintptr
}

// SetDisposition sets what a signal does and returns what it did.
func SetDisposition(sig Signal, to Disposition) (old Disposition, errno Errno) {
	action, was := sigaction{handler: to}, sigaction{}
	errno = errnoOf(syscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), uintptr(unsafe.Pointer(&was)), signalSetSize, 0, 0))
	return was.handler, errno
}

// WaitStatus is wait4(2)'s status word.
type WaitStatus uint32

// ExitStatus is what a shell calls $?: the exit status, or 128 and the number of
// the signal that ended the process. It has no meaning for a stopped one.
func (s WaitStatus) ExitStatus() int {
	if sig := s.Signal(); sig != 0 {
		return 128 + int(sig)
	}
	return int(s>>8) & 0xff
}

// Signal is the signal that ended the process, 0 if it exited by itself.
func (s WaitStatus) Signal() Signal { return Signal(s & 0x7f) }

// Reap takes one ended child without waiting. pid is 0 when none has ended; ECHILD when
// there are no children. Orphans are seen whatever clone(2) made them with: the kernel
// sets their exit signal to CHLD when it gives them a new parent.
//
// A child that wants its parent to trace it (PTRACE_TRACEME, which some programs do to
// keep debuggers away) stops at every signal, and wait4 tells that unasked. It is let go
// on, with the signal and without a tracer.
func Reap() (pid int, status WaitStatus, errno Errno) {
	for {
		pid, status, errno = wait4(-1, unix.WNOHANG)
		stop := unix.WaitStatus(status)
		if pid <= 0 || !stop.Stopped() {
			return pid, status, errno
		}
		sig := stop.StopSignal()
		if sig == unix.SIGTRAP { // of an exec
			sig = 0
		}
		syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(sig), 0, 0)
	}
}

// Wait waits for one child to end, whatever its exit signal is.
func Wait(child int) (status WaitStatus, errno Errno) {
	_, status, errno = wait4(child, unix.WALL)
	return status, errno
}

// WaitNow tells whether one child has ended, and takes it if so, whatever its exit
// signal is.
func WaitNow(child int) (status WaitStatus, ended bool, errno Errno) {
	pid, status, errno := wait4(child, unix.WALL|unix.WNOHANG)
	return status, pid == child, errno
}

// StopOf is the signal that a child has been stopped by and not been continued since, 0
// if it is not stopped.
func StopOf(child int) Signal {
	// Of siginfo_t, status and code stand where they do in a signal's.
	var info SignalInfo
	errno := errnoOf(syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(child), uintptr(unsafe.Pointer(&info)), unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, 0, 0))
	if errno != 0 || info.Code != childStopped {
		return 0
	}
	return Signal(info.Status)
}

func wait4(which, flags int) (pid int, status WaitStatus, errno Errno) {
	r := syscall6(unix.SYS_WAIT4, uintptr(which), uintptr(unsafe.Pointer(&status)), uintptr(flags), 0, 0, 0)
	return int(r), status, errnoOf(r)
}
