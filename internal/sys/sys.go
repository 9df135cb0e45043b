package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errno is the kernel's answer, 0 for success.
type Errno = unix.Errno

// Signal is a signal's number, 1 to 64.
type Signal uint8

// Exit ends the process with the low eight bits of status. For a process of one thread,
// which freestanding code is, exit(2) does the same as exit_group(2), and a filter that
// refuses both is rather unlikely.
func Exit(status int) {
	for {
		syscall6(unix.SYS_EXIT_GROUP, uintptr(status), 0, 0, 0, 0, 0)
		syscall6(unix.SYS_EXIT, uintptr(status), 0, 0, 0, 0, 0)
	}
}

// Getpid is the process's number in its own PID namespace: 1 for a container's init.
func Getpid() int {
	pid := syscall6(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	if errnoOf(pid) != 0 { // a filter's; for a process of one thread this is the same
		pid = syscall6(unix.SYS_GETTID, 0, 0, 0, 0, 0, 0)
	}
	return int(pid)
}

// Getppid is the parent's pid, 0 when it lives outside the PID namespace.
func Getppid() int { return int(syscall6(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0)) }

// Close closes a descriptor. It is gone also after an error that comes from its file:
// Linux frees the number before it reports EINTR, EIO, ENOSPC or EDQUOT (close(2)).
// EBADF means that it was not open, and any other errno is a seccomp filter's.
func Close(fd int) Errno {
	return errnoOf(syscall6(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0))
}

// CloseRange closes the descriptors first to last, both included, whatever the soft
// limit is. Linux 5.9; ENOSYS before, EPERM under seccomp profiles that do not know
// it (moby issue 43595), EINVAL from implementations that lack a part of it.
func CloseRange(first, last uint32) Errno {
	return errnoOf(syscall6(unix.SYS_CLOSE_RANGE, uintptr(first), uintptr(last), 0, 0, 0, 0))
}

// IsOpen tells whether a descriptor is open. It is fcntl(F_GETFD), which unlike
// poll(2) knows O_PATH descriptors.
func IsOpen(fd int) bool {
	return errnoOf(syscall6(unix.SYS_FCNTL, uintptr(fd), unix.F_GETFD, 0, 0, 0, 0)) != unix.EBADF
}

// OpenFlags are open(2)'s.
type OpenFlags int

// Open opens a path given as a NUL-terminated constant such as "/dev/null\x00".
func Open(path string, flags OpenFlags) (fd int, errno Errno) {
	return OpenPath(unsafe.StringData(path), flags)
}

// OpenPath opens a path given as a C string.
func OpenPath(path *byte, flags OpenFlags) (fd int, errno Errno) {
	dir := unix.AT_FDCWD
	n := syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(path)), uintptr(flags), 0, 0, 0)
	return int(n), errnoOf(n)
}

// Read is read(2).
func Read(fd int, buf []byte) (n int, errno Errno) {
	r := syscall6(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0, 0, 0)
	return int(r), errnoOf(r)
}

// Write writes buf to a pipe, where it is written whole or not at all if it is no
// longer than PIPE_BUF. EAGAIN when there is no room and the pipe is non-blocking.
func Write(fd int, buf []byte) Errno {
	return errnoOf(syscall6(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0, 0, 0))
}

// Pipe makes a close-on-exec pipe whose ends do not block, with room for size bytes if
// the kernel allows it (unprivileged: fs.pipe-max-size, 1 MiB).
func Pipe(size int) (reading, writing int, errno Errno) {
	var ends [2]int32
	errno = errnoOf(syscall6(unix.SYS_PIPE2, uintptr(unsafe.Pointer(&ends)), unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0, 0, 0))
	if errno != 0 {
		return -1, -1, errno
	}
	syscall6(unix.SYS_FCNTL, uintptr(ends[1]), unix.F_SETPIPE_SZ, uintptr(size), 0, 0, 0)
	return int(ends[0]), int(ends[1]), 0
}

// Duplicate makes the descriptor to another name of fd; what to was before is closed.
func Duplicate(fd, to int) Errno {
	return errnoOf(syscall6(unix.SYS_DUP3, uintptr(fd), uintptr(to), 0, 0, 0, 0))
}

// Now is the real-time clock in nanoseconds since 1970.
func Now() int64 {
	var now unix.Timespec
	syscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&now)), 0, 0, 0, 0)
	return now.Sec*1e9 + now.Nsec
}

// Fork makes a copy of this process, whose end the kernel reports with a signal. If
// that is not CHLD, the copy is not a child that Reap sees. pid is 0 in the copy.
func Fork(atEnd Signal) (pid int, errno Errno) {
	// The order of clone's arguments differs between architectures, but all after the
	// flags are zero.
	r := syscall6(unix.SYS_CLONE, uintptr(atEnd), 0, 0, 0, 0, 0)
	return int(r), errnoOf(r)
}

// Rewind is lseek(fd, 0, SEEK_SET): a directory is read from its start again.
func Rewind(fd int) Errno {
	return errnoOf(syscall6(unix.SYS_LSEEK, uintptr(fd), 0, unix.SEEK_SET, 0, 0, 0))
}

// ReadDir is getdents64(2): it fills buf with linux_dirent64 records and returns
// their bytes, 0 at the directory's end.
func ReadDir(fd int, buf []byte) (n int, errno Errno) {
	r := syscall6(unix.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0, 0, 0)
	return int(r), errnoOf(r)
}

// IsProc tells whether a descriptor lies on a real procfs, not on a directory that
// somebody put where /proc should be.
func IsProc(fd int) bool {
	return filesystemType(fd) == unix.PROC_SUPER_MAGIC
}

func filesystemType(fd int) int64 {
	var st unix.Statfs_t
	errno := errnoOf(syscall6(unix.SYS_FSTATFS, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0))
	if errno != 0 {
		return 0
	}
	return int64(st.Type)
}

// PollFD is poll(2)'s struct pollfd.
type PollFD = unix.PollFd

// PollNow is poll(2) without waiting, in its ppoll form, which every architecture
// has. EINVAL when there are more entries than the soft RLIMIT_NOFILE.
func PollNow(fds []PollFD) Errno {
	var now unix.Timespec
	return errnoOf(syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)), uintptr(unsafe.Pointer(&now)), 0, 0, 0))
}

// Getcwd fills buf with the working directory and its NUL and returns the bytes.
// The path begins with "(unreachable)" when the directory lies outside the
// process's root (Linux 2.6.36); ENOENT when it was deleted.
func Getcwd(buf []byte) (n int, errno Errno) {
	r := syscall6(unix.SYS_GETCWD, uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0, 0, 0, 0)
	return int(r), errnoOf(r)
}

// Chdir changes the working directory to a NUL-terminated constant path.
func Chdir(path string) Errno {
	return errnoOf(syscall6(unix.SYS_CHDIR, uintptr(unsafe.Pointer(unsafe.StringData(path))), 0, 0, 0, 0, 0))
}

// SetSubreaper makes orphaned descendants children of this process although it is
// not PID 1. Linux 3.4.
func SetSubreaper() Errno {
	return errnoOf(syscall6(unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0))
}

// SetParentDeathSignal asks for a signal when the parent (more exactly: the thread
// that created this process) ends.
func SetParentDeathSignal(sig Signal) Errno {
	return errnoOf(syscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(sig), 0, 0, 0, 0))
}

// ParentDeathSignal is the signal that SetParentDeathSignal asked for, by this program
// or the one that executed it, 0 if none was.
func ParentDeathSignal() (Signal, Errno) {
	var sig int32
	errno := errnoOf(syscall6(unix.SYS_PRCTL, unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0, 0))
	return Signal(sig), errno
}

// Rlimit is a resource's soft and hard limit; RLIM_INFINITY is the largest number.
type Rlimit struct{ Soft, Hard uint64 }

// GetRlimit reads one of this process's limits.
func GetRlimit(resource int, out *Rlimit) Errno {
	return errnoOf(syscall6(unix.SYS_PRLIMIT64, 0, uintptr(resource), 0, uintptr(unsafe.Pointer(out)), 0, 0))
}

// SetRlimit sets one of this process's limits. EPERM for a hard limit above the
// present one without CAP_SYS_RESOURCE in the initial user namespace, and for a
// hard RLIMIT_NOFILE above fs.nr_open even if it is the present one.
func SetRlimit(resource int, limit *Rlimit) Errno {
	return errnoOf(syscall6(unix.SYS_PRLIMIT64, 0, uintptr(resource), uintptr(unsafe.Pointer(limit)), 0, 0, 0))
}

// Execve replaces the program. It returns only when it failed.
func Execve(path *byte, args, env Vector) Errno {
	return errnoOf(syscall6(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(args.base), uintptr(env.base), 0, 0, 0))
}

// Access is faccessat(2), for the real identity: unix.F_OK or unix.X_OK.
func Access(path *byte, mode uint32) Errno {
	dir := unix.AT_FDCWD
	return errnoOf(syscall6(unix.SYS_FACCESSAT, uintptr(dir), uintptr(unsafe.Pointer(path)), uintptr(mode), 0, 0, 0))
}

// PidfdInode is the inode number of a pidfd for pid, which names a process for ever
// where a PID may be reused. ok is false before Linux 6.9, where all pidfds share
// one inode, and when the kernel refuses pidfd_open(2).
func PidfdInode(pid int) (inode uint64, ok bool) {
	fd := syscall6(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0, 0, 0, 0)
	if errnoOf(fd) != 0 {
		return 0, false
	}
	if filesystemType(int(fd)) == unix.PID_FS_MAGIC {
		var st unix.Stat_t
		errno := errnoOf(syscall6(unix.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0))
		inode, ok = st.Ino, errno == 0
	}
	Close(int(fd))
	return inode, ok
}
