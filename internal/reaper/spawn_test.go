package reaper

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
)

func TestDecimalVariable(t *testing.T) {
	for _, name := range []string{"LISTEN_PID=", "LISTEN_PIDFDID=", ""} {
		for _, value := range []uint64{0, 1, 9, 10, 99, 100, 32768, 4194304, math.MaxInt32, math.MaxInt64, math.MaxUint64} {
			v := decimalVariable{}
			for i := range v {
				v[i] = 'X' // what was there before must not shine through
			}
			if got, want := sys.String(v.set(name, value)), fmt.Sprint(name, value); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

// TestFixActivation makes this process's own number stand for the workload's.
func TestFixActivation(t *testing.T) {
	const self = 4711 // the init's
	pid := os.Getpid()
	inode, unique := sys.PidfdInode(pid)
	for _, c := range []struct{ env, want []string }{
		{[]string{"A=1", "LISTEN_FDS=1"}, nil},
		{[]string{"LISTEN_PID=1", "LISTEN_FDS=1", "LISTEN_PIDFDID=5"}, nil}, // another's
		{[]string{"LISTEN_PID=", "LISTEN_PIDFDID=5"}, nil},
		{[]string{"LISTEN_PID=x4711"}, nil},
		{[]string{"LISTEN_PID=4711x"}, nil},
		{[]string{"LISTEN_PID=18446744073709556327"}, nil}, // 4711 in 64 bits
		{[]string{"LISTEN_PIDFDID=5"}, nil},
		{[]string{"LISTEN_PID=4711"}, []string{"LISTEN_PID=SELF"}},
		{[]string{"A=1", "LISTEN_PID=4711", "B=2"}, []string{"A=1", "LISTEN_PID=SELF", "B=2"}},
		{[]string{"LISTEN_PID=4711", "LISTEN_PIDFDID=5", "B=2"}, []string{"LISTEN_PID=SELF", "LISTEN_PIDFDID=INODE", "B=2"}},
		{[]string{"B=2", "LISTEN_PIDFDID=", "LISTEN_PID=4711"}, []string{"B=2", "LISTEN_PIDFDID=INODE", "LISTEN_PID=SELF"}},
	} {
		want := c.env
		if c.want != nil {
			want = nil
			for _, text := range c.want {
				switch text {
				case "LISTEN_PID=SELF":
					text = fmt.Sprint("LISTEN_PID=", pid)
				case "LISTEN_PIDFDID=INODE":
					if !unique {
						continue // rather none than a wrong one
					}
					text = fmt.Sprint("LISTEN_PIDFDID=", inode)
				}
				want = append(want, text)
			}
		}
		s := Supervisor{self: self, env: sys.VectorOf(c.env...)}
		var alive []*byte // while pointers to them move as numbers
		for i := range s.env.Len() {
			alive = append(alive, s.env.At(i))
		}
		s.fixActivation(pid)
		var got []string
		for i := range s.env.Len() {
			got = append(got, s.env.String(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", strings.Join(c.env, " "), strings.Join(got, " "), strings.Join(want, " "))
		}
		if s.env.At(s.env.Len()) != nil {
			t.Errorf("%s: not closed by NULL", strings.Join(c.env, " "))
		}
		runtime.KeepAlive(alive)
	}
}
