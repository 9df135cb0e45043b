package fds

import (
	"unsafe"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Strategy is a way to find and close descriptors.
type Strategy uint8

const (
	None      Strategy = iota // nothing was swept
	ByRange                   // close_range(2)
	ByProc                    // a walk through /proc/self/fd
	ByPolling                 // poll(2) finds them, close(2) closes them
)

func (s Strategy) String() string {
	switch s {
	case ByRange:
		return "close_range"
	case ByProc:
		return "proc"
	case ByPolling:
		return "poll"
	}
	return "none"
}

// Uncounted is the number of closed descriptors where the strategy cannot tell:
// close_range(2) does not say how many there were.
const Uncounted = -1

// Report says how a sweep went.
type Report struct {
	Strategy Strategy
	Closed   int // Uncounted, or how many descriptors were closed
}

// Sweep closes every descriptor from 3 up that is not in keep, with the first
// strategy that works. It cannot fail: the last strategy works everywhere, but sees
// nothing above PollEnd.
func Sweep(keep *Set) Report {
	if keep.All() {
		return Report{}
	}
	if SweepByRange(keep) == 0 {
		return Report{ByRange, Uncounted}
	}
	closed, errno := SweepByProc(keep)
	if errno == 0 {
		return Report{ByProc, closed}
	}
	return Report{ByPolling, closed + SweepByPolling(keep)}
}

// SweepByRange uses close_range(2), Linux 5.9, on the gaps between the kept
// descriptors. If it fails, some gaps may have been closed and others not.
func SweepByRange(keep *Set) sys.Errno {
	next := uint32(First)
	for i := range keep.Len() {
		r := keep.At(i)
		if r.First > next {
			if errno := sys.CloseRange(next, r.First-1); errno != 0 {
				return errno
			}
		}
		if r.Last >= next {
			next = r.Last + 1 // Last is at most Max, so this cannot wrap
		}
	}
	if next > Max {
		return 0
	}
	return sys.CloseRange(next, ^uint32(0))
}

// procBuffer is the size of the buffer for /proc/self/fd: about 170 entries of 24
// bytes a call. A larger one saves nothing measurable and dirties memory for life.
const procBuffer = 4096

// SweepByProc closes what /proc/self/fd lists and returns how many that were. ENOSYS
// when /proc is not a procfs, else the errno that kept it from being read; some may
// have been closed then, too.
//
// Closing while reading is safe: an entry's position in the directory is its
// descriptor plus two (fs/proc/fd.c). The directory is read again all the same until
// a pass closes nothing, since other implementations, such as gVisor's, promise less.
func SweepByProc(keep *Set) (closed int, errno sys.Errno) {
	dir, closed, errno := openDescriptorList(keep)
	if errno != 0 {
		return closed, errno
	}
	if sys.IsProc(dir) {
		listed := 0
		listed, errno = sweepListed(dir, keep)
		closed += listed
	} else {
		errno = unix.ENOSYS
	}
	sys.Close(dir)
	return closed, errno
}

// sweepListed is kept out of line so that only those who need its buffer have it on
// their stack.
//
//go:noinline
func sweepListed(dir int, keep *Set) (closed int, errno sys.Errno) {
	var buf [procBuffer]byte
	for before := -1; closed != before; {
		before = closed
		for {
			n, errno := sys.ReadDir(dir, buf[:])
			if errno != 0 {
				return closed, errno
			}
			if n == 0 {
				break
			}
			closed += closeListed(buf[:n], dir, keep)
		}
		if errno := sys.Rewind(dir); errno != 0 {
			return closed, errno
		}
	}
	return closed, 0
}

// openDescriptorList opens /proc/self/fd. With a full table (EMFILE), or none left in
// the system (ENFILE), it first closes the lowest descriptor that a sweep may close:
// one below the soft limit, since those above leave no room where it is needed.
func openDescriptorList(keep *Set) (dir, closed int, errno sys.Errno) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	dir, errno = sys.Open("/proc/self/fd\x00", flags)
	if errno != unix.EMFILE && errno != unix.ENFILE {
		return dir, 0, errno
	}
	var limit sys.Rlimit
	sys.GetRlimit(unix.RLIMIT_NOFILE, &limit)
	for fd := First; fd < int(min(limit.Soft, PollEnd)); fd++ {
		if !keep.Has(uint32(fd)) && closeOne(fd) {
			dir, errno = sys.Open("/proc/self/fd\x00", flags)
			return dir, 1, errno
		}
	}
	return dir, 0, errno
}

// closeOne closes a descriptor and tells whether that is so: see sys.Close. A pass that
// closes nothing ends a sweep, so a filter's errno must not count as success.
func closeOne(fd int) bool {
	switch sys.Close(fd) {
	case 0, unix.EINTR, unix.EIO, unix.ENOSPC, unix.EDQUOT:
		return true
	}
	return false
}

// closeListed closes the descriptors named by directory records (linux_dirent64).
func closeListed(records []byte, dir int, keep *Set) (closed int) {
	const header = int(unsafe.Offsetof(unix.Dirent{}.Name))
	for len(records) > header {
		record := (*unix.Dirent)(unsafe.Pointer(unsafe.SliceData(records)))
		size := int(record.Reclen)
		if size <= header || size > len(records) {
			return closed
		}
		name := sys.String(&records[header])
		fd, problem := parseDescriptor(name) // "." and ".." are not numbers
		if problem == 0 && fd >= First && int(fd) != dir && !keep.Has(fd) && closeOne(int(fd)) {
			closed++
		}
		records = records[size:]
	}
	return closed
}

const (
	// PollEnd is where probing with poll(2) ends: 2^20, fs.nr_open's default. Without
	// close_range(2) and /proc nothing says how far the table really reaches, and
	// the limit is no answer: probing up to 2^30 takes half a minute.
	PollEnd = 1 << 20

	// loopEnd is where the plain close(2) loop ends, which finds the O_PATH
	// descriptors that poll(2) calls closed.
	loopEnd = 4096

	// pollBlock is how many descriptors are asked for in one call. poll(2) refuses
	// more entries than the soft limit, but takes any descriptor number.
	pollBlock = 512
)

// SweepByPolling probes descriptors up to PollEnd with poll(2), closes the open ones
// and returns how many that were. O_PATH descriptors are found below 4096 only.
// Like sweepListed it is kept out of line for its buffer's sake.
//
//go:noinline
func SweepByPolling(keep *Set) (closed int) {
	closed = closeLoop(First, loopEnd, keep)
	var limit sys.Rlimit
	size := uint64(pollBlock)
	if sys.GetRlimit(unix.RLIMIT_NOFILE, &limit) == 0 {
		size = min(size, limit.Soft)
	}
	var block [pollBlock]sys.PollFD
	for base := loopEnd; base < PollEnd; {
		n := min(int(size), PollEnd-base)
		for i := range n {
			block[i] = sys.PollFD{Fd: int32(base + i)}
		}
		if n == 0 || sys.PollNow(block[:n]) != 0 {
			// A soft limit of 0 or a filter: what cannot be asked about is closed.
			return closed + closeLoop(base, PollEnd, keep)
		}
		for i := range n {
			if block[i].Revents&unix.POLLNVAL == 0 && !keep.Has(uint32(base+i)) && closeOne(base+i) {
				closed++
			}
		}
		base += n
	}
	return closed
}

// closeLoop closes the descriptors from first up to, but not including, end.
func closeLoop(first, end int, keep *Set) (closed int) {
	for fd := first; fd < end; fd++ {
		if !keep.Has(uint32(fd)) && closeOne(fd) {
			closed++
		}
	}
	return closed
}
