package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tracer starts a debugger, which must be a process of its own: a parent's waiting would
// take the stops away from a thread of its own that traces.
func tracer(t testing.TB, b *box, how string) (output *output, release func()) {
	t.Helper()
	cmd := exec.Command(probe, "trace", how, decimal(b.pid()))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output = &b.tracer
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	return output, func() {
		t.Helper()
		in.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("tracing: %v\n%s", err, output)
			}
		case <-time.After(patience):
			t.Fatalf("the tracer does not end\n%s", b.report())
		}
	}
}

func traced(how string) func(*testing.T, *box) func() {
	return func(t *testing.T, b *box) func() {
		_, release := tracer(t, b, how)
		b.until(t, 't')
		return release
	}
}

// halt is a way to keep process 1 from running, and how to let it go on.
type halt struct {
	name   string
	during func(t *testing.T, b *box) (resume func())
}

var halts = []halt{
	{"stop", func(t *testing.T, b *box) func() {
		b.signal(t, unix.SIGSTOP)
		b.until(t, 'T')
		return func() { b.signal(t, unix.SIGCONT) }
	}},
	{"seized by a debugger", traced("seize")},
	{"attached to by a debugger", traced("attach")},
	{"freezer", func(t *testing.T, b *box) func() {
		// This is what CRIU and docker pause do first.
		dir := cgroup(t, "freezer", nil)
		write := func(file, text string) {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0) })
		write("cgroup.procs", decimal(b.pid()))
		write("freezer.state", "FROZEN")
		eventually(t, "it is frozen", func() bool {
			state, err := os.ReadFile(filepath.Join(dir, "freezer.state"))
			return err == nil && strings.TrimSpace(string(state)) == "FROZEN"
		}, b.report)
		return func() { write("freezer.state", "THAWED") }
	}},
}

func (b *box) until(t testing.TB, states ...byte) {
	t.Helper()
	eventually(t, "process 1 is in state "+string(states), func() bool { return slices.Contains(states, stateOf(b.pid())) }, b.report)
}

// TestHaltedInit keeps process 1 from running in every way there is, while signals and
// orphans arrive, and wants nothing lost when it goes on, three times over.
func TestHaltedInit(t *testing.T) {
	for _, h := range halts {
		t.Run(h.name, func(t *testing.T) {
			b := start(t, setup{Block: blockable()}, probe, "chaos")
			b.says(t, "ready\n")
			workload := b.workload(t)
			for round := 1; round <= 3; round++ {
				resume := h.during(t, b)
				b.tell(t, "orphan %d 0", round)
				for n := 1; n <= 5; n++ {
					mustQueue(t, b, 40, 10*round+n)
				}
				eventually(t, "a zombie waits", func() bool { return len(b.children(t)) == 2 }, b.report)
				resume()
				for n := 1; n <= 5; n++ {
					b.says(t, "signal 40 -1 "+decimal(10*round+n)+"\n")
				}
				eventually(t, "the orphan is reaped", func() bool { return slices.Equal(b.children(t), []int{workload}) }, b.report)
			}
			resume := h.during(t, b)
			b.tell(t, "exit 11")
			eventually(t, "the workload is a zombie", func() bool { return stateOf(workload) == 'Z' }, b.report)
			time.Sleep(10 * time.Millisecond)
			if b.ended() {
				t.Fatal("process 1 was halted, but it ended")
			}
			resume()
			b.wantStatus(t, 11)
			if text := b.err.String(); text != "" {
				t.Errorf("on stderr: %s", text)
			}
		})
	}
}
