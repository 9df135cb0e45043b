package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/programs"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
	"golang.org/x/sys/unix"
)

// high is a descriptor far above what is found without /proc and close_range(2).
const high = 50000000

// sweepLoad is what is open when fdinit starts.
type sweepLoad struct {
	name string
	spec container.Spec
	// beyond is whether some of it is out of poll's reach, by design.
	beyond bool
}

// sweepStrategy is a way to sweep, forced by taking the better ones away.
type sweepStrategy struct {
	name   string
	refuse []uint32
	errno  unix.Errno
	noProc bool
}

var infinity = container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}

var sweepLoads = []sweepLoad{
	{"nothing open", container.Spec{Limit: &infinity}, false},
	{"1,000 open", container.Spec{Limit: &infinity, Open: 1000}, false},
	{"1,000 open, then soft limit lowered to 64", container.Spec{Limit: &infinity, Open: 1000, Lower: &container.Limit{Soft: 64, Hard: plan.Infinity}}, false},
	{"100,000 open", container.Spec{Limit: &infinity, Open: 100000}, false},
	{"1,000,000 open", container.Spec{Limit: &infinity, Open: 1000000}, false},
	{"1,000,000 open, then soft limit lowered to 1024", container.Spec{Limit: &infinity, Open: 1000000, Lower: &container.Limit{Soft: 1024, Hard: plan.Infinity}}, false},
	{"one open at 50,000,000", container.Spec{Limit: &infinity, OpenAt: []int{high}}, true},
}

var closeRange = []uint32{unix.SYS_CLOSE_RANGE}

var sweepStrategies = []sweepStrategy{
	{"close_range", nil, 0, false},
	{"/proc (close_range refused: ENOSYS)", closeRange, unix.ENOSYS, false},
	{"/proc (close_range refused: EPERM)", closeRange, unix.EPERM, false},
	{"poll (close_range refused: ENOSYS, no /proc)", closeRange, unix.ENOSYS, true},
}

// tooLong tells what an emulated machine takes minutes for: a walk through a million
// entries of /proc, each of which the kernel makes an inode for.
func (l *lab) tooLong(load sweepLoad, strategy sweepStrategy) bool {
	walks := len(strategy.refuse) > 0 && !strategy.noProc
	return walks && load.spec.Open >= 1000000 && (l.plan.Short || strategy.errno == unix.EPERM)
}

func (l *lab) sweep() {
	for _, load := range sweepLoads {
		if l.plan.Short && load.spec.Open >= 1000000 && load.spec.Lower != nil {
			continue
		}
		var bare time.Duration
		l.check("sweep: "+load.name+", no init: they are inherited", func() (err error) {
			bare, err = l.inherited(load)
			return err
		})
		for _, strategy := range sweepStrategies {
			if l.tooLong(load, strategy) {
				continue
			}
			l.check("sweep: "+load.name+", "+strategy.name, func() error { return l.sweepOne(load, strategy, bare) })
		}
	}
}

// inherited measures how long the workload takes without an init, and makes sure that
// the descriptors do reach it. Not by listing them: see tooLong.
func (l *lab) inherited(load sweepLoad) (time.Duration, error) {
	s, err := watch(load.spec, nil, func(init, _ int) error {
		expect := load.spec.OpenAt
		if n := load.spec.Open; n > 0 {
			// The stage has descriptors of its own among the lowest.
			expect = []int{n / 2, n + 2}
		}
		for _, fd := range expect {
			if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", init, fd)); err != nil {
				return fmt.Errorf("descriptor %d is not inherited: %w", fd, err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return s.Ready, nil
}

func (l *lab) sweepOne(load sweepLoad, strategy sweepStrategy, bare time.Duration) error {
	spec := load.spec
	spec.Refuse, spec.Errno, spec.NoProc = strategy.refuse, strategy.errno, strategy.noProc
	left := ""
	if load.beyond && strategy.noProc {
		left = fmt.Sprint(high)
	}
	s, err := watch(spec, []string{}, nil)
	if err == nil && s.Output != "" {
		err = errors.New(s.Output)
	}
	if err != nil {
		return err
	}
	took := max(0, s.Ready-bare)
	f := tap.Fact{Table: "sweep", Row: load.name, Column: strategy.name, Text: programs.Seconds(took), Value: took.Seconds(), Unit: "s"}
	if took < time.Millisecond {
		// What is left is noise.
		f.Text = "< 1 ms"
	}
	if left != "" {
		f.Text += ", which stays open"
	}
	l.Fact(f)
	return all(
		want("the workload's descriptors", s.Workload.extra(), left),
		// What fdinit cannot see it cannot drop either.
		want("process 1's descriptors", s.Init.extra(), left),
		want("the workload's limit", s.Workload.Limit.Soft, min(s.Init.Limit.Soft, plan.AutoSoft)),
	)
}
