package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fdinit/fdinit/test/lab/internal/programs"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
)

// document is lab.json.
type document struct {
	Version  string    `json:"version"`
	Kernels  []release `json:"kernels"`
	Outcomes []outcome `json:"outcomes"`
	Absent   []absent  `json:"absent"`
}

type release struct {
	Name    string `json:"name"`
	Release string `json:"release"`
	Origin  string `json:"origin"`
}

// absent is something that was wanted and cannot be shown.
type absent struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

var absents = []absent{
	{"a Java virtual machine of version 8", "OpenJDK 8 is in none of Debian 11, 12 and 13"},
	{"python2.7 on Debian 12", "it is no longer in the distribution; Debian 11's is tried"},
	{"programs of Debian 13", "those of 11 and 12 stand for what is in use; its kernel is tried with everything else"},
	{"the programs in gVisor", "fdinit itself is tried there, and that the limit is real"},
	{"the behaviour suite in gVisor", "it makes PID and mount namespaces of its own, in which Debian 12's gVisor answers EINVAL to every access to /proc; what it tests is tried with fdinit as the first process of a sandbox instead"},
}

// write writes the report, if it is wanted.
func (l *lab) write() error {
	if l.out == "" {
		return nil
	}
	d := document{Version: l.version, Absent: absents}
	if err := l.merge(&d); err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(d, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(l.out, "lab.json"), append(encoded, '\n'), 0o644),
		os.WriteFile(filepath.Join(l.out, "lab.md"), []byte(d.markdown()), 0o644),
	)
}

// merge puts this run's outcomes in the place of those that an earlier one had of the
// same: a whole run takes long, and is sometimes done in parts.
func (l *lab) merge(d *document) error {
	var old document
	if b, err := os.ReadFile(filepath.Join(l.out, "lab.json")); err == nil && l.partial() {
		if err := json.Unmarshal(b, &old); err != nil {
			return fmt.Errorf("the report of an earlier run: %w", err)
		}
	}
	d.Outcomes = old.Outcomes
	for _, o := range l.outcomes {
		i := slices.IndexFunc(d.Outcomes, func(old outcome) bool { return old.Scenario == o.Scenario && old.Where == o.Where })
		switch {
		case i < 0:
			d.Outcomes = append(d.Outcomes, o)
		case l.match != "":
			d.Outcomes[i].renew(o)
		default:
			d.Outcomes[i] = o
		}
	}
	for _, k := range kernels {
		name := l.releases[k.name]
		if name == "" {
			for _, r := range old.Kernels {
				if r.Name == k.name {
					name = r.Release
				}
			}
		}
		if name != "" {
			d.Kernels = append(d.Kernels, release{k.name, name, k.why})
		}
	}
	// In the order of a whole run.
	rank := func(o outcome) int {
		where := slices.IndexFunc(d.Kernels, func(r release) bool { return r.Release == o.Where })
		return 10*slices.Index(scenarioNames(), o.Scenario) + where
	}
	slices.SortStableFunc(d.Outcomes, func(x, y outcome) int { return rank(x) - rank(y) })
	return nil
}

// renew replaces those tests, and rows of tables, that a run of some tests had.
func (o *outcome) renew(by outcome) {
	for _, t := range by.Tests {
		i := slices.IndexFunc(o.Tests, func(old tap.Test) bool { return old.Name == t.Name })
		if i < 0 {
			o.Tests = append(o.Tests, t)
		} else {
			o.Tests[i] = t
		}
	}
	o.Facts = slices.DeleteFunc(o.Facts, func(old tap.Fact) bool {
		return slices.ContainsFunc(by.Facts, func(f tap.Fact) bool { return f.Table == old.Table && f.Row == old.Row })
	})
	o.Facts = append(o.Facts, by.Facts...)
}

// table is a table of the report.
type table struct {
	rows, columns []string
	cells         map[[2]string]string
}

func (t *table) set(row, column, text string) {
	if t.cells == nil {
		t.cells = map[[2]string]string{}
	}
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	if !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
	t.cells[[2]string{row, column}] = text
}

func (t *table) markdown(b *strings.Builder, corner string) {
	line := func(cells ...string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(append([]string{corner}, t.columns...)...)
	b.WriteString(strings.Repeat("| --- ", len(t.columns)+1) + "|\n")
	for _, row := range t.rows {
		cells := []string{row}
		for _, column := range t.columns {
			cells = append(cells, t.cells[[2]string{row, column}])
		}
		line(cells...)
	}
	b.WriteString("\n")
}

// facts calls f with each fact of a table, and where it was seen.
func (d *document) facts(name string, f func(where string, fact tap.Fact)) {
	for _, o := range d.Outcomes {
		for _, fact := range o.Facts {
			if fact.Table == name {
				f(o.Where, fact)
			}
		}
	}
}

func (d *document) has(name string) (has bool) {
	d.facts(name, func(string, tap.Fact) { has = true })
	return has
}

func (d *document) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# fdinit on real kernels, with real limits

Written by %[1]smake lab%[1]s; the same in [lab.json](lab.json). Tested: %[2]s.

`, "`", d.Version)
	var t table
	for _, k := range d.Kernels {
		t.set(k.Release, "from", k.Origin)
	}
	t.markdown(&b, "kernel")
	b.WriteString(`They are booted in an emulated machine, whose first process is fdinit, started with a limit of
1073741816 and with descriptors open. Its clock counts instructions, one a nanosecond: times in it are
what a processor of about that speed would need, and they do not depend on how busy the host is. Only
what is called native, and gVisor, ran on the host's own kernel.

## What was tested

`)
	d.tests(&b)
	if d.has("programs") {
		b.WriteString(`## Real programs at 2^30

Limits are soft and hard alike; 2^30 is 1073741816. A program that stays is measured until it listens.
"To its end" is extrapolated from 2^22 where the real thing was cut off. fdinit without options makes
it 65536, and 1048576 for the hard limit.

`)
		d.programs(&b)
	}
	if d.has("native") {
		b.WriteString(`## The same programs at native speed

Under a pretended limit (test/lab/fakelimit), soft:hard, the best of three runs. fdinit takes 2^20 for
sane and is told otherwise here.

`)
		var t table
		d.facts("native", func(_ string, f tap.Fact) { t.set(f.Row, f.Column, f.Text) })
		t.markdown(&b, "program")
	}
	if d.has("sweep") {
		b.WriteString(`## Sweeping

Time from the execution of fdinit until its workload runs, above the same without fdinit, which is also
what it saves where descriptors would have to be copied for the workload. Everything from 3 up is gone
afterwards, in the workload and in process 1, unless the table says otherwise: without close_range(2)
and without /proc, nothing above 2^20 is looked for, by design. What takes seconds with one open at
50,000,000 is the kernel, which walks a table of so many entries, however it is asked.

`)
		d.sweep(&b)
	}
	if d.has("strategies") {
		b.WriteString(`## What each way to close descriptors costs

The benchmark of [bench/sweep.md](bench/sweep.md), in the emulated machine's time. fdinit uses range, else proc,
else poll; loop is what the programs above do; probe, cloexec and exact are no sweep by themselves. Above
2^20 loop and probe are cut off, and the rest of their time is extrapolated.

`)
		var t table
		d.facts("strategies", func(_ string, f tap.Fact) { t.set(f.Row, f.Column, f.Text) })
		slices.SortStableFunc(t.rows, func(x, y string) int { return openOf(x) - openOf(y) })
		t.markdown(&b, "limit")
	}
	if d.has("limits") {
		b.WriteString(`## Limits

What the workload gets. Process 1 keeps what it inherited.

`)
		var t table
		d.facts("limits", func(where string, f tap.Fact) { t.set(f.Row, where, f.Text) })
		t.markdown(&b, "soft:hard")
	}
	if d.has("gvisor") {
		b.WriteString("## gVisor\n\nIts own kernel, its own limit of 1073741816.\n\n")
		var t table
		d.facts("gvisor", func(where string, f tap.Fact) { t.set(f.Row, where, f.Text) })
		t.markdown(&b, "case")
	}
	b.WriteString("## What could not be shown\n\n")
	for _, a := range d.Absent {
		fmt.Fprintf(&b, "- %s: %s.\n", a.What, a.Why)
	}
	return b.String()
}

// openOf is how many descriptors were open for a row of the strategies' table.
func openOf(row string) (n int) {
	fmt.Sscan(row, &n)
	return n
}

// tests counts.
func (d *document) tests(b *strings.Builder) {
	var t table
	var notes []string
	for _, o := range d.Outcomes {
		var passed, failed, skipped int
		for _, test := range o.Tests {
			switch {
			case test.Skipped != "":
				skipped++
				notes = append(notes, fmt.Sprintf("- skipped on %s: %s: %s", o.Where, test.Name, test.Skipped))
			case test.OK:
				passed++
			default:
				failed++
				first, _, _ := strings.Cut(test.Problem, "\n")
				notes = append(notes, fmt.Sprintf("- **failed** on %s: %s: %s", o.Where, test.Name, first))
			}
		}
		text := fmt.Sprintf("%d passed", passed)
		if failed > 0 {
			text += fmt.Sprintf(", **%d failed**", failed)
		}
		if skipped > 0 {
			text += fmt.Sprintf(", %d skipped", skipped)
		}
		t.set(o.Where, o.Scenario, text)
	}
	t.markdown(b, "where")
	if len(notes) > 0 {
		b.WriteString(strings.Join(notes, "\n") + "\n\n")
	}
}

// programs has a table for each kernel, since the programs are not the same.
func (d *document) programs(b *strings.Builder) {
	tables, order := map[string]*table{}, []string{}
	d.facts("programs", func(where string, f tap.Fact) {
		if tables[where] == nil {
			tables[where] = new(table)
			order = append(order, where)
		}
		tables[where].set(f.Row, f.Column, f.Text)
	})
	for _, where := range order {
		fmt.Fprintf(b, "On %s:\n\n", where)
		t := tables[where]
		// In the order in which they are to be read, whatever was measured first.
		slices.SortStableFunc(t.columns, func(x, y string) int {
			return slices.Index(programs.Columns, x) - slices.Index(programs.Columns, y)
		})
		t.markdown(b, "program")
	}
}

// sweep has a table for each load, with a row for each kernel.
func (d *document) sweep(b *strings.Builder) {
	tables, order := map[string]*table{}, []string{}
	d.facts("sweep", func(where string, f tap.Fact) {
		if tables[f.Row] == nil {
			tables[f.Row] = new(table)
			order = append(order, f.Row)
		}
		tables[f.Row].set(where, f.Column, f.Text)
	})
	for _, load := range order {
		fmt.Fprintf(b, "%s:\n\n", strings.ToUpper(load[:1])+load[1:])
		tables[load].markdown(b, "kernel")
	}
}
