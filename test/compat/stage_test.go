package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A stage puts the calling process into an exactly known state and then replaces it by a program. The table's rows
// describe what the init inherits with one, and a workload can begin as one. The stage is this test binary under the
// name stageName: it needs no compiler and no helper in the image.
//
// Nothing of the Go runtime may show after the exec: handlers vanish by themselves, but the mask of the calling thread,
// ignored signals and RLIMIT_NOFILE (which the runtime raises) do not, so all three are set explicitly.
type stage struct {
	// Proc mounts a new /proc: only right for the first process of a PID namespace.
	Proc bool
	// Session and Group make a session (setsid) or a process group (setpgid).
	Session, Group bool
	// Terminal makes stdin the controlling terminal, Foreground makes the group the foreground one.
	Terminal, Foreground bool
	// Block and Ignore are the blocked and ignored signals. Everything else is unblocked and default.
	Block, Ignore []int
	// DropCaps leaves the bounding set, which also takes a capability away from a root process at exec.
	DropCaps []int
	// UID is the user to become.
	UID int
	// Open lists descriptors that shall be open (on /dev/zero), Close those that shall not.
	Open, Close []int
	// Stack is the soft RLIMIT_STACK, Files the soft RLIMIT_NOFILE.
	Stack, Files uint64
	// Umask is the file creation mask, if not 0.
	Umask int
	// Dir is the working directory.
	Dir string
	// Self is a variable of the environment that is set to the process's own id (LISTEN_PID).
	Self string
	// SelfFormat is its value, SELF stands for the id.
	SelfFormat string
	// Raise are signals that the process sends to itself when its mask is set, so that a blocked one is pending. The
	// thread is the target: the runtime's other threads do not block it.
	Raise []int
	// Kids are started first, as children.
	Kids []stage
	// JoinKid moves the process to the group of its first kid, which leaves its own group empty.
	JoinKid bool
	// Hold is the init when it is not to be PID 1: this process stays as its parent and PID 1.
	Hold *stage

	Path string
	// Argv may contain fill(n), which stands for n bytes: a stage's own argument has a limit of 128 KiB.
	Argv []string
	Env  []string
}

const fillMark = "%fill:"

func fill(n int) string { return fillMark + strconv.Itoa(n) }

const stageName = "stage"

// argv is the command line of a stage.
func (s stage) argv() []string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return []string{stageName, string(b)}
}

// stageMain is the whole life of a process called stageName.
func stageMain() {
	runtime.LockOSThread()
	var s stage
	if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
		stageFatal("description", err)
	}
	if err := s.run(); err != nil {
		stageFatal(s.Path, err)
	}
}

func stageFatal(what string, err error) {
	fmt.Fprintf(os.Stderr, "stage: %s: %v\n", what, err)
	os.Exit(111)
}

func (s *stage) run() error {
	if s.Proc {
		// Private first, otherwise the new /proc would appear outside.
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("mount private: %w", err)
		}
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
	}
	if s.Session {
		if _, err := unix.Setsid(); err != nil {
			return fmt.Errorf("setsid: %w", err)
		}
	}
	if s.Group {
		if err := unix.Setpgid(0, 0); err != nil {
			return fmt.Errorf("setpgid: %w", err)
		}
	}
	if s.Terminal {
		if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
			return fmt.Errorf("TIOCSCTTY: %w", err)
		}
	}
	if s.Foreground {
		// A background process that does this is stopped by SIGTTOU unless it blocks it.
		setMask(unix.SIG_BLOCK, 1<<(unix.SIGTTOU-1))
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, os.Getpid()); err != nil {
			return fmt.Errorf("TIOCSPGRP: %w", err)
		}
	}
	if s.Dir != "" {
		if err := unix.Chdir(s.Dir); err != nil {
			return err
		}
	}
	if s.Umask != 0 {
		unix.Umask(s.Umask)
	}
	for i := range s.Kids {
		pid, err := startStage(s.Kids[i])
		if err != nil {
			return err
		}
		if s.JoinKid && i == 0 {
			// The kid makes the group.
			for {
				err := unix.Setpgid(0, pid)
				if err == nil {
					break
				}
				if err != unix.EPERM && err != unix.ESRCH {
					return fmt.Errorf("joining a kid: %w", err)
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	if s.Hold != nil {
		hold(*s.Hold)
	}
	for _, c := range s.DropCaps {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if s.UID != 0 {
		// The raw call changes this thread only, and this thread is what is left after the exec.
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(s.UID), uintptr(s.UID), uintptr(s.UID)); e != 0 {
			return fmt.Errorf("setresuid: %w", e)
		}
	}
	// Some rows die of a signal that dumps core.
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return err
	}
	if err := softLimit(syscall.RLIMIT_STACK, s.Stack); err != nil {
		return err
	}
	if err := softLimit(syscall.RLIMIT_NOFILE, s.Files); err != nil {
		return err
	}
	env := s.Env
	if s.Self != "" {
		v := strconv.Itoa(os.Getpid())
		env = append([]string{s.Self + "=" + strings.ReplaceAll(s.SelfFormat, "SELF", v)}, env...)
	}
	for i, a := range s.Argv {
		if n, ok := strings.CutPrefix(a, fillMark); ok {
			count, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			s.Argv[i] = strings.Repeat("x", count)
		}
	}
	for _, n := range s.Open {
		fd, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if fd == n {
			if _, err := unix.FcntlInt(uintptr(n), unix.F_SETFD, 0); err != nil {
				return err
			}
			continue
		}
		if err := unix.Dup3(fd, n, 0); err != nil {
			return fmt.Errorf("dup3 %d: %w", n, err)
		}
		unix.Close(fd)
	}
	for _, n := range s.Close {
		unix.Close(n)
	}
	setDispositions(s.Ignore)
	setMask(unix.SIG_SETMASK, maskOf(s.Block))
	for _, sig := range s.Raise {
		unix.RawSyscall(unix.SYS_TKILL, uintptr(unix.Gettid()), uintptr(sig), 0)
	}
	return syscall.Exec(s.Path, s.Argv, env)
}

func softLimit(resource int, soft uint64) error {
	if soft == 0 {
		return nil
	}
	var l syscall.Rlimit
	if err := syscall.Getrlimit(resource, &l); err != nil {
		return err
	}
	l.Cur = soft
	return syscall.Setrlimit(resource, &l)
}

func startStage(s stage) (int, error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(self, s.argv(), &syscall.ProcAttr{Env: []string{stageDebug}, Files: []uintptr{0, 1, 2}})
}

// stageDebug keeps the runtime from sending SIGURG to itself: one that is pending at exec would reach the init.
const stageDebug = "GODEBUG=asyncpreemptoff=1"

// hold starts the init, tells its id and later its wait status on descriptor 3, reaps whatever else comes along, and
// lives until descriptor 4 is closed. When it goes the kernel kills everything that is left in the namespace, so that
// no row leaves anything behind.
func hold(init stage) {
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	// The parent of an init is not the subject: a terminal may hang up and stop what it likes.
	setDispositions([]int{1, 2, 3, 15, 20, 21, 22})
	setMask(unix.SIG_SETMASK, 0)
	pid, err := startStage(init)
	if err != nil {
		stageFatal("init", err)
	}
	report := os.NewFile(3, "report")
	fmt.Fprintf(report, "%d\n", pid)
	// Not before the observer has found it: an init may be very short-lived, and a zombie can still be found.
	var b [1]byte
	if n, _ := unix.Read(4, b[:]); n != 1 {
		os.Exit(0)
	}
	go func() {
		for {
			var ws syscall.WaitStatus
			p, err := syscall.Wait4(-1, &ws, 0, nil)
			if err == syscall.EINTR {
				continue
			}
			if err != nil {
				return
			}
			if p == pid {
				fmt.Fprintf(report, "%d\n", uint32(ws))
			}
		}
	}()
	for {
		n, err := unix.Read(4, b[:])
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			os.Exit(0)
		}
	}
}

func maskOf(signals []int) uint64 {
	var m uint64
	for _, s := range signals {
		m |= 1 << (s - 1)
	}
	return m
}

func setMask(how int, mask uint64) {
	if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, uintptr(how), uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0); e != 0 {
		stageFatal("rt_sigprocmask", e)
	}
}

// setDispositions makes every signal default or ignored, whatever the test itself inherited (nohup, a shell's trap).
func setDispositions(ignored []int) {
	ign := maskOf(ignored)
	for s := 1; s <= 64; s++ {
		if s == int(unix.SIGKILL) || s == int(unix.SIGSTOP) {
			continue
		}
		// struct kernel_sigaction: handler, flags, restorer, mask; all zero is SIG_DFL, handler 1 is SIG_IGN. Room to
		// spare covers the architectures that order it differently: the handler is first everywhere Go runs but MIPS.
		var act [8]uintptr
		if ign&(1<<(s-1)) != 0 {
			act[0] = 1
		}
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0); e != 0 {
			stageFatal("rt_sigaction", e)
		}
	}
}
