package rlimit

import (
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// infinity are the values that service managers' "infinity" becomes: systemd's 2^30-8
// and the highest fs.nr_open that the kernel takes.
var infinity = []uint64{1073741816, 2147483584, Unlimited}

func TestAutoLeavesSaneLimitsAlone(t *testing.T) {
	for _, present := range []sys.Rlimit{
		{Soft: 0, Hard: 0},
		{Soft: 1024, Hard: 4096},
		{Soft: 1024, Hard: 524288},
		{Soft: 65536, Hard: 65536},
		{Soft: 1048576, Hard: 1048576},
	} {
		if wanted, changed := Auto(present); changed || wanted != present {
			t.Errorf("%+v became %+v", present, wanted)
		}
	}
}

func TestAutoJudgesSoftAndHardByThemselves(t *testing.T) {
	for _, huge := range append(infinity, Pathological+1) {
		for _, c := range []struct{ present, want sys.Rlimit }{
			{sys.Rlimit{Soft: huge, Hard: huge}, sys.Rlimit{Soft: 65536, Hard: 1048576}},
			{sys.Rlimit{Soft: 1024, Hard: huge}, sys.Rlimit{Soft: 1024, Hard: 1048576}},
			{sys.Rlimit{Soft: 524288, Hard: huge}, sys.Rlimit{Soft: 524288, Hard: 1048576}},
			{sys.Rlimit{Soft: 1048576, Hard: huge}, sys.Rlimit{Soft: 1048576, Hard: 1048576}},
		} {
			wanted, changed := Auto(c.present)
			if !changed || wanted != c.want {
				t.Errorf("%+v became %+v, want %+v", c.present, wanted, c.want)
			}
			if again, changed := Auto(wanted); changed {
				t.Errorf("%+v became %+v the second time", wanted, again)
			}
		}
	}
}

func TestResolve(t *testing.T) {
	present := sys.Rlimit{Soft: 1024, Hard: 4096}
	for text, want := range map[string]sys.Rlimit{
		"2048":           {Soft: 2048, Hard: 4096},
		"0":              {Soft: 0, Hard: 4096},
		"4096":           {Soft: 4096, Hard: 4096},
		"9999":           {Soft: 4096, Hard: 4096}, // cut, for the hard one was not asked for
		"unlimited":      {Soft: 4096, Hard: 4096},
		"hard":           {Soft: 4096, Hard: 4096},
		"hard:100":       {Soft: 100, Hard: 100},
		"50:100":         {Soft: 50, Hard: 100},
		"5000:6000":      {Soft: 5000, Hard: 6000}, // it is for the kernel to refuse
		"1:unlimited":    {Soft: 1, Hard: Unlimited},
		"hard:unlimited": {Soft: Unlimited, Hard: Unlimited},
	} {
		q, problem, _, _ := ParseLimit(text)
		if problem != 0 {
			t.Errorf("%s %v", text, problem)
			continue
		}
		if got := q.resolve(present); got != want {
			t.Errorf("%s means %+v, want %+v", text, got, want)
		}
	}
}

func TestClamp(t *testing.T) {
	for _, c := range []struct {
		limit sys.Rlimit
		most  uint64
		want  sys.Rlimit
	}{
		{sys.Rlimit{Soft: 65536, Hard: Unlimited}, 1048576, sys.Rlimit{Soft: 65536, Hard: 1048576}},
		{sys.Rlimit{Soft: 65536, Hard: 1048576}, 1024, sys.Rlimit{Soft: 1024, Hard: 1024}},
		{sys.Rlimit{Soft: 1, Hard: 2}, 1024, sys.Rlimit{Soft: 1, Hard: 2}},
	} {
		if got := clamp(c.limit, c.most); got != c.want {
			t.Errorf("clamp(%+v, %d) = %+v, want %+v", c.limit, c.most, got, c.want)
		}
	}
}

// TestMaxOpen: the kernel's own answer is that a hard limit may not be above it.
func TestMaxOpen(t *testing.T) {
	n, ok := MaxOpen()
	if !ok {
		t.Skip("/proc/sys/fs/nr_open cannot be read here")
	}
	var present sys.Rlimit
	if errno := sys.GetRlimit(unix.RLIMIT_NOFILE, &present); errno != 0 {
		t.Fatal(errno)
	}
	above := sys.Rlimit{Soft: present.Soft, Hard: n + 1}
	if errno := sys.SetRlimit(unix.RLIMIT_NOFILE, &above); errno != unix.EPERM {
		t.Errorf("a hard limit of %d: %v, want %v", n+1, errno, unix.EPERM)
	}
	if n := testing.AllocsPerRun(10, func() { MaxOpen() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
