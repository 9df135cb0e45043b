package main

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/container"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/programs"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
	"golang.org/x/perf/benchfmt"
)

// strategies measures each way to close descriptors with the benchmark of internal/fds,
// under a limit that permits all of its own.
func (l *lab) strategies() {
	for _, strategy := range plan.Strategies {
		l.check("strategies: "+strategy, func() error { return l.strategy(strategy) })
	}
}

func (l *lab) strategy(strategy string) error {
	var out bytes.Buffer
	p, err := container.Start(&container.Spec{
		Limit: &infinity,
		Env:   environment,
		// The machine's clock counts instructions, so three times are as good as a thousand.
		Argv: []string{plan.Sweeps, "-test.run=^$", "-test.benchtime=3x", "-test.bench=^BenchmarkSweep$/^strategy=" + strategy + "$"},
	}, &out)
	if err != nil {
		return err
	}
	defer p.Kill()
	if usage, err := p.Wait(time.Hour); err != nil || usage.Status != 0 {
		return fmt.Errorf("the benchmark: %v, exit status %d:\n%s", err, usage.Status, &out)
	}
	results, cells := benchfmt.NewReader(&out, "BenchmarkSweep"), 0
	for results.Scan() {
		switch x := results.Result().(type) {
		case *benchfmt.SyntaxError:
			return x
		case *benchfmt.Result:
			f, err := sweepFact(x)
			if err != nil {
				return err
			}
			l.Fact(f)
			cells++
		}
	}
	if err := results.Err(); err != nil {
		return err
	}
	// Seven limits, with four numbers of open descriptors each.
	return want("measurements", cells, 7*4)
}

// sweepFact turns a line of the benchmark into a cell of the report.
func sweepFact(x *benchfmt.Result) (f tap.Fact, err error) {
	keys := map[string]string{}
	_, parts := x.Name.Parts()
	for _, part := range parts {
		key, value, _ := bytes.Cut(bytes.TrimPrefix(part, []byte("/")), []byte("="))
		keys[string(key)] = string(value)
	}
	limit, err := strconv.Atoi(keys["limit"])
	if err != nil {
		return f, fmt.Errorf("%s: limit: %w", x.Name, err)
	}
	least, measured := x.Value("min-sec/op")
	left, counted := x.Value("left-open")
	if !measured || !counted {
		return f, fmt.Errorf("%s lacks min-ns/op or left-open", x.Name)
	}
	text := programs.Seconds(time.Duration(least * 1e9))
	if left > 0 && keys["strategy"] != "cloexec" {
		text += fmt.Sprintf(", leaves %.0f", left)
	}
	return tap.Fact{
		Table: "strategies", Row: keys["open"] + " open, " + keys["strategy"], Column: fmt.Sprint(limit),
		Text: text, Value: least, Unit: "s",
	}, nil
}
