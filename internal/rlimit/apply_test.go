package rlimit

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Limits are a process's own and do not come back, so each case has a process for
// itself: this test binary once more, which finds the case in its environment.
const caseVariable = "RLIMIT_TEST_CASE"

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(caseVariable); ok {
		var c applying
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			panic(err)
		}
		out, err := json.Marshal(c.run())
		if err != nil {
			panic(err)
		}
		unix.Write(1, out)
		sys.Exit(0)
	}
	os.Exit(m.Run())
}

// applying is a case: limits to begin with, then what is asked for. That of core files is
// none of them: it may be 0 where a test runs, and not to be raised.
type applying struct {
	Before []string // NAME=SOFT:HARD
	Asked  []string // as --rlimit has them
	Auto   bool
}

type applied struct {
	Failure    Failure
	Changes    []Change
	Old, Now   [Count]sys.Rlimit
	Allocation uint64
}

func (c *applying) run() (a applied) {
	for _, text := range c.Before {
		resource, q, problem, _, _ := ParseNamed(text)
		if problem != 0 {
			panic(text)
		}
		if errno := sys.SetRlimit(resource, &sys.Rlimit{Soft: q.Soft, Hard: q.Hard}); errno != 0 {
			panic(text + ": " + errno.Error())
		}
	}
	var requests Requests
	for _, text := range c.Asked {
		resource, q, problem, _, _ := ParseNamed(text)
		if problem != 0 {
			panic(text)
		}
		requests.Ask(resource, q)
	}
	for i := range Count {
		sys.GetRlimit(i, &a.Old[i])
	}
	var changes Changes
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a.Failure = Apply(&requests, c.Auto, &changes)
	runtime.ReadMemStats(&after)
	a.Allocation = after.Mallocs - before.Mallocs
	for i := range changes.Len() {
		a.Changes = append(a.Changes, changes.At(i))
	}
	for i := range Count {
		sys.GetRlimit(i, &a.Now[i])
	}
	return a
}

func apply(t *testing.T, c applying) (a applied) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd := exec.Command(exe)
	cmd.Env = []string{caseVariable + "=" + string(text)}
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", text, err, out, stderr.String())
	}
	return a
}

// mayRaise tells whether this process may raise a hard limit.
func mayRaise() bool {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "CapEff:\t"); ok {
			const resource = 24 // CAP_SYS_RESOURCE
			digit := len(strings.TrimSpace(value)) - 1 - resource/4
			return digit >= 0 && strings.IndexByte("13579bdf", value[digit]) >= 0
		}
	}
	return false
}

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name string
		applying
		want map[int]sys.Rlimit // what is different afterwards
	}{
		{name: "nothing"},
		{name: "auto leaves a sane limit", applying: applying{Auto: true, Before: []string{"nofile=512:1024"}}},
		{name: "soft", applying: applying{Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=700"}}, want: map[int]sys.Rlimit{unix.RLIMIT_NOFILE: {Soft: 700, Hard: 1024}}},
		{name: "soft, cut to hard", applying: applying{Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=5000"}}, want: map[int]sys.Rlimit{unix.RLIMIT_NOFILE: {Soft: 1024, Hard: 1024}}},
		{name: "soft as hard", applying: applying{Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=hard"}}, want: map[int]sys.Rlimit{unix.RLIMIT_NOFILE: {Soft: 1024, Hard: 1024}}},
		{name: "both", applying: applying{Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=100:200"}}, want: map[int]sys.Rlimit{unix.RLIMIT_NOFILE: {Soft: 100, Hard: 200}}},
		{name: "zero", applying: applying{Before: []string{"locks=512:1024"}, Asked: []string{"locks=0:0"}}, want: map[int]sys.Rlimit{unix.RLIMIT_LOCKS: {}}},
		{name: "what it is already", applying: applying{Auto: true, Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=512:1024"}}},
		{name: "asking beats auto", applying: applying{Auto: true, Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=600"}}, want: map[int]sys.Rlimit{unix.RLIMIT_NOFILE: {Soft: 600, Hard: 1024}}},
		{
			name: "several",
			applying: applying{
				Before: []string{"nofile=512:1024", "locks=512:1024", "cpu=1000:2000", "rttime=1000:2000"},
				Asked:  []string{"rttime=hard", "nofile=600", "locks=1:2", "cpu=1000"},
			},
			want: map[int]sys.Rlimit{unix.RLIMIT_NOFILE: {Soft: 600, Hard: 1024}, unix.RLIMIT_LOCKS: {Soft: 1, Hard: 2}, unix.RLIMIT_RTTIME: {Soft: 2000, Hard: 2000}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := apply(t, c.applying)
			if a.Failure != (Failure{}) {
				t.Errorf("failed: %+v", a.Failure)
			}
			var changes []Change
			for resource := range Count {
				want, changed := c.want[resource]
				if !changed {
					want = a.Old[resource]
				} else {
					changes = append(changes, Change{resource, a.Old[resource], want})
				}
				if a.Now[resource] != want {
					t.Errorf("%s is %+v, want %+v", Type(resource), a.Now[resource], want)
				}
			}
			if !slices.Equal(a.Changes, changes) {
				t.Errorf("tells of %+v, want %+v", a.Changes, changes)
			}
		})
	}
}

// TestApplyToEach goes through all sixteen.
func TestApplyToEach(t *testing.T) {
	for resource := range Count {
		var present sys.Rlimit
		if errno := sys.GetRlimit(resource, &present); errno != 0 {
			t.Fatal(errno)
		}
		name := strings.ToLower(strings.TrimPrefix(Type(resource), "RLIMIT_"))
		a := apply(t, applying{Asked: []string{name + "=hard"}})
		want := sys.Rlimit{Soft: a.Old[resource].Hard, Hard: a.Old[resource].Hard}
		if a.Failure != (Failure{}) || a.Now[resource] != want {
			t.Errorf("%s: %+v, %+v, want %+v", name, a.Failure, a.Now[resource], want)
		}
	}
}

// TestApplyRefused: what cannot be set is told with all that is needed to understand it,
// and what comes after is not tried.
func TestApplyRefused(t *testing.T) {
	if mayRaise() {
		t.Skip("this process has CAP_SYS_RESOURCE, so that it is not refused")
	}
	a := apply(t, applying{
		Before: []string{"locks=512:1024", "cpu=1000:2000", "rttime=1000:2000"},
		Asked:  []string{"cpu=500", "locks=512:4096", "rttime=500"},
	})
	want := Failure{Errno: unix.EPERM, Resource: unix.RLIMIT_LOCKS, Wanted: sys.Rlimit{Soft: 512, Hard: 4096}, Present: sys.Rlimit{Soft: 512, Hard: 1024}}
	if a.Failure != want {
		t.Errorf("%+v, want %+v", a.Failure, want)
	}
	if a.Now[unix.RLIMIT_LOCKS] != a.Old[unix.RLIMIT_LOCKS] || a.Now[unix.RLIMIT_RTTIME] != a.Old[unix.RLIMIT_RTTIME] || a.Now[unix.RLIMIT_CPU].Soft != 500 {
		t.Errorf("%+v became %+v", a.Old, a.Now)
	}
	// A hard RLIMIT_NOFILE that was asked for is not quietly made smaller.
	a = apply(t, applying{Auto: true, Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=hard:2048"}})
	want = Failure{Errno: unix.EPERM, Resource: unix.RLIMIT_NOFILE, Wanted: sys.Rlimit{Soft: 2048, Hard: 2048}, Present: sys.Rlimit{Soft: 512, Hard: 1024}}
	if a.Failure != want || a.Now != a.Old {
		t.Errorf("%+v, want %+v", a.Failure, want)
	}
}

func TestApplyDoesNotAllocate(t *testing.T) {
	for range 5 { // the runtime itself may, now and then
		if a := apply(t, applying{Auto: true, Before: []string{"nofile=512:1024"}, Asked: []string{"nofile=600", "locks=hard"}}); a.Allocation == 0 {
			return
		}
	}
	t.Error("it does")
}
