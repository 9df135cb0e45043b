package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
	return fmt.Sprintf("%.2f", r.Min)
}

func medianRatio(r *Ratio) string {
	if r == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", r.Median)
}

// writeReport writes the two readable forms of a report.
func writeReport(dir, name string, data any, markdown string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	js, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(js, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".md"), []byte(markdown), 0o644)
}
