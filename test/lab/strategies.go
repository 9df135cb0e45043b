package main

import (
	"path/filepath"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/image"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
)

// strategies measures each way to close descriptors at limits that the host may not
// have. One kernel is enough: docs/bench/sweep.md has the host's times for the others.
func (l *lab) strategies() error {
	name := kernels[0].name
	if !l.wantsKernel(name) {
		return nil
	}
	benchmark := filepath.Join(l.dir, "fds.test")
	if err := goTestBuild(l.root, benchmark, "./internal/fds"); err != nil {
		return err
	}
	return l.run(boot{
		scenario: "strategies", kernel: name,
		extra:  func(i *image.Image) error { return i.Copy(plan.Sweeps, benchmark) },
		plan:   plan.Plan{Scenarios: []string{"strategies"}},
		memory: 1024, bound: time.Hour,
	})
}
