// Package fds sweeps inherited file descriptors: it closes everything from 3 up
// except what is to be kept, and it knows what is to be kept, from a list or from
// socket activation.
//
// It rests on facts that others learnt the hard way:
//
//   - The soft RLIMIT_NOFILE bounds only the descriptors that are still to be opened:
//     it may have been lowered since (rpm's set-close-on-exec learnt it), so no
//     strategy stops there, and none ever loops up to a limit, which may be 2^30.
//   - /proc/self/fd lists exactly what is open, the directory's own descriptor among
//     it (lsof's closefrom shim), but it may be unmounted or something else.
//   - close_range(2) is refused in the field with ENOSYS, EPERM and EINVAL alike, so
//     every errno means "try the next".
//   - poll(2) answers POLLNVAL for a closed descriptor at a sixth of what close(2)
//     costs, but for an open O_PATH descriptor too: the kind that container
//     runtimes leak (CVE-2024-21626).
//   - A plain loop won over walking /proc below a limit of about 3000 when gcj's exec
//     race was measured in 2007, with 50 files open, and below about 230 today: see
//     docs/bench/sweep.md.
//
// The package runs freestanding, so it does not allocate. It is not for a process
// in which the Go runtime runs: the runtime has descriptors of its own, and closing
// them breaks its network poller (golang/go issue 67639).
package fds
