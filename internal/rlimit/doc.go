// Package rlimit parses resource limits as users write them, decides what is to be
// done about a pathological RLIMIT_NOFILE, and applies both to the calling process.
//
// It is a package of its own because it changes global state, in part irreversibly:
// a lowered hard limit stays lowered without CAP_SYS_RESOURCE. It runs freestanding,
// in the child between vfork and exec, so that PID 1 keeps what it inherited. It is
// not for a process in which the Go runtime runs: the runtime raises the soft
// RLIMIT_NOFILE before main and restores a cached value in its children (golang/go
// issues 46279 and 66797), so it would read wrong values and undo right ones.
//
// Kernel facts it rests on (prlimit(2), kernel/sys.c do_prlimit): a soft limit above
// the hard one is EINVAL; a hard RLIMIT_NOFILE above fs.nr_open is EPERM even if it
// is the present one; raising a hard limit needs CAP_SYS_RESOURCE in the initial user
// namespace; lowering anything needs nothing.
package rlimit
