package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/fdinit/fdinit/test/lab/internal/plan"
)

var (
	// testEnd is how a test's end looks, with its time.
	testEnd = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	// testMark says whose output follows.
	testMark = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME)\s+(\S+)`)
)

// e2e runs the behaviour suite and turns its output into ours.
func (l *lab) e2e() {
	cmd := exec.Command(plan.E2E+"/e2e.test", "-test.v", "-test.timeout=0", "-test.run="+l.plan.Match)
	cmd.Dir = plan.E2E + "/test/e2e"
	// On the root file system itself: some scripts make that read-only, and /tmp is another.
	const scratch = plan.E2E + "/tmp"
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		l.Test("e2e: the suite starts", err)
		return
	}
	cmd.Env = append([]string{"FDINIT_BINARY=" + plan.Init, "TMPDIR=" + scratch}, environment...)
	for i, v := range cmd.Env {
		if path, found := strings.CutPrefix(v, "PATH="); found {
			cmd.Env[i] = "PATH=" + plan.E2E + "/go:" + path
		}
	}
	out, err := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.Test("e2e: the suite starts", err)
		return
	}
	said := map[string][]string{} // by test
	current, last := "", []string{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := testMark.FindStringSubmatch(line); m != nil {
			current = m[2]
			// Some take minutes.
			if m[1] == "CONT" {
				l.Comment("e2e: %s", current)
			}
			continue
		}
		m := testEnd.FindStringSubmatch(line)
		if m == nil {
			said[current] = append(said[current], line)
			last = append(last, line)
			continue
		}
		name := "e2e: " + m[2]
		words := said[m[2]]
		switch m[1] {
		case "PASS":
			l.Test(name, nil)
		case "FAIL":
			l.Test(name, errors.New(strings.Join(words[max(0, len(words)-15):], "\n")+" "))
		case "SKIP":
			why := "for no reason"
			if len(words) > 0 {
				why = strings.TrimSpace(words[len(words)-1])
			}
			l.Skip(name, why)
		}
	}
	if err := cmd.Wait(); err != nil {
		l.Test("e2e: the suite succeeds", fmt.Errorf("%w: %s", err, strings.Join(last[max(0, len(last)-15):], "\n")))
		return
	}
	l.Test("e2e: the suite succeeds", nil)
}
