package ascii_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/ascii"
)

func TestEqualFold(t *testing.T) {
	for _, c := range []struct {
		s, upper string
		want     bool
	}{
		{"", "", true},
		{"TERM", "TERM", true},
		{"term", "TERM", true},
		{"tErM", "TERM", true},
		{"TERMS", "TERM", false},
		{"TER", "TERM", false},
		{"", "TERM", false},
		{"rtmin+", "RTMIN+", true},
		{"rlimit_", "RLIMIT_", true},
		// What differs by the bit of the case alone is no letter.
		{"{", "[", false},
		{"`", "@", false},
		{"\x0b", "+", false},
		// The long s and the Kelvin sign are letters' other cases in Unicode only.
		{"ſ", "S", false},
		{"\u212a", "K", false},
	} {
		if got := ascii.EqualFold(c.s, c.upper); got != c.want {
			t.Errorf("EqualFold(%q, %q) = %v", c.s, c.upper, got)
		}
	}
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		s            string
		most         uint64
		n            uint64 // counts only if fits
		digits, fits bool
	}{
		{s: "0", most: 0, n: 0, digits: true, fits: true},
		{s: "1", most: 0, digits: true},
		{s: "007", most: 7, n: 7, digits: true, fits: true},
		{s: "15", most: 15, n: 15, digits: true, fits: true},
		{s: "16", most: 15, digits: true},
		{s: "2147483647", most: math.MaxInt32, n: math.MaxInt32, digits: true, fits: true},
		{s: "2147483648", most: math.MaxInt32, digits: true},
		{s: "18446744073709551615", most: math.MaxUint64, n: math.MaxUint64, digits: true, fits: true},
		{s: "18446744073709551616", most: math.MaxUint64, digits: true},
		// These wrap around to small numbers in 64 bits.
		{s: "18446744073709551619", most: 64, digits: true},
		{s: "36893488147419103232", most: math.MaxUint64, digits: true},
		{s: strings.Repeat("9", 100), most: math.MaxUint64, digits: true},
		{s: strings.Repeat("0", 100) + "3", most: 3, n: 3, digits: true, fits: true},
		{s: ""},
		{s: "+1"},
		{s: "-1"},
		{s: " 1"},
		{s: "1 "},
		{s: "1\n"},
		{s: "1_000"},
		{s: "0x10"},
		{s: "1e3"},
		{s: "٣"}, // a digit elsewhere
	} {
		n, digits, fits := ascii.Decimal(c.s, c.most)
		if digits != c.digits || digits && fits != c.fits || digits && fits && n != c.n {
			t.Errorf("Decimal(%q, %d) = %d, %v, %v", c.s, c.most, n, digits, fits)
		}
	}
}

func TestBase(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/": "", "a": "a", "/a": "a", "a/": "", "a/b": "b", "//b": "b", "/a/b.c": "b.c", "a//": "", ".": ".", "../x": "x",
	} {
		if got := ascii.Base(path); got != want {
			t.Errorf("Base(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	var (
		same   bool
		place  int
		base   string
		number uint64
	)
	long := strings.Repeat("1", 100)
	if n := testing.AllocsPerRun(100, func() {
		same = ascii.EqualFold("sigterm", "SIGTERM")
		place = ascii.Index(long, ',')
		base = ascii.Base("/sbin/tini")
		number, _, _ = ascii.Decimal(long, math.MaxUint64)
	}); n != 0 {
		t.Errorf("%v allocations for %v, %d, %s and %d", n, same, place, base, number)
	}
}

func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"", "0", "64", "2147483648", "18446744073709551615", "18446744073709551616", "-1", "1 "} {
		for _, most := range []uint64{0, 15, 64, math.MaxInt32, math.MaxUint64} {
			f.Add(s, most)
		}
	}
	f.Fuzz(func(t *testing.T, s string, most uint64) {
		isDigits := s != "" && strings.Trim(s, "0123456789") == ""
		n, digits, fits := ascii.Decimal(s, most)
		if digits != isDigits {
			t.Fatalf("Decimal(%q, %d): digits %v", s, most, digits)
		}
		if !digits {
			return
		}
		want, _ := new(big.Int).SetString(s, 10)
		if fits != (want.Cmp(new(big.Int).SetUint64(most)) <= 0) {
			t.Fatalf("Decimal(%q, %d): fits %v", s, most, fits)
		}
		if fits && n != want.Uint64() {
			t.Fatalf("Decimal(%q, %d) = %d", s, most, n)
		}
	})
}

func FuzzEqualFold(f *testing.F) {
	f.Add("sigterm", "SIGTERM")
	f.Add("{", "[")
	f.Add("ſ", "S")
	f.Fuzz(func(t *testing.T, s, other string) {
		upper := upperCase(other)
		if got, want := ascii.EqualFold(s, upper), upperCase(s) == upper; got != want {
			t.Fatalf("EqualFold(%q, %q) = %v", s, upper, got)
		}
	})
}

// upperCase is strings.ToUpper for bytes.
func upperCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if strings.IndexByte("abcdefghijklmnopqrstuvwxyz", c) >= 0 {
			b[i] = strings.ToUpper(string(c))[0]
		}
	}
	return string(b)
}

func FuzzIndex(f *testing.F) {
	f.Add("3,5-7", byte(','))
	f.Add("", byte(0))
	f.Fuzz(func(t *testing.T, s string, c byte) {
		want := strings.IndexByte(s, c)
		if want < 0 {
			want = len(s)
		}
		if got := ascii.Index(s, c); got != want {
			t.Fatalf("Index(%q, %q) = %d, want %d", s, c, got, want)
		}
	})
}
