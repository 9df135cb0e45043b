package main

import (
	"fmt"
	"strings"
)

// page builds the Markdown form of a report.
type page struct {
	b          strings.Builder
	withCharts bool
}

// line adds a heading or a paragraph.
func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.b, format+"\n\n", args...)
}

// title adds the first heading, and how the report was made.
func (p *page) title(text string, h Header) {
	p.line("# %s", text)
	m := h.Machine
	p.line("Made by `%s` on %s: %s, %d cores, Linux %s, %s, %s %s.", h.Command, h.Date,
		m.CPU, m.Cores, m.Kernel, m.Distribution, m.Go, m.Arch)
	if h.Quick {
		p.line("**This is %s.**", quickly)
	}
}

// chart shows a picture that stands beside the report.
func (p *page) chart(name, alt string) {
	if p.withCharts {
		p.line("![%s](%s.svg)", alt, name)
	}
}

func (p *page) table(t *table) {
	p.line("%s", strings.TrimSpace(t.b.String()))
}

func (p *page) String() string {
	return strings.TrimRight(p.b.String(), "\n") + "\n"
}

// table builds a Markdown table.
type table struct {
	b strings.Builder
}

func newTable(heads ...string) *table {
	t := &table{}
	t.row(heads...)
	rule := make([]string, len(heads))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	t.row(rule...)
	return t
}

func (t *table) row(cells ...string) {
	fmt.Fprintf(&t.b, "| %s |\n", strings.Join(cells, " | "))
}

func num[T int | int64](n T) string { return fmt.Sprint(n) }

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func ratio(r *float64) string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", *r)
}

func interval(r *Ratio) string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", r.Median, r.Low, r.High)
}

func minRatio(r *Ratio) string {
	if r == nil {
		return "–"
	}
	return ratio(&r.Min)
}

func medianRatio(r *Ratio) string {
	if r == nil {
		return "–"
	}
	return ratio(&r.Median)
}
