// Package compat compares fdinit with the programs that it replaces, by running both in the same conditions and looking
// at everything a container could notice: what is printed where, exit statuses, process groups, sessions, the terminal,
// signal masks and dispositions, forwarded signals, descriptors, and what happens to processes that outlive the workload.
//
// The truth is what the real program does, here and now, not what a document says about it. A row of the table is equal,
// or it is one of the deliberate differences: those have their reason in docs/compatibility.md, and the test asserts both
// that they still differ and what fdinit does instead.
//
// It needs root (PID namespaces, mounting /proc) and the peers: apt install tini dumb-init catatonit.
// FDINIT_BINARY names the binary under test. COMPAT_SELF=1 checks the harness instead: every peer against itself, tini
// against tini-static.
package compat

import (
	"errors"
	"flag"
	"fmt"
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
	"testing"

	"golang.org/x/sys/unix"
)

// A persona is a program that fdinit stands in for.
type persona struct {
	name    string // also the file under which fdinit is run
	peer    string // the program to compare with
	twin    string // another build of it, for the test of the harness itself
	version string // what the table was written against
	show    []string
}

var (
	tini      = &persona{"tini", "tini", "tini-static", "tini version 0.19.0", []string{"--version"}}
	dumbInit  = &persona{"dumb-init", "dumb-init", "dumb-init", "dumb-init v1.2.5", []string{"-V"}}
	catatonit = &persona{"catatonit", "catatonit", "catatonit", "tini version 0.1.7_catatonit", []string{"-V"}}
)

type terminal int

const (
	noTerm      terminal = iota // stdin is /dev/null; PID 1 leads its session, as under every engine
	plainGroup                  // the same, but PID 1 leads nothing
	ownTerm                     // stdin and stdout are a terminal, the init leads its session (docker run -t)
	sharedTerm                  // the terminal belongs to the init's parent and the init is in the foreground (a shell)
	backTerm                    // the same, with the init in the background
	foreignTerm                 // the terminal belongs to another session
	looseTerm                   // the terminal belongs to nobody
)

func (t terminal) isTerminal() bool { return t >= ownTerm }

// A row is one documented behaviour.
type row struct {
	id    string
	as    *persona
	argv0 string   // if not the persona's name
	file  string   // "hard link" or "copy" instead of a symbolic link
	args  []string // after argv[0]
	env   []string // NAME=value sets, NAME removes
	child bool     // the init is not PID 1
	in    stage    // what it inherits
	term  terminal
	main  string // the workload's name, if it is not "main"
	// wrapped rows watch a shell that runs script with the init's path as $0.
	wrapped bool
	script  string
	steps   []step
	own     []step // fdinit's steps, where it is to be waited for something else
	// mayHang: the peer is known to hang here.
	mayHang bool
	// anyOrder: two processes print at once, so lines are compared without their order.
	anyOrder bool
	// quiet rows do not compare what is printed, nor what is left.
	quiet bool
	diff  *difference
}

// A difference is deliberate: group is the heading in docs/compatibility.md that gives the reason, keys are the
// observations that differ (every other one must still be equal; a star at the end stands for several of which one must
// differ), and check says what fdinit does.
type difference struct {
	group string
	keys  []string
	check func(peer, ours obs) error
}

func (r row) mainName() string {
	if r.main != "" {
		return r.main
	}
	return "main"
}

func (r row) argv() []string {
	out := []string{r.argv0}
	for _, a := range r.args {
		out = append(out, strings.ReplaceAll(a, "$W", fixtures))
	}
	return out
}

func (r row) environ() []string {
	env := []string{"PATH=" + fixtures + "/bin:/usr/bin:/bin", "HOME=/", "LANG=C"}
	for _, e := range r.env {
		name, _, set := strings.Cut(e, "=")
		env = slices.DeleteFunc(env, func(s string) bool { return strings.HasPrefix(s, name+"=") })
		if set {
			env = append(env, strings.ReplaceAll(e, "$W", fixtures))
		}
	}
	return env
}

// fixtures is the directory that every row works in. It is only read.
var fixtures string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == stageName && len(os.Args) == 2 {
		stageMain()
		return
	}
	// Whatever the test's own parent left open would reach the inits.
	if ents, err := os.ReadDir("/proc/self/fd"); err == nil {
		for _, e := range ents {
			if n, err := strconv.Atoi(e.Name()); err == nil && n > 2 {
				unix.CloseOnExec(n)
			}
		}
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set("test.parallel", "4") // rows mostly wait
	}
	code := 1
	if err := makeFixtures(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
		fmt.Print(summary.String())
	}
	os.RemoveAll(fixtures)
	os.Exit(code)
}

func makeFixtures() error {
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		return err
	}
	fixtures = dir
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	file := func(mode os.FileMode, name, text string) {
		p := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), mode), os.Chmod(p, mode))
	}
	link := func(target, name string) {
		p := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(p), 0o755), os.Symlink(target, p))
	}
	err = os.Chmod(dir, 0o755)
	link(self, "bin/"+stageName)
	for _, a := range actors {
		link(sleep, "bin/"+a)
	}
	file(0o755, "noshebang", "echo no shebang: $0 \"$@\"\n")
	file(0o755, "empty", "")
	file(0o755, "badelf", "\x7fELF")
	file(0o755, "badinterp", "#!/nonexistent/interpreter\n")
	file(0o755, "script", "#!/bin/sh\necho script: $0 \"$@\"\n")
	file(0o755, "longarg", "#!/bin/sh "+strings.Repeat("-", 200)+"\n")
	file(0o644, "plain", "not a program\n")
	file(0o644, "refused/prog", "#!/bin/sh\n")
	file(0o755, "found/prog", "#!/bin/sh\necho found: $0 \"$@\"\n")
	file(0o755, "found/noshebang2", "echo no shebang: $0 \"$@\"\n")
	link("loop", "loop")
	return err
}

// personaFile is fdinit under a peer's name.
var personaFile = sync.OnceValues(func() (string, error) {
	bin := os.Getenv("FDINIT_BINARY")
	if bin == "" {
		bin = "../../bin/fdinit"
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return "", err
	}
	_, err = os.Stat(bin)
	return bin, err
})

var linkMu sync.Mutex

// disguise returns the path of fdinit as a file called name: a symbolic link, a hard link or a copy.
func disguise(kind, name string) (string, error) {
	bin, err := personaFile()
	if err != nil {
		return "", err
	}
	linkMu.Lock()
	defer linkMu.Unlock()
	p := filepath.Join(fixtures, "as", strings.ReplaceAll(kind, " ", ""), filepath.Base(name))
	if _, err := os.Lstat(p); err == nil {
		return p, nil
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return "", err
	}
	switch kind {
	case "":
		return p, os.Symlink(bin, p)
	case "hard link":
		// The binary may be on another file system than the fixtures, so the link is to a copy.
		c, err := copyOnce(bin)
		if err != nil {
			return "", err
		}
		return p, os.Link(c, p)
	default:
		b, err := os.ReadFile(bin)
		if err != nil {
			return "", err
		}
		return p, os.WriteFile(p, b, 0o755)
	}
}

func copyOnce(bin string) (string, error) {
	p := filepath.Join(fixtures, "as", "original")
	if _, err := os.Stat(p); err == nil {
		return p, nil
	}
	b, err := os.ReadFile(bin)
	if err != nil {
		return "", err
	}
	return p, os.WriteFile(p, b, 0o755)
}

// summary counts what the last run saw.
var summary counts

type counts struct {
	mu                       sync.Mutex
	equal, different, failed int
}

func (c *counts) add(n *int) {
	c.mu.Lock()
	*n++
	c.mu.Unlock()
}

func (c *counts) String() string {
	if c.equal+c.different+c.failed == 0 {
		return ""
	}
	return fmt.Sprintf("rows: %d equal, %d deliberately different, %d failing\n", c.equal, c.different, c.failed)
}

func needPeers(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for a PID namespace with its own /proc")
	}
	if testing.Short() {
		t.Skip("starts several thousand processes")
	}
	probe := exec.Command(filepath.Join(fixtures, "bin", stageName))
	probe.Args = stage{Proc: true, Path: "/bin/true", Argv: []string{"true"}}.argv()
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no PID namespace with its own /proc can be made here: %v %s", err, out)
	}
	for _, p := range []*persona{tini, dumbInit, catatonit} {
		path, err := exec.LookPath(p.peer)
		if err != nil {
			t.Skipf("%s is not installed: apt install tini dumb-init catatonit", p.peer)
		}
		out, err := exec.Command(path, p.show...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != p.version {
			t.Skipf("%s is %q, the table was written for %q", p.peer, strings.TrimSpace(string(out)), p.version)
		}
	}
}

func TestRows(t *testing.T) {
	needPeers(t)
	if os.Getenv("COMPAT_SELF") != "" {
		t.Skip("COMPAT_SELF is set: only TestHarness runs")
	}
	if bin, err := personaFile(); err != nil {
		if os.Getenv("FDINIT_BINARY") != "" {
			t.Fatal(err)
		}
		t.Skipf("%s: run make build, or set FDINIT_BINARY", bin)
	}
	for _, r := range table() {
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			defer func() {
				switch {
				case t.Failed():
					summary.add(&summary.failed)
				case r.diff != nil:
					summary.add(&summary.different)
				default:
					summary.add(&summary.equal)
				}
			}()
			peer, err := exec.LookPath(r.as.peer)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := execute(r, peer, true)
			if err != nil {
				t.Fatalf("%s: %v", r.as.peer, err)
			}
			exe, err := disguise(r.file, r.argv0)
			if err != nil {
				t.Fatal(err)
			}
			mine := r
			if r.own != nil {
				mine.steps = r.own
			}
			ours, err := execute(mine, exe, false)
			if err != nil {
				t.Fatalf("fdinit as %s: %v", r.argv0, err)
			}
			judge(t, r, theirs, ours)
		})
	}
}

// judge compares. An observation that only one side has is a difference like any other.
func judge(t *testing.T, r row, theirs, ours obs) {
	t.Helper()
	var allowed []string
	if r.diff != nil {
		allowed = r.diff.keys
	}
	some := false // of those that are listed with a star
	starred := func(k string) bool {
		return slices.ContainsFunc(allowed, func(a string) bool {
			prefix, star := strings.CutSuffix(a, "*")
			return star && strings.HasPrefix(k, prefix)
		})
	}
	for _, k := range keys(theirs, ours) {
		a, okA := theirs[k]
		b, okB := ours[k]
		same := a == b && okA == okB
		switch {
		case starred(k):
			some = some || !same
		case slices.Contains(allowed, k) && same:
			t.Errorf("%s is listed as different (%s) but is the same: %q", k, r.diff.group, a)
		case !slices.Contains(allowed, k) && !same:
			t.Errorf("%s\n\t%-10s %s\n\t%-10s %s", k, r.as.peer, show(a, okA), "fdinit", show(b, okB))
		}
	}
	if r.diff != nil {
		for _, k := range allowed {
			if strings.HasSuffix(k, "*") {
				if !some {
					t.Errorf("nothing of %s differs (%s)", k, r.diff.group)
				}
				continue
			}
			_, okA := theirs[k]
			_, okB := ours[k]
			if !okA && !okB {
				t.Errorf("%s is listed as different but was not observed", k)
			}
		}
		if err := r.diff.check(theirs, ours); err != nil {
			t.Errorf("%s: %v", r.diff.group, err)
		}
	}
}

func show(s string, ok bool) string {
	if !ok {
		return "(not observed)"
	}
	return fmt.Sprintf("%q", s)
}

func keys(maps ...obs) []string {
	set := map[string]bool{}
	for _, m := range maps {
		for k := range m {
			set[k] = true
		}
	}
	var out []string
	for k := range set {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// TestHarness runs every row with a peer on both sides. Whatever is not equal then is chance, and a row that depends on
// chance proves nothing.
func TestHarness(t *testing.T) {
	needPeers(t)
	if os.Getenv("COMPAT_SELF") == "" {
		t.Skip("set COMPAT_SELF=1 to compare every peer with itself")
	}
	for _, r := range table() {
		t.Run(r.id, func(t *testing.T) {
			t.Parallel()
			a, err := exec.LookPath(r.as.peer)
			if err != nil {
				t.Fatal(err)
			}
			b, err := exec.LookPath(r.as.twin)
			if err != nil {
				t.Fatal(err)
			}
			first, err := execute(r, a, true)
			if err != nil {
				t.Fatal(err)
			}
			second, err := execute(r, b, true)
			if err != nil {
				t.Fatal(err)
			}
			r.diff = nil
			judge(t, r, first, second)
			if !t.Failed() {
				summary.add(&summary.equal)
			} else {
				summary.add(&summary.failed)
			}
			if os.Getenv("COMPAT_SHOW") != "" {
				for _, k := range keys(first) {
					t.Logf("%s = %q", k, first[k])
				}
			}
		})
	}
}

// TestTable asserts that ids are unique and that there are as many rows as were promised.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table() {
		if seen[r.id] {
			t.Errorf("two rows are called %s", r.id)
		}
		seen[r.id] = true
		if r.diff != nil && (len(r.diff.keys) == 0 || r.diff.check == nil) {
			t.Errorf("%s: a difference needs the observations that differ and an assertion", r.id)
		}
	}
	if len(seen) < 150 {
		t.Errorf("only %d rows", len(seen))
	}
}

// TestDocument asserts that docs/compatibility.md lists exactly the rows that are deliberately different, each under the
// heading that gives the reason.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, r := range table() {
		if r.diff != nil {
			want[r.id] = r.diff.group
		}
	}
	heading := regexp.MustCompile("^### .*\\(`([a-z0-9-]+)`\\)$")
	id := regexp.MustCompile("`([a-z-]+/[^`]+)`")
	got := map[string]string{}
	group, inRows := "", false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			group = ""
			if m := heading.FindStringSubmatch(line); m != nil {
				group = m[1]
			}
		}
		if strings.HasPrefix(line, "Rows:") {
			inRows = true
		}
		if line == "" {
			inRows = false
		}
		if !inRows {
			continue
		}
		for _, m := range id.FindAllStringSubmatch(line, -1) {
			for _, r := range expand(m[1]) {
				if old, ok := got[r]; ok {
					t.Errorf("%s is listed twice, under %s and %s", r, old, group)
				}
				got[r] = group
			}
		}
	}
	missing := map[string][]string{}
	for r, g := range want {
		if got[r] != g {
			missing[g] = append(missing[g], "`"+r+"`")
		}
	}
	for g, rows := range missing {
		sort.Strings(rows)
		t.Errorf("not listed under (`%s`): %s", g, strings.Join(rows, ", "))
	}
	for r, g := range got {
		if want[r] != g {
			t.Errorf("%s is listed under %q, but the table says %q", r, g, want[r])
		}
	}
}

// expand writes out a{b,c}d as a shell would, so that the document stays readable.
func expand(s string) []string {
	before, rest, ok := strings.Cut(s, "{")
	if !ok {
		return []string{s}
	}
	choices, after, _ := strings.Cut(rest, "}")
	var out []string
	for _, c := range strings.Split(choices, ",") {
		for _, tail := range expand(after) {
			out = append(out, before+c+tail)
		}
	}
	return out
}
