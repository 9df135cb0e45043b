package fds

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func soft(n uint64) *uint64 { return &n }

var strategies = []string{"range", "proc", "poll"}

// scattered are numbers from all over a table: just above the standard ones, what
// shells leak (10, 251), around the end of the plain loop, and far up.
var scattered = []int{3, 10, 251, 4095, 4096, 4097, 19990}

// needed skips where a table cannot have so many descriptors.
func needed(t *testing.T, n int) {
	if hard := hardLimit(t); hard < n {
		t.Skipf("needs a hard RLIMIT_NOFILE of %d, has %d", n, hard)
	}
}

// verify checks that a sweep left what was to be kept, and no more, and counted right.
func verify(t *testing.T, o outcome, keep string) {
	t.Helper()
	var set Set
	if keep != "" {
		ParseKeep(keep, &set)
	}
	want := slices.DeleteFunc(slices.Clone(o.Before), func(fd int) bool { return !set.Has(uint32(fd)) })
	if !slices.Equal(o.After, want) {
		t.Errorf("left open: %v, want %v", few(o.After), few(want))
	}
	if closed := len(o.Before) - len(want); o.Closed != closed && o.Closed != Uncounted {
		t.Errorf("says that it closed %d, but it was %d", o.Closed, closed)
	}
	if o.Errno != 0 {
		t.Errorf("failed: %v", unix.Errno(o.Errno))
	}
	if o.Mallocs != 0 {
		t.Errorf("%d allocations", o.Mallocs)
	}
}

func few(fds []int) []int { return fds[:min(len(fds), 20)] }

// TestStrategies runs every strategy by itself over every kind of table.
func TestStrategies(t *testing.T) {
	many := []int(nil)
	var separate []string
	for i := range MaxRanges {
		many = append(many, 10*i+5)
		separate = append(separate, itoa(10*i+5))
	}
	low := scattered[:len(scattered)-1]
	tests := []struct {
		name string
		scenario
		needs int
	}{
		{name: "nothing open"},
		{name: "scattered", scenario: scenario{At: scattered}},
		{name: "scattered, limit lowered to 64 since", scenario: scenario{At: scattered, Soft: soft(64)}},
		{name: "directories by path", scenario: scenario{Paths: []int{3, 7, 100, 4095}}},
		{name: "every kind of file", scenario: scenario{Kinds: true}},
		{name: "15000 at once", scenario: scenario{Many: 15000}, needs: 15100},
		{name: "15000 at once, limit lowered to 64 since", scenario: scenario{Many: 15000, Soft: soft(64)}, needs: 15100},
		{name: "a full table", scenario: scenario{Full: true, Soft: soft(64)}},
		{name: "a full table, and more above the limit", scenario: scenario{Full: true, Soft: soft(256), At: []int{300, 5000}}},
		{name: "a full table, the low ones kept", scenario: scenario{Full: true, Soft: soft(64), Keep: "3-60"}},
		{name: "inherited through exec", scenario: scenario{Pass: 100}},
		{name: "inherited through exec, some kept", scenario: scenario{Pass: 100, Keep: "5,20-30,102"}},

		{name: "keep one", scenario: scenario{At: low, Keep: "10"}},
		{name: "keep the first", scenario: scenario{At: low, Keep: "3"}},
		{name: "keep the last", scenario: scenario{At: scattered, Keep: "19990"}},
		{name: "keep what is closed", scenario: scenario{At: low, Keep: "50-60"}},
		{name: "keep the standard ones", scenario: scenario{At: low, Keep: "0-2"}},
		{name: "keep ranges", scenario: scenario{At: scattered, Keep: "2-10,4000-4096", Soft: soft(64)}},
		{name: "keep up to the end", scenario: scenario{At: low, Keep: "251-2147483647"}},
		{name: "keep the last number", scenario: scenario{At: low, Keep: "2147483647"}},
		{name: "keep all but one", scenario: scenario{At: low, Keep: "0-250,252-2147483647"}},
		{name: "keep 64 ranges", scenario: scenario{At: append(slices.Clone(low), many...), Keep: strings.Join(separate, ",")}},
		{name: "keep everything", scenario: scenario{At: low, Keep: "all"}},
	}
	for _, test := range tests {
		for _, strategy := range strategies {
			t.Run(test.name+"/"+strategy, func(t *testing.T) {
				t.Parallel()
				needed(t, max(test.needs, 20000))
				s := test.scenario
				s.With = strategy
				o := play(t, s)
				for _, fd := range append(slices.Clone(s.At), s.Paths...) {
					if !slices.Contains(o.Before, fd) {
						t.Fatalf("%d was not even open", fd)
					}
				}
				if n := len(o.Before); n < s.Many || n < int(s.Pass) || s.Full && n < int(*s.Soft)-First {
					t.Fatalf("only %d were open", n)
				}
				verify(t, o, s.Keep)
			})
		}
	}
}

// TestPathsAreInvisibleToPolling pins the one known hole down, so that the comment
// about it stays true: with neither close_range(2) nor /proc, O_PATH descriptors above
// the plain loop stay open.
func TestPathsAreInvisibleToPolling(t *testing.T) {
	needed(t, 20000)
	paths := []int{loopEnd - 1, loopEnd, 5000, 19000}
	for _, strategy := range strategies {
		o := play(t, scenario{Paths: paths, At: []int{6000}, With: strategy})
		want := []int{}
		if strategy == "poll" {
			want = paths[1:]
		}
		if !slices.Equal(o.After, want) {
			t.Errorf("%s left %v, want %v", strategy, o.After, want)
		}
	}
}

// TestSoftLimitOfOne: nothing can be opened, and poll(2) takes one entry at a time.
func TestSoftLimitOfOne(t *testing.T) {
	needed(t, 20000)
	verify(t, play(t, scenario{At: scattered, Soft: soft(1), Keep: "10", With: "poll"}), "10")
}

// TestSoftLimitOfZero: nothing can be opened, and poll(2) takes no entries.
func TestSoftLimitOfZero(t *testing.T) {
	needed(t, 20000)
	for _, strategy := range []string{"range", "poll", "sweep"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			verify(t, play(t, scenario{At: scattered, Soft: soft(0), Keep: "10", With: strategy}), "10")
		})
	}
	t.Run("sweep without close_range", func(t *testing.T) {
		t.Parallel()
		o := play(t, scenario{At: scattered, Paths: []int{5000}, Soft: soft(0), Keep: "10", With: "sweep", Filter: map[int]int{unix.SYS_CLOSE_RANGE: int(unix.ENOSYS)}})
		if o.Strategy != ByPolling.String() {
			t.Errorf("swept by %s", o.Strategy)
		}
		verify(t, o, "10")
	})
	t.Run("proc", func(t *testing.T) {
		t.Parallel()
		if o := play(t, scenario{At: scattered, Soft: soft(0), With: "proc"}); unix.Errno(o.Errno) != unix.EMFILE || o.Closed != 0 || !slices.Equal(o.After, o.Before) {
			t.Errorf("%v, closed %d, left %v, want %v", unix.Errno(o.Errno), o.Closed, few(o.After), unix.EMFILE)
		}
	})
}

// TestSweepTakesWhatWorks makes strategies impossible, one after the other.
func TestSweepTakesWhatWorks(t *testing.T) {
	needed(t, 20000)
	refused := map[string]map[int]int{
		"close_range works":          nil,
		"close_range is unknown":     {unix.SYS_CLOSE_RANGE: int(unix.ENOSYS)},
		"close_range is forbidden":   {unix.SYS_CLOSE_RANGE: int(unix.EPERM)},
		"close_range does it not so": {unix.SYS_CLOSE_RANGE: int(unix.EINVAL)},
	}
	const keep = "10,4000-5000"
	for name, filter := range refused {
		with := scenario{At: scattered, Paths: []int{5, 4010}, Keep: keep, Soft: soft(64), With: "sweep", Filter: filter}
		for place, where := range map[string]struct {
			root func(*testing.T) string
			want Strategy
		}{
			"with proc":      {func(*testing.T) string { return "" }, ByProc},
			"without proc":   {func(t *testing.T) string { return t.TempDir() }, ByPolling},
			"with fake proc": {fakeProc, ByPolling},
		} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				s := with
				s.Root = where.root(t)
				want := where.want
				if filter == nil {
					want = ByRange
				}
				o := play(t, s)
				if o.Strategy != want.String() {
					t.Errorf("swept by %s, want %s", o.Strategy, want)
				}
				verify(t, o, keep)
			})
		}
	}
	t.Run("everything is kept", func(t *testing.T) {
		o := play(t, scenario{At: scattered, Keep: "all", With: "sweep"})
		if o.Strategy != None.String() {
			t.Errorf("swept by %s", o.Strategy)
		}
		verify(t, o, "all")
	})
}

// fakeProc makes a root with a directory in the place of /proc/self/fd, which lists
// descriptors that are not there and none that are.
func fakeProc(t *testing.T) string {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/self/fd/7"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestProcIsNotProc: what only looks like /proc/self/fd is not believed.
func TestProcIsNotProc(t *testing.T) {
	for root, want := range map[string]unix.Errno{fakeProc(t): unix.ENOSYS, t.TempDir(): unix.ENOENT} {
		o := play(t, scenario{At: []int{7, 9}, Root: root, With: "proc"})
		if unix.Errno(o.Errno) != want || o.Closed != 0 || !slices.Equal(o.After, o.Before) {
			t.Errorf("%v, closed %d of %v, want %v", unix.Errno(o.Errno), o.Closed, o.Before, want)
		}
	}
}

// TestPollingRefused: where a filter forbids poll(2), closing goes on without it.
func TestPollingRefused(t *testing.T) {
	needed(t, 20000)
	o := play(t, scenario{At: scattered, Paths: []int{5000}, Keep: "10", With: "poll", Filter: map[int]int{unix.SYS_PPOLL: int(unix.EPERM)}})
	verify(t, o, "10")
}

// TestClosingRefused: a filter that forbids close(2) makes sweeping hopeless, but not
// endless.
func TestClosingRefused(t *testing.T) {
	needed(t, 20000)
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS, unix.EACCES} {
		for _, strategy := range []string{"proc", "poll"} {
			t.Run(strategy+" "+errno.Error(), func(t *testing.T) {
				t.Parallel()
				o := play(t, scenario{At: scattered, With: strategy, Filter: map[int]int{unix.SYS_CLOSE: int(errno)}})
				if o.Closed != 0 {
					t.Errorf("says that it closed %d", o.Closed)
				}
				for _, fd := range scattered {
					if !slices.Contains(o.After, fd) {
						t.Errorf("%d was closed although that is forbidden", fd)
					}
				}
			})
		}
	}
}
