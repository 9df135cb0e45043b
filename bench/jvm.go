package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// JVMReport is gcj's measurement of 2007 on a Java virtual machine of today.
type JVMReport struct {
	Command string   `json:"command"`
	Date    string   `json:"date"`
	Machine Machine  `json:"machine"`
	Init    string   `json:"init"`
	Java    string   `json:"java"`
	Options []string `json:"options"`
	Files   int      `json:"openFiles"`
	Block   int      `json:"executionsInABlock"`
	Starts  int      `json:"starts"`
	Rows    []JVMRow `json:"rows"`
	Skipped []string `json:"skipped,omitempty"`
}

// JVMRow is one virtual machine: its limit, whether it has /proc, and what
// stands in front of it.
type JVMRow struct {
	Limit int    `json:"limit"`
	Proc  bool   `json:"proc"`
	Front string `json:"front"`
	// Seen is the limit that the virtual machine sees, after raising its own.
	Seen       int     `json:"limitSeen"`
	Executions int     `json:"executions"`
	Min        float64 `json:"minMicroseconds"`
	Median     float64 `json:"medianMicroseconds"`
	Total      float64 `json:"totalSeconds"`
	// Ratio is to the same machine with nothing in front.
	Ratio *Ratio `json:"ratioToAlone,omitempty"`
	Calls *Calls `json:"callsOfOneExecution,omitempty"`
}

// Calls is what the child of the virtual machine does between its creation and
// the execution of the command.
type Calls struct {
	// Helper is the program that it goes through, if any.
	Helper string `json:"helper,omitempty"`
	// Walked says whether it could list /proc/self/fd.
	Walked bool `json:"walked"`
	Closed int  `json:"closed"`
	// Vain closes found nothing to close.
	Vain int `json:"closedInVain"`
	// Marks are descriptors marked close-on-exec, ranges are close_range(2).
	Marks  int `json:"marked"`
	Ranges int `json:"closeRange"`
}

// jvmSizes says how often each machine executes the command, and from how many
// starts: a virtual machine keeps for life what luck it had with its memory, so
// that one start is one sample, however often it executes.
type jvmSizes struct {
	executions, starts int
	limits             []int
}

var (
	fullJVM  = jvmSizes{executions: 10_000, starts: 10, limits: []int{100, 1024, 10240, 20000}}
	quickJVM = jvmSizes{executions: 500, starts: 5, limits: fullJVM.limits}
)

const (
	jvmFiles = 50
	// jvmBlock is how many executions follow one another before another virtual
	// machine has its turn.
	jvmBlock = 20
	// jvmCap is the limit that fdinit gives where one is asked of it.
	jvmCap = 1024
)

// fronts are what may stand in front of the virtual machine. Hotspot raises its
// soft limit to the hard one, so that only a hard limit reaches it.
const (
	aloneFront  = "nothing"
	fdinitFront = "fdinit"
)

var cappedFront = fmt.Sprintf("fdinit --nofile=%d:%d", jvmCap, jvmCap)

// jvmOptions keep many of them on one machine small, and their threads few.
var jvmOptions = []string{"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// jvmTools are what the measurement needs, by their packages.
var jvmTools = []struct{ tool, apt string }{
	{"java", "default-jdk-headless"},
	{"javac", "default-jdk-headless"},
}

type jvmBench struct {
	java, classes, fdinit, command string
	report                         *JVMReport
}

// reportJVM measures and writes, or prints when there is no directory. Without
// a Java development kit there is nothing to report.
func reportJVM(dir, command, out, fdinit string, size jvmSizes) error {
	found := map[string]string{}
	for _, t := range jvmTools {
		path, err := exec.LookPath(t.tool)
		if err != nil {
			return skip(fmt.Sprintf("jvm: %s is not installed (apt: %s)", t.tool, t.apt))
		}
		// Where it is linked to: that is how it finds its libraries without /proc.
		if found[t.tool], err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	b := &jvmBench{java: found["java"], classes: filepath.Join(dir, "classes"), command: "/bin/true"}
	var err error
	if b.fdinit, err = private(dir, subjectName, fdinit); err != nil {
		return fmt.Errorf("fdinit is needed: %w", err)
	}
	javac := exec.Command(found["javac"], "-d", b.classes, filepath.Join("jvm", "Exec.java"))
	if out, err := javac.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling jvm/Exec.java: %w\n%s", err, out)
	}
	b.report = &JVMReport{
		Command: command,
		Date:    time.Now().UTC().Format(time.DateOnly),
		Machine: thisMachine(),
		Init:    version(contender{name: subjectName, path: b.fdinit}),
		Options: jvmOptions,
		Files:   jvmFiles,
		Block:   jvmBlock,
		Starts:  size.starts,
	}
	if err := b.measure(size); err != nil {
		return err
	}
	if out == "" {
		fmt.Print(b.report.markdown(false))
		return nil
	}
	if err := writeReport(out, "jvm", b.report, b.report.markdown(true)); err != nil {
		return err
	}
	return b.report.chart(out)
}

// skip says what is not measured and why, or fails where that is not allowed.
func skip(why string) error {
	if os.Getenv("FDINIT_NO_SKIP") == "1" {
		return errors.New(why)
	}
	progress("1 skipped: %s", why)
	return nil
}

func (b *jvmBench) measure(size jvmSizes) error {
	var hard unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &hard); err != nil {
		return err
	}
	for _, proc := range []bool{true, false} {
		executions := size.executions
		if !proc {
			if err := b.withoutProc(); err != nil {
				if err := skip(fmt.Sprintf("jvm: the part without /proc: %v", err)); err != nil {
					return err
				}
				b.report.Skipped = append(b.report.Skipped, fmt.Sprintf("the part without `/proc` (%v)", err))
				continue
			}
			// Each is several times slower, and the effect several times larger.
			executions = max(executions/5, size.starts)
		}
		var rows []*JVMRow
		for _, limit := range size.limits {
			if uint64(limit) > hard.Max {
				why := fmt.Sprintf("limit %d (the hard limit here is %d)", limit, hard.Max)
				if err := skip("jvm: " + why); err != nil {
					return err
				}
				if !slices.Contains(b.report.Skipped, why) {
					b.report.Skipped = append(b.report.Skipped, why)
				}
				continue
			}
			rows = append(rows, &JVMRow{Limit: limit, Proc: proc, Front: aloneFront}, &JVMRow{Limit: limit, Proc: proc, Front: fdinitFront})
			if !proc && limit > jvmCap {
				rows = append(rows, &JVMRow{Limit: limit, Proc: proc, Front: cappedFront})
			}
		}
		if err := b.run(rows, executions, size.starts); err != nil {
			return err
		}
		for _, x := range rows {
			b.report.Rows = append(b.report.Rows, *x)
		}
	}
	if len(b.report.Rows) == 0 {
		return errors.New("there is no limit that can be measured here")
	}
	return b.trace()
}

// withoutProc tries whether /proc can be hidden from a process.
func (b *jvmBench) withoutProc() error {
	m, err := b.startJVM(&JVMRow{Limit: jvmCap, Front: aloneFront})
	if err != nil {
		return err
	}
	return m.stop()
}

// run measures all rows beside each other and fills them in.
func (b *jvmBench) run(rows []*JVMRow, executions, starts int) error {
	all := make([][]float64, len(rows))
	blocks := make([][]float64, len(rows)) // medians
	for start := range starts {
		if len(rows) > 0 {
			progress("jvm: start %d of %d, /proc %t", start+1, starts, rows[0].Proc)
		}
		// As many as asked for, also when that is not a multiple.
		n := executions*(start+1)/starts - executions*start/starts
		if err := b.runOnce(rows, n, func(i int, took []float64) {
			all[i] = append(all[i], took...)
			blocks[i] = append(blocks[i], median(took))
		}); err != nil {
			return err
		}
	}
	for i, row := range rows {
		row.Executions = len(all[i])
		row.Min, row.Median = slices.Min(all[i]), median(all[i])
		for _, us := range all[i] {
			row.Total += us / 1e6
		}
		alone := slices.IndexFunc(rows, func(x *JVMRow) bool { return x.Limit == row.Limit && x.Front == aloneFront })
		if alone == i {
			continue
		}
		// A block is a round of the interval; there is nothing to subtract.
		row.Ratio = compare(blocks[i], blocks[alone], make([]float64, len(blocks[i])))
		if row.Ratio != nil {
			row.Ratio.Median = row.Median / median(all[alone])
			row.Ratio.Min = row.Min / slices.Min(all[alone])
		}
	}
	return nil
}

// runOnce starts a virtual machine for every row and gives each in turn a block
// of executions, until each has had n.
func (b *jvmBench) runOnce(rows []*JVMRow, n int, add func(row int, took []float64)) error {
	machines := make([]*jvm, len(rows))
	defer func() {
		for _, m := range machines {
			if m != nil {
				_ = m.stop() // an error has been reported by then
			}
		}
	}()
	for i, row := range rows {
		var err error
		if machines[i], err = b.startJVM(row); err != nil {
			return err
		}
		row.Seen = machines[i].limit
		b.report.Java = machines[i].version
	}
	turn := func(n int, add func(row int, took []float64)) error {
		for _, i := range rand.Perm(len(rows)) {
			took, err := machines[i].execute(n)
			if err != nil {
				return fmt.Errorf("limit %d, %s in front: %w", rows[i].Limit, rows[i].Front, err)
			}
			add(i, took)
		}
		return nil
	}
	// The first turn loads classes, compiles and fills caches.
	if err := turn(jvmBlock, func(int, []float64) {}); err != nil {
		return err
	}
	for ; n > 0; n -= jvmBlock {
		if err := turn(min(n, jvmBlock), add); err != nil {
			return err
		}
	}
	return nil
}

// jvm is a virtual machine that waits for orders.
type jvm struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	version string
	limit   int
}

// jvmScript sets the limits, soft and hard, and hides /proc where asked: the
// launcher finds its libraries through /proc/self/exe, so that alone is left.
const jvmScript = `limit=$1 java=$2
shift 2
if [ -n "$java" ]; then
	mount -t tmpfs none /proc && mkdir /proc/self && ln -s "$java" /proc/self/exe || exit
fi
ulimit -n "$limit" && exec "$@"`

func (b *jvmBench) argv(row *JVMRow, before ...string) []string {
	hide := b.java
	if row.Proc {
		hide = ""
	}
	argv := append([]string{"/bin/sh", "-c", jvmScript, "sh", strconv.Itoa(row.Limit), hide}, before...)
	if front := strings.Fields(row.Front); front[0] == subjectName {
		argv = append(append(append(argv, b.fdinit), front[1:]...), "--")
	}
	argv = append(append(argv, b.java), jvmOptions...)
	return append(argv, "-cp", b.classes, "Exec", strconv.Itoa(jvmFiles), b.command)
}

func (b *jvmBench) startJVM(row *JVMRow, before ...string) (*jvm, error) {
	argv := b.argv(row, before...)
	m := &jvm{cmd: exec.Command(argv[0], argv[1:]...)}
	m.cmd.Env = append(slices.Clone(environment), "LC_ALL=C")
	var stderr bytes.Buffer
	m.cmd.Stderr = &stderr
	if !row.Proc {
		m.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	var err error
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.out = bufio.NewReader(out)
	running.Lock()
	err = m.cmd.Start()
	if err == nil {
		running.pids[m.cmd.Process.Pid] = true
	}
	running.Unlock()
	if err != nil {
		return nil, err
	}
	if m.version, err = m.line(); err == nil {
		var text string
		if text, err = m.line(); err == nil {
			m.limit, err = strconv.Atoi(text)
		}
	}
	if err != nil {
		ended := m.stop()
		return nil, fmt.Errorf("starting %s under a limit of %d: %w (%v) %s", filepath.Base(b.java), row.Limit, err, ended, strings.TrimSpace(stderr.String()))
	}
	return m, nil
}

func (m *jvm) line() (string, error) {
	text, err := m.out.ReadString('\n')
	return strings.TrimSpace(text), err
}

// execute returns what each of n executions took, in microseconds.
func (m *jvm) execute(n int) ([]float64, error) {
	if _, err := fmt.Fprintln(m.in, n); err != nil {
		return nil, err
	}
	text, err := m.line()
	if err != nil {
		return nil, err
	}
	var took []float64
	for _, field := range strings.Fields(text) {
		ns, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		took = append(took, ns/1e3)
	}
	if len(took) != n {
		return nil, fmt.Errorf("%d executions instead of %d", len(took), n)
	}
	return took, nil
}

// stop lets the machine come to its end.
func (m *jvm) stop() error {
	_ = m.in.Close() // it may be gone
	err := m.cmd.Wait()
	running.Lock()
	defer running.Unlock()
	delete(running.pids, m.cmd.Process.Pid)
	return err
}

// trace counts the calls of one execution for the rows with nothing in front.
func (b *jvmBench) trace() error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		why := "the system calls of an execution: strace is not installed (apt: strace)"
		b.report.Skipped = append(b.report.Skipped, why)
		return skip("jvm: " + why)
	}
	progress("jvm: system calls")
	for i := range b.report.Rows {
		row := &b.report.Rows[i]
		if row.Front != aloneFront {
			continue
		}
		file := filepath.Join(filepath.Dir(b.classes), "trace")
		m, err := b.startJVM(row, strace, "-f", "-qq", "-o", file, "-e", "signal=none",
			"-e", "trace=execve,openat,close,close_range,getdents64,fcntl")
		if err != nil {
			return err
		}
		_, err = m.execute(1)
		if err = errors.Join(err, m.stop()); err != nil {
			return fmt.Errorf("tracing: %w", err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if row.Calls, err = parseTrace(string(text), b.command); err != nil {
			return err
		}
	}
	return nil
}

var (
	traceLine    = regexp.MustCompile(`^(\d+) +(.*)$`)
	traceResumed = regexp.MustCompile(`^<\.\.\. \w+ resumed>`)
	traceExecve  = regexp.MustCompile(`^execve\("([^"]*)"`)
)

// parseTrace reads strace's account of the process that executed the command,
// up to there.
func parseTrace(text, command string) (*Calls, error) {
	calls := map[string][]string{} // by process
	for line := range strings.Lines(text) {
		parts := traceLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if parts == nil {
			continue
		}
		pid, call := parts[1], parts[2]
		mine := calls[pid]
		if at := traceResumed.FindStringIndex(call); at != nil && len(mine) > 0 {
			mine[len(mine)-1] = strings.TrimSuffix(mine[len(mine)-1], "<unfinished ...>") + call[at[1]:]
			continue
		}
		calls[pid] = append(mine, call)
	}
	for _, mine := range calls {
		end := slices.IndexFunc(mine, func(call string) bool {
			m := traceExecve.FindStringSubmatch(call)
			return m != nil && m[1] == command
		})
		if end < 0 {
			continue
		}
		var c Calls
		listing := false
		for _, call := range mine[:end] {
			failed := strings.Contains(call, " = -1 ")
			switch name, _, _ := strings.Cut(call, "("); name {
			case "execve":
				// What its loader did is not of interest.
				c = Calls{Helper: filepath.Base(traceExecve.FindStringSubmatch(call)[1])}
			case "openat":
				listing = strings.Contains(call, `"/proc/self/fd"`) && !failed
			case "getdents64":
				c.Walked = c.Walked || listing && !failed
			case "close":
				if failed {
					c.Vain++
				} else {
					c.Closed++
				}
			case "close_range":
				c.Ranges++
			case "fcntl":
				if strings.Contains(call, "F_SETFD, FD_CLOEXEC") {
					c.Marks++
				}
			}
		}
		return &c, nil
	}
	return nil, fmt.Errorf("the trace knows no execution of %s", command)
}

func (r *JVMReport) chart(dir string) error {
	var ticks []plot.Tick
	type key struct {
		proc  bool
		front string
	}
	var keys []key
	points := map[key]plotter.XYs{}
	for _, x := range r.Rows {
		k := key{x.Proc, x.Front}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		points[k] = append(points[k], plotter.XY{X: float64(x.Limit), Y: x.Min / 1e3})
		if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == float64(x.Limit) }) {
			ticks = append(ticks, plot.Tick{Value: float64(x.Limit), Label: fmt.Sprint(x.Limit)})
		}
	}
	var curves []curve
	for i, k := range keys {
		name := "JVM alone"
		switch k.front {
		case fdinitFront:
			name = "with fdinit"
		case cappedFront:
			name = "--nofile=" + strings.SplitN(k.front, "=", 2)[1]
		}
		if !k.proc {
			name += ", no /proc"
		}
		curves = append(curves, curve{name: name, points: points[k], dashed: !k.proc, color: i})
	}
	title := fmt.Sprintf("One execution by a JVM with %d files open (minimum)", r.Files)
	return logChart(filepath.Join(dir, "jvm"), title, "ulimit -n", "ms", ticks, curves)
}

func (r *JVMReport) markdown(withCharts bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	line("# A JVM that executes commands")
	line("Made by `%s` in `bench/` on %s: %s, %d cores, Linux %s, %s. Java: %s with `%s`. fdinit: `%s`.", r.Command, r.Date,
		r.Machine.CPU, r.Machine.Cores, r.Machine.Kernel, r.Machine.Distribution, r.Java, strings.Join(r.Options, " "), r.Init)
	line("In 2007 it was measured for gcj, a Java of that time, what a child costs that closes all descriptors up to the limit before it executes a command, under limits of 100, 1024 and 10240 and with 50 files open. This is that test: a Java program (`bench/jvm/Exec.java`) holds %d files open and executes `/bin/true` through `ProcessBuilder`, under `ulimit -n` of several sizes, soft and hard alike, with and without fdinit in front. A time is from before `start()` to after `waitFor()`.", r.Files)
	line("All virtual machines of a part exist at the same time and have their turns in a random order, at most %d executions each; the first turn is not counted, and all are started anew %d times. On a computer that others use too, look at the **minima**; medians and totals contain the neighbours. In brackets the 95 %% bootstrap interval of the ratio of medians.", r.Block, r.Starts)
	for _, s := range r.Skipped {
		line("Skipped: %s.", s)
	}
	if withCharts {
		line("![Cost of an execution against the limit](jvm.svg)")
	}
	line("## What to expect, and what not")
	r.expectation(line)
	for _, proc := range []bool{true, false} {
		if !slices.ContainsFunc(r.Rows, func(x JVMRow) bool { return x.Proc == proc }) {
			continue
		}
		if proc {
			line("## As it is")
		} else {
			line("## Without /proc")
			line("With `/proc` hidden the JVM falls back to what gcj did. A fifth of the executions.")
		}
		t := newTable("limit", "in front", "limit seen", "executions", "min, ms", "ratio", "median, ms", "ratio", "total, s")
		for _, x := range r.Rows {
			if x.Proc == proc {
				t.row(fmt.Sprint(x.Limit), x.Front, fmt.Sprint(x.Seen), fmt.Sprint(x.Executions), fmt.Sprintf("%.2f", x.Min/1e3), minRatio(x.Ratio),
					fmt.Sprintf("%.2f", x.Median/1e3), interval(x.Ratio), fmt.Sprintf("%.1f", x.Total))
			}
		}
		line("%s", strings.TrimSpace(t.b.String()))
	}
	if e, ok := r.breakEven(); ok {
		line("Up to which limit the loop without `/proc` is the cheaper of the two, whole executions with nothing in front compared by their minima: %s. For gcj it was about 3000.", e)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// breakEven is the limit up to which a virtual machine that has no /proc, and
// loops, executes a command faster than one that has it.
func (r *JVMReport) breakEven() (breakEven, bool) {
	var ps []point
	for _, x := range r.Rows {
		i := slices.IndexFunc(r.Rows, func(y JVMRow) bool { return y.Proc && y.Limit == x.Limit && y.Front == x.Front })
		if !x.Proc && x.Front == aloneFront && i >= 0 {
			ps = append(ps, point{float64(x.Limit), x.Min, r.Rows[i].Min})
		}
	}
	if len(ps) < 2 {
		return breakEven{}, false
	}
	last := len(ps) - 1
	rise := (ps[last].first - ps[0].first) / (ps[last].at - ps[0].at)
	return crossing(ps, rise, float64(r.Files+3)), true
}

// expectation tells what was seen in the traces, and what follows from it.
func (r *JVMReport) expectation(line func(string, ...any)) {
	t := newTable("limit", "/proc", "child runs", "lists /proc/self/fd", "closes", "closes in vain", "marks", "close_range")
	var with, without *Calls
	traced := false
	for _, x := range r.Rows {
		c := x.Calls
		if c == nil {
			continue
		}
		traced = true
		if x.Proc {
			with = c
		} else {
			without = c
		}
		helper := c.Helper
		if helper == "" {
			helper = "the command"
		}
		t.row(fmt.Sprint(x.Limit), yes(x.Proc), helper, yes(c.Walked), fmt.Sprint(c.Closed), fmt.Sprint(c.Vain), fmt.Sprint(c.Marks), fmt.Sprint(c.Ranges))
	}
	if traced {
		line("What the child does, as `strace` saw it with nothing in front, up to the execution of the command:")
		line("%s", strings.TrimSpace(t.b.String()))
	}
	if with != nil && with.Walked && with.Ranges == 0 {
		how := "The JVM starts the command itself"
		if with.Helper != "" {
			how = "The JVM starts a helper, `" + with.Helper + "`, that starts the command"
		}
		line("%s. The child lists `/proc/self/fd` and closes what it finds there, so the limit does not matter to it, and nothing that fdinit does to the limit can help. Nor does the sweep: the %d files are the program's own, opened after fdinit was done. So the ratio to be expected is 1: fdinit in front neither speeds up nor slows down what a JVM executes, and if its intervals below lay clear of 1 in several rows, that would be a finding.", how, r.Files)
	}
	if without != nil && !without.Walked && without.Vain > 0 {
		line("Without `/proc` the same child closes every number up to the limit, one call for each, as gcj did. fdinit does not touch the limits measured here by itself, since none is above 1048576; asked with `--nofile=%d:%d` it brings the cost down to that of the lower limit. The hard limit has to be named, because the JVM raises its soft limit to the hard one (the column \"limit seen\"). Not measured here, but it follows: under a limit of 1073741816 fdinit's own default leaves 1048576 as the hard limit, which is a thousandth, but still a million calls for each execution. For a JVM without `/proc`, name a limit.", jvmCap, jvmCap)
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
