package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
)

// patience is how long anything is waited for that must come. Emulated machines on a
// busy host are slow.
const patience = 5 * time.Minute

// waiter is a workload that says when it runs and waits until it may exit with 7.
var waiter = []string{plan.Busybox, "sh", "-c", "echo ready; read x; exit 7"}

const waiterStatus = 7

// seen is what a container looked like from outside while its workload waited.
type seen struct {
	// Ready is how long it took from the execution of the first process.
	Ready time.Duration
	// Init and Workload are the limits and descriptors of both processes.
	Init, Workload process
	// Usage is of the whole life.
	Usage container.Usage
	// Output is what it wrote, if it ended before it was ready.
	Output string
}

type process struct {
	Limit       container.Limit
	Descriptors []int
}

func look(pid int) (p process, err error) {
	if p.Limit, err = container.LimitOf(pid); err != nil {
		return p, err
	}
	p.Descriptors, err = container.DescriptorsOf(pid)
	return p, err
}

// extra is which descriptors there are besides 0, 1 and 2, in few words.
func (p process) extra() string {
	var ranges []string
	for i := 0; i < len(p.Descriptors); {
		j := i
		for j+1 < len(p.Descriptors) && p.Descriptors[j+1] == p.Descriptors[j]+1 {
			j++
		}
		first, last := max(p.Descriptors[i], 3), p.Descriptors[j]
		switch {
		case last > first:
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, last))
		case last == first:
			ranges = append(ranges, fmt.Sprint(first))
		}
		i = j + 1
	}
	return strings.Join(ranges, ",")
}

// readiness collects output and notes when the line "ready" came.
type readiness struct {
	said chan int64
	all  strings.Builder
}

func (r *readiness) Write(b []byte) (int, error) {
	before := r.all.Len()
	r.all.Write(b)
	if before == 0 && strings.HasPrefix(r.all.String(), "ready") {
		r.said <- container.Now()
	}
	return len(b), nil
}

// watch runs the waiter in a container, under fdinit with the given options, or bare if
// they are nil, and looks at it. Where fdinit is to refuse its work, Output and
// Usage.Status are all there is. A nil examine looks at the first process and at the
// workload; anything else is called with both numbers instead.
func watch(spec container.Spec, options []string, examine func(init, workload int) error) (*seen, error) {
	spec.Env = append(slices.Clone(environment), spec.Env...)
	if options == nil {
		spec.Argv = waiter
	} else {
		spec.Argv = slices.Concat([]string{plan.Init}, options, []string{"--"}, waiter)
	}
	ready := &readiness{said: make(chan int64, 1)}
	p, err := container.Start(&spec, ready)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	s := new(seen)
	select {
	case at := <-ready.said:
		s.Ready = p.Since(at)
	case <-p.Ended():
		s.Output = strings.TrimSpace(ready.all.String())
		s.Usage = p.Usage()
		return s, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("no sign of life in %v", patience)
	}
	init, workload := p.PID(), p.PID()
	if options != nil {
		children, err := container.Children(init)
		if err != nil {
			return nil, err
		}
		if len(children) != 1 {
			return nil, fmt.Errorf("fdinit has %d children", len(children))
		}
		workload = children[0]
	}
	if examine == nil {
		examine = func(int, int) (err error) {
			if s.Init, err = look(init); err != nil {
				return err
			}
			s.Workload, err = look(workload)
			return err
		}
	}
	if err := examine(init, workload); err != nil {
		return nil, err
	}
	p.Release()
	if s.Usage, err = p.Wait(patience); err != nil {
		return nil, fmt.Errorf("the workload ended, but fdinit is %w", err)
	}
	if s.Usage.Status != waiterStatus {
		return s, fmt.Errorf("exit status %d instead of the workload's %d", s.Usage.Status, waiterStatus)
	}
	return s, nil
}

// want is an assertion.
func want(what string, got, wanted any) error {
	if got == wanted {
		return nil
	}
	return fmt.Errorf("%s: %v instead of %v", what, got, wanted)
}

func all(errs ...error) error { return errors.Join(errs...) }
