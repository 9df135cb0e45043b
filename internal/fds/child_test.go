package fds

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Whatever sweeps, lowers limits or filters system calls does it in a process of its
// own: this test binary once more, which finds a scenario in its environment and never
// gets to the tests. A sweep takes away the Go runtime's descriptors, too, so that
// process reports with raw system calls and ends at once.
const (
	scenarioVariable    = "FDS_TEST_SCENARIO"
	measurementVariable = "FDS_TEST_MEASUREMENT"

	// runtimeSettings keep the runtime from opening files for the cgroup's CPU limits,
	// which it would read again while the sweep is on, and from signals to itself.
	runtimeSettings = "GODEBUG=containermaxprocs=0,updatemaxprocs=0,asyncpreemptoff=1"
)

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(scenarioVariable); ok {
		inChild(text, (*scenario).run)
	}
	if text, ok := os.LookupEnv(measurementVariable); ok {
		inChild(text, (*measurement).run)
	}
	keepForUs()
	os.Exit(m.Run())
}

// keepForUs keeps what the tests themselves were started with from the children, who
// count what they inherit. Shells and make pass everything on.
func keepForUs() {
	for fd := First; fd < 1<<16; fd++ {
		unix.CloseOnExec(fd)
	}
}

// inChild runs what the environment asks for and writes what comes of it.
func inChild[T, R any](text string, run func(*T) R) {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	var task T
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		panic(err)
	}
	out, err := json.Marshal(run(&task))
	if err != nil {
		panic(err)
	}
	for len(out) > 0 {
		n, err := unix.Write(1, out)
		if err != nil {
			sys.Exit(1)
		}
		out = out[n:]
	}
	sys.Exit(0)
}

// inherit is what startChild passes on: /dev/null, so many times, from 3 up.
type inherit int

// startChild runs a task in a child and fills in the result.
func startChild(t testing.TB, variable string, task, result any, n inherit) {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // which ends what hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = []string{variable + "=" + string(text), runtimeSettings}
	// Regular files, since with a pipe the runtime might open an epoll descriptor.
	out, stderr := create(t, "stdout"), create(t, "stderr")
	cmd.Stdout, cmd.Stderr = out, stderr
	if n > 0 {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		for range n {
			cmd.ExtraFiles = append(cmd.ExtraFiles, null)
		}
	}
	err = cmd.Run()
	if err != nil {
		words, _ := os.ReadFile(stderr.Name())
		t.Fatalf("%s: %v\n%s", text, err, words)
	}
	answer, err := os.ReadFile(out.Name())
	if err == nil {
		err = json.Unmarshal(answer, result)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, answer)
	}
}

func create(t testing.TB, name string) *os.File {
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// hardLimit is the highest number of descriptors that a child can have.
func hardLimit(t testing.TB) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Max, Max))
}

// scenario is what a child opens, what is done to it, and how it is to sweep.
type scenario struct {
	At    []int // /dev/null at these numbers
	Paths []int // O_PATH descriptors of a directory at these numbers
	Kinds bool  // one of each kind of file
	Many  int   // /dev/null so many times
	Soft  *uint64
	Full  bool // /dev/null until there is no room under the soft limit

	Root   string      // the directory to chroot to
	Filter map[int]int // system calls that fail, and their errno
	Env    []string    // for Activation, SELF being the process's own number
	Keep   string      // for ParseKeep
	With   string      // the strategy, or "sweep" for the first that works
	Pass   inherit     // from the parent
}

// outcome is what came of a scenario.
type outcome struct {
	Skip          string // why there is none
	Before, After []int  // the descriptors that were open from 3 up
	Activated     int
	Kept          []Range
	Strategy      string
	Closed, Errno int
	Mallocs       uint64 // by the strategy
}

func (s *scenario) run() (o outcome) {
	highest := raiseSoftLimit()
	null := must(unix.Open(os.DevNull, unix.O_RDWR, 0))
	dir := must(unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0))
	// Out of the way of the numbers that are asked for.
	null, dir = moveUp(null, highest-1), moveUp(dir, highest-2)
	for _, fd := range s.At {
		check(unix.Dup3(null, fd, 0))
	}
	for _, fd := range s.Paths {
		check(unix.Dup3(dir, fd, 0))
	}
	if s.Kinds {
		openKinds()
	}
	for range s.Many {
		must(unix.Dup(null))
	}
	if s.Soft != nil {
		setSoftLimit(*s.Soft)
	}
	for s.Full {
		if _, err := unix.Dup(null); err == unix.EMFILE {
			break
		} else {
			check(err)
		}
	}
	// These two go last, since a full table has no room for others.
	unix.Close(null)
	unix.Close(dir)

	var keep Set
	if s.Keep != "" {
		if problem, from, to := ParseKeep(s.Keep, &keep); problem != 0 {
			panic(s.Keep[from:to] + " " + problem.String())
		}
	}
	if s.Root != "" {
		if err := unix.Chroot(s.Root); err != nil {
			return outcome{Skip: "chroot: " + err.Error()}
		}
		check(unix.Chdir("/"))
	}
	if len(s.Filter) > 0 {
		if err := refuse(s.Filter); err != nil {
			return outcome{Skip: "seccomp: " + err.Error()}
		}
	}
	if len(s.Env) > 0 {
		env := make([]string, len(s.Env))
		for i, text := range s.Env {
			env[i] = strings.ReplaceAll(text, "SELF", strconv.Itoa(os.Getpid()))
		}
		vector := sys.VectorOf(env...)
		o.Activated = Activation(vector, os.Getpid(), &keep)
		o.Kept = ranges(&keep)
	}

	end := s.end(highest)
	o.Before = openDescriptors(end)
	o.Mallocs = mallocs(func() { s.sweep(&keep, &o) })
	for range 5 {
		if o.Mallocs > 0 { // by the runtime, perhaps, which has threads of its own
			var again outcome
			o.Mallocs = mallocs(func() { s.sweep(&keep, &again) })
		}
	}
	o.After = openDescriptors(end)
	return o
}

func mallocs(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

func (s *scenario) sweep(keep *Set, o *outcome) {
	switch s.With {
	case "range":
		o.Strategy, o.Closed, o.Errno = "range", Uncounted, int(SweepByRange(keep))
	case "proc":
		closed, errno := SweepByProc(keep)
		o.Strategy, o.Closed, o.Errno = "proc", closed, int(errno)
	case "poll":
		o.Strategy, o.Closed = "poll", SweepByPolling(keep)
	case "sweep":
		report := Sweep(keep)
		o.Strategy, o.Closed = report.Strategy.String(), report.Closed
	}
}

// end is where there is nothing open any more. Shells leave descriptors such as 251 open.
func (s *scenario) end(highest int) int {
	end := 1024 + s.Many + int(s.Pass)
	for _, fd := range append(slices.Clone(s.At), s.Paths...) {
		end = max(end, fd+100)
	}
	if s.Full {
		end = max(end, int(*s.Soft))
	}
	return min(end, highest)
}

// openKinds opens one of each kind of file that programs leak.
func openKinds() {
	must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))
	must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0))
	var pair [2]int
	check(unix.Pipe2(pair[:], 0))
	check(unix.Pipe2(pair[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	must(unix.EpollCreate1(0))
	must(unix.Eventfd(0, 0))
	must(unix.MemfdCreate("leak", 0))
	must(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0))
	must(unix.Signalfd(-1, &unix.Sigset_t{}, 0))
	must(unix.InotifyInit1(0))
	must(unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY, 0))
	must(unix.Open("/", unix.O_PATH, 0))
	name := filepath.Join(os.TempDir(), fmt.Sprint("fds-deleted-", os.Getpid()))
	must(unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600))
	check(unix.Unlink(name))
}

func must(n int, err error) int {
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func moveUp(fd, to int) int {
	check(unix.Dup3(fd, to, 0))
	unix.Close(fd)
	return to
}

// raiseSoftLimit makes room, and returns how much of it is looked at.
func raiseSoftLimit() int {
	var limit sys.Rlimit
	if errno := sys.GetRlimit(unix.RLIMIT_NOFILE, &limit); errno != 0 {
		panic(errno)
	}
	setSoftLimit(limit.Hard)
	return int(min(limit.Hard, 1<<16))
}

// setSoftLimit goes around package syscall, which keeps a copy.
func setSoftLimit(soft uint64) {
	var limit sys.Rlimit
	if errno := sys.GetRlimit(unix.RLIMIT_NOFILE, &limit); errno != 0 {
		panic(errno)
	}
	limit.Soft = soft
	if errno := sys.SetRlimit(unix.RLIMIT_NOFILE, &limit); errno != 0 {
		panic(errno)
	}
}

// openDescriptors asks for each descriptor, so that it relies on nothing that a
// strategy relies on.
func openDescriptors(end int) []int {
	open := []int{}
	for fd := First; fd < end; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			open = append(open, fd)
		}
	}
	return open
}

// refuse makes system calls of this thread fail.
func refuse(calls map[int]int) error {
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the call's number
	for call, errno := range calls {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	return nil
}

// play runs a scenario in a child.
func play(t *testing.T, s scenario) outcome {
	t.Helper()
	var o outcome
	startChild(t, scenarioVariable, s, &o, s.Pass)
	if o.Skip != "" {
		t.Skip("cannot be made here: ", o.Skip)
	}
	return o
}
