package hostile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blockable are the signals that a workload can receive through signalfd(2) although the
// Go runtime it is written with wants some for itself.
func blockable() []int {
	signals := []int{10, 12, 28}
	for n := 35; n <= 64; n++ { // the runtime unblocks 34, as C libraries use it
		signals = append(signals, n)
	}
	return signals
}

// queue sends a signal with a value, as sigqueue(3) does.
func queue(pid int, sig, value int) error {
	info := [128]byte{}
	binary.NativeEndian.PutUint32(info[0:], uint32(sig))
	code := int32(-1) // SI_QUEUE
	binary.NativeEndian.PutUint32(info[8:], uint32(code))
	binary.NativeEndian.PutUint32(info[24:], uint32(value))
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// mustQueue sends a signal with a value to process 1. The room for pending signals is
// counted by user: others of the same user may fill it for a moment.
func mustQueue(t testing.TB, b *box, sig, value int) {
	t.Helper()
	var err error
	eventually(t, "there is room for a signal", func() bool {
		err = queue(b.pid(), sig, value)
		return !errors.Is(err, unix.EAGAIN)
	}, b.report)
	if err != nil {
		t.Fatalf("sending signal %d with value %d: %v\n%s", sig, value, err, b.report())
	}
}

func amount(short, full int) int {
	if *long {
		return full
	}
	return short
}

// TestManySignals sends real-time signals with consecutive values, which the workload
// checks one by one, between standard ones, which may merge, but of which the last
// must arrive. No more are under way than RLIMIT_SIGPENDING allows: above, the kernel
// itself drops them.
func TestManySignals(t *testing.T) {
	n := amount(50_000, 1_000_000)
	const inFlight = 2000
	b := start(t, setup{Block: blockable()}, probe, "count")
	b.says(t, "ready\n")
	for i := 1; i <= n; i++ {
		mustQueue(t, b, 40, i)
		if i%100 == 0 {
			b.signal(t, unix.SIGUSR1)
		}
		if i%1000 == 0 && i > inFlight {
			b.says(t, fmt.Sprintf("counted %d\n", i-inFlight))
		}
	}
	b.says(t, fmt.Sprintf("counted %d\n", n))
	b.signal(t, unix.SIGUSR2)
	b.says(t, "others ")
	if strings.Contains(b.out.String(), "others 0\n") {
		t.Error("no standard signal arrived")
	}
	b.tell(t, "3")
	b.wantStatus(t, 3)
	if text := b.err.String(); text != "" {
		t.Errorf("on stderr: %s", text)
	}
}

// TestManyOrphans wants every orphan reaped, and nothing left when the workload ends.
func TestManyOrphans(t *testing.T) {
	n := amount(10_000, 100_000)
	b := start(t, setup{}, probe, "orphans", fmt.Sprint(n))
	most := 0
	eventually(t, "all orphans are made", func() bool {
		most = max(most, len(b.children(t)))
		if b.ended() {
			t.Fatalf("it ended\n%s", b.report())
		}
		return strings.Contains(b.out.String(), "made ")
	}, b.report)
	eventually(t, "only the workload is left", func() bool { return len(b.children(t)) == 1 }, b.report)
	t.Logf("at most %d children at a time were seen", most)
	b.tell(t, "5")
	b.wantStatus(t, 5)
}

// TestSignalsWithoutAPause keeps SIGHUP pending for ever, as "while kill -HUP 1; do :;
// done" does on a machine with processors to spare: it is sent again before each system
// call of process 1. The kernel hands out the lowest number first, but neither a signal
// with a higher one nor the workload's end may have to wait for the end of this.
func TestSignalsWithoutAPause(t *testing.T) {
	b := start(t, setup{Ignore: []int{1}}, probe, "storm")
	b.says(t, "ready\n")
	workload := b.workload(t)
	out, release := tracer(t, b, "hammer")
	eventually(t, "the hammering begins", func() bool { return strings.Contains(out.String(), "begun") }, b.report)
	b.signal(t, unix.SIGUSR2)
	// However long the workload waits for a processor, the hammering goes on until it has
	// ended, and then for a thousand times the system calls that it takes to notice that.
	eventually(t, "the workload's end", func() bool { return stateOf(workload) == 'Z' || b.ended() }, b.report)
	release()
	if !strings.Contains(out.String(), "ended") {
		t.Fatalf("process 1 has not noticed the workload's end\n%s", b.report())
	}
	b.wantStatus(t, 7)
}

// TestNoRoomForSignals runs with RLIMIT_SIGPENDING at 0: then a signal with a value
// cannot be queued, and a real-time signal that reports a child's end is dropped.
func TestNoRoomForSignals(t *testing.T) {
	b := start(t, setup{Block: blockable(), Limits: map[int][2]uint64{unix.RLIMIT_SIGPENDING: {0, 0}}},
		"--log=info", probe, "chaos")
	b.says(t, "ready\n")
	b.signal(t, unix.SIGUSR1)
	b.says(t, "signal 10 ")
	if err := unix.Kill(b.pid(), 50); err != nil {
		t.Fatal(err)
	}
	b.says(t, "signal 50 ")
	// The log's writer is up by then: in the end it is waited for two seconds at most.
	eventually(t, "the log is written", func() bool { return strings.Contains(b.err.String(), "\n") }, b.report)
	b.tell(t, "exit 9")
	b.wantStatus(t, 9)
	if !strings.Contains(b.err.String(), "with status 9") {
		t.Errorf("the log does not tell the end\n%s", b.report())
	}
}
