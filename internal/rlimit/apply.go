package rlimit

import (
	"math"
	"unsafe"

	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Failure is a limit that could not be set as asked. The zero Failure is none.
type Failure struct {
	Errno    sys.Errno
	Resource int
	Wanted   sys.Rlimit
	Present  sys.Rlimit
}

// Change is a limit that was changed.
type Change struct {
	Resource int
	Old, New sys.Rlimit
}

// Changes are the changes made, in the order of the resources.
type Changes struct {
	of [Count]Change
	n  int
}

// Len is the number of changes, and At the i-th of them.
func (c *Changes) Len() int        { return c.n }
func (c *Changes) At(i int) Change { return c.of[i] }

func (c *Changes) add(change Change) {
	c.of[c.n] = change
	c.n++
}

// Apply sets what is asked for and, where auto is true and nothing is asked about
// RLIMIT_NOFILE, follows the default policy, which never fails. It stops at the first
// limit that cannot be set; the process is then no longer fit for the workload.
func Apply(requests *Requests, auto bool, changes *Changes) Failure {
	for resource := range Count {
		q := requests.Of(resource)
		if q == nil && !(auto && resource == unix.RLIMIT_NOFILE) {
			continue
		}
		var present sys.Rlimit
		if errno := sys.GetRlimit(resource, &present); errno != 0 {
			if q == nil {
				continue
			}
			return Failure{Errno: errno, Resource: resource}
		}
		var wanted sys.Rlimit
		changed := true
		if q == nil {
			if wanted, changed = Auto(present); !changed {
				continue
			}
		} else {
			wanted = q.resolve(present)
		}
		mayClamp := resource == unix.RLIMIT_NOFILE && (q == nil || !q.HardGiven)
		set, errno := setLimit(resource, wanted, mayClamp)
		switch {
		case errno == 0 && set != present:
			changes.add(Change{resource, present, set})
		case errno != 0 && q != nil:
			return Failure{errno, resource, wanted, present}
		}
	}
	return Failure{}
}

// resolve is what a request means for a process with the present limits. A soft
// limit above the hard one, where only the soft one is asked for, is cut to it.
func (q *Request) resolve(present sys.Rlimit) (wanted sys.Rlimit) {
	wanted.Hard = present.Hard
	if q.HardGiven {
		wanted.Hard = q.Hard
	}
	wanted.Soft = min(q.Soft, wanted.Hard)
	if q.SoftIsHard {
		wanted.Soft = wanted.Hard
	}
	return wanted
}

// setLimit sets a limit and returns what was set. If the hard limit is one that the
// user did not ask for, EPERM can only mean that fs.nr_open was lowered below the
// inherited one (systemd pull request 28968): then it is cut to fs.nr_open.
func setLimit(resource int, limit sys.Rlimit, mayClamp bool) (set sys.Rlimit, errno sys.Errno) {
	errno = sys.SetRlimit(resource, &limit)
	if errno != unix.EPERM || !mayClamp {
		return limit, errno
	}
	if n, ok := MaxOpen(); ok {
		clamped := clamp(limit, n)
		return clamped, sys.SetRlimit(resource, &clamped)
	}
	// Without /proc the highest limit that passes is searched for, by halves, from the
	// kernel's default for fs.nr_open on down.
	for n := uint64(Pathological); n >= 1; n /= 2 {
		clamped := clamp(limit, n)
		if errno = sys.SetRlimit(resource, &clamped); errno != unix.EPERM {
			return clamped, errno
		}
	}
	return limit, errno
}

func clamp(limit sys.Rlimit, most uint64) sys.Rlimit {
	return sys.Rlimit{Soft: min(limit.Soft, most), Hard: min(limit.Hard, most)}
}

// MaxOpen reads fs.nr_open, the highest hard RLIMIT_NOFILE that the kernel accepts.
// ok is false where /proc/sys cannot be read.
func MaxOpen() (n uint64, ok bool) {
	fd, errno := sys.Open("/proc/sys/fs/nr_open\x00", unix.O_RDONLY|unix.O_CLOEXEC)
	if errno != 0 {
		return 0, false
	}
	var buf [24]byte
	size, errno := sys.Read(fd, buf[:])
	sys.Close(fd)
	if errno != 0 || size == 0 {
		return 0, false
	}
	text := unsafe.String(&buf[0], size)
	n, digits, fits := ascii.Decimal(text[:ascii.Index(text, '\n')], math.MaxUint64)
	return n, digits && fits && n > 0
}
