package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"golang.org/x/sys/unix"
)

// boot looks at the machine's own first process, which is fdinit, started with a limit
// and descriptors as bad as they come.
func (l *lab) boot() {
	l.check("machine: fdinit is process 1", func() error {
		exe, err := os.Readlink("/proc/1/exe")
		return all(err, want("/proc/1/exe", exe, plan.Init), want("parent of its workload", os.Getppid(), 1))
	})
	l.check("machine: process 1 keeps the limit that it inherited", func() error {
		got, err := container.LimitOf(1)
		return all(err, want("limit", got, bootLimit))
	})
	l.check("machine: process 1 keeps no descriptor but 0, 1 and 2", func() error {
		p, err := look(1)
		return all(err, want("others", p.extra(), ""))
	})
	l.check("machine: the workload has a sane limit", func() error {
		b, err := os.ReadFile(bootFacts)
		return all(err, want("soft and hard", strings.Join(strings.Fields(string(b)), ":"),
			fmt.Sprintf("%d:%d", plan.AutoSoft, plan.AutoHard)))
	})
	l.check("machine: the workload inherits no descriptor", func() error {
		p, err := look(os.Getpid())
		if err != nil {
			return err
		}
		for _, fd := range p.Descriptors {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			// What the Go runtime and this program opened has the flag.
			if err == nil && fd > 2 && flags&unix.FD_CLOEXEC == 0 {
				err = fmt.Errorf("descriptor %d", fd)
				return err
			}
		}
		return nil
	})
}
