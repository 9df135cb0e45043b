package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func (s *script) cmdLogged(_ *testscript.TestScript, args []string) error {
	c, err := s.running()
	if err != nil {
		return err
	}
	re, err := regexp.Compile("(?m)" + args[0])
	if err != nil {
		return err
	}
	return c.eventually(func() error {
		_, text := c.output()
		at := re.FindStringIndex(text[c.logged:])
		if at == nil {
			return fmt.Errorf("no %q among the errors: %q", args[0], tail(text[c.logged:]))
		}
		c.logged += at[1]
		return nil
	})
}

// begin starts a container for the length of a test.
func begin(t *testing.T, args ...string) *container {
	t.Helper()
	sp, err := parseSpec(args)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(workRoot, "begin")
	if err != nil {
		t.Fatal(err)
	}
	c, err := startContainer(sp, dir)
	if errors.Is(err, errSkip) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			out, errOut := c.output()
			t.Logf("[stdout]\n%s[stderr]\n%s", tail(out), tail(errOut))
		}
	})
	return c
}

// expect awaits a condition.
func (c *container) expect(t *testing.T, condition func() error) {
	t.Helper()
	if err := c.eventually(condition); err != nil {
		t.Fatal(err)
	}
}

// prints awaits a text in the output.
func (c *container) prints(t *testing.T, text string) {
	t.Helper()
	c.expect(t, func() error {
		if out, _ := c.output(); !strings.Contains(out, text) {
			return fmt.Errorf("it does not print %q", text)
		}
		return nil
	})
}

// hasChildren awaits that process 1 has so many children, all alive.
func (c *container) hasChildren(t *testing.T, want int) {
	t.Helper()
	c.expect(t, func() error {
		alive, dead := 0, 0
		for _, p := range allProcesses() {
			switch {
			case p.parent != c.pid():
			case p.state == 'Z':
				dead++
			default:
				alive++
			}
		}
		if alive != want || dead != 0 {
			return fmt.Errorf("%d children are alive and %d dead", alive, dead)
		}
		return nil
	})
}

// endsWith awaits the end.
func (c *container) endsWith(t *testing.T, status string) {
	t.Helper()
	if err := c.wait(); err != nil {
		t.Fatal(err)
	}
	if c.status != status {
		t.Fatalf("it ended with %s, not %s", c.status, status)
	}
}

// modes are how fdinit runs.
var modes = map[string][]string{"as process 1": nil, "not as process 1": {"-not-pid1"}}

// A logLine is what is looked at in a line of JSON.
type logLine struct {
	Level, Msg, Event, Time string
	Dropped, Pid            int
	Signal, Command         string
}

// readLog reads whole lines of JSON.
func readLog(t *testing.T, text string) (lines []logLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var l logLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if _, err := time.Parse(time.RFC3339Nano, l.Time); err != nil || l.Level == "" || l.Msg == "" || l.Event == "" {
			t.Fatalf("time, level, msg or event is missing: %s", line)
		}
		lines = append(lines, l)
	}
	return lines
}

// count tells how many processes a log reports as reaped, each once, and how many
// events as dropped.
func count(t *testing.T, lines []logLine) (reaped, dropped int) {
	t.Helper()
	for _, l := range lines {
		switch l.Event {
		case "reaped":
			reaped++
		case "dropped":
			dropped += l.Dropped
		}
	}
	return reaped, dropped
}

func TestLogAsJSON(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, append(mode, "-env", "FDINIT_LOG_FORMAT=json", "fdinit", "--log=debug", "sh", "-c",
				// The log lies in its standard error.
				`trap : USR1; (exit 3 & exit); kill -USR1 $PPID; for event in reaped forwarded; do until grep -q "\"$event\"" /proc/$$/fd/2; do sleep 0.01; done; done; kill -KILL $$`)...)
			c.endsWith(t, "137")
			var lines []logLine
			// Not as process 1 it takes nobody along: the log's own process may be late.
			if err := patiently(func() error {
				_, errOut := c.output()
				lines = readLog(t, errOut)
				if len(lines) == 0 || lines[len(lines)-1].Event != "workload-ended" {
					return errors.New("the log does not end with the workload's end")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			seen := map[string]logLine{}
			for _, l := range lines {
				seen[l.Event] = l
			}
			for event, level := range map[string]string{
				"swept": "info", "started": "info", "received": "info", "forwarded": "info", "workload-ended": "info", "reaped": "debug",
			} {
				if got := seen[event]; got.Level != level {
					t.Errorf("%s: %+v", event, got)
				}
			}
			if got := seen["started"]; got.Command != "sh" || got.Pid == 0 || got.Pid != seen["workload-ended"].Pid || got.Pid != seen["forwarded"].Pid {
				t.Errorf("not the same workload: %+v", seen)
			}
			if seen["forwarded"].Signal != "SIGUSR1" || seen["workload-ended"].Signal != "SIGKILL" {
				t.Errorf("other signals: %+v", seen)
			}
		})
	}
}

// patiently is eventually for what outlives a container.
func patiently(condition func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := condition()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLogOfManyOrphans: each of them is in the log, or counted as dropped.
func TestLogOfManyOrphans(t *testing.T) {
	const orphans = 10000
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := begin(t, append(mode, "fdinit", "--log=debug", "--log-format=json", "probe", "orphans", fmt.Sprint(orphans))...)
			c.prints(t, fmt.Sprintf("made %d\n", orphans))
			c.hasChildren(t, 2) // the workload and the log
			c.expect(t, func() error {
				// If the last ones were dropped, the next event tells of it.
				if err := unix.Kill(c.pid(), unix.SIGWINCH); err != nil {
					return err
				}
				_, errOut := c.output()
				if reaped, dropped := count(t, readLog(t, errOut)); reaped+dropped < orphans {
					return fmt.Errorf("%d orphans are in the log, and %d events were dropped", reaped, dropped)
				}
				return nil
			})
			workload, err := c.process("workload")
			if err != nil {
				t.Fatal(err)
			}
			// With its process group, which outlives it where fdinit is not process 1.
			if err := unix.Kill(-workload, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			c.endsWith(t, "137")
			if err := patiently(func() error {
				_, errOut := c.output()
				if !strings.Contains(errOut, `"workload-ended"`) {
					return errors.New("the end is not in the log")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			_, errOut := c.output()
			reaped, dropped := count(t, readLog(t, errOut))
			if reaped > orphans {
				t.Errorf("%d orphans are in the log", reaped)
			}
			t.Logf("%d orphans are in the log, %d events were dropped", reaped, dropped)
		})
	}
}

// fullPipe makes a pipe with a name that is full and that nobody reads.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	dir, err := os.MkdirTemp(workRoot, "pipe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "full")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that there always is a reader.
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var full error
	if err := raw.Control(func(fd uintptr) {
		for full == nil {
			_, full = unix.Write(int(fd), []byte(strings.Repeat("x", 4095)+"\n"))
		}
	}); err != nil || full != unix.EAGAIN {
		t.Fatal(err, full)
	}
	return f
}

// tooMany is more than the pipe to the log's process holds, its own buffer included: one
// mebibyte and 256 of 64 bytes each.
const tooMany = 17000

// stuck starts an fdinit whose log nobody reads, with a workload that records signals,
// and lets so many orphans end that the log's own pipe is full, too.
func stuck(t *testing.T, mode []string) (*container, *os.File) {
	t.Helper()
	pipe := fullPipe(t)
	c := begin(t, append(mode, "sh", "-c", `exec fdinit -g --log=debug --log-format=json sh -c 'trap : USR1 USR2 HUP TERM; probe signals & probe orphans "$1"; exit' sh "$1" 2>"$0"`,
		pipe.Name(), fmt.Sprint(tooMany))...)
	c.prints(t, "ready\n")
	c.prints(t, fmt.Sprintf("made %d\n", tooMany))
	// Every one of them is waited for.
	c.hasChildren(t, 2)
	// Signals arrive. The output's beginning is not about signals.
	for range 20 {
		for _, sig := range []unix.Signal{unix.SIGUSR1, unix.SIGHUP, unix.SIGUSR2, unix.SIGTERM} {
			if err := unix.Kill(c.pid(), sig); err != nil {
				t.Fatal(err)
			}
			if err := c.received([]int{int(sig)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c, pipe
}

// TestLogThatNobodyReads: a reader of stderr that never reads delays nothing, and the
// end by no more than the log is waited for.
func TestLogThatNobodyReads(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := stuck(t, mode)
			logger, err := c.logger()
			if err != nil {
				t.Fatal(err)
			}
			// Where it is not process 1, nothing else ends what it leaves behind.
			defer unix.Kill(logger, unix.SIGKILL)
			workload, err := c.process("workload")
			if err != nil {
				t.Fatal(err)
			}
			// With its process group, which outlives it where fdinit is not process 1.
			if err := unix.Kill(-workload, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			c.endsWith(t, "137")
		})
	}
}

// TestLogReadLate: once somebody reads, the log goes on, and tells how much is missing.
func TestLogReadLate(t *testing.T) {
	c, pipe := stuck(t, nil)
	var text strings.Builder
	ended := false
	buf := make([]byte, 1<<16)
	read := func() {
		// Deadlines work, since the pipe does not block.
		for pipe.SetReadDeadline(time.Now().Add(10*time.Millisecond)) == nil {
			n, err := pipe.Read(buf)
			text.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}
	log := func() []logLine {
		all := text.String()
		return readLog(t, all[strings.Index(all, "{"):])
	}
	c.expect(t, func() error {
		if err := unix.Kill(c.pid(), unix.SIGHUP); err != nil {
			return err
		}
		read()
		if !strings.Contains(text.String(), "{") {
			return errors.New("there is no log")
		}
		if _, dropped := count(t, log()); dropped == 0 {
			return errors.New("nothing is said to be dropped")
		}
		return nil
	})
	workload, err := c.process("workload")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(workload, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := patiently(func() error {
		read()
		for _, l := range log() {
			ended = ended || l.Event == "workload-ended"
		}
		if !ended {
			return errors.New("the log has no end")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	c.endsWith(t, "137")
	if reaped, dropped := count(t, log()); reaped > tooMany || reaped+dropped < tooMany {
		t.Errorf("of %d orphans %d are in the log, and %d events were dropped", tooMany, reaped, dropped)
	}
}
