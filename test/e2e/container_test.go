package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// patience is how long a condition may take to come true. It is generous: a loaded
// machine must not make a test fail, and a test that passes does not wait.
const patience = 3 * time.Minute

// starting is held for reading while a process is being started, and for writing while
// a file is written that is to be executed. A process has all that is open here until
// it executes something itself, and nothing that is open for writing can be executed.
var starting sync.RWMutex

// A container is a command that was started in the state of a spec.
type container struct {
	spec   *spec
	cmd    *exec.Cmd
	out    string // the names of the files that hold its output
	err    string
	done   chan struct{}
	status string // what exits compares with, valid when done is closed

	known  map[string]int // who is which process, once looked up
	cursor int            // what received and await have seen of the output
	logged int            // what logged has seen of the errors

	terminal *os.File
	screen   screen
}

// screen is what a terminal has shown.
type screen struct {
	sync.Mutex
	text   []byte
	cursor int
	over   bool // nothing more can come
}

// startContainer starts the stage and returns when it has become the command, or
// an errSkip if this machine cannot bring the state about.
func startContainer(s *spec, dir string) (*container, error) {
	var err error
	if s.Path, err = lookPath(s.Path, dir); err != nil {
		return nil, err
	}
	for _, name := range []*string{&s.Dir, &s.Noexec, &s.OutsideRoot} {
		if !filepath.IsAbs(*name) && (*name != "" || name == &s.Dir) {
			*name = filepath.Join(dir, *name)
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	attr, err := s.attributes()
	if err != nil {
		return nil, err
	}
	c := &container{spec: s, screen: screen{over: !s.TTY}, done: make(chan struct{}), known: map[string]int{}}
	c.cmd = &exec.Cmd{
		Path:        stageBinary,
		Args:        []string{"stage"},
		Env:         []string{stageVariable + "=" + string(text), "GODEBUG=asyncpreemptoff=1"},
		SysProcAttr: attr,
	}
	out, err := os.CreateTemp(outputDir, "stdout")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	errOut, err := os.CreateTemp(outputDir, "stderr")
	if err != nil {
		return nil, err
	}
	defer errOut.Close()
	c.out, c.err = out.Name(), errOut.Name()
	c.cmd.Stdout, c.cmd.Stderr = out, errOut
	if s.Stdin != "" {
		in, err := os.Open(filepath.Join(dir, s.Stdin))
		if err != nil {
			return nil, err
		}
		defer in.Close()
		c.cmd.Stdin = in
	}
	if s.TTY {
		slave, err := c.openTerminal()
		if err != nil {
			return nil, fmt.Errorf("%w: a terminal: %w", errSkip, err)
		}
		defer slave.Close()
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
		attr.Setsid, attr.Setctty = true, true
		go c.screen.follow(c.terminal)
	}

	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer statusRead.Close()
	holdRead, holdWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer holdWrite.Close()
	c.cmd.ExtraFiles = []*os.File{statusWrite, holdRead}
	starting.RLock()
	err = c.cmd.Start() // returns when the stage has been executed
	starting.RUnlock()
	statusWrite.Close()
	holdRead.Close()
	if err != nil {
		return nil, skippable("starting a process in its namespaces", err)
	}
	var trouble error
	if s.Hold {
		if _, trouble = io.ReadFull(statusRead, make([]byte, len("hold\n"))); trouble == nil {
			trouble = c.sendBeforeWorkload(func() { holdWrite.Close() })
		}
	}
	// Not earlier: waiting for the end of a process takes the reports of its ptrace
	// stops from whoever traces it.
	go c.await()
	if trouble != nil {
		return nil, errors.Join(trouble, c.kill())
	}
	problem, err := io.ReadAll(statusRead)
	if err != nil {
		return nil, err
	}
	if len(problem) > 0 {
		c.kill()
		if bytes.HasPrefix(problem, []byte(errSkip.Error())) {
			return nil, fmt.Errorf("%w%s", errSkip, bytes.TrimPrefix(problem, []byte(errSkip.Error())))
		}
		return nil, fmt.Errorf("the stage: %s", problem)
	}
	return c, nil
}

// await waits for the end of the container's first process.
func (c *container) await() {
	c.cmd.Wait()
	ws := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ws.Signaled() && ws.CoreDump():
		c.status = signalName(int(ws.Signal())) + " with a core"
	case ws.Signaled():
		c.status = signalName(int(ws.Signal()))
	default:
		c.status = strconv.Itoa(ws.ExitStatus())
	}
	close(c.done)
}

func lookPath(name, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for d := range strings.SplitSeq(scriptPath, ":") {
		file := filepath.Join(d, name)
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w: no program %s", errSkip, name)
}

// attributes are the namespaces that the state needs. Without privileges a user
// namespace gives the right to make the others.
func (s *spec) attributes() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{}
	if !s.NotPID1 {
		attr.Cloneflags |= unix.CLONE_NEWPID
	}
	if s.ownMounts() {
		attr.Cloneflags |= unix.CLONE_NEWNS
	}
	if (attr.Cloneflags != 0 || s.NoCaps) && !privileged {
		attr.Cloneflags |= unix.CLONE_NEWUSER
	}
	if s.UserNamespace {
		attr.Cloneflags |= unix.CLONE_NEWUSER
	}
	if attr.Cloneflags&unix.CLONE_NEWUSER == 0 {
		return attr, nil
	}
	if privileged {
		// As an engine with remapped users does it: root in there is nobody out here.
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 65536}}
		attr.GidMappings = attr.UidMappings
		attr.GidMappingsEnableSetgroups = true
		attr.Credential = &syscall.Credential{}
	} else {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr, nil
}

func (c *container) pid() int { return c.cmd.Process.Pid }

func (c *container) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *container) wait() error {
	select {
	case <-c.done:
		return nil
	case <-time.After(patience):
		return errors.New("it does not end")
	}
}

// kill ends everything in the container. Without a PID namespace the kernel does
// not do it for us: whoever outlives process init is adopted by somebody else, so
// stop init, kill its descendants, then itself.
func (c *container) kill() error {
	if !c.ended() {
		if c.spec.NotPID1 {
			unix.Kill(c.pid(), unix.SIGSTOP)
			for _, p := range descendants(c.pid()) {
				unix.Kill(p, unix.SIGKILL)
			}
		}
		c.cmd.Process.Kill()
	}
	err := c.wait()
	if c.terminal != nil {
		c.terminal.Close()
	}
	return err
}

func (c *container) output() (stdout, stderr string) {
	read := func(name string) string {
		b, _ := os.ReadFile(name)
		return string(b)
	}
	return read(c.out), read(c.err)
}

// process finds who is meant: a generation's oldest member. The workload of an fdinit
// counts once it has been executed: until then it shares its parent's program.
func (c *container) process(who string) (int, error) {
	if who == "logger" {
		return c.logger()
	}
	generations := []string{"init", "workload", "child", "grandchild"}
	generation := slices.Index(generations, who)
	switch generation {
	case -1:
		return 0, fmt.Errorf("who is %q?", who)
	case 0:
		return c.pid(), nil
	}
	if pid := c.known[who]; pid != 0 {
		return pid, nil
	}
	parent, err := c.process(generations[generation-1])
	if err != nil {
		return 0, err
	}
	err = c.eventually(func() error {
		var oldest aProcess
		program := programOf(parent)
		for _, p := range allProcesses() {
			if p.parent != parent || p.state == 'Z' || oldest.pid != 0 && !p.olderThan(oldest) {
				continue
			}
			if path.Base(program) == "fdinit" && programOf(p.pid) == program {
				continue // to become the workload, or the log
			}
			oldest = p
		}
		if oldest.pid == 0 {
			return fmt.Errorf("no %s", who)
		}
		c.known[who] = oldest.pid
		return nil
	})
	return c.known[who], err
}

// logger finds the process that writes the event log: fdinit's child that is fdinit, too.
// Unlike one that is about to become the workload it leads a session at once.
func (c *container) logger() (int, error) {
	if pid := c.known["logger"]; pid != 0 {
		return pid, nil
	}
	err := c.eventually(func() error {
		for _, p := range allProcesses() {
			if p.parent == c.pid() && p.state != 'Z' && p.session == p.pid && programOf(p.pid) == programOf(c.pid()) {
				c.known["logger"] = p.pid
				return nil
			}
		}
		return errors.New("no logger")
	})
	return c.known["logger"], err
}

// programOf is the file that a process executes.
func programOf(pid int) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return name
}

// eventually polls a condition, patiently, but not when everything is over.
func (c *container) eventually(condition func() error) error {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		over := c.ended() && c.screen.ended()
		err := condition()
		if err == nil {
			return nil
		}
		if over {
			return fmt.Errorf("%w (it ended with %s)", err, c.status)
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}

// aProcess is one line of /proc/PID/stat.
type aProcess struct {
	pid, parent    int
	group, session int
	foreground     int
	state          byte
	started        uint64
}

// olderThan tells who was started first. Within a hundredth of a second only the
// numbers tell: they are given in turn, from the lowest again after the highest.
func (p aProcess) olderThan(q aProcess) bool {
	if p.started != q.started {
		return p.started < q.started
	}
	const far = 1 << 14 // pid_max is twice as much or more
	return (p.pid < q.pid) != (max(p.pid, q.pid)-min(p.pid, q.pid) > far)
}

func readProcess(pid int) (p aProcess, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	// The name, in parentheses, may hold anything.
	_, rest, ok := cutLast(string(text), ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return p, fmt.Errorf("unexpected /proc/PID/stat: %q", text)
	}
	p.pid = pid
	p.state = f[0][0]
	p.parent, _ = strconv.Atoi(f[1])
	p.group, _ = strconv.Atoi(f[2])
	p.session, _ = strconv.Atoi(f[3])
	p.foreground, _ = strconv.Atoi(f[5])
	p.started, _ = strconv.ParseUint(f[19], 10, 64)
	return p, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func allProcesses() []aProcess {
	entries, _ := os.ReadDir("/proc")
	var all []aProcess
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, err := readProcess(pid); err == nil {
				all = append(all, p)
			}
		}
	}
	return all
}

func descendants(of int) []int {
	all := allProcesses()
	found := []int{of}
	for i := 0; i < len(found); i++ {
		for _, p := range all {
			if p.parent == found[i] {
				found = append(found, p.pid)
			}
		}
	}
	return found[1:]
}

// openTerminal makes a pseudo-terminal and returns the side for the container. Our
// side must not block: a read that sleeps in the kernel would keep it open after it
// was closed, and there would be no hang-up.
func (c *container) openTerminal() (slave *os.File, err error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer master.Close()
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		slave.Close()
		return nil, err
	}
	c.terminal = os.NewFile(uintptr(fd), "terminal")
	return slave, nil
}

func (s *screen) ended() bool {
	s.Lock()
	defer s.Unlock()
	return s.over
}

func (s *screen) follow(master io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		s.Lock()
		s.text = append(s.text, buf[:n]...)
		s.over = err != nil
		s.Unlock()
		if err != nil {
			return // EIO: nobody has the other side open any more
		}
	}
}

// allBlocked is SigBlk when nothing but KILL and STOP can get through.
const allBlocked = "fffffffffffbfeff"

// sendBeforeWorkload lets the held stage go on, stops it when its command has made
// its first rt_sigprocmask, sends the signals, and lets it go for good. This is
// the earliest moment that counts: what is sent to process 1 before that is
// dropped by the kernel.
func (c *container) sendBeforeWorkload(release func()) error {
	// ptrace is a relation between threads.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid := c.pid()
	trace := func(request, addr, data uintptr) error {
		if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, request, uintptr(pid), addr, data, 0, 0); errno != 0 {
			return errno
		}
		return nil
	}
	if err := trace(unix.PTRACE_SEIZE, 0, unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_TRACESYSGOOD); err != nil {
		return skippable("ptrace", err)
	}
	release()
	executed := false
	for {
		var ws unix.WaitStatus
		if _, err := unix.Wait4(pid, &ws, unix.WALL, nil); err == unix.EINTR {
			continue
		} else if err != nil {
			return err
		}
		if !ws.Stopped() {
			return errors.New("it ended before it blocked any signal")
		}
		const syscallStop = unix.SIGTRAP | 0x80
		deliver := uintptr(0)
		switch {
		case ws.StopSignal() == unix.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_EXEC:
			executed = true
		case ws.StopSignal() == syscallStop:
			blocked, err := statusField(pid, "SigBlk")
			if err != nil {
				return err
			}
			if executed && blocked == allBlocked {
				for _, n := range c.spec.BeforeWorkload {
					if err := unix.Kill(pid, unix.Signal(n)); err != nil {
						return err
					}
				}
				return trace(unix.PTRACE_DETACH, 0, 0)
			}
		default:
			deliver = uintptr(ws.StopSignal())
		}
		request := uintptr(unix.PTRACE_CONT)
		if executed {
			request = unix.PTRACE_SYSCALL
		}
		if err := trace(request, 0, deliver); err != nil {
			return err
		}
	}
}

func statusField(pid int, field string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("no %s in /proc/PID/status", field)
}
