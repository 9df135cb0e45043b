package fds

import "github.com/fdinit/fdinit/internal/sys"

// Activation adds the descriptors that socket activation passed (sd_listen_fds(3))
// to the set: LISTEN_FDS many from 3 up. It returns how many there are.
//
// The variables are believed only if LISTEN_PID is absent or names this process,
// and if every descriptor they speak of is open. Anything else is left over from
// another process, such as the one that started the container engine (podman issue
// 20968), and keeps nothing.
func Activation(env sys.Vector, pid int, set *Set) int {
	if owner, i := env.Lookup("LISTEN_PID"); i >= 0 {
		if n, problem := parseDescriptor(owner); problem != 0 || int(n) != pid {
			return 0
		}
	}
	value, i := env.Lookup("LISTEN_FDS")
	if i < 0 {
		return 0
	}
	n, problem := parseDescriptor(value)
	if problem != 0 || n == 0 || n > Max-First {
		return 0
	}
	for fd := range int(n) {
		if !sys.IsOpen(First + fd) {
			return 0
		}
	}
	if !set.Add(Range{First, First + n - 1}) {
		return 0
	}
	return int(n)
}
