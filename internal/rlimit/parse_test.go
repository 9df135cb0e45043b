package rlimit

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func request(soft, hard uint64, hardGiven bool) Request {
	return Request{POSIXRlimit: specs.POSIXRlimit{Soft: soft, Hard: hard}, HardGiven: hardGiven}
}

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		s       string
		want    Request
		problem Problem
		part    string // that has the problem
	}{
		{s: "1024", want: request(1024, 0, false)},
		{s: "0", want: request(0, 0, false)},
		{s: "00064", want: request(64, 0, false)},
		{s: "1024:4096", want: request(1024, 4096, true)},
		{s: "1024:1024", want: request(1024, 1024, true)},
		{s: "0:0", want: request(0, 0, true)},
		{s: "unlimited", want: request(Unlimited, 0, false)},
		{s: "UNLIMITED:Unlimited", want: request(Unlimited, Unlimited, true)},
		{s: "infinity", want: request(Unlimited, 0, false)},
		{s: "-1", want: request(Unlimited, 0, false)},
		{s: "-1:-1", want: request(Unlimited, Unlimited, true)},
		{s: "1:unlimited", want: request(1, Unlimited, true)},
		{s: "18446744073709551615", want: request(Unlimited, 0, false)},
		{s: "18446744073709551614:infinity", want: request(Unlimited-1, Unlimited, true)},
		{s: "hard", want: Request{SoftIsHard: true}},
		{s: "HARD:4096", want: Request{POSIXRlimit: specs.POSIXRlimit{Hard: 4096}, SoftIsHard: true, HardGiven: true}},

		{s: "", problem: ValueEmpty},
		{s: ":", problem: ValueEmpty},
		{s: ":5", problem: ValueEmpty},
		{s: "5:", problem: ValueEmpty},
		{s: "hard:", problem: ValueEmpty},
		{s: "x", problem: ValueNotANumber, part: "x"},
		{s: "x:5", problem: ValueNotANumber, part: "x"},
		{s: "5:y", problem: ValueNotANumber, part: "y"},
		{s: "1:2:3", problem: ValueNotANumber, part: "2:3"},
		{s: " 5", problem: ValueNotANumber, part: " 5"},
		{s: "5\n", problem: ValueNotANumber, part: "5\n"},
		{s: "+5", problem: ValueNotANumber, part: "+5"},
		{s: "-2", problem: ValueNotANumber, part: "-2"},
		{s: "0x10", problem: ValueNotANumber, part: "0x10"},
		{s: "1k", problem: ValueNotANumber, part: "1k"},
		{s: "auto", problem: ValueNotANumber, part: "auto"},
		{s: "hardx", problem: ValueNotANumber, part: "hardx"},
		{s: "18446744073709551616", problem: ValueTooLarge, part: "18446744073709551616"},
		{s: "1:99999999999999999999999", problem: ValueTooLarge, part: "99999999999999999999999"},
		{s: "2:1", problem: SoftAboveHard, part: "2:1"},
		{s: "unlimited:4096", problem: SoftAboveHard, part: "unlimited:4096"},
		{s: "-1:18446744073709551614", problem: SoftAboveHard, part: "-1:18446744073709551614"},
		{s: "5:hard", problem: HardIsHard, part: "hard"},
		{s: "hard:Hard", problem: HardIsHard, part: "Hard"},
	} {
		q, problem, from, to := ParseLimit(c.s)
		if problem != c.problem || c.s[from:to] != c.part {
			t.Errorf("ParseLimit(%q): %q %v (%d), want %q %v (%d)", c.s, c.s[from:to], problem, problem, c.part, c.problem, c.problem)
		}
		if problem == 0 && q != c.want {
			t.Errorf("ParseLimit(%q) = %+v, want %+v", c.s, q, c.want)
		}
	}
}

func TestParseNamed(t *testing.T) {
	for _, c := range []struct {
		s        string
		resource int
		soft     uint64
		problem  Problem
		part     string
	}{
		{s: "nofile=1024", resource: unix.RLIMIT_NOFILE, soft: 1024},
		{s: "RLIMIT_CORE=0", resource: unix.RLIMIT_CORE},
		{s: "rlimit_As=5:6", resource: unix.RLIMIT_AS, soft: 5},
		{s: "memlock=-1", resource: unix.RLIMIT_MEMLOCK, soft: Unlimited},
		{s: "7=9", resource: unix.RLIMIT_NOFILE, soft: 9},

		{s: "", problem: NameUnknown},
		{s: "=", problem: NameUnknown},
		{s: "=5", problem: NameUnknown},
		{s: "files=5", problem: NameUnknown, part: "files"},
		{s: "16=5", problem: NameUnknown, part: "16"},
		{s: "core", problem: NoValue, part: "core"},
		{s: "core=", problem: ValueEmpty},
		{s: "core=1:", problem: ValueEmpty},
		{s: "core==1", problem: ValueNotANumber, part: "=1"},
		{s: "core=x", problem: ValueNotANumber, part: "x"},
		{s: "core=2:1", problem: SoftAboveHard, part: "2:1"},
		{s: "core=1:hard", problem: HardIsHard, part: "hard"},
	} {
		resource, q, problem, from, to := ParseNamed(c.s)
		if problem != c.problem || c.s[from:to] != c.part && problem != 0 {
			t.Errorf("ParseNamed(%q): %q %v, want %q %v", c.s, c.s[from:to], problem, c.part, c.problem)
		}
		if problem == 0 && (resource != c.resource || q.Soft != c.soft) {
			t.Errorf("ParseNamed(%q) = %s %+v", c.s, Type(resource), q)
		}
	}
}

// TestParseResource asks for each of the sixteen in every way it may be written.
func TestParseResource(t *testing.T) {
	seen := map[string]bool{}
	for resource := range Count {
		name := Type(resource)
		if seen[name] || !strings.HasPrefix(name, "RLIMIT_") {
			t.Errorf("resource %d is called %q", resource, name)
		}
		seen[name] = true
		short := strings.TrimPrefix(name, "RLIMIT_")
		for _, s := range []string{
			name, strings.ToLower(name), "Rlimit_" + short, short, strings.ToLower(short),
			short[:1] + strings.ToLower(short[1:]), strconv.Itoa(resource), "00" + strconv.Itoa(resource),
		} {
			if got, ok := ParseResource(s); !ok || got != resource {
				t.Errorf("ParseResource(%q) = %d, %v, want %d", s, got, ok, resource)
			}
		}
	}
	for _, s := range []string{
		"", "RLIMIT_", "RLIMIT_RLIMIT_CORE", "_CORE", "core ", " core", "cores", "cor", "RLIMITCORE",
		"16", "-1", "18446744073709551623", "RLIMIT_7", "ofile", "vmem",
	} {
		if got, ok := ParseResource(s); ok {
			t.Errorf("ParseResource(%q) = %s", s, Type(got))
		}
	}
}

// TestEveryProblemHasWords: a message without words for its reason helps nobody.
func TestEveryProblemHasWords(t *testing.T) {
	seen := map[string]Problem{}
	for p := ValueEmpty; p <= NoValue; p++ {
		words := p.String()
		if other, ok := seen[words]; ok || words == Problem(0).String() {
			t.Errorf("problem %d %q, as does %d", p, words, other)
		}
		seen[words] = p
	}
}

func TestRequests(t *testing.T) {
	var r Requests
	for resource := range Count {
		if r.Asked(resource) || r.Of(resource) != nil {
			t.Errorf("%s is asked for from the start", Type(resource))
		}
	}
	r.Ask(unix.RLIMIT_RTTIME, request(5, 0, false))
	r.Ask(unix.RLIMIT_CPU, request(1, 0, false))
	r.Ask(unix.RLIMIT_CPU, request(2, 3, true))
	for resource := range Count {
		want := resource == unix.RLIMIT_RTTIME || resource == unix.RLIMIT_CPU
		if r.Asked(resource) != want || (r.Of(resource) != nil) != want {
			t.Errorf("Asked(%s) = %v", Type(resource), r.Asked(resource))
		}
	}
	want := request(2, 3, true)
	want.Type = "RLIMIT_CPU"
	if got := *r.Of(unix.RLIMIT_CPU); got != want {
		t.Errorf("what is asked last is %+v, want %+v", got, want)
	}
}

func TestParsingDoesNotAllocate(t *testing.T) {
	var r Requests
	if n := testing.AllocsPerRun(100, func() {
		for _, s := range [...]string{"5", "hard:6", "unlimited:-1", "5:4", "x", "99999999999999999999"} {
			if q, problem, _, _ := ParseLimit(s); problem == 0 {
				r.Ask(0, q)
			}
		}
		for _, s := range [...]string{"RLIMIT_nofile=5:6", "rtprio=1", "7=1", "nothing=1", "core"} {
			if resource, q, problem, _, _ := ParseNamed(s); problem == 0 {
				r.Ask(resource, q)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{
		"", "0", "1024", "1024:4096", "4096:1024", "hard", "Hard:5", "5:hard", "unlimited", "-1:-1", "infinity:5",
		"18446744073709551615", "18446744073709551616", "1:2:3", ":", "5:", ":5", "-2", "+1", "1 ", "\x00", "hard:hard",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, problem, from, to := ParseLimit(s)
		want, ok := referenceLimit(s)
		if (problem == 0) != ok {
			t.Fatalf("ParseLimit(%q): %v, the reference accepts: %v", s, problem, ok)
		}
		if ok && q != want {
			t.Fatalf("ParseLimit(%q) = %+v, want %+v", s, q, want)
		}
		if from < 0 || from > to || to > len(s) || ok && to != 0 {
			t.Fatalf("ParseLimit(%q): %v at %d to %d", s, problem, from, to)
		}
		if problem > NoValue {
			t.Fatalf("ParseLimit(%q): unknown problem %d", s, problem)
		}
	})
}

func FuzzParseNamed(f *testing.F) {
	for _, s := range []string{"", "=", "core", "core=", "core=0", "RLIMIT_NOFILE=1024:4096", "15=1", "16=1", "nofile=hard", "rlimit_=1", "a=b=c"} {
		f.Add(s)
	}
	for resource := range Count {
		f.Add(Type(resource) + "=unlimited")
	}
	f.Fuzz(func(t *testing.T, s string) {
		resource, q, problem, from, to := ParseNamed(s)
		name, value, found := strings.Cut(s, "=")
		wantResource, ok := referenceResource(name)
		want, okLimit := referenceLimit(value)
		ok = ok && found && okLimit
		if (problem == 0) != ok {
			t.Fatalf("ParseNamed(%q): %v, the reference accepts: %v", s, problem, ok)
		}
		if ok && (resource != wantResource || q != want) {
			t.Fatalf("ParseNamed(%q) = %d %+v, want %d %+v", s, resource, q, wantResource, want)
		}
		if from < 0 || from > to || to > len(s) {
			t.Fatalf("ParseNamed(%q): %v at %d to %d", s, problem, from, to)
		}
	})
}

func referenceResource(s string) (int, bool) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return int(n), n < Count
	}
	if len(s) != len(strings.ToValidUTF8(s, "")) || strings.IndexFunc(s, func(r rune) bool { return r > 127 }) >= 0 {
		return 0, false
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "RLIMIT_")
	for i, name := range strings.Fields("CPU FSIZE DATA STACK CORE RSS NPROC NOFILE MEMLOCK AS LOCKS SIGPENDING MSGQUEUE NICE RTPRIO RTTIME") {
		if s == name {
			return i, true
		}
	}
	return 0, false
}

func referenceLimit(s string) (q Request, ok bool) {
	soft, hard, given := strings.Cut(s, ":")
	q.HardGiven = given
	if asciiWord(soft, "hard") {
		q.SoftIsHard = true
	} else if q.Soft, ok = referenceValue(soft); !ok {
		return q, false
	}
	if given {
		if q.Hard, ok = referenceValue(hard); !ok {
			return q, false
		}
		if !q.SoftIsHard && q.Soft > q.Hard {
			return q, false
		}
	}
	return q, true
}

func referenceValue(s string) (uint64, bool) {
	if s == "-1" || asciiWord(s, "unlimited") || asciiWord(s, "infinity") {
		return math.MaxUint64, true
	}
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, _ := new(big.Int).SetString(s, 10)
	return n.Uint64(), n.IsUint64()
}

// asciiWord compares without regard to case, but not as liberally as Unicode does.
func asciiWord(s, word string) bool {
	return len(s) == len(word) && strings.EqualFold(s, word)
}
