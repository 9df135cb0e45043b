package hostile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestChaos does random things to an init and its workload, round after round, and
// compares what came of them with a model that knows what was done: each orphan's end,
// each real-time signal with its value and place, each standard signal's kind, and the
// status in the end. A round is made from its seed, which a failure names: repeat it with
// -seed.
func TestChaos(t *testing.T) {
	if *seed != 0 {
		playRound(t, uint64(*seed))
		return
	}
	const players = 2
	deadline := time.Now().Add(*chaos)
	var next, rounds atomic.Int64
	next.Store(time.Now().UnixNano())
	var total tally
	t.Run("rounds", func(t *testing.T) {
		for range players {
			t.Run("player", func(t *testing.T) {
				t.Parallel()
				for time.Now().Before(deadline) && !t.Failed() {
					s := uint64(next.Add(1))
					t.Run(fmt.Sprint(s), func(t *testing.T) { total.add(playRound(t, s)) })
					rounds.Add(1)
				}
			})
		}
	})
	t.Logf("%d rounds: %d orphans, %d signals, %d halts", rounds.Load(), total.orphans.Load(), total.signals.Load(), total.halts.Load())
	if rounds.Load() == 0 || total.orphans.Load() == 0 || total.signals.Load() == 0 || total.halts.Load() == 0 {
		t.Error("nothing was tested")
	}
}

type tally struct{ orphans, signals, halts atomic.Int64 }

func (all *tally) add(m *model) {
	all.orphans.Add(int64(m.orphans))
	all.signals.Add(int64(m.signals))
	all.halts.Add(int64(m.halts))
}

// model is what must come of a round.
type model struct {
	*rand.Rand
	ends     map[int]int   // how many orphans were to end so
	queued   map[int][]int // the values sent, by real-time signal
	standard map[int]int   // how many were sent, by standard signal

	orphans, signals, halts int
}

// survivor is how long, in microseconds, orphans live that the end of the round may
// find alive.
const survivor = 900_000

func playRound(t *testing.T, s uint64) *model {
	m := &model{Rand: rand.New(rand.NewPCG(s, 0)), ends: map[int]int{}, queued: map[int][]int{}, standard: map[int]int{}}
	b := start(t, setup{Block: blockable()}, "--log=debug", "--log-format=json", probe, "chaos")
	b.says(t, "ready\n")
	workload := b.workload(t)
	group := cgroup(t, "freezer", nil)
	t.Cleanup(func() { os.WriteFile(filepath.Join(group, "freezer.state"), []byte("THAWED"), 0) })
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(decimal(b.pid())), 0); err != nil {
		t.Fatal(err)
	}
	for range 20 + m.IntN(300) {
		m.act(t, b, workload, group)
	}
	m.check(t, b)
	want := m.end(t, b, workload)
	if got := b.status(t); got != want {
		t.Errorf("the init's status is %d instead of %d\n%s", got, want, b.report())
	}
	m.checkEnd(t, b, want)
	return m
}

// act does one random thing.
func (m *model) act(t *testing.T, b *box, workload int, group string) {
	send := func(pid int, sig unix.Signal) {
		if err := unix.Kill(pid, sig); err != nil {
			t.Fatalf("%v to %d: %v\n%s", sig, pid, err, b.report())
		}
	}
	pause := func() { time.Sleep(time.Duration(m.IntN(2000)) * time.Microsecond) }
	switch n := m.IntN(100); {
	case n < 40:
		end := m.IntN(256)
		if m.IntN(3) == 0 {
			ways := []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGKILL, unix.SIGSEGV, unix.SIGPIPE, unix.SIGTERM}
			end = 256 + int(ways[m.IntN(len(ways))])
		}
		m.ends[end]++
		m.orphans++
		b.tell(t, "orphan %d %d", end, m.IntN(3000))
	case n < 42:
		b.tell(t, "orphan 0 %d", survivor)
	case n < 70:
		sig := 35 + m.IntN(30)
		m.signals++
		m.queued[sig] = append(m.queued[sig], m.signals)
		mustQueue(t, b, sig, m.signals)
	case n < 80:
		sig := []unix.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH}[m.IntN(3)]
		m.signals++
		m.standard[int(sig)]++
		send(b.pid(), sig)
	case n < 85:
		m.halts++
		send(b.pid(), unix.SIGSTOP)
		pause()
		send(b.pid(), unix.SIGCONT) // is forwarded, too
	case n < 90:
		m.halts++
		send(workload, unix.SIGSTOP)
		pause()
		send(workload, unix.SIGCONT)
	case n < 93:
		m.halts++
		for _, state := range []string{"FROZEN", "THAWED"} {
			if err := os.WriteFile(filepath.Join(group, "freezer.state"), []byte(state), 0); err != nil {
				t.Fatal(err)
			}
			pause()
		}
	case n < 94:
		m.halts++
		_, release := tracer(t, b, []string{"seize", "attach"}[m.IntN(2)])
		pause()
		release()
	default:
		pause()
	}
}

// event is what a line of the init's log has that counts here.
type event struct {
	Event, Signal, Msg   string
	Pid, Status, Dropped int
}

func (b *box) events(t *testing.T) []event {
	t.Helper()
	var all []event
	text := b.err.String()
	text = text[:strings.LastIndexByte(text, '\n')+1]
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("the log has %q: %v", line, err)
		}
		if e.Dropped != 0 {
			t.Fatalf("the log lost events: %s", line)
		}
		all = append(all, e)
	}
	return all
}

// ended is how a process ended by a line of the log, in the way of the probe: a status
// or 256 plus a signal.
func (e event) ended() int {
	if e.Signal != "" {
		return 256 + int(unix.SignalNum(e.Signal))
	}
	return e.Status
}

// check waits until all that was done has come to its end, and compares.
func (m *model) check(t *testing.T, b *box) {
	t.Helper()
	problem := ""
	eventually(t, "the model's state", func() bool {
		if b.ended() {
			t.Fatalf("it ended early\n%s", b.report())
		}
		problem = m.compare(t, b)
		return problem == ""
	}, func() string { return problem + "\n" + b.report() })
}

// compare tells what is still missing. What can never become right is fatal.
func (m *model) compare(t *testing.T, b *box) string {
	pids := map[int]int{}   // the end of each orphan by its number
	ends := map[int]int{}   // as in the model
	values := map[int]int{} // how many came, by real-time signal
	seen := map[int]int{}
	out := b.out.String()
	for line := range strings.Lines(out[:strings.LastIndexByte(out, '\n')+1]) {
		var sig, code, value, pid, end int
		if n, _ := fmt.Sscanf(line, "orphan %d %d", &pid, &end); n == 2 {
			pids[pid] = end
			ends[end]++
		} else if n, _ := fmt.Sscanf(line, "signal %d %d %d", &sig, &code, &value); n == 3 && sig >= 34 {
			sent := m.queued[sig]
			if values[sig] >= len(sent) || sent[values[sig]] != value || code != -1 {
				t.Fatalf("signal %d came with value %d, code %d; sent were %v, and %d came before", sig, value, code, sent, values[sig])
			}
			values[sig]++
		} else if n == 3 {
			seen[sig]++
		}
	}
	for sig, sent := range m.queued {
		if values[sig] != len(sent) {
			return fmt.Sprintf("of %d signals %d came %d", len(sent), sig, values[sig])
		}
	}
	for sig, n := range seen {
		if n > m.standard[sig] && sig != int(unix.SIGCHLD) && sig != int(unix.SIGCONT) && sig != int(unix.SIGURG) {
			t.Fatalf("signal %d was sent %d times and came %d times", sig, m.standard[sig], n)
		}
	}
	for sig := range m.standard {
		if seen[sig] == 0 {
			return fmt.Sprintf("signal %d never came", sig)
		}
	}
	for end, n := range m.ends {
		if ends[end] < n { // survivors end with 0, too
			return fmt.Sprintf("%d orphans were to end with %d, %d were made", n, end, ends[end])
		}
	}
	reaped := map[int]int{}
	for _, e := range b.events(t) {
		if e.Event != "reaped" {
			continue
		}
		reaped[e.ended()]++
		if end, known := pids[e.Pid]; known && end != e.ended() {
			t.Fatalf("process %d ended with %d, but was reaped with %d", e.Pid, end, e.ended())
		}
	}
	for end, n := range m.ends {
		if reaped[end] < n {
			return fmt.Sprintf("%d orphans ended with %d, %d were reaped", n, end, reaped[end])
		}
	}
	return ""
}

// end ends the workload in a random way and returns what the init's status must be.
func (m *model) end(t *testing.T, b *box, workload int) int {
	switch m.IntN(4) {
	case 0:
		b.tell(t, "orphan 0 %d", survivor)
		fallthrough
	case 1:
		status := m.IntN(256)
		b.tell(t, "exit %d", status)
		return status
	case 2:
		ways := []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGABRT, unix.SIGUSR1, 40}
		sig := ways[m.IntN(len(ways))]
		b.tell(t, "die %d", sig)
		return 128 + int(sig)
	default:
		if err := unix.Kill(workload, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return 128 + int(unix.SIGKILL)
	}
}

func (m *model) checkEnd(t *testing.T, b *box, want int) {
	t.Helper()
	for _, e := range b.events(t) {
		if e.Event != "workload-ended" {
			continue
		}
		got := e.Status
		if e.Signal != "" {
			got = 128 + int(unix.SignalNum(e.Signal))
			if e.Signal == "SIGRTMIN+6" {
				got = 128 + 40
			}
		}
		if got != want {
			t.Errorf("the log says that the workload ended with %d instead of %d", got, want)
		}
		return
	}
	t.Errorf("the log does not tell the workload's end\n%s", b.report())
}
