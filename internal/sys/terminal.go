package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Getpgrp is this process's process group; 0 when the group's leader lives outside
// the PID namespace.
func Getpgrp() int {
	pgrp := syscall6(unix.SYS_GETPGID, 0, 0, 0, 0, 0, 0)
	return int(pgrp)
}

// NewProcessGroup makes this process the leader of a group of its own.
func NewProcessGroup() Errno {
	return errnoOf(syscall6(unix.SYS_SETPGID, 0, 0, 0, 0, 0, 0))
}

// ForegroundGroup is the foreground process group of the terminal fd, which must be
// this process's controlling one. ENOTTY when it is not or is no terminal at all.
func ForegroundGroup(fd int) (pgrp int, errno Errno) {
	var out int32
	errno = errnoOf(syscall6(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPGRP, uintptr(unsafe.Pointer(&out)), 0, 0, 0))
	return int(out), errno
}

// SetForegroundGroup makes a process group the terminal's foreground one. A caller
// in the background must block or ignore SIGTTOU, else it is stopped.
func SetForegroundGroup(fd, pgrp int) Errno {
	in := int32(pgrp)
	return errnoOf(syscall6(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSPGRP, uintptr(unsafe.Pointer(&in)), 0, 0, 0))
}

// NewSession makes this process the leader of a session without a terminal. EPERM if
// it leads a process group.
func NewSession() Errno {
	return errnoOf(syscall6(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0))
}

// LeadsSession tells whether this process is its session's leader.
func LeadsSession(pid int) bool {
	return int(syscall6(unix.SYS_GETSID, 0, 0, 0, 0, 0, 0)) == pid
}

// ReleaseTerminal gives up the terminal fd as the controlling one. If a session's
// leader does it, the kernel sends HUP and CONT to the foreground process group.
func ReleaseTerminal(fd int) Errno {
	return errnoOf(syscall6(unix.SYS_IOCTL, uintptr(fd), unix.TIOCNOTTY, 0, 0, 0, 0))
}

// TakeTerminal makes the terminal fd the controlling one of the session that this
// process leads. EPERM if it is another session's.
func TakeTerminal(fd int) Errno {
	return errnoOf(syscall6(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSCTTY, 0, 0, 0, 0))
}
