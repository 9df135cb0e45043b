package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
)

// dialect has what native options have not: an option without a long form, two with a
// common beginning, and one whose name is the beginning of another's.
var dialect = []Option{
	{ID: 1, Short: 'v'},
	{ID: 2, Short: 'c', Long: "single-child"},
	{ID: 3, Short: 's', Long: "signal", Value: true},
	{ID: 4, Long: "single"},
	{ID: 5, Long: "single-parent", Value: true},
}

func TestScanner(t *testing.T) {
	names := map[uint8]string{1: "v", 2: "c", 3: "s", 4: "single", 5: "parent", Unknown: "unknown", NoValue: "no value", HasValue: "has value", Ambiguous: "ambiguous"}
	for _, c := range []struct {
		line         string
		abbreviating bool
		want         string // ID(name=value) of each, then the words after the options
	}{
		{line: "a", want: "[a]"},
		{line: "-v a", want: "v(v) [a]"},
		{line: "-vvv a", want: "v(v) v(v) v(v) [a]"},
		{line: "-vcs1 a", want: "v(v) c(c) s(s=1) [a]"},
		{line: "-vcs 1 a", want: "v(v) c(c) s(s=1) [a]"},
		{line: "-vcs -v a", want: "v(v) c(c) s(s=-v) [a]"},
		{line: "-s -- a", want: "s(s=--) [a]"},
		{line: "-sv -v a", want: "s(s=v) v(v) [a]"},
		{line: "-s", want: "no value(s) []"},
		{line: "-vs", want: "v(v) no value(s) []"},
		{line: "-vxc a", want: "v(v) unknown(x) c(c) [a]"},
		{line: "--single-child a", want: "c(--single-child) [a]"},
		{line: "--single a", want: "single(--single) [a]"},
		{line: "--signal=1 a", want: "s(--signal=1) [a]"},
		{line: "--signal 1 a", want: "s(--signal=1) [a]"},
		{line: "--signal= a", want: "s(--signal=) [a]"},
		{line: "--signal==b= a", want: "s(--signal==b=) [a]"},
		{line: "--signal", want: "no value(--signal) []"},
		{line: "--single=1 a", want: "has value(--single) [a]"},
		{line: "--sign=1 a", want: "unknown(--sign) [a]"},
		{line: "-v -- -v", want: "v(v) [-v]"},
		{line: "-v - -v", want: "v(v) [- -v]"},
		{line: "-v '' -v", want: "v(v) [ -v]"},
		{line: "--", want: "[]"},
		{line: "", want: "[]"},

		{line: "--sig=1 a", abbreviating: true, want: "s(--sig=1) [a]"},
		{line: "--sig 1 a", abbreviating: true, want: "s(--sig=1) [a]"},
		{line: "--single a", abbreviating: true, want: "single(--single) [a]"}, // exactly, so not ambiguous
		{line: "--single-c a", abbreviating: true, want: "c(--single-c) [a]"},
		{line: "--single-p 1 a", abbreviating: true, want: "parent(--single-p=1) [a]"},
		{line: "--single- a", abbreviating: true, want: "ambiguous(--single-) [a]"},
		{line: "--si a", abbreviating: true, want: "ambiguous(--si) [a]"},
		{line: "--s=1 a", abbreviating: true, want: "ambiguous(--s) [a]"},
		{line: "--=1 a", abbreviating: true, want: "ambiguous(--) [a]"},
		{line: "--signals a", abbreviating: true, want: "unknown(--signals) [a]"},
		{line: "--x a", abbreviating: true, want: "unknown(--x) [a]"},
	} {
		args := words(c.line)
		s := Scanner{Args: sys.VectorOf(args...), Table: dialect, Abbreviating: c.abbreviating, Next: 1}
		var got []string
		for {
			f := s.Scan()
			if f.ID == EndOfOptions {
				break
			}
			name := args[f.Arg][f.From:f.To]
			if f.At != 0 {
				if from := args[f.At][f.Off:]; from != f.Value {
					t.Errorf("%s: the value %q is not at %d, %d", c.line, f.Value, f.At, f.Off)
				}
				name += "=" + f.Value
			}
			got = append(got, fmt.Sprintf("%s(%s)", names[f.ID], name))
		}
		got = append(got, fmt.Sprint(args[s.Next:]))
		if line := strings.Join(got, " "); line != c.want {
			t.Errorf("%s, abbreviating %v:\n got %s\nwant %s", c.line, c.abbreviating, line, c.want)
		}
	}
}
