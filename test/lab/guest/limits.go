package main

import (
	"fmt"
	"strings"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
)

// limitCase is one way to inherit a limit, and what the workload is to get.
type limitCase struct {
	inherited  container.Limit
	nrOpen     uint64 // fs.nr_open by the time fdinit starts, unless 0: then the highest
	options    string
	env        string
	unentitled bool            // without CAP_SYS_RESOURCE
	want       container.Limit // or the zero limit: fdinit refuses with 125
}

var limitCases = []limitCase{
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, want: container.Limit{Soft: plan.AutoSoft, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: 1024, Hard: plan.Infinity}, want: container.Limit{Soft: 1024, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: plan.KernelMax, Hard: plan.KernelMax}, want: container.Limit{Soft: plan.AutoSoft, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: 1024, Hard: plan.KernelMax}, want: container.Limit{Soft: 1024, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: 1048577, Hard: 1048577}, want: container.Limit{Soft: plan.AutoSoft, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: 1048576, Hard: 1048576}, want: container.Limit{Soft: 1048576, Hard: 1048576}},
	{inherited: container.Limit{Soft: 1024, Hard: 524288}, want: container.Limit{Soft: 1024, Hard: 524288}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, options: "--nofile=keep", want: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, options: "--nofile=4096", want: container.Limit{Soft: 4096, Hard: plan.Infinity}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, options: "--nofile=4096:8192", want: container.Limit{Soft: 4096, Hard: 8192}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, env: "FDINIT_NOFILE=1024", want: container.Limit{Soft: 1024, Hard: plan.Infinity}},
	{inherited: container.Limit{Soft: 1024, Hard: plan.Infinity}, options: "--nofile=hard", want: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}},
	{inherited: container.Limit{Soft: 1024, Hard: 1024}, options: "--nofile=2147483584:2147483584", want: container.Limit{Soft: plan.KernelMax, Hard: plan.KernelMax}},
	{inherited: container.Limit{Soft: 1024, Hard: 1024}, options: "--nofile=2147483584:2147483584", unentitled: true},
	// fs.nr_open below the inherited hard limit: setting even the same one fails with EPERM.
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: plan.DefaultNrOpen, want: container.Limit{Soft: plan.AutoSoft, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: plan.DefaultNrOpen, unentitled: true, want: container.Limit{Soft: plan.AutoSoft, Hard: plan.AutoHard}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: 524288, want: container.Limit{Soft: plan.AutoSoft, Hard: 524288}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: 4096, unentitled: true, want: container.Limit{Soft: 4096, Hard: 4096}},
	{inherited: container.Limit{Soft: 1024, Hard: plan.KernelMax}, nrOpen: 524288, unentitled: true, want: container.Limit{Soft: 1024, Hard: 524288}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: 524288, options: "--nofile=4096", want: container.Limit{Soft: 4096, Hard: 524288}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: 524288, options: "--nofile=4096", unentitled: true, want: container.Limit{Soft: 4096, Hard: 524288}},
	{inherited: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}, nrOpen: 524288, options: "--nofile=keep", unentitled: true, want: container.Limit{Soft: plan.Infinity, Hard: plan.Infinity}},
	{inherited: container.Limit{Soft: 1024, Hard: 4096}, nrOpen: 2048, want: container.Limit{Soft: 1024, Hard: 4096}},
}

func (c limitCase) String() string {
	how := []string{"inherited " + c.inherited.String()}
	if c.nrOpen != 0 {
		how = append(how, fmt.Sprintf("fs.nr_open then lowered to %d", c.nrOpen))
	}
	if c.unentitled {
		how = append(how, "no CAP_SYS_RESOURCE")
	}
	if option := c.options + c.env; option != "" {
		how = append(how, option)
	}
	return strings.Join(how, ", ")
}

func (l *lab) limits() {
	for _, c := range limitCases {
		result := ""
		l.check("limits: "+c.String(), func() error {
			// The limit must be settable first.
			if err := container.SetNrOpen(plan.KernelMax); err != nil {
				return err
			}
			spec := container.Spec{Limit: &c.inherited, NrOpen: c.nrOpen, DropResource: c.unentitled}
			if c.env != "" {
				spec.Env = []string{c.env}
			}
			s, err := watch(spec, append([]string{}, strings.Fields(c.options)...), nil)
			if err != nil {
				if s != nil {
					result = s.Output
					err = fmt.Errorf("%w: %s", err, s.Output)
				}
				return err
			}
			if c.want == (container.Limit{}) {
				result = fmt.Sprintf("refused with %d", s.Usage.Status)
				return all(want("exit status", s.Usage.Status, 125), want("names the resource", strings.Contains(strings.ToLower(s.Output), "nofile"), true))
			}
			if s.Output != "" {
				return fmt.Errorf("exit status %d: %s", s.Usage.Status, s.Output)
			}
			result = s.Workload.Limit.String()
			return all(
				want("the workload's limit", s.Workload.Limit, c.want),
				want("process 1's limit", s.Init.Limit, c.inherited),
			)
		})
		if result == "" {
			continue
		}
		l.Fact(tap.Fact{Table: "limits", Row: c.String(), Column: "workload", Text: result})
	}
	l.check("limits: fs.nr_open restored", func() error { return container.SetNrOpen(plan.Infinity) })
}
