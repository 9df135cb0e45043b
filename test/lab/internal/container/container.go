// Package container starts a program as the first process of something just enough of
// a container to be told apart from the machine: its own PID, mount and network
// namespaces, a chosen limit on open files, chosen descriptors, and filters.
//
// It is for the lab only. It isolates nothing, and it expects to be root.
//
// The work is done by a stage: the calling program, started again under the name
// StageName, which takes the container's conditions on itself and then executes the
// program. Main functions call RunStage first of all.
package container

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Limit is a soft and a hard RLIMIT_NOFILE.
type Limit struct{ Soft, Hard uint64 }

func (l Limit) String() string { return fmt.Sprintf("%d:%d", l.Soft, l.Hard) }

// Spec describes a container.
type Spec struct {
	// Root is where its root directory is, or empty for the caller's.
	Root string
	// NoProc leaves it without /proc.
	NoProc bool
	// Limit is set before anything is opened; nil leaves what is inherited.
	Limit *Limit
	// Open is how many descriptors are open from 3 up, OpenAt which others.
	Open   int
	OpenAt []int
	// Lower is set after they have been opened.
	Lower *Limit
	// NrOpen becomes fs.nr_open, of the whole machine, once the limits are set.
	NrOpen uint64
	// Refuse are system calls that a seccomp filter answers with Errno.
	Refuse []uint32
	Errno  unix.Errno
	// DropResource takes CAP_SYS_RESOURCE away, as container engines do.
	DropResource bool
	// InPlace takes the conditions on the caller's own process instead of a container.
	InPlace bool
	// Dir, Env and Argv are what the program is started with. Argv[0] is a path.
	Dir  string
	Env  []string
	Argv []string
}

// StageName is what a stage is called in argv[0].
const StageName = "lab-stage"

// report is what a stage tells just before it executes the program.
type report struct {
	At  int64 // CLOCK_MONOTONIC, ns
	CPU int64 // what the stage itself used, ns
	Err string
}

// Process is a running container.
type Process struct {
	cmd    *exec.Cmd
	report report
	stdin  *os.File
	ended  chan struct{} // closed once usage is valid
	usage  Usage
	output *bytes.Buffer
}

// Usage is what a container has used from the execution of its program on.
type Usage struct {
	Wall   time.Duration
	CPU    time.Duration
	MaxRSS int64 // of its largest process, bytes
	Status int   // exit status, or 128 plus a signal
}

// Now is the clock that reports use.
func Now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// Start starts a container and returns when its program has been executed. A nil
// output collects up to 64 KiB for Output.
func Start(spec *Spec, output io.Writer) (*Process, error) {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{ended: make(chan struct{})}
	p.cmd = &exec.Cmd{
		Path: self,
		Args: []string{StageName, string(encoded)},
		Env:  os.Environ(),
		SysProcAttr: &unix.SysProcAttr{
			Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
			Setsid:     true,
			Pdeathsig:  unix.SIGKILL,
		},
		// Nobody holds the pipes any more, for all went with process 1. But what is in them
		// has still to be read, which takes its time on a busy machine.
		WaitDelay: time.Minute,
	}
	if output == nil {
		p.output = new(bytes.Buffer)
		output = &limitedWriter{p.output, 64 << 10}
	}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	stdinReader, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdin, p.stdin = stdinReader, stdin
	reportReader, reportWriter, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reportReader.Close()
	p.cmd.ExtraFiles = []*os.File{reportWriter}
	err = p.cmd.Start()
	reportWriter.Close()
	stdinReader.Close()
	if err != nil {
		return nil, err
	}
	said, err := io.ReadAll(reportReader)
	if err == nil {
		err = json.Unmarshal(said, &p.report)
	}
	go p.reap()
	if err == nil && p.report.Err != "" {
		err = errors.New(p.report.Err)
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("stage: %w (%s)", err, p.Output())
	}
	return p, nil
}

type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.to.Write(b[:n])
	w.left -= n
	return len(b), nil
}

// PID is the number of the container's first process in the caller's namespace.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Since is the time from the execution of the program to a moment, as Now tells it.
func (p *Process) Since(moment int64) time.Duration { return time.Duration(moment - p.report.At) }

// Release closes the container's standard input.
func (p *Process) Release() { p.stdin.Close() }

// Output is what the container wrote, if nobody else was given it. It is complete, and
// not empty, once the container has ended.
func (p *Process) Output() string {
	select {
	case <-p.ended:
		if p.output != nil {
			return strings.TrimSpace(p.output.String())
		}
	default:
	}
	return ""
}

// ErrBound is returned by Wait when the time is up.
var ErrBound = errors.New("still running")

// Ended is closed when the container has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits for the end of the container, but not longer than the bound.
func (p *Process) Wait(bound time.Duration) (Usage, error) {
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.usage, nil
	case <-timer.C:
		return Usage{}, ErrBound
	}
}

// Usage waits for the end and returns what was used.
func (p *Process) Usage() Usage {
	<-p.ended
	return p.usage
}

// reap waits for the end and notes what was used. The error of the command's own Wait
// is about its exit status, or about output that was cut off.
func (p *Process) reap() {
	defer close(p.ended)
	p.cmd.Wait()
	p.stdin.Close()
	p.usage.Wall = p.Since(Now())
	state := p.cmd.ProcessState
	p.usage.CPU = state.UserTime() + state.SystemTime() - time.Duration(p.report.CPU)
	if r, ok := state.SysUsage().(*unix.Rusage); ok {
		p.usage.MaxRSS = r.Maxrss << 10
	}
	p.usage.Status = state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.usage.Status = 128 + int(status.Signal())
	}
}

// Kill ends the container and everything in it.
func (p *Process) Kill() Usage {
	p.cmd.Process.Kill()
	<-p.ended
	return p.usage
}

// Children are the processes whose parent is pid.
func Children(pid int) ([]int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, word := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		pids = append(pids, n)
	}
	return pids, nil
}

// Tree is a process and all its descendants.
func Tree(pid int) []int {
	pids := []int{pid}
	for i := 0; i < len(pids); i++ {
		// One that has just ended has no children any more.
		children, _ := Children(pids[i])
		pids = append(pids, children...)
	}
	return pids
}

// LimitOf reads the limit on open files of a process.
func LimitOf(pid int) (Limit, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return Limit{}, err
	}
	for line := range strings.Lines(string(b)) {
		rest, found := strings.CutPrefix(line, "Max open files")
		if !found {
			continue
		}
		var l Limit
		_, err := fmt.Sscan(rest, &l.Soft, &l.Hard)
		return l, err
	}
	return Limit{}, errors.New("no limit on open files")
}

// DescriptorsOf lists the open descriptors of a process, in ascending order.
func DescriptorsOf(pid int) ([]int, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	fds := make([]int, len(names))
	for i, name := range names {
		if fds[i], err = strconv.Atoi(name); err != nil {
			return nil, err
		}
	}
	return fds, nil
}

// SetNrOpen sets fs.nr_open.
func SetNrOpen(n uint64) error {
	return os.WriteFile("/proc/sys/fs/nr_open", []byte(strconv.FormatUint(n, 10)), 0)
}
