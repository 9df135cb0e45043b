package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// setup describes the surroundings that the probe's stage brings about before it
// executes fdinit as process 1 of new PID and mount namespaces.
type setup struct {
	Proc     string            `json:",omitempty"` // options of the mount at /proc, or "inherited": the outer one
	Tmpfs    map[string]string `json:",omitempty"` // mounts over directories, with options
	Cgroups  []string          `json:",omitempty"` // to join
	OneCPU   bool              `json:",omitempty"` // for all that runs
	Leaks    []int             `json:",omitempty"` // descriptors open on /etc/passwd
	Closed   []int             `json:",omitempty"`
	Limits   map[int][2]uint64 `json:",omitempty"` // soft and hard, by resource
	UID      int               `json:",omitempty"`
	Block    []int             `json:",omitempty"` // signals
	Ignore   []int             `json:",omitempty"`
	Refuse   []refusal         `json:",omitempty"` // what seccomp answers to fdinit's calls
	Below    uint64            `json:",omitempty"`
	Path     string            // executed as Argv[0]
	Argv     []string
	Env      []string
	EnvCount int  `json:",omitempty"` // more variables
	ArgBytes int  `json:",omitempty"` // more arguments
	Listen   bool `json:",omitempty"` // socket activation of descriptor 3
}

type refusal struct{ Call, Errno int }

// box is a running container.
type box struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	done  chan struct{} // closed when it has ended
	out   output
	err   output

	tracer output // of a debugger
}

// output collects what is written. It is not a pipe that somebody must read.
type output struct {
	sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.Lock()
	defer o.Unlock()
	return o.text.String()
}

// start runs fdinit with arguments in the surroundings described.
func start(t testing.TB, s setup, args ...string) *box {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces and surroundings")
	}
	if s.Path == "" {
		s.Path = fdinit
	}
	if s.Argv == nil {
		s.Argv = append([]string{"fdinit"}, args...)
	}
	s.Env = append(s.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	s.Below = below
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	b := &box{cmd: exec.Command(probe), done: make(chan struct{})}
	b.cmd.Dir = "/"
	// The stage's runtime is not to start threads of its own accord: see there.
	b.cmd.Env = []string{"FDINIT_HOSTILE_STAGE=" + string(text), "GODEBUG=updatemaxprocs=0"}
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Setsid: true}
	// A process that was left behind may hold the pipes for a moment.
	b.cmd.WaitDelay = patience
	if b.input, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		b.cmd.Wait()
		close(b.done)
	}()
	t.Cleanup(func() {
		b.cmd.Process.Kill() // with process 1 goes the namespace
		<-b.done
	})
	return b
}

// pid is fdinit's process as the test sees it.
func (b *box) pid() int { return b.cmd.Process.Pid }

func (b *box) signal(t testing.TB, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(b.pid(), sig); err != nil {
		t.Fatalf("sending %v to process 1: %v", sig, err)
	}
}

// tell writes a line to the workload.
func (b *box) tell(t testing.TB, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(b.input, format+"\n", args...); err != nil {
		t.Fatalf("writing to the workload: %v\n%s", err, b.report())
	}
}

// report is what there is to say about a box that went wrong.
func (b *box) report() string {
	state := "running"
	if b.ended() {
		state = b.cmd.ProcessState.String()
	} else if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid())); err == nil {
		state = strings.Join(regexp.MustCompile(`(?m)^(State|Threads|S\w+Pnd|SigBlk).*`).FindAllString(string(text), -1), ", ")
	}
	return fmt.Sprintf("state: %s\nstdout: %s\nstderr: %s\ntracer: %s", state, tail(b.out.String()), tail(b.err.String()), tail(b.tracer.String()))
}

func tail(s string) string {
	const most = 4000
	if len(s) > most {
		return "… " + s[len(s)-most:]
	}
	return s
}

func (b *box) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// status waits for the end and returns what a shell would call it.
func (b *box) status(t testing.TB) int {
	t.Helper()
	select {
	case <-b.done:
	case <-time.After(patience):
		t.Fatalf("it does not end\n%s", b.report())
	}
	ws := b.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

func (b *box) wantStatus(t testing.TB, want int) {
	t.Helper()
	if got := b.status(t); got != want {
		t.Fatalf("status %d instead of %d\n%s", got, want, b.report())
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool, report func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s\n%s", what, report())
		}
		time.Sleep(pause)
	}
}

// says waits for text on the workload's standard output.
func (b *box) says(t testing.TB, text string) {
	t.Helper()
	eventually(t, text, func() bool {
		if strings.Contains(b.out.String(), text) {
			return true
		}
		if b.ended() && !strings.Contains(b.out.String(), text) {
			t.Fatalf("it ended without saying %q\n%s", text, b.report())
		}
		return false
	}, b.report)
}

// children are process 1's, as the test sees them.
func (b *box) children(t testing.TB) []int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.pid(), b.pid()))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range strings.Fields(string(text)) {
		pid, _ := strconv.Atoi(f)
		pids = append(pids, pid)
	}
	return pids
}

// workload is the workload's process: the first child that runs another program.
func (b *box) workload(t testing.TB) int {
	t.Helper()
	found := 0
	eventually(t, "a workload", func() bool {
		for _, pid := range b.children(t) {
			if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe != fdinit && found == 0 {
				found = pid
			}
		}
		return found != 0
	}, b.report)
	return found
}

// stateOf is the letter that /proc has for a process, 0 if there is none.
func stateOf(pid int) byte {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if i := bytes.LastIndex(text, []byte(") ")); i >= 0 {
		return text[i+2]
	}
	return 0
}

// cgroup makes a control group of version 1 and sets its files. It is removed when the
// test has ended.
func cgroup(t testing.TB, controller string, files map[string]string) string {
	t.Helper()
	base := filepath.Join("/sys/fs/cgroup", controller)
	if _, err := os.Stat(base); err != nil {
		t.Skipf("there is no version 1 control group %s: %v", controller, err)
	}
	dir, err := os.MkdirTemp(base, "fdinit-hostile-")
	if err != nil {
		t.Skipf("control groups cannot be made: %v", err)
	}
	t.Cleanup(func() {
		eventually(t, dir+" is empty", func() bool { return os.Remove(dir) == nil || !exists(dir) },
			func() string { return "" })
	})
	for name, value := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func decimal(n int) string { return strconv.Itoa(n) }
