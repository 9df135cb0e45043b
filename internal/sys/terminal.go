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
