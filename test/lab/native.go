package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/programs"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
)

// realLimit stands for the pretended one: see fakelimit. Any machine allows it, and no
// program asks for just this number.
const realLimit = 4001

// The columns of the native table: limits as programs see them.
const (
	nativeSane  = "1024:1024"
	nativeHard  = "1024:2^20"
	nativeBoth  = "2^20:2^20"
	nativeAsked = "2^20:2^20, fdinit --nofile=1024:1024"
)

// native runs the programs on this machine, at its own speed, under a pretended limit of
// 2^20. That is what fdinit takes for sane, so it is told what to do here.
func (l *lab) native() error {
	o := outcome{Scenario: "native", Where: "this machine, pretended limit"}
	start := time.Now()
	if err := need("gcc", "gcc"); err != nil {
		return err
	}
	if os.Getuid() != 0 {
		o.Tests = append(o.Tests, tap.Test{Name: "native", OK: true, Skipped: "needs root for namespaces and chroot"})
		l.outcomes = append(l.outcomes, o)
		return nil
	}
	shim := filepath.Join(l.dir, "fakelimit.so")
	if out, err := exec.Command("gcc", "-O2", "-shared", "-fPIC", "-o", shim, filepath.Join(l.root, "test/lab/fakelimit/fakelimit.c")).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	for _, suite := range programSuites {
		tree, versions, err := l.programTree(suite, programs.Packages(suite))
		if err != nil {
			return err
		}
		// A copy, which the programs may spoil.
		root := filepath.Join(l.dir, suite)
		if out, err := exec.Command("cp", "--archive", "--reflink=auto", tree, root).CombinedOutput(); err != nil {
			return fmt.Errorf("cp: %w\n%s", err, out)
		}
		if err := errors.Join(
			os.MkdirAll(filepath.Join(root, plan.Dir), 0o755),
			copyFile(shim, filepath.Join(root, plan.Dir, "fakelimit.so")),
			copyFile(l.fdinit, filepath.Join(root, plan.Init)),
		); err != nil {
			return err
		}
		for _, p := range programs.All {
			if !p.In(suite) {
				continue
			}
			t := tap.Test{Name: "native: " + suite + ": " + p.Name, OK: true}
			facts, err := nativeProgram(&p, root, suite+", "+versions[p.Package])
			if err != nil {
				t.OK, t.Problem = false, err.Error()
			}
			fmt.Println(t.Name, err)
			o.Tests = append(o.Tests, t)
			o.Facts = append(o.Facts, facts...)
		}
	}
	o.Seconds = time.Since(start).Seconds()
	l.outcomes = append(l.outcomes, o)
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

func nativeProgram(p *programs.Program, root, origin string) (facts []tap.Fact, err error) {
	cell := func(column, text string) {
		facts = append(facts, tap.Fact{Table: "native", Row: fmt.Sprintf("%s (%s)", p.Name, origin), Column: column, Text: text})
	}
	measure := func(column string, soft, hard uint64, under []string) programs.Result {
		spec := container.Spec{
			Root:  root,
			Limit: &container.Limit{Soft: soft, Hard: hard},
			Env: []string{
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C",
				"LD_PRELOAD=" + plan.Dir + "/fakelimit.so", fmt.Sprintf("FAKELIMIT=%d=%d", realLimit, plan.DefaultNrOpen),
			},
		}
		// The best of three: other work on the machine only ever adds.
		var best programs.Result
		for i := range 3 {
			r, failed := p.Run(spec, root, under, 2*time.Minute)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", column, failed))
				return best
			}
			if r.Died != "" || r.CutOff {
				err = errors.Join(err, fmt.Errorf("%s: %s", column, p.Describe(r)))
				return r
			}
			if i == 0 || r.Took < best.Took {
				best = r
			}
		}
		cell(column, p.Describe(best))
		facts[len(facts)-1].Value, facts[len(facts)-1].Unit = best.Took.Seconds(), "s"
		return best
	}
	cell(programs.ColumnReads, p.Reads)
	sane := measure(nativeSane, 1024, 1024, nil)
	measure(nativeHard, 1024, realLimit, nil)
	both := measure(nativeBoth, realLimit, realLimit, nil)
	asked := measure(nativeAsked, realLimit, realLimit, []string{plan.Init, "--nofile=1024:1024"})
	if err != nil {
		return facts, err
	}
	if saved := (both.Took - asked.Took).Seconds(); p.Suffers == programs.Time && saved < (both.Took-sane.Took).Seconds()/2 {
		return facts, fmt.Errorf("fdinit saves only %.2f s of %.2f s", saved, (both.Took - sane.Took).Seconds())
	}
	if p.Suffers == programs.Memory && asked.Resident > (both.Resident+sane.Resident)/2 && asked.Virtual > (both.Virtual+sane.Virtual)/2 {
		return facts, fmt.Errorf("fdinit saves no memory: %s", p.Describe(asked))
	}
	return facts, nil
}
