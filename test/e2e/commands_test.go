package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// A script is what a testscript's commands share.
type script struct {
	t         testscript.T
	container *container // the running one, or nil
	last      string     // how the last one ended
}

type scriptKey struct{}

func scriptOf(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

type command = func(ts *testscript.TestScript, neg bool, args []string)

var commands = map[string]command{
	"launch":         launch,
	"exits":          exits,
	"start":          start,
	"ended":          simple(0, (*script).cmdEnded),
	"end":            simple(0, (*script).cmdEnd),
	"refused":        refused,
	"swept":          swept,
	"fds":            simple(2, (*script).cmdFDs),
	"fd":             simple(3, (*script).cmdFD),
	"status":         simple(3, (*script).cmdStatus),
	"limit":          simple(3, (*script).cmdLimit),
	"variable":       variable,
	"cwd":            simple(2, (*script).cmdCwd),
	"state":          simple(1, (*script).cmdState),
	"idle":           simple(2, (*script).cmdIdle),
	"children":       simple(2, (*script).cmdChildren),
	"zombies":        simple(2, (*script).cmdZombies),
	"parent":         simple(2, (*script).cmdParent),
	"gone":           simple(1, (*script).cmdGone),
	"group":          group,
	"stopped":        simple(1, (*script).cmdStopped),
	"running":        simple(1, (*script).cmdRunning),
	"names-workload": simple(0, (*script).cmdNamesWorkload),
	"await":          simple(1, (*script).cmdAwait),
	"logged":         simple(1, (*script).cmdLogged),
	"signal":         simple(-1, (*script).cmdSignal),
	"received":       simple(1, (*script).cmdReceived),
	"relay":          simple(1, (*script).cmdRelay),
	"burst":          simple(2, (*script).cmdBurst),
	"type":           simple(1, (*script).cmdType),
	"screen":         simple(1, (*script).cmdScreen),
	"foreground":     simple(1, (*script).cmdForeground),
	"hangup":         simple(0, (*script).cmdHangup),
	"executable":     executable,
	"busy":           busy,
}

// simple makes a command of a function that cannot be negated.
func simple(n int, f func(s *script, ts *testscript.TestScript, args []string) error) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("cannot be negated")
		}
		if n >= 0 && len(args) != n {
			ts.Fatalf("wants %d words", n)
		}
		s := scriptOf(ts)
		if err := f(s, ts, args); err != nil {
			if c := s.container; c != nil {
				out, errOut := c.output()
				ts.Logf("[stdout so far]\n%s[stderr so far]\n%s", tail(out), tail(errOut))
			}
			ts.Fatalf("%v", err)
		}
	}
}

func tail(s string) string {
	const enough = 2000
	if len(s) > enough {
		return "…" + s[len(s)-enough:]
	}
	return s
}

// must ends the script: with a skip if the machine is to blame.
func (s *script) must(ts *testscript.TestScript, err error) {
	if errors.Is(err, errSkip) {
		s.t.Skip(err)
	}
	ts.Check(err)
}

func launch(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if i := slices.Index(args, "-each"); i >= 0 && i+1 < len(args) {
		values, err := parseNumbers(args[i+1])
		ts.Check(err)
		s.must(ts, launchEach(ts, values, slices.Delete(slices.Clone(args), i, i+2)))
		return
	}
	sp, err := parseSpec(args)
	ts.Check(err)
	c, err := runContainer(sp, ts.MkAbs("."))
	s.must(ts, err)
	s.last = c.status
	out, errOut := c.output()
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errOut)
	switch {
	case sp.Exits != "" && c.status != sp.Exits:
		ts.Fatalf("ended with %s, not %s\n%s%s", c.status, sp.Exits, tail(out), tail(errOut))
	case sp.Exits == "" && (c.status == "0") == neg:
		ts.Fatalf("ended with %s\n%s%s", c.status, tail(out), tail(errOut))
	}
}

func runContainer(sp *spec, dir string) (*container, error) {
	c, err := startContainer(sp, dir)
	if err != nil {
		return nil, err
	}
	if err := c.wait(); err != nil {
		out, errOut := c.output()
		return nil, errors.Join(err, c.kill(), fmt.Errorf("%s%s", tail(out), tail(errOut)))
	}
	return c, nil
}

// launchEach runs the command once for every value, a few at a time.
func launchEach(ts *testscript.TestScript, values []int, args []string) error {
	dir := ts.MkAbs(".")
	var group sync.WaitGroup
	slots := make(chan struct{}, 4)
	problems := make([]error, len(values))
	for i, n := range values {
		replaced := slices.Clone(args)
		for j := range replaced {
			replaced[j] = strings.ReplaceAll(replaced[j], "{}", strconv.Itoa(n))
		}
		sp, err := parseSpec(replaced)
		if err != nil {
			return err
		}
		want := sp.Exits
		if number, isSum := strings.CutPrefix(want, "128+"); isSum {
			sum, err := strconv.Atoi(number)
			if err != nil {
				return err
			}
			want = strconv.Itoa(128 + sum)
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c, err := runContainer(sp, dir)
			if err == nil && c.status != want {
				out, errOut := c.output()
				err = fmt.Errorf("ended with %s, not %s\n%s%s", c.status, want, tail(out), tail(errOut))
			}
			if err != nil {
				problems[i] = fmt.Errorf("%d: %w", n, err)
			}
		})
	}
	group.Wait()
	return errors.Join(problems...)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: exits STATUS")
	}
	if last := scriptOf(ts).last; (last == args[0]) == neg {
		ts.Fatalf("ended with %s", last)
	}
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || s.container != nil {
		ts.Fatalf("one at a time, and it must start")
	}
	sp, err := parseSpec(args)
	ts.Check(err)
	c, err := startContainer(sp, ts.MkAbs("."))
	s.must(ts, err)
	s.container = c
}

func (s *script) running() (*container, error) {
	if s.container == nil {
		return nil, errors.New("nothing was started")
	}
	return s.container, nil
}

func (s *script) find(who string) (int, error) {
	c, err := s.running()
	if err != nil {
		return 0, err
	}
	return c.process(who)
}

func (s *script) cmdEnd(ts *testscript.TestScript, _ []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	s.container = nil
	return c.kill()
}

func (s *script) cmdEnded(ts *testscript.TestScript, _ []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	if err := c.wait(); err != nil {
		return err
	}
	s.container, s.last = nil, c.status
	c.kill()
	out, errOut := c.output()
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errOut)
	return nil
}

func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: refused VALUE FLAGS COMMAND...")
	}
	s := scriptOf(ts)
	value, args := args[0], args[1:]
	sp, err := parseSpec(args)
	ts.Check(err)
	c, err := runContainer(sp, ts.MkAbs("."))
	s.must(ts, err)
	s.last = c.status
	out, errOut := c.output()
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errOut)
	if c.status != "125" {
		ts.Fatalf("ended with %s, not 125\n%s%s", c.status, out, errOut)
	}
	if out != "" || !strings.HasPrefix(errOut, "fdinit: ") {
		ts.Fatalf("a message for stderr, beginning with fdinit:, was expected\n[stdout]\n%s[stderr]\n%s", out, errOut)
	}
	if quoted := strconv.Quote(value); !strings.Contains(errOut, quoted) && !strings.Contains(errOut, "'"+value+"'") {
		ts.Fatalf("the message does not quote %s:\n%s", quoted, errOut)
	}
	if _, err := os.Stat(ts.MkAbs("did-run")); err == nil {
		ts.Fatalf("the workload was run nevertheless")
	}
}

// swept compares a bare command's descriptors with those under fdinit.
func swept(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("cannot be negated")
	}
	s := scriptOf(ts)
	for _, command := range [][]string{{"probe", "wait"}, {"fdinit", "probe", "wait"}} {
		bare := len(command) == 2
		sp, err := parseSpec(slices.Concat(args, command))
		ts.Check(err)
		want := append([]int{0, 1, 2}, sp.leaked()...)
		c, err := startContainer(sp, ts.MkAbs("."))
		s.must(ts, err)
		s.container = c
		if bare {
			err = c.sameFDs("init", want)
		} else if err = c.sameFDs("workload", []int{0, 1, 2}); err == nil {
			err = c.sameFDs("init", []int{0, 1, 2})
		}
		if err != nil {
			_, errOut := c.output()
			ts.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, errOut)
		}
		ts.Check(s.cmdEnd(ts, nil))
	}
}

func openFDs(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		fds = append(fds, fd)
	}
	slices.Sort(fds)
	return fds, nil
}

// sameFDs waits, since PID 1 drops what it kept for the workload only when the
// workload has been executed, and a dynamic workload opens its libraries first.
func (c *container) sameFDs(who string, want []int) error {
	pid, err := c.process(who)
	if err != nil {
		return err
	}
	return c.eventually(func() error {
		got, err := openFDs(pid)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s has %s open, not %s", who, formatNumbers(got), formatNumbers(want))
		}
		return nil
	})
}

func (s *script) cmdFDs(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	want, err := parseNumbers(args[1])
	if err != nil {
		return err
	}
	return c.sameFDs(args[0], want)
}

func (s *script) cmdFD(ts *testscript.TestScript, args []string) error {
	return s.link(args[0], "fd/"+args[1], args[2])
}

func (s *script) cmdCwd(ts *testscript.TestScript, args []string) error {
	return s.link(args[0], "cwd", args[1])
}

func (s *script) link(who, name, pattern string) error {
	pid, err := s.find(who)
	if err != nil {
		return err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	return s.container.eventually(func() error {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			return err
		}
		if !re.MatchString(target) {
			return fmt.Errorf("%s of %s is %s", name, who, target)
		}
		return nil
	})
}

func (s *script) cmdStatus(ts *testscript.TestScript, args []string) error {
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	return s.container.eventually(func() error {
		value, err := statusField(pid, args[1])
		if err != nil {
			return err
		}
		return matches(args[2], value)
	})
}

func matches(pattern, value string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if !re.MatchString(value) {
		return fmt.Errorf("it is %q", value)
	}
	return nil
}

func (s *script) cmdLimit(ts *testscript.TestScript, args []string) error {
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, resources[args[1]].title+" "); ok {
			f := strings.Fields(rest)
			if got := f[0] + ":" + f[1]; got != args[2] {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		}
	}
	return fmt.Errorf("no limit %s", args[1])
}

// environ is somebody's environment. It is waited for, since while it is being executed
// a program has none.
func (s *script) environ(who string) (pid int, env []string, err error) {
	c, err := s.running()
	if err != nil {
		return 0, nil, err
	}
	err = c.eventually(func() (err error) {
		if pid, err = s.find(who); err != nil {
			return err
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && len(text) == 0 {
			err = errors.New("it has no environment")
		}
		env = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		return err
	})
	return pid, env, err
}

func lookup(env []string, name string) (string, bool) {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func variable(ts *testscript.TestScript, neg bool, args []string) {
	_, env, err := scriptOf(ts).environ(args[0])
	ts.Check(err)
	value, set := lookup(env, args[1])
	switch {
	case neg && set:
		ts.Fatalf("%s is set to %q", args[1], value)
	case !neg && !set:
		ts.Fatalf("%s is not set", args[1])
	case !neg:
		ts.Check(matches(args[2], value))
	}
}

// atRest tells whether a program that only waits has come to do so. While it is being
// executed it has no environment yet, and no arguments.
func atRest(pid int) error {
	p, err := readProcess(pid)
	if err != nil {
		return err
	}
	if line := commandLine(pid); p.state != 'S' || line == "" {
		return fmt.Errorf("it is in state %c, as %q", p.state, line)
	}
	return nil
}

// cmdState prints what a program inherits and cannot have changed itself, if it is
// a simple one such as sleep. What identifies the process is left out.
func (s *script) cmdState(ts *testscript.TestScript, args []string) error {
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	if err := s.container.eventually(func() error { return atRest(pid) }); err != nil {
		return err
	}
	out := ts.Stdout()
	for _, field := range []string{
		"Umask", "Uid", "Gid", "Groups", "SigPnd", "ShdPnd", "SigBlk", "SigIgn",
		"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Cpus_allowed_list",
	} {
		value, err := statusField(pid, field)
		if err != nil {
			value = "unknown" // to old kernels
		}
		fmt.Fprintf(out, "%s: %s\n", field, value)
	}
	for _, link := range []string{"cwd", "root"} {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, link))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", link, target)
	}
	for _, file := range []string{"environ", "limits", "oom_score_adj", "coredump_filter", "personality", "cgroup"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s:\n%s\n", file, strings.ReplaceAll(string(text), "\x00", "\n"))
	}
	return nil
}

func (s *script) cmdIdle(ts *testscript.TestScript, args []string) error {
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	count := func() (string, error) {
		a, err := statusField(pid, "voluntary_ctxt_switches")
		if err != nil {
			return "", err
		}
		b, err := statusField(pid, "nonvoluntary_ctxt_switches")
		return a + " voluntary and " + b + " other switches", err
	}
	// It may still be on its way into the wait, which its state does not tell: that is set
	// before it goes to sleep. Whatever wakes it up regularly does so every time.
	const times = 3
	for i := 1; ; i++ {
		if err := s.container.eventually(func() error { return atRest(pid) }); err != nil {
			return err
		}
		before, err := count()
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(seconds) * time.Second)
		after, err := count()
		if err != nil {
			return err
		}
		if before == after {
			return nil
		}
		if i == times {
			return fmt.Errorf("it was scheduled: %s, later %s", before, after)
		}
	}
}

// countChildren waits until a process has n children, or n dead ones.
func (s *script) countChildren(who, number string, dead bool) error {
	pid, err := s.find(who)
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	return s.container.eventually(func() error {
		n := 0
		for _, p := range allProcesses() {
			if p.parent == pid && (!dead || p.state == 'Z') {
				n++
			}
		}
		if n != want {
			return fmt.Errorf("%s has %d", who, n)
		}
		return nil
	})
}

func (s *script) cmdChildren(ts *testscript.TestScript, args []string) error {
	return s.countChildren(args[0], args[1], false)
}

func (s *script) cmdZombies(ts *testscript.TestScript, args []string) error {
	return s.countChildren(args[0], args[1], true)
}

func (s *script) cmdParent(ts *testscript.TestScript, args []string) error {
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	want, err := s.find(args[1])
	if err != nil {
		return err
	}
	return s.container.eventually(func() error {
		p, err := readProcess(pid)
		if err == nil && p.parent != want {
			err = fmt.Errorf("the parent is %d, not %d", p.parent, want)
		}
		return err
	})
}

func (s *script) cmdGone(ts *testscript.TestScript, args []string) error {
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	return s.container.eventually(func() error {
		if p, err := readProcess(pid); err == nil {
			return fmt.Errorf("%s is there, in state %c", args[0], p.state)
		}
		return nil
	})
}

func (s *script) cmdStopped(ts *testscript.TestScript, args []string) error {
	return s.inState(args[0], true)
}

func (s *script) cmdRunning(ts *testscript.TestScript, args []string) error {
	return s.inState(args[0], false)
}

// inState waits until a process is stopped, by job control, or is not.
func (s *script) inState(who string, stopped bool) error {
	pid, err := s.find(who)
	if err != nil {
		return err
	}
	return s.container.eventually(func() error {
		p, err := readProcess(pid)
		if err == nil && (p.state == 'T') != stopped {
			err = fmt.Errorf("%s is in state %c", who, p.state)
		}
		return err
	})
}

func group(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	a, err := s.find(args[0])
	ts.Check(err)
	b, err := s.find(args[1])
	ts.Check(err)
	p, err := readProcess(a)
	ts.Check(err)
	q, err := readProcess(b)
	ts.Check(err)
	if (p.group == q.group) == neg {
		ts.Fatalf("the groups are %d and %d", p.group, q.group)
	}
}

func (s *script) cmdNamesWorkload(ts *testscript.TestScript, _ []string) error {
	pid, env, err := s.environ("workload")
	if err != nil {
		return err
	}
	// The last number is the one in its own PID namespace.
	numbers, err := statusField(pid, "NSpid")
	if err != nil {
		return err
	}
	f := strings.Fields(numbers)
	some := false
	for _, name := range []string{"LISTEN_PID", "WATCHDOG_PID"} {
		got, set := lookup(env, name)
		if set && got != f[len(f)-1] {
			return fmt.Errorf("%s is %q, the workload's number %s", name, got, f[len(f)-1])
		}
		some = some || set
	}
	if !some {
		return errors.New("there is no LISTEN_PID and no WATCHDOG_PID")
	}
	if got, set := lookup(env, "LISTEN_PIDFDID"); set {
		id, err := pidfdID(pid)
		if err != nil {
			return err
		}
		if got != id {
			return fmt.Errorf("LISTEN_PIDFDID is %q, the workload's is %s", got, id)
		}
	}
	return nil
}

func (s *script) cmdAwait(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	re, err := regexp.Compile("(?m)" + args[0])
	if err != nil {
		return err
	}
	return c.eventually(func() error {
		out, _ := c.output()
		at := re.FindStringIndex(out[c.cursor:])
		if at == nil {
			return fmt.Errorf("no %q in the output: %q", args[0], tail(out[c.cursor:]))
		}
		c.cursor += at[1]
		return nil
	})
}

// send sends a signal, with a value if there is one, as sigqueue(3) would.
func send(pid, sig int, value *int32) error {
	if value == nil {
		return unix.Kill(pid, unix.Signal(sig))
	}
	// siginfo_t on 64-bit architectures: signo, errno, code, padding, pid, uid, value.
	info := [32]int32{0: int32(sig), 2: -1 /* SI_QUEUE */, 4: int32(os.Getpid()), 5: int32(os.Getuid()), 6: *value}
	_, _, errno := unix.RawSyscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig), uintptr(unsafe.Pointer(&info[0])))
	if errno != 0 {
		return errno
	}
	return nil
}

func (s *script) cmdSignal(ts *testscript.TestScript, args []string) error {
	var value *int32
	if len(args) == 4 && args[0] == "-value" {
		n, err := strconv.ParseInt(args[1], 0, 32)
		if err != nil {
			return err
		}
		v := int32(n)
		value, args = &v, args[2:]
	}
	if len(args) != 2 {
		return errors.New("usage: signal [-value N] WHO LIST")
	}
	pid, err := s.find(args[0])
	if err != nil {
		return err
	}
	signals, err := parseSignals(args[1])
	if err != nil {
		return err
	}
	for _, n := range signals {
		if err := send(pid, n, value); err != nil {
			return err
		}
	}
	return nil
}

var recorded = regexp.MustCompile(`(?m)^signal=(\d+) .*\n`)

// records are the signals that the workload printed since the last look, in order.
func (c *container) records() (signals []int, end int) {
	out, _ := c.output()
	end = c.cursor
	for _, m := range recorded.FindAllStringSubmatchIndex(out[c.cursor:], -1) {
		n, _ := strconv.Atoi(out[c.cursor+m[2] : c.cursor+m[3]])
		signals = append(signals, n)
		end = c.cursor + m[1]
	}
	return signals, end
}

// received awaits exactly these records, in whatever order.
func (c *container) received(want []int) error {
	want = slices.Sorted(slices.Values(want))
	return c.eventually(func() error {
		got, end := c.records()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("received %q, not %q", signalNames(got), signalNames(want))
		}
		c.cursor = end
		return nil
	})
}

func (s *script) cmdReceived(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	want, err := parseSignals(args[0])
	if err != nil {
		return err
	}
	return c.received(want)
}

func (s *script) cmdRelay(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	signals, err := parseSignals(args[0])
	if err != nil {
		return err
	}
	for _, n := range signals {
		if err := send(c.pid(), n, nil); err != nil {
			return err
		}
		// Whatever else comes is found at the next one's turn, or at the end's.
		if err := c.received([]int{n}); err != nil {
			return fmt.Errorf("after %s: %w", signalName(n), err)
		}
	}
	return nil
}

// cmdBurst sends many signals as fast as it can. Standard signals are not queued,
// so one of a kind may stand for many; real-time ones are, so none may be missing.
func (s *script) cmdBurst(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	total, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	signals, err := parseSignals(args[1])
	if err != nil {
		return err
	}
	// With fewer queue entries than signals the kernel itself drops the rest, those of other
	// tests, too: entries are counted per user. Each signal takes two, one after the other.
	var queue unix.Rlimit
	if err := unix.Prlimit(c.pid(), unix.RLIMIT_SIGPENDING, nil, &queue); err != nil {
		return err
	}
	queued := queue.Cur > uint64(4*total)
	atOnce := total
	if !queued {
		atOnce = max(int(queue.Cur)/8, 1)
	}
	// The kernel hands out pending signals in the order of their numbers, to fdinit and
	// to the workload: when this one is through, so are all the others.
	const last = 64
	sent := map[int]int{}
	for i := range total {
		n := signals[i%len(signals)]
		if err := unix.Kill(c.pid(), unix.Signal(n)); err != nil {
			return fmt.Errorf("after %d signals: %w", i, err)
		}
		sent[n]++
		if (i+1)%atOnce != 0 && i+1 < total {
			continue
		}
		value := int32(i + 1)
		if err := c.eventually(func() error { return send(c.pid(), last, &value) }); err != nil {
			return err
		}
		sent[last]++
		mark := fmt.Sprintf("signal=%d code=-1 value=%d\n", last, value)
		if err := c.eventually(func() error {
			if out, _ := c.output(); !strings.Contains(out[c.cursor:], mark) {
				return errors.New("the last signal does not arrive")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	got := map[int]int{}
	records, end := c.records()
	c.cursor = end
	for _, n := range records {
		got[n]++
	}
	for n, times := range sent {
		if got[n] == 0 || got[n] > times || n >= 34 && queued && got[n] != times {
			err = errors.Join(err, fmt.Errorf("%s was sent %d times and arrived %d times", signalName(n), times, got[n]))
		}
	}
	if len(got) != len(sent) {
		err = errors.Join(err, errors.New("others arrived that were not sent"))
	}
	return err
}

func (s *script) cmdType(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	text, err := strconv.Unquote(`"` + args[0] + `"`)
	if err != nil {
		return fmt.Errorf("%q: %w", args[0], err)
	}
	_, err = c.terminal.WriteString(text)
	return err
}

func (s *script) cmdScreen(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	re, err := regexp.Compile(args[0])
	if err != nil {
		return err
	}
	return c.eventually(func() error {
		c.screen.Lock()
		defer c.screen.Unlock()
		at := re.FindIndex(c.screen.text[c.screen.cursor:])
		if at == nil {
			return fmt.Errorf("no %q on the screen: %q", args[0], c.screen.text[c.screen.cursor:])
		}
		c.screen.cursor += at[1]
		return nil
	})
}

func (s *script) cmdForeground(ts *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	// Not one of the container's generations: a command line.
	want, _ := c.process(args[0])
	return c.eventually(func() error {
		p, err := readProcess(c.pid())
		if err != nil {
			return err
		}
		leader := leaderOf(p.foreground)
		line := commandLine(leader)
		if want == 0 && line != args[0] || want != 0 && p.foreground != want {
			return fmt.Errorf("in the foreground is group %d, led by %q", p.foreground, line)
		}
		// It gets the terminal before it is continued, and that cancels a ^Z which came before.
		if q, err := readProcess(leader); err == nil && q.state == 'T' {
			return fmt.Errorf("%q is in the foreground, but stopped", line)
		}
		return nil
	})
}

// leaderOf is a process group's leader or, when that has ended, as a pipeline's first
// process may have, the oldest of the others.
func leaderOf(group int) int {
	if p, err := readProcess(group); err == nil && p.state != 'Z' {
		return group
	}
	var oldest aProcess
	for _, p := range allProcesses() {
		if p.group == group && p.state != 'Z' && (oldest.pid == 0 || p.olderThan(oldest)) {
			oldest = p
		}
	}
	return oldest.pid
}

// commandLine is what a process was started as.
func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimRight(strings.ReplaceAll(string(text), "\x00", " "), " ")
}

func (s *script) cmdHangup(ts *testscript.TestScript, _ []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	return c.terminal.Close()
}

// busy FILE keeps it open for writing until the script ends.
func busy(ts *testscript.TestScript, neg bool, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	ts.Defer(func() { f.Close() })
}

// executable FILE [machine N | loader PATH] makes a small ELF program of another
// architecture, or one that asks for a loader.
func executable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: executable FILE machine N | executable FILE loader PATH")
	}
	machine, loader := machineHere(ts), ""
	switch args[1] {
	case "machine":
		n, err := strconv.Atoi(args[2])
		ts.Check(err)
		machine = uint16(n)
	case "loader":
		loader = args[2]
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	starting.Lock() // see there
	err := os.WriteFile(path, elfFile(machine, loader), 0o755)
	starting.Unlock()
	ts.Check(err)
}
