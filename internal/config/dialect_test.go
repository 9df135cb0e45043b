package config

import (
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// TestStatuses has what each init ends with, as measured on the peers: tini 0.19.0,
// dumb-init 1.2.5 and catatonit 0.2.1.
func TestStatuses(t *testing.T) {
	errnos := []sys.Errno{unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ENOEXEC, unix.ELOOP, unix.E2BIG}
	for dialect, want := range map[Dialect][]int{
		Native:    {127, 127, 126, 126, 126, 126},
		Tini:      {127, 1, 126, 1, 1, 1},
		DumbInit:  {2, 2, 2, 2, 2, 2},
		Catatonit: {1, 1, 1, 1, 1, 1},
	} {
		for i, errno := range errnos {
			if got := dialect.ExecStatus(errno); got != want[i] {
				t.Errorf("dialect %d, %v: %d, want %d", dialect, errno, got, want[i])
			}
		}
		failure := 1
		if dialect == Native {
			failure = 125
		}
		if got := dialect.FailureStatus(); got != failure {
			t.Errorf("dialect %d: %d for a failure, want %d", dialect, got, failure)
		}
	}
}

func TestRewrites(t *testing.T) {
	var r Rewrites
	for sig := range sys.Signal(65) {
		if r.Rewritten(sig) || r.Of(sig) != sig {
			t.Errorf("%d is rewritten to %d from the start", sig, r.Of(sig))
		}
	}
	r.Set(15, 3)
	r.Set(64, 1)
	r.Set(1, 0)
	r.Set(15, 2)
	for sig := range sys.Signal(65) {
		want := sig
		switch sig {
		case 15:
			want = 2
		case 64:
			want = 1
		case 1:
			want = 0
		}
		if r.Of(sig) != want {
			t.Errorf("%d is rewritten to %d, want %d", sig, r.Of(sig), want)
		}
	}
}

func TestStatusSet(t *testing.T) {
	in := map[int]bool{0: true, 1: true, 63: true, 64: true, 143: true, 255: true}
	var s StatusSet
	for status := range in {
		s.Add(status)
	}
	for status := range 256 {
		want := status
		if in[status] {
			want = 0
		}
		if got := s.Replace(status); got != want {
			t.Errorf("%d became %d, want %d", status, got, want)
		}
	}
}
