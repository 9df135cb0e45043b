package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/test/lab/internal/programs"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
)

func published(t *testing.T) (d document) {
	t.Helper()
	encoded, err := os.ReadFile("../../docs/lab.json")
	if err == nil {
		err = json.Unmarshal(encoded, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPublishedReport holds both forms of the report together.
func TestPublishedReport(t *testing.T) {
	d := published(t)
	text, err := os.ReadFile("../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != d.markdown() {
		t.Error("docs/lab.md is not what docs/lab.json makes: run the lab with -out ../../docs")
	}
	if len(d.Outcomes) == 0 {
		t.Error("nothing was reported")
	}
	for _, o := range d.Outcomes {
		for _, test := range o.Tests {
			if !test.OK {
				t.Errorf("reported although it failed: %s, %s: %s", o.Scenario, o.Where, test.Name)
			}
		}
	}
}

// TestReadme compares the README's table of real programs with the report.
func TestReadme(t *testing.T) {
	d := published(t)
	facts := map[string]map[string]string{}
	d.facts("programs", func(where string, f tap.Fact) {
		if !strings.HasPrefix(where, kernels[0].name) {
			return
		}
		if facts[f.Row] == nil {
			facts[f.Row] = map[string]string{}
		}
		facts[f.Row][f.Column] = f.Text
	})
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(readme), "| at 1073741816 |")
	if !found {
		t.Fatal("the README has no such table")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:]
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 4 {
			t.Fatalf("%q has %d cells", row, len(cells))
		}
		fact := facts[cells[0]]
		alone := fact[programs.ColumnWhole]
		if alone == "" {
			alone = fact[programs.ColumnBefore]
		}
		for i, want := range []string{alone, fact[programs.ColumnAuto], fact[programs.ColumnAsked]} {
			if cell := cells[i+1]; cell == "" || !strings.Contains(want, cell) {
				t.Errorf("%s: the README has %q, the report %q", cells[0], cell, want)
			}
		}
	}
	if len(rows) < 5 {
		t.Errorf("only %d rows", len(rows))
	}
}
