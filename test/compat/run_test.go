package compat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// obs is everything that was seen of one run: "exit", "stdout", "stderr", "tty", "left" and one entry for each
// property of each snapshot.
type obs map[string]string

// A step acts on a running init or waits for something to happen to it. There is no step that waits for time to pass.
type step func(*running) error

// errEnded stops the steps early: the init is gone, and how it ended is compared like everything else.
var errEnded = errors.New("the init ended")

// patience bounds every wait. It only matters when something is broken, so it is generous.
const patience = time.Minute

// hangAfter is how long a peer that is known to hang is watched before it counts as hanging.
const hangAfter = 1500 * time.Millisecond

// running is one init under observation.
type running struct {
	row    row
	peer   bool // this is not fdinit
	o      obs
	top    int // the first process of the namespace: the init, or its parent
	init   int
	inner  int // the init's id inside
	main   int
	mainIn int
	roles  map[int]string
	killed map[string]int    // actors, by name
	links  map[string]string // what the standard descriptors point at

	stdout, stderr, tty buffer
	master              *os.File

	ended  chan struct{}
	status syscall.WaitStatus
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// execute runs one row with one program in the init's place: a peer, or fdinit.
func execute(r row, exe string, peer bool) (obs, error) {
	run := &running{row: r, peer: peer, o: obs{}, roles: map[int]string{}, killed: map[string]int{}, links: map[string]string{}, ended: make(chan struct{})}
	s := r.in
	s.Path = exe
	s.Argv = r.argv()
	s.Env = r.environ()
	if r.wrapped {
		// A shell is what the row watches; its script starts the init as "$0" "$@".
		s.Path = "/bin/sh"
		s.Argv = append([]string{"sh", "-c", r.script, exe}, r.argv()[1:]...)
	}
	s.Dir = fixtures
	first := s
	switch {
	case !r.child:
		first.Proc = true
		first.Session = r.term != plainGroup
		first.Terminal = r.term == ownTerm
	default:
		s.Group = true
		h := stage{Proc: true, Session: true, Terminal: r.term == sharedTerm || r.term == backTerm || r.term == foreignTerm}
		switch r.term {
		case ownTerm:
			s.Group, s.Session, s.Terminal = false, true, true
		case sharedTerm:
			s.Foreground = true
		case foreignTerm:
			s.Group, s.Session = false, true
		}
		h.Hold = &s
		first = h
	}

	var closeLater []io.Closer
	defer func() {
		for _, c := range closeLater {
			c.Close()
		}
	}()
	var readers sync.WaitGroup
	pump := func(from *os.File, to *buffer) {
		readers.Add(1)
		go func() {
			defer readers.Done()
			io.Copy(to, from) // a terminal ends with EIO, which is as good as EOF
		}()
	}
	pipe := func(to *buffer, what string) (*os.File, error) {
		rd, wr, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		closeLater = append(closeLater, rd)
		l, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", wr.Fd()))
		if err != nil {
			return nil, err
		}
		run.links[l] = what
		pump(rd, to)
		return wr, nil
	}

	cmd := exec.Command(filepath.Join(fixtures, "bin", stageName))
	cmd.Args = first.argv()
	cmd.Env = []string{stageDebug}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	errw, err := pipe(&run.stderr, "stderr")
	if err != nil {
		return nil, err
	}
	cmd.Stderr = errw
	inside := []*os.File{errw}
	var kept *os.File
	if r.term.isTerminal() {
		master, slave, name, err := openTerminal()
		if err != nil {
			return nil, err
		}
		run.master = master
		closeLater = append(closeLater, master)
		run.links[name] = "tty"
		cmd.Stdin, cmd.Stdout = slave, slave
		// It stays open on our side as well: what the terminal echoes after the end of everything inside would be lost
		// otherwise (presses).
		closeLater = append(closeLater, slave)
		kept = slave
		pump(master, &run.tty)
	} else {
		outw, err := pipe(&run.stdout, "stdout")
		if err != nil {
			return nil, err
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		cmd.Stdin, cmd.Stdout = null, outw
		inside = append(inside, outw, null)
	}
	var reports *bufio.Reader
	var control *os.File
	if r.child {
		rd, wr, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		crd, cwr, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd.ExtraFiles = []*os.File{wr, crd}
		inside = append(inside, wr, crd)
		closeLater = append(closeLater, rd, cwr)
		reports, control = bufio.NewReader(rd), cwr
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for _, f := range inside {
		f.Close()
	}
	run.top = cmd.Process.Pid
	gone := make(chan struct{})
	go func() {
		cmd.Wait()
		close(gone)
	}()
	defer func() {
		cmd.Process.Kill()
		<-gone
	}()

	if r.child {
		line, err := reports.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("the stage did not start: %s", run.stderr.String())
		}
		run.inner, _ = strconv.Atoi(strings.TrimSpace(line))
		for _, p := range descendants(run.top) {
			if p.inner == run.inner {
				run.init = p.pid
			}
		}
		if run.init == 0 {
			return nil, errors.New("the init is not below its stage")
		}
		if _, err := control.Write([]byte{1}); err != nil {
			return nil, err
		}
		go func() {
			line, err := reports.ReadString('\n')
			if err == nil {
				n, _ := strconv.ParseUint(strings.TrimSpace(line), 10, 32)
				run.status = syscall.WaitStatus(n)
			}
			close(run.ended)
		}()
	} else {
		run.inner, run.init = 1, run.top
		go func() {
			<-gone
			run.status = cmd.ProcessState.Sys().(syscall.WaitStatus)
			close(run.ended)
		}()
	}
	run.roles[run.init] = "INIT"
	if r.child {
		run.roles[run.top] = "PARENT"
	}

	for i, do := range r.steps {
		if err := do(run); err == errEnded {
			break
		} else if err != nil {
			return nil, fmt.Errorf("step %d: %w\n%s", i+1, err, run.story())
		}
	}
	bound := patience
	if r.mayHang && run.peer {
		bound = hangAfter
	}
	select {
	case <-run.ended:
		run.o["exit"] = describeStatus(run.status)
	case <-time.After(bound):
		run.o["exit"] = "hangs"
		if bound == patience {
			return nil, fmt.Errorf("still running after %v\n%s", patience, run.story())
		}
	}
	if r.child && !r.quiet {
		// What is left has its last signals, but may not have acted on them yet.
		var all []process
		if err := run.wait("what is left is still", func() (ok bool) { all, ok = run.still(); return ok }); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, run.story())
		}
		run.o["left"] = run.left(all)
		if p, ok := readProcess(run.top); ok && r.term == sharedTerm {
			run.o["left.foreground"] = run.role(p.fg)
		}
	}
	cmd.Process.Kill()
	<-gone
	kept.Close()
	// The namespace is dead, so the pipes are at their end; the terminal is as well, once our side of it has read all.
	readers.Wait()
	if r.quiet {
		return run.o, nil
	}
	if r.anyOrder && r.as == catatonit && !run.peer {
		for line := range strings.Lines(run.stderr.String()) {
			if !catatonitLine.MatchString(line) {
				return nil, fmt.Errorf("a line in no form of catatonit's: %q", line)
			}
		}
	}
	if strings.Contains(run.stderr.String(), "stage: ") {
		return nil, fmt.Errorf("a stage failed: %s", run.stderr.String())
	}
	run.o["stdout"] = run.normalise(run.stdout.String())
	run.o["stderr"] = run.normalise(run.stderr.String())
	if r.term.isTerminal() {
		run.o["tty"] = run.normalise(run.tty.String())
	}
	return run.o, nil
}

func describeStatus(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return fmt.Sprintf("killed by signal %d", ws.Signal())
	}
	return fmt.Sprintf("exit %d", ws.ExitStatus())
}

// story is for the reader of a failure.
func (run *running) story() string {
	var b strings.Builder
	for _, p := range descendants(run.top) {
		fmt.Fprintf(&b, "  %s %s state %c pending %q blocked %q\n", run.role(p.pid), p.comm, p.state, signalList(p.pending), signalList(p.blocked))
	}
	fmt.Fprintf(&b, "  stdout %q\n  stderr %q\n  tty %q", run.stdout.String(), run.stderr.String(), run.tty.String())
	return b.String()
}

// role names a process id. Ids differ between two runs, roles do not.
func (run *running) role(pid int) string {
	if pid <= 0 {
		return strconv.Itoa(pid)
	}
	if s, ok := run.roles[pid]; ok {
		return s
	}
	p, ok := readProcess(pid)
	if !ok || p.comm == "" {
		return "gone"
	}
	if slices.Contains(actors, p.comm) {
		s := strings.ToUpper(p.comm)
		run.roles[pid] = s
		return s
	}
	return "other"
}

// actors are the names a workload's processes go by: links to sleep.
var actors = []string{"main", "kid", "daemon"}

// left says what of all processes is there although the init is not.
func (run *running) left(all []process) string {
	var out []string
	for _, p := range all {
		if p.pid == run.init || p.state == 'Z' {
			continue
		}
		out = append(out, fmt.Sprintf("%s child of %s, pending %q", strings.ToLower(run.role(p.pid)), run.role(p.ppid), signalList(p.pending)))
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// until waits for a condition, or for the init's end.
func (run *running) until(what string, cond func() bool) error {
	met := false
	err := run.wait(what, func() (ended bool) {
		select {
		case <-run.ended:
			ended = true
		default:
		}
		// In this order: what happened before the end counts.
		met = cond()
		return met || ended
	})
	if err == nil && !met {
		return errEnded
	}
	return err
}

// wait waits for a condition, whether the init is there or not.
func (run *running) wait(what string, cond func() bool) error {
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; !cond(); wait = min(wait*2, 16*time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("never happened: %s", what)
		}
		time.Sleep(wait)
	}
	return nil
}

// still tells whether nothing moves below the namespace's first process, and returns what is there.
//
// One look at each process is not enough. While it looks at the second the first may go on, and a signal that one has
// just sent to the other is on its way; tini wakes up once a second. So it looks twice: what has slept from the first
// time to the second, without having run in between, did so at the moment between the two, and then they all did. A
// signal wakes its receiver before kill(2) returns, so none was on its way, and nothing will happen until somebody
// outside does something.
func (run *running) still() ([]process, bool) {
	before, ok := run.allRest()
	if !ok {
		return nil, false
	}
	now, ok := run.allRest()
	return now, ok && slices.EqualFunc(before, now, func(a, b process) bool {
		return a.pid == b.pid && a.state == b.state && a.switches == b.switches
	})
}

// allRest looks once at each process, and tells whether it was at rest.
func (run *running) allRest() ([]process, bool) {
	all := descendants(run.top)
	if run.init == run.top {
		if p, ok := readProcess(run.top); ok {
			all = append(all, p)
		}
	}
	return all, !slices.ContainsFunc(all, func(p process) bool { return isStage(p) || !p.rests() })
}

// settled waits until nothing moves, and returns what is there.
func (run *running) settled() ([]process, error) {
	var all []process
	err := run.until("nothing moves", func() (ok bool) {
		all, ok = run.still()
		return ok
	})
	return all, err
}

// find looks up a process by its id.
func find(all []process, pid int) (process, bool) {
	i := slices.IndexFunc(all, func(p process) bool { return p.pid == pid })
	if pid == 0 || i < 0 {
		return process{}, false
	}
	return all[i], true
}

func (run *running) findMain() (process, bool) {
	if run.main != 0 {
		p, ok := readProcess(run.main)
		return p, ok
	}
	for _, k := range children(run.init) {
		if p, ok := readProcess(k); ok && p.comm == run.row.mainName() && p.state != 'Z' {
			run.main, run.mainIn = p.pid, p.inner
			run.roles[p.pid] = strings.ToUpper(p.comm)
			return p, true
		}
	}
	return process{}, false
}

// ready waits until the workload has been executed, n actors are there, and all is still, which is when the init has
// done all it does after the start.
func ready(n int) step {
	return func(run *running) error {
		return run.until("the workload is ready", func() bool {
			if _, ok := run.findMain(); !ok {
				return false
			}
			all, ok := run.still()
			m, there := find(all, run.main)
			return ok && there && m.state == 'S' && actorsAsleep(all) >= n
		})
	}
}

func actorsAsleep(all []process) (n int) {
	for _, p := range all {
		if slices.Contains(actors, p.comm) && p.state == 'S' {
			n++
		}
	}
	return n
}

// isStage tells a stage that has not been replaced yet: the kernel knows it by its link or by the test binary's name.
func isStage(p process) bool {
	self := filepath.Base(os.Args[0])
	return p.comm == stageName || p.comm == self[:min(len(self), 15)]
}

// initReady waits for an init that has no workload to be asleep, after its exec.
func initReady() step {
	return func(run *running) error {
		return run.until("the init is ready", func() bool {
			p, ok := readProcess(run.init)
			return ok && !isStage(p) && p.state == 'S' && p.rests()
		})
	}
}

// says waits for output, of the workload or of the init.
func says(text string) step {
	return func(run *running) error {
		return run.until(fmt.Sprintf("output %q", text), func() bool {
			return strings.Contains(run.stdout.String(), text) || strings.Contains(run.stderr.String(), text) || strings.Contains(run.tty.String(), text)
		})
	}
}

// idle waits for the init to be asleep, and everything else: it has handled what it was sent, and what came of that.
func idle() step {
	return func(run *running) error {
		return run.until("the init is idle", func() bool {
			all, ok := run.still()
			p, there := find(all, run.init)
			return ok && there && p.state != 'Z'
		})
	}
}

// signal sends signals to the init, from outside the namespace.
func signal(signals ...int) step {
	return func(run *running) error {
		for _, s := range signals {
			if err := unix.Kill(run.init, syscall.Signal(s)); err != nil {
				if err == unix.ESRCH {
					return errEnded
				}
				return err
			}
		}
		return nil
	}
}

// killMain ends or pokes the workload itself.
func killMain(s int) step {
	return func(run *running) error {
		p, ok := run.findMain()
		if !ok {
			return nil
		}
		return unix.Kill(p.pid, syscall.Signal(s))
	}
}

// arrived waits until a signal is pending in the workload, which blocks everything.
func arrived(s int) step {
	return func(run *running) error {
		return run.until(fmt.Sprintf("signal %d is pending in the workload", s), func() bool {
			p, ok := run.findMain()
			return ok && p.pending&(1<<(s-1)) != 0
		})
	}
}

// arrivedOrStopped is arrived for an init that may have stopped itself before it forwards anything.
func arrivedOrStopped(s int) step {
	return func(run *running) error {
		return run.until(fmt.Sprintf("signal %d is pending in the workload", s), func() bool {
			p, ok := run.findMain()
			i, ok2 := readProcess(run.init)
			return ok && p.pending&(1<<(s-1)) != 0 || ok2 && i.state == 'T'
		})
	}
}

// mainState waits for the workload to be in one of the states.
func mainState(states string) step {
	return func(run *running) error {
		return run.until("the workload's state is one of "+states, func() bool {
			p, ok := run.findMain()
			return ok && strings.IndexByte(states, p.state) >= 0
		})
	}
}

// stoppedAndContinued waits until the workload has slept twice more, to stop and to go on, while other steps are done.
func stoppedAndContinued(others ...step) step {
	return func(run *running) error {
		sleeps := func() (n int) {
			p, _ := run.findMain()
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
			_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
			fmt.Sscan(rest, &n)
			return n
		}
		before := sleeps()
		for _, other := range others {
			if err := other(run); err != nil {
				return err
			}
		}
		return run.until("the workload has been stopped and continued", func() bool { return sleeps() >= before+2 })
	}
}

// initState does so for the init.
func initState(states string) step {
	return func(run *running) error {
		return run.until("the init's state is one of "+states, func() bool {
			p, ok := readProcess(run.init)
			return ok && strings.IndexByte(states, p.state) >= 0
		})
	}
}

// actorGone waits until a process that was killed with killActor is no zombie either: somebody has reaped it. By then
// its id may be another's.
func actorGone(name string) step {
	return func(run *running) error {
		return run.until(name+" is reaped", func() bool {
			p, ok := readProcess(run.killed[name])
			return !ok || p.comm != name
		})
	}
}

// killActor ends another process of the workload.
func killActor(name string, s int) step {
	return func(run *running) error {
		all, err := run.settled()
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.comm == name && p.state != 'Z' {
				run.role(p.pid)
				run.killed[name] = p.pid
				return unix.Kill(p.pid, syscall.Signal(s))
			}
		}
		return fmt.Errorf("no process %q", name)
	}
}

// types writes to the terminal as a user would.
func types(text string) step {
	return func(run *running) error {
		_, err := run.master.WriteString(text)
		return err
	}
}

// The keys that make a terminal send a signal.
const (
	interruptKey byte = 0x03
	suspendKey   byte = 0x1a
	quitKey      byte = 0x1c
)

// presses types one. The terminal echoes it after it has sent the signal, so the signal is on its way when the echo is
// read. It may have ended everything by then, and the echo comes nonetheless.
func presses(key byte) step {
	return func(run *running) error {
		echo := "^" + string(rune(key^0x40))
		before := strings.Count(run.tty.String(), echo)
		if err := types(string(rune(key)))(run); err != nil {
			return err
		}
		return run.wait("the echo "+echo, func() bool { return strings.Count(run.tty.String(), echo) > before })
	}
}

// hangUp closes the terminal.
func hangUp() step {
	return func(run *running) error { return run.master.Close() }
}

// actorEnds waits until no process of that name is left, by whatever it ended.
func actorEnds(name string) step {
	return func(run *running) error {
		return run.until(name+" has ended", func() bool {
			return !slices.ContainsFunc(descendants(run.top), func(p process) bool { return p.comm == name })
		})
	}
}

// snap records what the init and the workload look like, as name.init.… and name.main.….
func snap(name string) step {
	return func(run *running) error {
		run.findMain()
		all, err := run.settled()
		if err != nil {
			return err
		}
		if p, ok := find(all, run.main); ok {
			run.describe(name+".main.", p)
			run.o[name+".main.blocked"] = signalList(p.blocked)
			run.o[name+".main.ignored"] = signalList(p.ignored)
			run.o[name+".main.caught"] = signalList(p.caught)
			run.o[name+".main.limits"] = readString(p.pid, "limits")
			run.o[name+".main.environ"] = run.normalise(strings.ReplaceAll(readString(p.pid, "environ"), "\x00", "\n"))
			run.o[name+".main.argv"] = run.normalise(strings.ReplaceAll(readString(p.pid, "cmdline"), "\x00", " "))
			run.o[name+".main.pending"] = signalList(p.pending)
			run.o[name+".main.umask"] = p.umask
			run.o[name+".main.no_new_privs"] = p.nnp
		}
		p, ok := find(all, run.init)
		if !ok || p.state == 'Z' {
			return errEnded
		}
		run.describe(name+".init.", p)
		return nil
	}
}

// states records the state of the init and of the workload.
func states(name string) step {
	return func(run *running) error {
		all, err := run.settled()
		if err != nil {
			return err
		}
		if p, ok := find(all, run.main); ok {
			run.o[name+".main.state"] = string(p.state)
		}
		if p, ok := find(all, run.init); ok {
			run.o[name+".init.state"] = string(p.state)
		}
		return nil
	}
}

// pending records only which signals the workload and the others have been sent.
func pending(name string) step {
	return func(run *running) error {
		all, err := run.settled()
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.pid != run.init && (p.pid == run.main || slices.Contains(actors, p.comm)) {
				run.o[name+"."+strings.ToLower(run.role(p.pid))+".pending"] = signalList(p.pending)
				run.o[name+"."+strings.ToLower(run.role(p.pid))+".state"] = string(p.state)
			}
		}
		if p, ok := find(all, run.init); ok && p.state != 'Z' {
			run.o[name+".init.state"] = string(p.state)
			return nil
		}
		return errEnded
	}
}

// parents records who is the parent of each actor.
func parents(name string) step {
	return func(run *running) error {
		all, err := run.settled()
		if err != nil {
			return err
		}
		for _, p := range all {
			if slices.Contains(actors, p.comm) {
				run.o[name+"."+strings.ToLower(run.role(p.pid))+".parent"] = run.role(p.ppid)
			}
		}
		return nil
	}
}

func (run *running) describe(prefix string, p process) {
	run.o[prefix+"parent"] = run.role(p.ppid)
	run.o[prefix+"group"] = run.role(p.pgrp)
	run.o[prefix+"session"] = run.role(p.sid)
	run.o[prefix+"terminal"] = strconv.FormatBool(p.tty != 0)
	run.o[prefix+"foreground"] = run.role(p.fg)
	run.o[prefix+"state"] = string(p.state)
	run.o[prefix+"files"] = openFiles(p.pid, run.fileName)
	if p.pid == run.init {
		return // initCwd
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid))
	if err != nil {
		cwd = err.Error()
	}
	run.o[prefix+"cwd"] = run.normalise(cwd)
}

func (run *running) fileName(target string) string {
	if s, ok := run.links[target]; ok {
		return s
	}
	if strings.HasPrefix(target, "anon_inode:[signalfd]") {
		return "" // catatonit's way to receive signals
	}
	if kind, _, ok := strings.Cut(target, ":["); ok {
		return kind
	}
	return target
}

func readString(pid int, file string) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// pidPatterns are the places where a peer prints a process id, and nothing but one.
var pidPatterns = regexp.MustCompile(`(tini \(|catatonit:|pid1 \(-?|with pid '|with pid: '|with pid=|LISTEN_PID= ?|(?:child|spawned) with PID |child process )(\d+)`)

// tiniTick is what tini says with -vvv once a second while nothing happens: first after the start, then after itself.
var tiniTick = regexp.MustCompile(`(\[INFO  tini \(\d+\)\] Spawned child process .*\n|\[TRACE tini \(\d+\)\] No child to reap\n)(?:\[TRACE tini \(\d+\)\] No child to reap\n)+`)

// catatonitPiece begins every piece that catatonit writes with one call.
var catatonitPiece = regexp.MustCompile(`(DEBUG|INFO|WARN|ERROR) \(catatonit:|pid1 \(<[^>]*>\) spawned|using stdin as tty|setting foreground process|got ECHILD|ignoring kernel|child process |forwarding of|failed to exec`)

var catatonitLine = regexp.MustCompile(`^((DEBUG|WARN|ERROR) \(catatonit:\d+\): .*|INFO \(catatonit:\d+\): using stdin .*|err)\n$`)

// normalise replaces what must differ between two runs: process ids, in the order of their appearance, and the
// directory of the fixtures.
func (run *running) normalise(s string) string {
	s = strings.ReplaceAll(s, fixtures, "$W")
	if run.peer && run.row.as == tini {
		s = tiniTick.ReplaceAllString(s, "$1")
	}
	names := map[string]string{strconv.Itoa(run.inner): "<init>"}
	if run.mainIn != 0 {
		names[strconv.Itoa(run.mainIn)] = "<main>"
	}
	s = pidPatterns.ReplaceAllStringFunc(s, func(m string) string {
		sub := pidPatterns.FindStringSubmatch(m)
		if _, ok := names[sub[2]]; !ok {
			names[sub[2]] = fmt.Sprintf("<process %d>", len(names))
		}
		return sub[1] + names[sub[2]]
	})
	if run.row.anyOrder && run.row.as == catatonit {
		// It writes a message in several pieces, and two processes do so at once.
		var parts []string
		rest := strings.ReplaceAll(s, "\n", "")
		for rest != "" {
			at := catatonitPiece.FindAllStringIndex(rest, 2)
			end := len(rest)
			if len(at) == 2 {
				end = at[1][0]
			} else if len(at) == 1 && at[0][0] > 0 {
				end = at[0][0]
			}
			parts = append(parts, rest[:end])
			rest = rest[end:]
		}
		sort.Strings(parts)
		return strings.Join(parts, "\n")
	}
	if run.row.anyOrder {
		lines := strings.SplitAfter(s, "\n")
		sort.Strings(lines)
		s = strings.Join(lines, "")
	}
	return s
}

// openTerminal returns both sides of a new pseudo-terminal.
func openTerminal() (master, slave *os.File, name string, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, "", fmt.Errorf("/dev/ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, "", err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, "", err
	}
	name = fmt.Sprintf("/dev/pts/%d", n)
	sfd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, "", err
	}
	// Non-blocking makes os.File use the poller, so that closing it ends the reader (hangUp).
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, "", err
	}
	return os.NewFile(uintptr(fd), "/dev/ptmx"), os.NewFile(uintptr(sfd), name), name, nil
}

// parentDies kills the shell of a wrapped row and waits until the workload has been told.
func parentDies(told int) step {
	return func(run *running) error {
		if err := unix.Kill(run.init, unix.SIGKILL); err != nil {
			return err
		}
		<-run.ended
		return run.wait(fmt.Sprintf("the parent's death is told by signal %d", told), func() bool {
			return slices.ContainsFunc(descendants(run.top), func(p process) bool {
				return p.comm == "main" && p.pending&(1<<(told-1)) != 0
			})
		})
	}
}

// actorsReady waits for n actors anywhere below the namespace's first process.
func actorsReady(n int) step {
	return func(run *running) error {
		return run.until("the actors are there", func() bool {
			all := descendants(run.top)
			busy := slices.ContainsFunc(all, func(p process) bool { return isStage(p) && p.pid != run.top })
			return actorsAsleep(all) >= n && !busy
		})
	}
}

// orphaned waits until a process's parent is the init or the namespace's first process.
func orphaned(name string) step {
	return func(run *running) error {
		return run.until(name+" is an orphan", func() bool {
			return slices.ContainsFunc(descendants(run.top), func(p process) bool {
				return p.comm == name && (p.ppid == run.init || p.ppid == run.top)
			})
		})
	}
}

// resize changes the size of the terminal's window.
func resize() step {
	return func(run *running) error {
		c, err := run.master.SyscallConn()
		if err != nil {
			return err
		}
		var e error
		err = c.Control(func(fd uintptr) {
			e = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77})
		})
		return errors.Join(err, e)
	}
}

// initCwd records the init's working directory.
func initCwd() step {
	return func(run *running) error {
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", run.init))
		if err != nil {
			return err
		}
		run.o["init.cwd"] = run.normalise(cwd)
		return nil
	}
}

// actorState waits for a process to be in one of the states.
func actorState(name, states string) step {
	return func(run *running) error {
		return run.until(name+" is in one of the states "+states, func() bool {
			return slices.ContainsFunc(descendants(run.top), func(p process) bool {
				return p.comm == name && strings.IndexByte(states, p.state) >= 0
			})
		})
	}
}

// actorForeground waits for a process to be asleep in the foreground.
func actorForeground(name string) step {
	return func(run *running) error {
		return run.until(name+" is in the foreground", func() bool {
			return slices.ContainsFunc(descendants(run.top), func(p process) bool {
				return p.comm == name && p.state == 'S' && p.fg == p.pgrp
			})
		})
	}
}
