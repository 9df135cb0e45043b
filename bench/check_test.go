package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// twoRows is a report in which fdinit costs half of the reference everywhere.
func twoRows() *Report {
	calls := func(n int) *int { return &n }
	r := &Report{}
	for _, pid1 := range []bool{true, false} {
		for _, command := range []string{"static", "dynamic"} {
			half := Above{Ratio: &Ratio{0.5, 0.45, 0.55, 0.5}}
			r.Startup = append(r.Startup,
				StartupRow{Init: subjectName, PID1: pid1, Command: command, Wall: half, CPU: half, Faults: half, Syscalls: calls(10)},
				StartupRow{Init: referenceName, PID1: pid1, Command: command, Syscalls: calls(20)})
		}
	}
	idle := func(name string, n int64) IdleRow {
		return IdleRow{Init: name, RSS: n, PSS: n, PrivateDirty: n, PrivateClean: n, PageTables: n, Threads: n, Wakeups: n, Descriptors: int(n), WorkedRSS: n, WorkedPrivateDirty: n}
	}
	r.Idle = []IdleRow{idle(subjectName, 10), idle(referenceName, 20)}
	r.Fleet = []FleetRow{
		{Init: subjectName, PSS: 1, PrivateDirty: 1, PageTables: 1},
		{Init: referenceName, PSS: 2, PrivateDirty: 2, PageTables: 2},
	}
	for _, storm := range []bool{false, true} {
		r.Latency = append(r.Latency,
			LatencyRow{Init: subjectName, Storm: storm, Median: 1, P99: 1},
			LatencyRow{Init: referenceName, Storm: storm, Median: 2, P99: 2})
	}
	r.Reaping = []ReapingRow{{Init: subjectName, CPU: 1, PerSecond: 2}, {Init: referenceName, CPU: 2, PerSecond: 1}}
	r.FileSize = []SizeRow{{Init: subjectName, Bytes: 1}, {Init: referenceName, Bytes: 2}}
	return r
}

func TestEveryRatioHasAName(t *testing.T) {
	ratios := twoRows().ratios()
	if len(ratios) != 4*4+10+3+4+2+1 {
		t.Errorf("%d ratios", len(ratios))
	}
	for name, r := range ratios {
		if r.Median != 0.5 {
			t.Errorf("%s is %v, want 0.5", name, r.Median)
		}
	}
}

func TestClaimsOfTheReadmeCanBeMeasured(t *testing.T) {
	c, err := readClaims("claims.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.judge(twoRows()) {
		if !v.measured {
			t.Errorf("no measurement is called %q", v.Metric)
		}
	}
}

func TestJudge(t *testing.T) {
	c := claims{Slack: 0.1}
	for _, tc := range []struct {
		name   string
		atMost float64
		r      *Ratio
		holds  bool
	}{
		{"well below", 0.6, &Ratio{0.4, 0.35, 0.45, 0.4}, true},
		{"within the slack", 0.6, &Ratio{0.65, 0.64, 0.67, 0.65}, true},
		{"noise spoilt the median", 0.6, &Ratio{0.8, 0.75, 0.9, 0.5}, true},
		{"noise spoilt the minimum", 0.6, &Ratio{0.7, 0.6, 0.8, 0.9}, true},
		{"both are above", 0.6, &Ratio{0.9, 0.85, 0.95, 0.8}, false},
		{"not measured", 0.6, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.Claims = []claim{{Metric: "startup/pid1/static/wall", AtMost: tc.atMost}}
			r := &Report{Startup: []StartupRow{{Init: subjectName, PID1: true, Command: "static", Wall: Above{Ratio: tc.r}}}}
			vs := c.judge(r)
			if vs[0].holds != tc.holds {
				t.Errorf("holds is %v:\n%s", vs[0].holds, c.print(vs))
			}
			if got := len(broken(vs)) == 0; got != tc.holds {
				t.Errorf("broken says %v", broken(vs))
			}
			if got := strings.Contains(c.print(vs), "BROKEN"); got == tc.holds {
				t.Errorf("the table says otherwise:\n%s", c.print(vs))
			}
		})
	}
}

func TestAZeroIsNoMoreThanAnything(t *testing.T) {
	r := twoRows()
	r.Idle[0].Wakeups = 0
	c := claims{Claims: []claim{{Metric: "idle/wakeups", AtMost: 0}}}
	if vs := c.judge(r); !vs[0].holds {
		t.Errorf("no wake-up beside %d does not hold", r.Idle[1].Wakeups)
	}
	r.Idle[0].Wakeups = 1
	if vs := c.judge(r); vs[0].holds {
		t.Error("one wake-up holds beside a claim of none")
	}
}

func TestReadClaimsRejects(t *testing.T) {
	for _, text := range []string{
		`{`,
		`{"reference": "tini-static", "claims": []}`,
		`{"reference": "dumb-init", "claims": [{"metric": "idle/rss", "atMost": 1}]}`,
		`{"reference": "tini-static", "claims": [{"metric": "idel/rss", "atMost": 1}]}`,
		`{"reference": "tini-static", "claims": [{"metric": "idle/rss", "atmostly": 1}]}`,
	} {
		path := filepath.Join(t.TempDir(), "claims.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readClaims(path); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}

func TestBrokenNamesASectionOnce(t *testing.T) {
	vs := []verdict{
		{claim: claim{Metric: "idle/rss"}},
		{claim: claim{Metric: "idle/pss"}},
		{claim: claim{Metric: "size/file"}, holds: true},
		{claim: claim{Metric: "startup/pid1/static/wall"}},
	}
	if got := broken(vs); !slices.Equal(got, []string{"idle", "startup"}) {
		t.Errorf("broken is %v", got)
	}
}
