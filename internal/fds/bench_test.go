package fds

import (
	"fmt"
	"testing"
	"time"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// BenchmarkSweep measures what it costs to close all but the standard descriptors, by
// how many are open and what RLIMIT_NOFILE is. The first three strategies are fdinit's
// own, which do not depend on the limit; the others are what programs do, or the
// kernel's floor:
//
//	range    close_range(2)
//	proc     a walk through /proc/self/fd
//	poll     probing up to 2^20 with poll(2), and a plain loop up to 4096
//	cloexec  close_range(2) with CLOSE_RANGE_CLOEXEC, which closes nothing before exec
//	probe    probing with poll(2) up to the limit
//	loop     close(2) of every number up to the limit
//	exact    close(2) of what is open, known by heart
//
// The opening is not in the time per operation, which is the mean; min-ns/op is the
// fastest. left-open is how many descriptors a strategy did not find: those above the
// limit. Above 2^20 loop and probe are cut off and the rest of their time is that of
// the last half of these, so many times.
//
// The names are benchstat's: benchstat -col /strategy -row /limit,/open FILE.
func BenchmarkSweep(b *testing.B) {
	hard := hardLimit(b)
	for _, strategy := range []string{"range", "proc", "poll", "cloexec", "probe", "loop", "exact"} {
		for _, limit := range []int{64, 100, 1024, 10240, 20000, 1 << 20, infinity} {
			for _, open := range []int{0, 50, 1000, 15000} {
				b.Run(fmt.Sprintf("strategy=%s/limit=%d/open=%d", strategy, limit, open), func(b *testing.B) {
					if most := max(limit, open+10); most > hard {
						b.Skipf("needs a hard RLIMIT_NOFILE of %d, has %d", most, hard)
					}
					m := measurement{Strategy: strategy, Limit: limit, Open: open, N: b.N}
					var f figures
					startChild(b, measurementVariable, &m, &f, 0)
					b.ReportMetric(f.Total/float64(b.N), "ns/op")
					b.ReportMetric(f.Least, "min-ns/op")
					b.ReportMetric(float64(f.Left), "left-open")
				})
			}
		}
	}
}

// measurement is a sub-benchmark. It runs in a child, since it changes limits and
// closes whatever there is, and since a table of descriptors never shrinks again.
type measurement struct {
	Strategy       string
	Limit, Open, N int
}

// figures are in nanoseconds.
type figures struct {
	Total, Least float64
	Left         int
}

// infinity is the limit that containers start with where systemd has been told so.
const infinity = 1073741816

// bound is where those strategies are cut off that go up to the limit.
const bound = 1 << 20

func (m *measurement) run() (f figures) {
	var nothing Set
	for i := range m.N {
		raiseSoftLimit()
		// The first is opened, the others are copies; it is the lowest, so there is none in
		// addition.
		if m.Open > 0 {
			null := must(unix.Open("/dev/null", unix.O_RDWR, 0))
			for range m.Open - 1 {
				must(unix.Dup(null))
			}
		}
		setSoftLimit(uint64(m.Limit))

		begin := time.Now()
		rest := m.sweep(&nothing)
		took := float64(time.Since(begin)-rest.took) + float64(rest.took)*rest.times
		f.Total += took
		if i == 0 || took < f.Least {
			f.Least = took
		}

		if i == 0 {
			raiseSoftLimit()
			for fd := First; fd < First+m.Open; fd++ {
				if sys.IsOpen(fd) {
					f.Left++
				}
			}
		}
		if errno := SweepByRange(&nothing); errno != 0 {
			SweepByProc(&nothing)
		}
	}
	return f
}

// remainder is a part of a sweep, and how many times its time counts.
type remainder struct {
	took  time.Duration
	times float64
}

func (m *measurement) sweep(nothing *Set) remainder {
	switch m.Strategy {
	case "range":
		checkErrno(SweepByRange(nothing))
	case "proc":
		_, errno := SweepByProc(nothing)
		checkErrno(errno)
	case "poll":
		SweepByPolling(nothing)
	case "cloexec":
		check(unix.CloseRange(First, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC))
	case "exact":
		for fd := First; fd < First+m.Open; fd++ {
			sys.Close(fd)
		}
	case "loop":
		return m.upToLimit(func(first, end int) { closeLoop(first, end, nothing) })
	case "probe":
		return m.upToLimit(probe)
	default:
		panic(m.Strategy)
	}
	return remainder{}
}

func checkErrno(errno sys.Errno) {
	if errno != 0 {
		panic(errno)
	}
}

// upToLimit goes from the first descriptor to the limit, in two parts if it is cut off.
func (m *measurement) upToLimit(sweep func(first, end int)) remainder {
	if m.Limit <= bound {
		sweep(First, m.Limit)
		return remainder{}
	}
	sweep(First, bound/2)
	begin := time.Now()
	sweep(bound/2, bound)
	return remainder{time.Since(begin), 1 + float64(m.Limit-bound)/(bound/2)}
}

// probe is the second half of SweepByPolling without its fixed ends.
func probe(first, end int) {
	var block [pollBlock]sys.PollFD
	size := pollBlock
	var limit sys.Rlimit
	if sys.GetRlimit(unix.RLIMIT_NOFILE, &limit) == 0 {
		size = int(min(pollBlock, limit.Soft))
	}
	for base := first; base < end; base += size {
		n := min(size, end-base)
		for i := range n {
			block[i] = sys.PollFD{Fd: int32(base + i)}
		}
		checkErrno(sys.PollNow(block[:n]))
		for i := range n {
			if block[i].Revents&unix.POLLNVAL == 0 {
				sys.Close(base + i)
			}
		}
	}
}
