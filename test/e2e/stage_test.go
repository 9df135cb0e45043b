package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The stage is this test binary again, started by a test as the first process of
// the namespaces asked for. It brings about the state that a spec describes, on
// one thread and with raw system calls, and then executes the command itself: that
// is the only way in which nothing (no shell, no runtime, no os/exec) can tidy up
// in between.

// stageVariable holds the spec, and its presence makes a process the stage.
const stageVariable = "FDINIT_E2E_STAGE"

const (
	statusFD = 3 // the stage writes what went wrong here; the command's start closes it
	holdFD   = 4 // the stage waits for this to be closed, if asked to
)

func init() {
	text := os.Getenv(stageVariable)
	if text == "" {
		return
	}
	// An init function runs on the main thread: it is the one that survives execve
	// with its process number, mask and filter.
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	status, err := unix.FcntlInt(statusFD, unix.F_DUPFD_CLOEXEC, 512)
	if err != nil {
		os.Exit(99)
	}
	// Should the test be killed, its containers go, too. Not by SysProcAttr.Pdeathsig: that
	// kills a process which does not see its parent, as in a new PID namespace, and only
	// Linux lets the first process of one survive it (gVisor does not).
	unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	var s spec
	if err = json.Unmarshal([]byte(text), &s); err == nil {
		err = s.stage(&status)
	}
	unix.Write(status, []byte(err.Error()))
	os.Exit(99)
}

// errSkip marks what this machine does not let us set up, as opposed to mistakes.
var errSkip = errors.New("cannot be set up here")

func skippable(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %s: %w", errSkip, what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// stage does not return unless something failed. The order matters: each step
// needs what a later one takes away.
func (s *spec) stage(status *int) error {
	if err := s.closeOnExecAll(); err != nil {
		return err
	}
	if err := s.mounts(); err != nil {
		return err
	}
	if err := s.workingDirectory(); err != nil {
		return err
	}
	env, err := s.environment()
	if err != nil {
		return err
	}
	argv := s.arguments()
	if s.Hold {
		unix.Write(*status, []byte("hold\n"))
		unix.Read(holdFD, make([]byte, 1))
	}
	if err := s.limitsAndLeaks(status); err != nil {
		return err
	}
	unix.Umask(s.Umask)
	if err := s.privileges(); err != nil {
		return err
	}
	for _, fd := range s.Closed {
		unix.Close(fd)
	}
	if err := s.signals(); err != nil {
		return err
	}
	if err := s.filter(); err != nil {
		return err
	}
	// Not by a raw system call: while it lasts the kernel refuses new threads (EAGAIN), the
	// runtime may be about to make one, and would take it for the end. This keeps it from that.
	err = syscall.Exec(s.Path, argv, env)
	return fmt.Errorf("execve %s: %w", s.Path, err)
}

// closeOnExecAll keeps whatever go test was started with from leaking as well.
func (s *spec) closeOnExecAll() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, _ := strconv.Atoi(e.Name()); fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

func (s *spec) ownMounts() bool {
	return !s.NotPID1 || s.NoProc || s.NoDev || s.ReadOnlyRoot || s.Noexec != "" || s.OutsideRoot != ""
}

func (s *spec) mounts() error {
	if !s.ownMounts() {
		return nil
	}
	// gVisor of Debian 12 refuses it with EINVAL, and propagates no mounts.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil && err != unix.EINVAL {
		return skippable("making mounts private", err)
	}
	if !s.NotPID1 && !s.NoProc {
		// A container engine's masks over parts of /proc make this impossible in a user namespace.
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return skippable("mounting /proc", err)
		}
	}
	if s.NoDev {
		if err := unix.Mount("empty", "/dev", "tmpfs", unix.MS_RDONLY, ""); err != nil {
			return skippable("hiding /dev", err)
		}
	}
	if s.Noexec != "" {
		if err := unix.Mount(s.Noexec, s.Noexec, "", unix.MS_BIND, ""); err != nil {
			return skippable("binding "+s.Noexec, err)
		}
		if err := remount(s.Noexec, unix.MS_NOEXEC); err != nil {
			return skippable("mounting noexec", err)
		}
	}
	if s.ReadOnlyRoot {
		if err := remount("/", unix.MS_RDONLY); err != nil {
			return skippable("mounting / read-only", err)
		}
	}
	if s.OutsideRoot != "" {
		if err := s.leaveRoot(); err != nil {
			return err
		}
	}
	if s.NoProc {
		// Unmount as often as something is mounted there; in a user namespace what was
		// inherited is locked, so cover it.
		for unix.Unmount("/proc", unix.MNT_DETACH) == nil {
		}
		if _, err := os.Stat("/proc/self"); err == nil {
			if err := unix.Mount("empty", "/proc", "tmpfs", unix.MS_RDONLY, ""); err != nil {
				return skippable("hiding /proc", err)
			}
		}
	}
	return nil
}

// remount adds a flag to a mount and keeps those that it has: in a user namespace
// they are locked, and leaving one out would be EPERM.
func remount(path string, flag uintptr) error {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	const kept = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
	return unix.Mount("", path, "", uintptr(st.Flags)&kept|flag|unix.MS_REMOUNT|unix.MS_BIND, "")
}

// leaveRoot makes the root directory another mount of the same tree while the
// working directory stays in the first one: what a container runtime does that
// leaked a directory of the host and was told to start in it (CVE-2024-21626).
func (s *spec) leaveRoot() error {
	root := filepath.Join(s.OutsideRoot, "newroot")
	if err := os.Mkdir(root, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	if err := unix.Mount("/", root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return skippable("binding /", err)
	}
	if err := unix.Chdir(s.OutsideRoot); err != nil {
		return err
	}
	if err := unix.Chroot(root); err != nil {
		return skippable("chroot", err)
	}
	buf := make([]byte, unix.PathMax)
	n, _, errno := unix.RawSyscall(unix.SYS_GETCWD, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0)
	if errno != 0 || !strings.HasPrefix(string(buf[:n]), "(unreachable)") {
		return fmt.Errorf("the working directory is not outside the root: %q %w", buf[:n], errno)
	}
	return nil
}

func (s *spec) workingDirectory() error {
	switch {
	case s.OutsideRoot != "":
		return nil
	case s.DeletedCwd:
		dir, err := os.MkdirTemp(s.Dir, "deleted")
		if err != nil {
			return err
		}
		if err := unix.Chdir(dir); err != nil {
			return err
		}
		return os.Remove(dir)
	}
	if err := unix.Chdir(s.Dir); err != nil {
		return err
	}
	name := strings.Repeat("d", 255)
	for depth := 0; s.DeepCwd && depth*len(name) <= unix.PathMax; depth++ {
		if err := unix.Mkdir(name, 0o755); err != nil && err != unix.EEXIST {
			return err
		}
		if err := unix.Chdir(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *spec) environment() ([]string, error) {
	var env []string
	for _, e := range s.Env {
		e = strings.ReplaceAll(e, "{pid}", strconv.Itoa(os.Getpid()))
		if strings.Contains(e, "{pidfdid}") {
			id, err := pidfdID(os.Getpid())
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errSkip, err)
			}
			e = strings.ReplaceAll(e, "{pidfdid}", id)
		}
		env = append(env, e)
	}
	return env, nil
}

// pidfdID is the number that names a process uniquely: its pidfd's inode, once the
// kernel has pidfs (6.9); before, all pidfds shared one inode.
func pidfdID(pid int) (string, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", err
	}
	if fs.Type != unix.PID_FS_MAGIC {
		return "", errors.New("the kernel has no pidfs")
	}
	return strconv.FormatUint(st.Ino, 10), nil
}

func (s *spec) arguments() []string {
	if s.Argc0 {
		return nil
	}
	argv := s.Argv
	// One argument may have 128 KiB (MAX_ARG_STRLEN).
	const piece = 100_000
	for left := s.BigArgs; left > 0; left -= piece {
		argv = append(argv, strings.Repeat("x", min(left, piece)))
	}
	return argv
}

func (s *spec) limitsAndLeaks(status *int) error {
	var files unix.Rlimit
	if err := prlimit(unix.RLIMIT_NOFILE, nil, &files); err != nil {
		return err
	}
	// Package syscall forgets the limit that it would restore at exec when it sets another.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: files.Cur, Max: files.Max}); err != nil {
		return err
	}
	highest := 0
	for _, fd := range s.leaked() {
		highest = max(highest, fd)
	}
	if uint64(highest) >= files.Max {
		files.Max = uint64(highest) + 1
	}
	files.Cur = files.Max
	if err := prlimit(unix.RLIMIT_NOFILE, &files, nil); err != nil {
		return skippable(fmt.Sprintf("a hard limit of %d descriptors", files.Max), err)
	}
	// Leave the numbers of the leaks to the leaks.
	moved, err := unix.FcntlInt(uintptr(*status), unix.F_DUPFD_CLOEXEC, min(highest+1, int(files.Max)-1))
	if err == nil {
		*status = moved
	}
	for _, l := range s.Leaks {
		if err := l.open(s.Dir); err != nil {
			return fmt.Errorf("leaking %s: %w", l.Kind, err)
		}
	}
	// The usual limit, unless another one is asked for; and never a pathological hard
	// one, which fdinit would change.
	usual := limit{Resource: unix.RLIMIT_NOFILE, Soft: min(1024, files.Max), Hard: min(files.Max, 1<<20), HasHard: true}
	limits := []limit{usual}
	for _, l := range s.Limits {
		if l.Resource != unix.RLIMIT_NOFILE {
			limits = append(limits, l)
			continue
		}
		if !l.HasHard {
			l.Hard, l.HasHard = usual.Hard, true
		}
		limits[0] = l
	}
	for _, l := range limits {
		var r unix.Rlimit
		if err := prlimit(l.Resource, nil, &r); err != nil {
			return err
		}
		r.Cur = l.Soft
		if l.HasHard {
			r.Max = l.Hard
		}
		if err := prlimit(l.Resource, &r, nil); err != nil {
			return skippable(fmt.Sprintf("limit %d of %d:%d", l.Resource, r.Cur, r.Max), err)
		}
	}
	return nil
}

// prlimit goes past package syscall, which remembers a limit and restores it later.
func prlimit(resource int, wanted, present *unix.Rlimit) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(resource),
		uintptr(unsafe.Pointer(wanted)), uintptr(unsafe.Pointer(present)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// open leaks one kind of descriptor at each number. Descriptors that the runtime
// holds at such a number are overwritten: it has no more use for them.
func (l leak) open(dir string) error {
	var fd int
	var err error
	switch l.Kind {
	case "file":
		fd, err = unix.Open("/etc/passwd", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	case "directory":
		fd, err = unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	case "opath":
		fd, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	case "socket":
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	case "listener":
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
			// An abstract name that the kernel makes up.
			if err = unix.Bind(fd, &unix.SockaddrUnix{}); err == nil {
				err = unix.Listen(fd, 1)
			}
		}
	case "pipe":
		var p [2]int
		err = unix.Pipe2(p[:], unix.O_CLOEXEC)
		fd = p[0]
	case "epoll":
		fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	case "memfd":
		fd, err = unix.MemfdCreate("leak", unix.MFD_CLOEXEC)
	case "deleted":
		fd, err = unix.Open(filepath.Join(dir, "deleted-file"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err == nil {
			err = unix.Unlink(filepath.Join(dir, "deleted-file"))
		}
	default:
		err = fmt.Errorf("no such kind")
	}
	if err != nil {
		return err
	}
	for _, to := range l.FDs {
		if to == fd {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
				return err
			}
		} else if err := unix.Dup3(fd, to, 0); err != nil {
			return fmt.Errorf("at %d: %w", to, err)
		}
	}
	return nil
}

func (s *spec) privileges() error {
	raw := func(call, a, b, c uintptr) error {
		if _, _, errno := unix.RawSyscall(call, a, b, c); errno != 0 {
			return errno
		}
		return nil
	}
	if s.NoCaps {
		for c := uintptr(0); ; c++ {
			if err := raw(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); err == unix.EINVAL {
				break
			} else if err != nil {
				return skippable("dropping a capability", err)
			}
		}
	}
	// What is not in the bounding set, root's program does not get either.
	for _, c := range s.NoCap {
		if err := raw(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c), 0); err != nil {
			return skippable("dropping a capability", err)
		}
	}
	if s.UID >= 0 {
		if err := raw(unix.SYS_SETGROUPS, 0, 0, 0); err != nil {
			return skippable("setgroups", err)
		}
		id := uintptr(s.UID)
		if err := raw(unix.SYS_SETRESGID, id, id, id); err != nil {
			return skippable("changing the group", err)
		}
		if err := raw(unix.SYS_SETRESUID, id, id, id); err != nil {
			return skippable("changing the user", err)
		}
	}
	if s.NoCaps {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return err
		}
	}
	if s.NoNewPrivs || len(s.Seccomp) > 0 && os.Geteuid() != 0 {
		if err := raw(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
			return err
		}
	}
	return nil
}

// kernelSigaction is struct sigaction as the kernel has it on 64-bit architectures.
type kernelSigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

func (s *spec) signals() error {
	const ignore = 1
	ignored := mask(s.Ignore)
	for n := 1; n <= 64; n++ {
		var action kernelSigaction
		if ignored&(1<<(n-1)) != 0 {
			action.handler = ignore
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		if errno != 0 && n != int(unix.SIGKILL) && n != int(unix.SIGSTOP) {
			return fmt.Errorf("sigaction %d: %w", n, errno)
		}
	}
	blocked := mask(s.Block)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&blocked)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	for _, n := range s.Pending {
		// To this thread: another one of the runtime's might have it unblocked. What is
		// pending for the thread that calls execve stays pending.
		if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.Signal(n)); err != nil {
			return err
		}
	}
	return nil
}

// filter installs a seccomp program: load the call's number, compare with each that
// is to fail, let the rest through. Nothing here uses a foreign architecture's calls.
func (s *spec) filter() error {
	if len(s.Seccomp) == 0 {
		return nil
	}
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for _, r := range s.Seccomp {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(r.Call), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(r.Errno)})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	if errno != 0 {
		return skippable("seccomp", errno)
	}
	return nil
}
