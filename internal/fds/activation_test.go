package fds

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestActivation passes five descriptors and speaks of them in various ways.
func TestActivation(t *testing.T) {
	for _, c := range []struct {
		env  string // separated by commas
		keep string
		want int
		kept []Range
	}{
		{env: "LISTEN_FDS=2", want: 2, kept: []Range{{3, 4}}},
		{env: "LISTEN_FDS=5", want: 5, kept: []Range{{3, 7}}},
		{env: "LISTEN_FDS=2,LISTEN_PID=SELF", want: 2, kept: []Range{{3, 4}}},
		{env: "LISTEN_PID=SELF,LISTEN_FDNAMES=a:b,LISTEN_FDS=1", want: 1, kept: []Range{{3, 3}}},
		{env: "LISTEN_FDS=2", keep: "5", want: 2, kept: []Range{{3, 5}}},
		{env: "LISTEN_FDS=2", keep: "7", want: 2, kept: []Range{{3, 4}, {7, 7}}},
		{env: "LISTEN_FDS=2", keep: "all", want: 2, kept: []Range{{3, Max}}},
		{env: "LISTEN_FDS=02", want: 2, kept: []Range{{3, 4}}},
		{env: "LISTEN_FDS=2,LISTEN_FDS=x", want: 2, kept: []Range{{3, 4}}},

		{env: "A=1"},
		{env: "LISTEN_PID=SELF"},
		{env: "LISTEN_FDS=0"},
		{env: "LISTEN_FDS="},
		{env: "LISTEN_FDS"},
		{env: "LISTEN_FDS=-1"},
		{env: "LISTEN_FDS=+2"},
		{env: "LISTEN_FDS=2x"},
		{env: "LISTEN_FDS= 2"},
		{env: "LISTEN_FDS=x,LISTEN_FDS=2"},
		{env: "XLISTEN_FDS=2"},
		{env: "LISTEN_FDS=2,LISTEN_PID="},
		{env: "LISTEN_FDS=2,LISTEN_PID=x"},
		{env: "LISTEN_FDS=2,LISTEN_PID=0"},
		{env: "LISTEN_FDS=2,LISTEN_PID=2147483647"},
		{env: "LISTEN_FDS=2,LISTEN_PID=-SELF"},
		{env: "LISTEN_FDS=2,LISTEN_PID=SELF9"},
		{env: "LISTEN_FDS=2,LISTEN_PID=99999999999999999999"},
		// Speaks of more than there are.
		{env: "LISTEN_FDS=6"},
		{env: "LISTEN_FDS=2147483644"},
		{env: "LISTEN_FDS=2147483645"},
		{env: "LISTEN_FDS=2147483647"},
		{env: "LISTEN_FDS=4294967298"},
		{env: "LISTEN_FDS=18446744073709551618"},
		{env: "LISTEN_FDS=6", keep: "5", kept: []Range{{5, 5}}},
	} {
		t.Run(c.env+" "+c.keep, func(t *testing.T) {
			t.Parallel()
			o := play(t, scenario{Pass: 5, Env: strings.Split(c.env, ","), Keep: c.keep, With: "sweep"})
			if o.Activated != c.want || !slices.Equal(o.Kept, c.kept) {
				t.Errorf("%d activated, %v kept, want %d, %v", o.Activated, o.Kept, c.want, c.kept)
			}
			for fd := First; fd < First+5; fd++ {
				kept := slices.ContainsFunc(c.kept, func(r Range) bool { return r.First <= uint32(fd) && uint32(fd) <= r.Last })
				if slices.Contains(o.After, fd) != kept {
					t.Errorf("%d is open after the sweep: %v", fd, !kept)
				}
			}
		})
	}
}

// TestActivationIntoAFullSet: what cannot be added is not said to be there.
func TestActivationIntoAFullSet(t *testing.T) {
	var elements []string
	for i := range MaxRanges {
		elements = append(elements, itoa(100+2*i))
	}
	full := strings.Join(elements, ",")
	o := play(t, scenario{Pass: 2, Env: []string{"LISTEN_FDS=2"}, Keep: full, With: "sweep"})
	if o.Activated != 0 || len(o.Kept) != MaxRanges {
		t.Errorf("%d activated, %v kept", o.Activated, o.Kept)
	}
}

func TestActivationDoesNotAllocate(t *testing.T) {
	pid := os.Getpid()
	env := sys.VectorOf("A=1", "LISTEN_PID="+itoa(pid), "LISTEN_FDS=1")
	if n := testing.AllocsPerRun(100, func() {
		var set Set
		Activation(env, pid, &set)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzActivation(f *testing.F) {
	self := itoa(os.Getpid())
	for _, owner := range []string{"-", "", "0", "1", self, self + "0", "x", "18446744073709551617"} {
		for _, n := range []string{"-", "", "0", "1", "2", "1000000", "2147483645", "4294967297", "-1", "x"} {
			f.Add(owner, n)
		}
	}
	f.Fuzz(func(t *testing.T, owner, n string) {
		var env []string
		pid := os.Getpid()
		believed := true
		// A dash stands for no variable, which no valid value looks like.
		if owner != "-" {
			env = append(env, "LISTEN_PID="+owner)
			owner, _, _ = strings.Cut(owner, "\x00")
			parsed, err := strconv.ParseUint(owner, 10, 31)
			believed = err == nil && int(parsed) == pid
		}
		want := uint64(0)
		if n != "-" {
			env = append(env, "LISTEN_FDS="+n)
			n, _, _ = strings.Cut(n, "\x00")
			if parsed, err := strconv.ParseUint(n, 10, 31); believed && err == nil {
				want = parsed
			}
		}
		for fd := range min(want, 1<<16) {
			if _, err := unix.FcntlInt(uintptr(First+fd), unix.F_GETFD, 0); err != nil {
				want = 0
				break
			}
		}
		var set Set
		got := Activation(sys.VectorOf(env...), pid, &set)
		if uint64(got) != want {
			t.Fatalf("%q: %d, want %d", env, got, want)
		}
		if kept := ranges(&set); got == 0 && len(kept) != 0 || got > 0 && !slices.Equal(kept, []Range{{First, First + uint32(got) - 1}}) {
			t.Fatalf("%q: %d, but %v", env, got, kept)
		}
	})
}
