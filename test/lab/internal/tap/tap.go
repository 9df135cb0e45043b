// Package tap carries results over a serial line: TAP version 14, with measured values
// as comments in JSON, so that any TAP consumer can read a console log of the lab.
//
// It is not a full TAP implementation: there are no subtests and no YAML blocks.
package tap

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Fact is one cell of a table of the report.
type Fact struct {
	Table  string `json:"table"`
	Row    string `json:"row"`
	Column string `json:"column"`
	// Text is what the table shows.
	Text string `json:"text"`
	// Value is the same for machines, in Unit, if it is a quantity.
	Value float64 `json:"value,omitempty"`
	Unit  string  `json:"unit,omitempty"`
}

// Test is one line of TAP.
type Test struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Skipped is the reason why it was not run.
	Skipped string `json:"skipped,omitempty"`
	// Problem says what was wrong.
	Problem string `json:"problem,omitempty"`
}

const (
	factPrefix    = "# fact "
	problemPrefix = "# problem "
	skipMark      = " # SKIP "
	end           = "# end"
)

// Writer writes TAP. It may be used by several goroutines.
type Writer struct {
	mu    sync.Mutex
	w     io.Writer
	count int
}

// NewWriter writes the version line.
func NewWriter(w io.Writer) *Writer {
	fmt.Fprintln(w, "TAP version 14")
	return &Writer{w: w}
}

// Test writes the outcome of a test; a nil error is success.
func (w *Writer) Test(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if err != nil {
		fmt.Fprintf(w.w, "not ok %d - %s\n", w.count, name)
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(w.w, "%s%s\n", problemPrefix, strings.TrimSuffix(line, "\n"))
		}
		return
	}
	fmt.Fprintf(w.w, "ok %d - %s\n", w.count, name)
}

// Skip writes that a test could not be run, and why.
func (w *Writer) Skip(name, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	fmt.Fprintf(w.w, "ok %d - %s%s%s\n", w.count, name, skipMark, why)
}

// Fact writes a measured value.
func (w *Writer) Fact(f Fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	encoded, err := json.Marshal(f)
	if err != nil {
		panic(err) // nothing in a Fact can fail to be encoded, but a NaN
	}
	fmt.Fprintf(w.w, "%s%s\n", factPrefix, encoded)
}

// Comment writes a line for people.
func (w *Writer) Comment(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.w, "# "+format+"\n", args...)
}

// End writes the plan. A reader that has not seen it knows that the writer died.
func (w *Writer) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.w, "1..%d\n%s\n", w.count, end)
}

// Log is what a reader collected.
type Log struct {
	Tests []Test
	Facts []Fact
	// Complete is whether the plan was seen and agrees with the number of tests.
	Complete bool
}

// Read reads until the end of the input, and shows each line to the observer.
func Read(r io.Reader, observe func(line string)) (*Log, error) {
	var log Log
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if observe != nil {
			observe(line)
		}
		if err := log.add(line); err != nil {
			return &log, err
		}
	}
	return &log, lines.Err()
}

func (l *Log) add(line string) error {
	var n int
	switch {
	case strings.HasPrefix(line, factPrefix):
		var f Fact
		if err := json.Unmarshal([]byte(line[len(factPrefix):]), &f); err != nil {
			return fmt.Errorf("garbled fact %q: %w", line, err)
		}
		l.Facts = append(l.Facts, f)
	case strings.HasPrefix(line, problemPrefix):
		if len(l.Tests) > 0 {
			t := &l.Tests[len(l.Tests)-1]
			if t.Problem != "" {
				t.Problem += "\n"
			}
			t.Problem += line[len(problemPrefix):]
		}
	case strings.HasPrefix(line, "1.."):
		if _, err := fmt.Sscanf(line, "1..%d", &n); err == nil {
			l.Complete = n == len(l.Tests)
		}
	case strings.HasPrefix(line, "ok "), strings.HasPrefix(line, "not ok "):
		state, name, found := strings.Cut(line, " - ")
		if !found {
			return fmt.Errorf("garbled line %q", line)
		}
		t := Test{OK: strings.HasPrefix(state, "ok ")}
		t.Name, t.Skipped, _ = strings.Cut(name, skipMark)
		l.Tests = append(l.Tests, t)
	}
	return nil
}
