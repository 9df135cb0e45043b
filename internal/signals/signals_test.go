package signals_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// TestNamesAreTheKernels compares with a table that is made from the kernel's headers.
func TestNamesAreTheKernels(t *testing.T) {
	for n := 1; n <= 31; n++ {
		want := unix.SignalName(unix.Signal(n))
		if want == "" {
			t.Errorf("signal %d has no name in x/sys", n)
			continue
		}
		// x/sys says SIGABRT, SIGIO and so on; where it prefers the other of two names,
		// it is an alias here.
		if sig, ok := signals.Parse(want); !ok || int(sig) != n {
			t.Errorf("Parse(%q) = %d, %v, want %d", want, sig, ok, n)
		}
		name := signals.Standard(sys.Signal(n))
		if got := unix.SignalNum("SIG" + name); int(got) != n {
			t.Errorf("Standard(%d) = %s, which is %d", n, name, got)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		s    string
		want sys.Signal // 0: refused
	}{
		{"TERM", 15},
		{"SIGTERM", 15},
		{"sigterm", 15},
		{"SigTerm", 15},
		{"term", 15},
		{"15", 15},
		{"015", 15}, // decimal, whatever a C library makes of the zero
		{"1", 1},
		{"64", 64},
		{"32", 32}, // has no name, but the kernel knows it
		{"HUP", 1},
		{"SIGIOT", 6},
		{"cld", 17},
		{"POLL", 29},
		{"IO", 29},
		{"RTMIN", 34},
		{"sigrtmin+0", 34},
		{"RTMIN+3", 37},
		{"SIGRTMIN+30", 64},
		{"RTMAX", 64},
		{"RTMAX-1", 63},
		{"sigrtmax-30", 34},
		{"RTMIN+03", 37},

		{"", 0},
		{"0", 0},
		{"65", 0},
		{"256", 0},
		{"271", 0}, // 15 in eight bits
		{"18446744073709551631", 0},
		{"-15", 0},
		{"+15", 0},
		{" 15", 0},
		{"15 ", 0},
		{"SIG", 0},
		{"SIG15", 0},
		{"SIGSIGTERM", 0},
		{"TERMX", 0},
		{"TER", 0},
		{"SIGTERM ", 0},
		{"RTMIN+31", 0},
		{"RTMAX-31", 0},
		{"RTMIN-1", 0},
		{"RTMAX+1", 0},
		{"RTMIN+", 0},
		{"RTMIN+x", 0},
		{"RTMIN+-1", 0},
		{"RTMIN+18446744073709551617", 0},
		{"RTMIN 3", 0},
		{"EXIT", 0},
	} {
		sig, ok := signals.Parse(c.s)
		if ok != (c.want != 0) || ok && sig != c.want {
			t.Errorf("Parse(%q) = %d, %v, want %d", c.s, sig, ok, c.want)
		}
	}
}

func TestStandard(t *testing.T) {
	for sig, want := range map[sys.Signal]string{
		1: "HUP", 6: "ABRT", 15: "TERM", 29: "IO", 31: "SYS",
		0: "", 32: "", 33: "", 34: "", 35: "", 64: "", 65: "", 255: "",
	} {
		if got := signals.Standard(sig); got != want {
			t.Errorf("Standard(%d) = %q, want %q", sig, got, want)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		for _, s := range [...]string{"sigterm", "15", "RTMIN+3", "rtmax-1", "nothing like it", "999999999999999999999"} {
			signals.Parse(s)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// spellings is all that Parse may accept, apart from leading zeros of numbers: in upper
// case, without SIG, to the signal's number.
func spellings() map[string]sys.Signal {
	all := map[string]sys.Signal{"IOT": 6, "CLD": 17, "POLL": 29, "IO": 29, "ABRT": 6, "CHLD": 17, "RTMIN": 34, "RTMAX": 64}
	for n := 1; n <= 31; n++ {
		all[strings.TrimPrefix(unix.SignalName(unix.Signal(n)), "SIG")] = sys.Signal(n)
	}
	for n := 34; n <= 64; n++ {
		all[fmt.Sprintf("RTMIN+%d", n-34)] = sys.Signal(n)
		all[fmt.Sprintf("RTMAX-%d", 64-n)] = sys.Signal(n)
	}
	return all
}

func FuzzParse(f *testing.F) {
	all := spellings()
	for s := range all {
		f.Add(s)
		f.Add("sig" + strings.ToLower(s))
	}
	for _, s := range []string{"", "0", "1", "64", "65", "SIG", "SIGSIGHUP", "RTMIN+31", "RTMIN+-1", "RTMAX+0", "rtmin+00000000000000000003"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sig, ok := signals.Parse(s)
		want, wantOK := reference(all, s)
		if ok != wantOK || ok && sig != want {
			t.Fatalf("Parse(%q) = %d, %v, want %d, %v", s, sig, ok, want, wantOK)
		}
	})
}

func reference(all map[string]sys.Signal, s string) (sys.Signal, bool) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return sys.Signal(n), n >= 1 && n <= 64
	}
	for _, r := range s {
		if r > 127 { // strings.ToUpper knows letters that become ASCII ones
			return 0, false
		}
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	for _, prefix := range []string{"RTMIN+", "RTMAX-"} {
		if digits, ok := strings.CutPrefix(s, prefix); ok {
			n, err := strconv.ParseUint(digits, 10, 64)
			if err != nil {
				return 0, false
			}
			s = prefix + strconv.FormatUint(n, 10)
		}
	}
	sig, ok := all[s]
	return sig, ok
}
