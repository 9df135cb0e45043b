package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const stageVariable = "FDINIT_HOSTILE_STAGE"

// setup is the test's description of the surroundings; see the type of the same name there.
type setup struct {
	Proc     string
	Tmpfs    map[string]string
	Cgroups  []string
	OneCPU   bool
	Leaks    []int
	Closed   []int
	Limits   map[int][2]uint64
	UID      int
	Block    []int
	Ignore   []int
	Refuse   []refusal
	Below    uint64
	Path     string
	Argv     []string
	Env      []string
	EnvCount int
	ArgBytes int
	Listen   bool
}

type refusal struct{ Call, Errno int }

// An init function runs on the main thread, which is the one that must execute.
func init() {
	if os.Getenv(stageVariable) != "" {
		runtime.LockOSThread()
		debug.SetGCPercent(-1)
	}
}

func stage(text string) error {
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if err := s.mounts(); err != nil {
		return err
	}
	argv, env := s.Argv, s.Env
	for i := range s.EnvCount {
		env = append(env, "HOSTILE_"+strconv.Itoa(i)+"="+strconv.Itoa(i))
	}
	for left := s.ArgBytes; left > 0; {
		piece := min(left, 100_000) // one string may have 128 KiB
		argv = append(argv, strings.Repeat("x", piece))
		left -= piece
	}
	if s.Listen {
		env = append(env, "LISTEN_FDS=1", "LISTEN_PID="+strconv.Itoa(os.Getpid()))
	}
	argvp, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	path, err := syscall.BytePtrFromString(s.Path)
	if err != nil {
		return err
	}
	var groups []int
	for _, dir := range s.Cgroups {
		fd, err := unix.Open(dir+"/cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 800); err != nil {
			return err
		}
		groups = append(groups, fd)
	}
	if err := s.descriptors(); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	if s.UID != 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setresgid(s.UID, s.UID, s.UID); err != nil {
			return err
		}
		if err := syscall.Setresuid(s.UID, s.UID, s.UID); err != nil {
			return err
		}
	}
	if s.OneCPU {
		var all, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &all); err != nil {
			return err
		}
		for cpu := 0; one.Count() == 0; cpu++ {
			if all.IsSet(cpu) {
				one.Set(cpu)
			}
		}
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
	}
	l := last{groups: groups, filter: s.program(), path: path, argv: argvp, env: envp}
	for resource, most := range s.Limits {
		l.limits = append(l.limits, limit{uintptr(resource), unix.Rlimit{Cur: most[0], Max: most[1]}})
	}
	for _, n := range s.Block {
		l.blocked |= 1 << (n - 1)
	}
	for _, n := range s.Ignore {
		l.ignored |= 1 << (n - 1)
	}
	if len(l.filter) > 0 {
		l.prog = unix.SockFprog{Len: uint16(len(l.filter)), Filter: &l.filter[0]}
	}
	step, errno := l.steps()
	return fmt.Errorf("%s: %w", step, errno)
}

// last is what is done last, because there may be no room for anything after it.
type last struct {
	groups           []int // descriptors of control groups' lists of processes
	limits           []limit
	blocked, ignored uint64
	filter           []unix.SockFilter
	prog             unix.SockFprog
	path             *byte
	argv, env        []*byte
}

type limit struct {
	resource uintptr
	most     unix.Rlimit
}

// steps makes system calls and nothing else, and returns the one that failed. The runtime
// must not get hold of this thread in between: it takes a goroutine that has been at work
// for ten milliseconds, such as one whose process had to wait for a processor, for a
// reason to start another thread, and dies where there may be none. It asks by a signal,
// or in a function's prologue.
//
//go:nosplit
//go:norace
func (l *last) steps() (string, unix.Errno) {
	mask := ^uint64(0)
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0); errno != 0 {
		return "blocking signals", errno
	}
	self := byte('0')
	for i := range l.groups {
		if _, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(l.groups[i]), uintptr(unsafe.Pointer(&self)), 1); errno != 0 {
			return "joining a control group", errno
		}
	}
	for i := range l.limits {
		// Past package syscall, which restores RLIMIT_NOFILE before it executes.
		if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, l.limits[i].resource, uintptr(unsafe.Pointer(&l.limits[i].most)), 0, 0, 0); errno != 0 {
			return "a limit", errno
		}
	}
	// Every disposition and the mask, as nothing of the runtime may show.
	for n := 1; n <= 64; n++ {
		var action [4]uintptr // handler, flags, restorer, mask
		action[0] = uintptr(l.ignored >> (n - 1) & 1)
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&l.blocked)), 0, 8, 0, 0); errno != 0 {
		return "the signal mask", errno
	}
	if l.prog.Len > 0 {
		if _, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			return "no_new_privs", errno
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&l.prog)), 0, 0, 0); errno != 0 {
			return "seccomp", errno
		}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(l.path)), uintptr(unsafe.Pointer(&l.argv[0])), uintptr(unsafe.Pointer(&l.env[0])))
	return "execve", errno
}

func (s *setup) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if s.Proc != "inherited" {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, s.Proc); err != nil {
			return fmt.Errorf("mounting /proc with %q: %w", s.Proc, err)
		}
	}
	for dir, options := range s.Tmpfs {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			return fmt.Errorf("mounting a tmpfs at %s: %w", dir, err)
		}
	}
	return nil
}

// descriptors leaks /etc/passwd at the numbers asked for. Descriptors that the runtime
// holds there are overwritten: it has no more use for them.
func (s *setup) descriptors() error {
	for fd := 3; fd < 800; fd++ {
		unix.CloseOnExec(fd)
	}
	file, err := unix.Open("/etc/passwd", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if file, err = unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 900); err != nil {
		return err
	}
	for _, fd := range s.Leaks {
		if err := unix.Dup3(file, fd, 0); err != nil {
			return err
		}
	}
	for _, fd := range s.Closed {
		unix.Close(fd)
	}
	return nil
}

// program refuses calls made from instructions below s.Below, where fdinit lies.
func (s *setup) program() []unix.SockFilter {
	if len(s.Refuse) == 0 {
		return nil
	}
	const number, low, high = 0, 8, 12 // offsets in struct seccomp_data, little endian
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	p := []unix.SockFilter{
		load(high),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1},
		allow,
		load(low),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: uint32(s.Below), Jf: 1},
		allow,
		load(number),
	}
	for _, r := range s.Refuse {
		p = append(p,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.Call), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(r.Errno)})
	}
	return append(p, allow)
}
