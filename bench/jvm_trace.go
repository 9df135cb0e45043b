package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

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
	for _, calls := range callsByProcess(text) {
		end := slices.IndexFunc(calls, func(call string) bool {
			m := traceExecve.FindStringSubmatch(call)
			return m != nil && m[1] == command
		})
		if end >= 0 {
			return countCalls(calls[:end]), nil
		}
	}
	return nil, fmt.Errorf("the trace knows no execution of %s", command)
}

// callsByProcess joins the calls that strace printed in two parts.
func callsByProcess(text string) map[string][]string {
	calls := map[string][]string{}
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
	return calls
}

func countCalls(calls []string) *Calls {
	var c Calls
	listing := false
	for _, call := range calls {
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
	return &c
}
