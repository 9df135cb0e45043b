package hostile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// systemCalls are the calls that fdinit's own source names: unix.SYS_… in Go, SYS_… in
// this architecture's assembly. Only freestanding code makes calls by number.
func systemCalls(t *testing.T) map[string]int {
	t.Helper()
	numbers := callNumbers(t)
	calls := map[string]int{}
	note := func(name, where string) {
		if number, ok := numbers[name]; ok {
			calls[strings.ToLower(strings.TrimPrefix(name, "SYS_"))] = number
		} else {
			t.Errorf("%s: no number for %s", where, name)
		}
	}
	define := regexp.MustCompile(`(?m)^#define (SYS_\w+)`)
	err := filepath.WalkDir("../../internal", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "execfail"): // execfail runs hosted
			return filepath.SkipDir
		case strings.HasSuffix(path, "_"+runtime.GOARCH+".s"):
			text, err := os.ReadFile(path)
			for _, m := range define.FindAllStringSubmatch(string(text), -1) {
				note(strings.ToUpper(m[1]), path)
			}
			return err
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "SYS_") {
				note(s.Sel.Name, path)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// callNumbers are this architecture's system calls by the names that x/sys/unix gives
// them.
func callNumbers(t *testing.T) map[string]int {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+runtime.GOARCH+".go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\s*(SYS_\w+)\s*=\s*(\d+)`).FindAllStringSubmatch(string(text), -1) {
		numbers[m[1]], _ = strconv.Atoi(m[2])
	}
	return numbers
}

// scenario is what fdinit is doing while it is refused something.
type scenario struct {
	name string
	base []string // refused as well, so that fallbacks are reached
	args []string
	fail int // the status of a run that must not get to a workload, else 0
}

var scenarios = []scenario{
	{name: "runs", args: []string{"-g", "-p", "KILL"}},
	{name: "runs without close_range", base: []string{"close_range"}},
	{name: "runs without close_range and openat", base: []string{"close_range", "openat"}},
	{name: "logs", args: []string{"--log=debug"}},
	{name: "limits", args: []string{"--nofile=100:200", "--rlimit=core=0"}},
	{name: "does not find", fail: 127},
}

// TestRefusedSystemCalls answers every system call that fdinit makes with EPERM and
// with ENOSYS, one at a time. Each time the workload must run as it should, or fdinit
// end with a status of its own and say why.
func TestRefusedSystemCalls(t *testing.T) {
	calls := systemCalls(t)
	for _, must := range []string{"clone", "execve", "rt_sigtimedwait", "wait4", "exit_group", "close_range", "openat", "kill"} {
		if _, ok := calls[must]; !ok {
			t.Errorf("%s is not among the system calls of fdinit: %v", must, calls)
		}
	}
	names := make([]string, 0, len(calls))
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)
	t.Logf("%d system calls: %v", len(names), names)
	for _, name := range names {
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
			for _, s := range scenarios {
				if slices.Contains(s.base, name) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, unix.ErrnoName(errno), strings.ReplaceAll(s.name, " ", "-")), func(t *testing.T) {
					refuse := []refusal{{calls[name], int(errno)}}
					for _, other := range s.base {
						refuse = append(refuse, refusal{calls[other], int(unix.ENOSYS)})
					}
					s.run(t, name, refuse)
				})
			}
		}
	}
}

// ownWords is a message of fdinit's.
var ownWords = regexp.MustCompile(`(?m)^fdinit: .{10,}$`)

func (s scenario) run(t *testing.T, refused string, refuse []refusal) {
	t.Parallel()
	args := slices.Clone(s.args)
	if s.fail != 0 {
		args = append(args, "/nonexistent/program")
	} else {
		args = append(args, probe, "work")
	}
	surroundings := setup{Refuse: refuse, Leaks: []int{3, 5, 9, 40}, Listen: true}
	if !slices.Contains(s.base, "openat") { // the Go runtime must open it, to write a warning
		surroundings.Closed = []int{0}
	}
	b := start(t, surroundings, args...)
	reached := s.fail == 0 && b.reaches(t)
	if reached {
		b.signal(t, unix.SIGUSR1)
		passed := func() bool { return strings.Contains(b.out.String(), "signal 10\n") }
		warned := func() bool { return strings.Contains(b.err.String(), "forwarding SIGUSR1") }
		eventually(t, "USR1 is forwarded, or a warning", func() bool { return passed() || warned() }, b.report)
		if !passed() && refused != "kill" {
			t.Errorf("USR1 was not forwarded\n%s", b.report())
		}
		if err := unix.Kill(b.workload(t), unix.SIGUSR2); err != nil {
			t.Fatal(err)
		}
	}
	got := b.status(t)
	text := b.err.String()
	// The event log's process is an ordinary Go program, which cannot live without these.
	// Its end is not the init's.
	mayCrash := s.name == "logs" && slices.Contains([]string{"rt_sigaction", "fcntl"}, refused)
	if !mayCrash && (strings.Contains(text, "runtime stack:") || strings.Contains(text, "goroutine ")) {
		t.Errorf("the Go runtime crashed\n%s", b.report())
	}
	// Waiting takes next to nothing; a loop would have taken all there is. The copy that
	// finds words is given ten seconds, shared with the tests beside this one.
	if used := b.cmd.ProcessState.UserTime() + b.cmd.ProcessState.SystemTime(); used > 2*time.Second {
		t.Errorf("fdinit used %v of processor time", used)
	}
	switch {
	case got == 7 && reached:
		if mayLeak := refused == "close" || refused == "close_range"; !strings.Contains(b.out.String(), "leaked 3\n") && !mayLeak {
			t.Errorf("what the workload should inherit is descriptor 3\n%s", b.report())
		}
	case got == 125 || got == 126 || got == 127:
		if !ownWords.MatchString(text) && refused != "write" {
			t.Errorf("status %d without a word\n%s", got, b.report())
		}
		if got == 127 && s.fail == 0 {
			t.Errorf("the workload is there\n%s", b.report())
		}
	default:
		t.Errorf("status %d\n%s", got, b.report())
	}
}

// reaches waits until the workload has done what it does, or fdinit has ended.
func (b *box) reaches(t *testing.T) bool {
	t.Helper()
	reached := false
	eventually(t, "the workload works, or fdinit ends", func() bool {
		over := b.ended()
		reached = strings.Contains(b.out.String(), "reaped\n")
		return reached || over
	}, b.report)
	return reached
}
