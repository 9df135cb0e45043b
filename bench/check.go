package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// claims is the file of what the README says about fdinit beside the
// reference: ratios only, since milliseconds belong to a machine.
type claims struct {
	Reference string  `json:"reference"`
	Slack     float64 `json:"slack"` // the tolerance, as a part of atMost
	Claims    []claim `json:"claims"`
}

type claim struct {
	Metric string  `json:"metric"`
	AtMost float64 `json:"atMost"`
	Says   string  `json:"says"`
}

func readClaims(path string) (claims, error) {
	var c claims
	b, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if c.Reference != referenceName {
		return c, fmt.Errorf("%s: the reference is %q, but ratios are to %s", path, c.Reference, referenceName)
	}
	if len(c.Claims) == 0 {
		return c, fmt.Errorf("%s claims nothing", path)
	}
	for _, x := range c.Claims {
		if section, _, _ := strings.Cut(x.Metric, "/"); !slices.Contains(sections, section) {
			return c, fmt.Errorf("%s: %q belongs to none of %s", path, x.Metric, strings.Join(sections, ", "))
		}
	}
	return c, nil
}

// ratios gives every ratio to the reference a name. A quantity that is
// measured once has the same number in all fields.
func (r *Report) ratios() map[string]Ratio {
	m := map[string]Ratio{}
	plain := func(name string, x, ref float64) {
		if v := over(x, ref); v != nil {
			m[name] = Ratio{*v, *v, *v, *v}
		} else if x == 0 {
			m[name] = Ratio{1, 1, 1, 1} // nothing beside nothing
		}
	}
	r.startupRatios(m, plain)
	pair(r.Idle, func(x IdleRow) string { return x.Init }, func(x, ref IdleRow) {
		plain("idle/rss", float64(x.RSS), float64(ref.RSS))
		plain("idle/pss", float64(x.PSS), float64(ref.PSS))
		plain("idle/private-dirty", float64(x.PrivateDirty), float64(ref.PrivateDirty))
		plain("idle/private-clean", float64(x.PrivateClean), float64(ref.PrivateClean))
		plain("idle/rss-after-work", float64(x.WorkedRSS), float64(ref.WorkedRSS))
		plain("idle/private-dirty-after-work", float64(x.WorkedPrivateDirty), float64(ref.WorkedPrivateDirty))
		plain("idle/page-tables", float64(x.PageTables), float64(ref.PageTables))
		plain("idle/threads", float64(x.Threads), float64(ref.Threads))
		plain("idle/wakeups", float64(x.Wakeups), float64(ref.Wakeups))
		plain("idle/descriptors", float64(x.Descriptors), float64(ref.Descriptors))
	})
	pair(r.Fleet, func(x FleetRow) string { return x.Init }, func(x, ref FleetRow) {
		plain("fleet/pss", x.PSS, ref.PSS)
		plain("fleet/private-dirty", x.PrivateDirty, ref.PrivateDirty)
		plain("fleet/page-tables", x.PageTables, ref.PageTables)
	})
	for _, storm := range []bool{false, true} {
		rows := slices.DeleteFunc(slices.Clone(r.Latency), func(x LatencyRow) bool { return x.Storm != storm })
		state := map[bool]string{false: "idle", true: "storm"}[storm]
		pair(rows, func(x LatencyRow) string { return x.Init }, func(x, ref LatencyRow) {
			plain("latency/"+state+"/median", x.Median, ref.Median)
			plain("latency/"+state+"/p99", x.P99, ref.P99)
		})
	}
	pair(r.Reaping, func(x ReapingRow) string { return x.Init }, func(x, ref ReapingRow) {
		plain("reaping/cpu", x.CPU, ref.CPU)
		plain("reaping/per-orphan-time", 1/x.PerSecond, 1/ref.PerSecond)
	})
	pair(r.FileSize, func(x SizeRow) string { return x.Init }, func(x, ref SizeRow) {
		plain("size/file", float64(x.Bytes), float64(ref.Bytes))
	})
	return m
}

func (r *Report) startupRatios(m map[string]Ratio, plain func(name string, x, ref float64)) {
	for _, x := range r.Startup {
		if x.Init != subjectName {
			continue
		}
		place := "child"
		if x.PID1 {
			place = "pid1"
		}
		prefix := "startup/" + place + "/" + x.Command + "/"
		for name, a := range map[string]Above{"wall": x.Wall, "cpu": x.CPU, "faults": x.Faults} {
			if a.Ratio != nil {
				m[prefix+name] = *a.Ratio
			}
		}
		for _, ref := range r.Startup {
			if ref.Init == referenceName && ref.PID1 == x.PID1 && ref.Command == x.Command && x.Syscalls != nil && ref.Syscalls != nil {
				plain(prefix+"syscalls", float64(*x.Syscalls), float64(*ref.Syscalls))
			}
		}
	}
}

// pair finds the subject's and the reference's row.
func pair[T any](rows []T, name func(T) string, use func(subject, ref T)) {
	s := slices.IndexFunc(rows, func(x T) bool { return name(x) == subjectName })
	r := slices.IndexFunc(rows, func(x T) bool { return name(x) == referenceName })
	if s >= 0 && r >= 0 {
		use(rows[s], rows[r])
	}
}

// verdict is one claim beside what was measured.
type verdict struct {
	claim
	measured bool
	ratio    Ratio
	holds    bool
}

// judge is generous to noise. A claim about start to exit, times or page faults,
// fails only if both the lower end of the median's 95 % interval and the ratio
// of the minima exceed the claimed ratio by more than the tolerance, that is, lie
// above atMost × (1 + slack). Any other claim, about memory for one, fails if its
// one ratio does. What was not measured fails, too.
func (c claims) judge(r *Report) []verdict {
	ratios := r.ratios()
	var vs []verdict
	for _, x := range c.Claims {
		v := verdict{claim: x}
		v.ratio, v.measured = ratios[x.Metric]
		limit := x.AtMost * (1 + c.Slack)
		v.holds = v.measured && (v.ratio.Low <= limit || v.ratio.Min <= limit)
		vs = append(vs, v)
	}
	return vs
}

// broken returns the sections with a claim that does not hold.
func broken(vs []verdict) []string {
	var out []string
	for _, v := range vs {
		section, _, _ := strings.Cut(v.Metric, "/")
		if !v.holds && !slices.Contains(out, section) {
			out = append(out, section)
		}
	}
	return out
}

// print shows the verdicts, and how they came about.
func (c claims) print(vs []verdict) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tmetric\tat most\tmedian\t95 %% interval\tminimum\tclaim\n")
	for _, v := range vs {
		mark := "ok"
		if !v.holds {
			mark = "BROKEN"
		}
		if !v.measured {
			fmt.Fprintf(w, "%s\t%s\t%.2f\tnot measured\t\t\t%s\n", mark, v.Metric, v.AtMost, v.Says)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%.2f–%.2f\t%.2f\t%s\n", mark, v.Metric, v.AtMost,
			v.ratio.Median, v.ratio.Low, v.ratio.High, v.ratio.Min, v.Says)
	}
	_ = w.Flush()
	fmt.Fprintf(&b, "Ratios to %s; the tolerance is %.0f %% of \"at most\".\n", referenceName, c.Slack*100)
	b.WriteString("A claim about start to exit, times or page faults, fails only if both the lower end of the median's\n" +
		"interval and the minimum exceed the ratio by more than the tolerance; any other if its one figure does.\n" +
		"What fails is measured again, start to exit with twice the runs; this is the last measurement.\n")
	return b.String()
}

// check measures what the claims are about. A section in which a claim fails is
// measured once more, start to exit with twice the runs; only then it counts.
func (b *bench) check(path string, r *Report) error {
	c, err := readClaims(path)
	if err != nil {
		return err
	}
	// Only the two of the claims take part, beside the bare command.
	b.inits = slices.DeleteFunc(b.inits, func(c contender) bool {
		return c.name != bareName && c.name != subjectName && c.name != referenceName
	})
	var wanted []string
	for _, s := range sections {
		if slices.ContainsFunc(c.Claims, func(x claim) bool { return strings.HasPrefix(x.Metric, s+"/") }) {
			wanted = append(wanted, s)
		}
	}
	if err := b.measure(r, wanted); err != nil {
		return err
	}
	vs := c.judge(r)
	if again := broken(vs); len(again) > 0 {
		progress("once more: %s", strings.Join(again, ", "))
		b.size.Runs *= 2
		if err := b.measure(r, again); err != nil {
			return err
		}
		vs = c.judge(r)
	}
	fmt.Print(c.print(vs))
	if len(broken(vs)) > 0 {
		return errBroken
	}
	return nil
}
