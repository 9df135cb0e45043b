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
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// JVMReport is gcj's measurement of 2007 on a Java virtual machine of today.
type JVMReport struct {
	Header
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
func reportJVM(dir string, header Header, out, fdinit string, size jvmSizes) error {
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
		Header:  header,
		Init:    version(contender{name: subjectName, path: b.fdinit}),
		Options: jvmOptions,
		Files:   jvmFiles,
		Block:   jvmBlock,
		Starts:  size.starts,
	}
	if err := b.measure(size); err != nil {
		return err
	}
	return deliver(b.report, out)
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
