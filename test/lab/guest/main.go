// The guest is what runs inside the lab's machines. It plays several parts, told apart
// by its first argument:
//
//	boot      the first process that the kernel starts: it puts itself into the state in
//	          which containers start on an unlucky host and then becomes fdinit
//	agent     fdinit's workload: it runs the scenarios and writes TAP to the second
//	          serial port
//	exit N    a workload that exits
//
// It has no use outside of the lab.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
	"golang.org/x/sys/unix"
)

func main() {
	container.RunStage()
	if len(os.Args) < 2 {
		fail(fmt.Errorf("no part to play"))
	}
	var err error
	switch os.Args[1] {
	case "boot":
		err = boot()
	case "agent":
		err = agent()
	case "exit":
		var status int
		if status, err = strconv.Atoi(os.Args[2]); err == nil {
			os.Exit(status)
		}
	default:
		err = fmt.Errorf("unknown part %q", os.Args[1])
	}
	fail(err)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "guest:", err)
	os.Exit(100)
}

// bootLimit and the descriptors are what the machine's first process inherits.
var (
	bootLimit  = container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}
	bootOpen   = 500
	bootOpenAt = []int{1000000}
)

// bootFacts is where the limits that the agent was started with are kept for it: the Go
// runtime raises the soft limit before main.
const bootFacts = "/tmp/limits"

// boot prepares the machine and becomes fdinit.
func boot() error {
	for _, m := range []struct{ kind, at string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}, {"cgroup2", "/sys/fs/cgroup"},
	} {
		os.MkdirAll(m.at, 0o755)
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	os.Chmod("/tmp", 0o1777)
	for _, m := range []struct{ kind, at, options string }{
		{"tmpfs", "/dev/shm", "mode=1777"}, {"devpts", "/dev/pts", "ptmxmode=0666"},
	} {
		os.MkdirAll(m.at, 0o755)
		if err := unix.Mount(m.kind, m.at, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := unix.Sethostname([]byte("lab")); err != nil {
		return fmt.Errorf("hostname: %w", err)
	}
	if err := container.SetNrOpen(plan.Infinity); err != nil {
		return err
	}
	return container.Exec(&container.Spec{
		InPlace: true,
		Limit:   &bootLimit,
		Open:    bootOpen,
		OpenAt:  bootOpenAt,
		Env:     environment,
		Argv: []string{
			plan.Init, plan.Busybox, "sh", "-c",
			"(ulimit -Sn; ulimit -Hn) >" + bootFacts + "; exec " + plan.Guest + " agent",
		},
	}, nil)
}

var environment = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + plan.Dir,
	"HOME=/root",
	"LC_ALL=C",
}

// lab is what scenarios work with.
type lab struct {
	*tap.Writer
	plan  plan.Plan
	match *regexp.Regexp
}

// check runs one test, unless it is not wanted.
func (l *lab) check(name string, test func() error) {
	if !l.match.MatchString(name) {
		return
	}
	l.Test(name, test())
}

var scenarios = map[string]func(*lab){
	"boot":       (*lab).boot,
	"limits":     (*lab).limits,
	"sweep":      (*lab).sweep,
	"programs":   (*lab).programs,
	"e2e":        (*lab).e2e,
	"strategies": (*lab).strategies,
}

// agent runs what the plan names. Its exit status, plan.Done, becomes that of fdinit and
// so the one that the kernel's panic names.
func agent() error {
	b, err := os.ReadFile(plan.File)
	if err != nil {
		return err
	}
	l := new(lab)
	if err := json.Unmarshal(b, &l.plan); err != nil {
		return err
	}
	if l.match, err = regexp.Compile(l.plan.Match); err != nil {
		return err
	}
	port, err := os.OpenFile("/dev/ttyS1", os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := raw(port); err != nil {
		return err
	}
	l.Writer = tap.NewWriter(port)
	for _, name := range l.plan.Scenarios {
		run, ok := scenarios[name]
		if !ok {
			return fmt.Errorf("unknown scenario %q", name)
		}
		start := container.Now()
		run(l)
		l.Comment("%s: %.1f s", name, float64(container.Now()-start)/1e9)
	}
	l.End()
	// Everything must be on the wire before the machine goes down.
	if err := unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	os.Exit(plan.Done)
	return nil
}

// raw stops the terminal layer from changing what is written.
func raw(port *os.File) error {
	t, err := unix.IoctlGetTermios(int(port.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	t.Lflag = 0
	return unix.IoctlSetTermios(int(port.Fd()), unix.TCSETS, t)
}
