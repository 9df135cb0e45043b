package container

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	RunStage()
	os.Exit(m.Run())
}

func start(t *testing.T, spec Spec, script string) *Process {
	t.Helper()
	return startWith(t, spec, script, nil)
}

func startWith(t *testing.T, spec Spec, script string, output io.Writer) *Process {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	spec.Argv = []string{"/bin/sh", "-c", script}
	spec.Env = []string{"PATH=/usr/bin:/bin"}
	p, err := Start(&spec, output)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

func end(t *testing.T, p *Process) string {
	t.Helper()
	if _, err := p.Wait(5 * time.Minute); err != nil {
		t.Fatal(err)
	}
	return p.Output()
}

func TestFirstProcess(t *testing.T) {
	p := start(t, Spec{}, "echo $$; exit 3")
	if got := end(t, p); got != "1" {
		t.Errorf("process %q", got)
	}
	if got := p.Usage().Status; got != 3 {
		t.Errorf("exit status %d", got)
	}
}

func TestConditions(t *testing.T) {
	// Until it says something the shell may have its libraries open, for all that is known.
	said := make(writes, 10)
	p := startWith(t, Spec{
		Limit:  &Limit{900, 1000},
		Open:   500,
		OpenAt: []int{850},
		Lower:  &Limit{64, 800},
	}, "echo ready; read x", said)
	select {
	case <-said:
	case <-p.Ended():
		t.Fatal("the shell has ended")
	case <-time.After(5 * time.Minute):
		t.Fatal("no sign of life")
	}
	limit, err := LimitOf(p.PID())
	if err != nil || limit != (Limit{64, 800}) {
		t.Errorf("limit %v, %v", limit, err)
	}
	fds, err := DescriptorsOf(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if len(fds) != 3+500+1 || slices.Max(fds) != 850 {
		t.Errorf("%d descriptors: %v", len(fds), fds)
	}
	p.Release()
	end(t, p)
}

// writes tells that something was written.
type writes chan bool

func (w writes) Write(b []byte) (int, error) {
	select {
	case w <- true:
	default:
	}
	return len(b), nil
}

func TestNoProc(t *testing.T) {
	p := start(t, Spec{NoProc: true}, "test ! -e /proc/self && echo none")
	if got := end(t, p); got != "none" {
		t.Errorf("/proc: %q", got)
	}
}

func TestRefusedCall(t *testing.T) {
	p := start(t, Spec{Refuse: []uint32{unix.SYS_UNAME, unix.SYS_CHDIR}, Errno: unix.EPERM}, "cd /tmp; uname")
	if got := end(t, p); strings.Count(got, "ermitted") != 2 && !strings.Contains(got, "cannot get system name") {
		t.Errorf("%q", got)
	}
}

func TestDroppedCapability(t *testing.T) {
	p := start(t, Spec{DropResource: true}, "grep Cap /proc/self/status")
	for line := range strings.Lines(end(t, p)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		// CAP_SYS_RESOURCE is 24: bit 0 of the seventh digit from the right.
		if digit := value[len(value)-7]; strings.ContainsRune("13579bdf", rune(digit)) {
			t.Errorf("%s is %s", name, value)
		}
	}
}

func TestKill(t *testing.T) {
	p := start(t, Spec{}, "sleep 1000 & sleep 1000")
	if _, err := p.Wait(50 * time.Millisecond); err != ErrBound {
		t.Errorf("ended early: %v", err)
	}
	if got := p.Kill().Status; got != 128+9 {
		t.Errorf("exit status %d", got)
	}
}
