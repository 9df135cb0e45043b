package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/debian"
	"github.com/fdinit/fdinit/test/lab/internal/image"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
	"github.com/fdinit/fdinit/test/lab/internal/vm"
)

// kernels are those that the lab boots, the one that the short form uses first.
var kernels = []struct{ name, suite, why string }{
	{"6.1", "bookworm", "Debian 12"},
	{"5.10", "bullseye", "Debian 11: close_range(2) without CLOSE_RANGE_CLOEXEC"},
	{"6.12", "trixie", "Debian 13"},
}

func kernelNames() (names []string) {
	for _, k := range kernels {
		names = append(names, k.name)
	}
	return names
}

// scenario is something that the lab can do.
type scenario struct {
	name  string
	short bool // belongs to the short form
	run   func(*lab) error
}

var scenarios = []scenario{
	{"core", true, (*lab).core},
	{"bare", false, (*lab).bare},
	{"programs", true, (*lab).programs},
	{"native", false, (*lab).native},
	{"gvisor", false, (*lab).gvisor},
	{"e2e", false, (*lab).e2e},
	{"strategies", false, (*lab).strategies},
}

func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// outcome is the results of one scenario in one place.
type outcome struct {
	Scenario string     `json:"scenario"`
	Where    string     `json:"where"`
	Seconds  float64    `json:"seconds"`
	Tests    []tap.Test `json:"tests"`
	Facts    []tap.Fact `json:"facts"`
}

// lab is one run of the lab.
type lab struct {
	options
	root     string // of the project
	dir      string // temporary
	guest    string
	version  string
	suites   map[string]*debian.Suite
	releases map[string]string // of the kernels
	outcomes []outcome
}

// tools are the programs that the lab starts and the packages that have them.
var tools = []struct{ program, pkg string }{
	{"go", "golang-go"},
	{"apt-get", "apt"},
	{"apt-cache", "apt"},
	{"dpkg-deb", "dpkg"},
	{"tar", "tar"},
	{vm.Emulator, "qemu-system-x86"},
}

func need(program, pkg string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is missing: apt-get install %s", program, pkg)
	}
	return nil
}

func projectRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	// Two folders above the lab's own module.
	return filepath.Dir(filepath.Dir(filepath.Dir(strings.TrimSpace(string(out))))), nil
}

func newLab(o options) (*lab, error) {
	for _, t := range tools {
		if err := need(t.program, t.pkg); err != nil {
			return nil, err
		}
	}
	l := &lab{options: o, suites: map[string]*debian.Suite{}, releases: map[string]string{}}
	var err error
	if l.root, err = projectRoot(); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "fdinit-lab-"); err != nil {
		return nil, err
	}
	if err := l.build(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() { os.RemoveAll(l.dir) }

// build builds fdinit as the project's Makefile does, and the guest.
func (l *lab) build() error {
	if l.fdinit == "" {
		l.fdinit = filepath.Join(l.dir, "fdinit")
		if err := goBuild(l.root, l.fdinit, "./cmd/fdinit",
			"-s -w -buildid= -E=github.com/fdinit/fdinit/internal/freestanding.Entry"); err != nil {
			return err
		}
	}
	l.guest = filepath.Join(l.dir, "guest")
	if err := goBuild(filepath.Join(l.root, "test/lab"), l.guest, "./guest", "-s -w"); err != nil {
		return err
	}
	out, err := exec.Command(l.fdinit, "--version").Output()
	l.version = strings.TrimSpace(string(out))
	return err
}

func goBuild(dir, out, pkg, linkerFlags string) error {
	return goTool(dir, "build", "-ldflags="+linkerFlags, "-o", out, pkg)
}

func goTestBuild(dir, out, pkg string) error {
	return goTool(dir, "test", "-c", "-o", out, pkg)
}

func goTool(dir, verb string, args ...string) error {
	cmd := exec.Command("go", append([]string{verb, "-trimpath", "-buildvcs=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s in %s: %w\n%s", verb, dir, err, said)
	}
	return nil
}

func (l *lab) wants(name string) bool {
	if l.only != nil {
		return slices.Contains(l.only, name)
	}
	for _, s := range scenarios {
		if s.name == name {
			return s.short || !l.short
		}
	}
	return false
}

func (l *lab) wantsKernel(name string) bool { return slices.Contains(l.kernels, name) }

func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "lab: "+format+"\n", args...)
}

func (l *lab) suite(name string) (*debian.Suite, error) {
	if s := l.suites[name]; s != nil {
		return s, nil
	}
	s, err := debian.Open(l.cache, name)
	if err == nil {
		l.suites[name] = s
	}
	return s, err
}

// boot is one start of a machine.
type boot struct {
	scenario string
	kernel   string
	root     string // a tree to put below the lab's own files, or none
	extra    func(*image.Image) error
	init     string // plan.Guest if empty
	args     []string
	plan     plan.Plan
	memory   int
	bound    time.Duration
}

// boot boots a machine.
func (l *lab) boot(b boot) (*vm.Result, error) {
	i := slices.Index(kernelNames(), b.kernel)
	suite, err := l.suite(kernels[i].suite)
	if err != nil {
		return nil, err
	}
	kernel, release, err := suite.Kernel()
	if err != nil {
		return nil, err
	}
	l.releases[b.kernel] = release
	initrd, err := l.initrd(b)
	if err != nil {
		return nil, err
	}
	defer os.Remove(initrd)
	if b.init == "" {
		b.init, b.args = plan.Guest, []string{"boot"}
	}
	l.say("booting %s for %s", release, b.scenario)
	r, err := vm.Boot(vm.Machine{
		Kernel: kernel, Initrd: initrd, Init: b.init, Args: b.args,
		Memory: b.memory, Accelerator: l.accelerator, Bound: b.bound,
		Observe: func(line string) { fmt.Println(line) },
	})
	if l.verbose && r != nil {
		fmt.Fprintln(os.Stderr, r.Console)
	}
	return r, err
}

// run boots a machine that runs a plan, and keeps what it says.
func (l *lab) run(b boot) error {
	b.plan.Short, b.plan.Match = l.short, l.match
	r, err := l.boot(b)
	if r == nil {
		return err
	}
	o := outcome{Scenario: b.scenario, Where: l.releases[b.kernel], Seconds: r.Wall.Seconds(), Tests: r.Log.Tests, Facts: r.Log.Facts}
	end := tap.Test{Name: "machine: it ran to its end, and process 1 with its workload's status", OK: true}
	switch {
	case err != nil:
		end.OK, end.Problem = false, err.Error()
	case !r.Log.Complete:
		end.OK, end.Problem = false, "the plan was not finished:\n"+lastLines(r.Console, 20)
	case r.Status != plan.Done:
		end.OK, end.Problem = false, fmt.Sprintf("exit status %d instead of %d", r.Status, plan.Done)
	}
	o.Tests = append(o.Tests, end)
	l.outcomes = append(l.outcomes, o)
	return nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// initrd writes the machine's initial file system.
func (l *lab) initrd(b boot) (name string, err error) {
	busybox, err := l.busybox()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(l.dir, "initrd-")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if b.root != "" {
		i := image.New(f)
		if err := i.Tree("/", b.root, unneeded); err != nil {
			return "", err
		}
		if err := i.Close(); err != nil {
			return "", err
		}
	}
	var own bytes.Buffer
	i := image.New(&own)
	encoded, err := json.Marshal(b.plan)
	if err != nil {
		return "", err
	}
	for _, add := range []func() error{
		func() error { return i.Copy(plan.Init, l.fdinit) },
		func() error { return i.Copy(plan.Guest, l.guest) },
		func() error { return i.Copy(plan.Busybox, busybox) },
		func() error { return i.File(plan.File, 0o644, encoded) },
		func() error { return i.Dir("/root", 0o700) },
		func() error {
			if b.extra == nil {
				return nil
			}
			return b.extra(i)
		},
		i.Close,
	} {
		if err := add(); err != nil {
			return "", err
		}
	}
	_, err = io.Copy(f, &own)
	return f.Name(), err
}

// unneeded are the parts of Debian's packages that no scenario looks at.
func unneeded(name string) bool {
	for _, d := range []string{"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "boot", "usr/lib/modules", "dev"} {
		if name == d {
			return true
		}
	}
	return false
}

// busybox is a static one, so that it runs with or without a tree below it.
func (l *lab) busybox() (string, error) {
	suite, err := l.suite(kernels[0].suite)
	if err != nil {
		return "", err
	}
	root, err := suite.Root("busybox-static")
	return filepath.Join(root, "bin/busybox"), err
}

// core is what every kernel must show.
func (l *lab) core() error {
	for _, k := range l.kernels {
		if err := l.run(boot{
			scenario: "core", kernel: k,
			plan:   plan.Plan{Scenarios: []string{"boot", "limits", "sweep"}},
			memory: 4096, bound: time.Hour,
		}); err != nil {
			return err
		}
	}
	return nil
}

// bare boots machines whose kernel starts fdinit itself: nothing is mounted, there is no
// /dev/null and no environment worth the name. What the kernel says when process 1 ends
// must be the workload's status.
func (l *lab) bare() error {
	cases := []struct {
		what   string
		args   []string
		status int
		says   string
	}{
		{"the workload's exit status", []string{plan.Guest, "exit", "42"}, 42, ""},
		{"success", []string{plan.Guest, "exit", "0"}, 0, ""},
		{"a command that is not there", []string{"/no/such/program"}, 127, "fdinit: exec /no/such/program"},
		{"an option that is not there", []string{"--no-such-option", plan.Guest, "exit", "0"}, 125, "--no-such-option"},
	}
	for _, k := range l.kernels {
		o := outcome{Scenario: "bare"}
		for _, c := range cases {
			r, err := l.boot(boot{scenario: "bare", kernel: k, init: plan.Init, args: c.args, memory: 512, bound: 20 * time.Minute})
			if r == nil {
				return err
			}
			t := tap.Test{Name: "bare: " + c.what, OK: true}
			switch {
			case err != nil:
				t.OK, t.Problem = false, err.Error()
			case r.Status != c.status:
				t.OK, t.Problem = false, fmt.Sprintf("exit status %d instead of %d:\n%s", r.Status, c.status, lastLines(r.Console, 10))
			case !strings.Contains(r.Console, c.says):
				t.OK, t.Problem = false, fmt.Sprintf("no word of %q:\n%s", c.says, lastLines(r.Console, 10))
			}
			fmt.Println(t.Name, t.OK)
			o.Tests = append(o.Tests, t)
			o.Seconds += r.Wall.Seconds()
		}
		o.Where = l.releases[k]
		l.outcomes = append(l.outcomes, o)
	}
	return nil
}

// verdict is an error if any test failed.
func (l *lab) verdict() error {
	var passed, failed, skipped int
	for _, o := range l.outcomes {
		for _, t := range o.Tests {
			switch {
			case t.Skipped != "":
				skipped++
			case t.OK:
				passed++
			default:
				failed++
				fmt.Fprintf(os.Stderr, "FAIL %s, %s: %s\n     %s\n", o.Scenario, o.Where, t.Name, strings.ReplaceAll(t.Problem, "\n", "\n     "))
			}
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	if passed == 0 {
		return fmt.Errorf("no test was run")
	}
	return nil
}
