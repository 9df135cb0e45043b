package fds

// First is the lowest descriptor that a sweep may close: 0, 1 and 2 are the
// workload's standard input, output and error and always stay.
const First = 3

// Max is the highest number a descriptor can have: the kernel keeps them in an int
// (fs.nr_open is at most 2147483584).
const Max = 1<<31 - 1

// MaxRanges is how many separate ranges a Set can hold.
const MaxRanges = 64

// Range is the descriptors First to Last, both included.
type Range struct{ First, Last uint32 }

// Set is a set of descriptors: sorted ranges that neither overlap nor touch. The
// zero Set is empty.
type Set struct {
	ranges [MaxRanges]Range
	n      int
}

// Len is the number of ranges, and At the i-th of them, in ascending order.
func (s *Set) Len() int       { return s.n }
func (s *Set) At(i int) Range { return s.ranges[i] }

// Empty tells whether there is nothing in the set.
func (s *Set) Empty() bool { return s.n == 0 }

// All tells whether the set keeps everything that a sweep could close.
func (s *Set) All() bool {
	return s.n == 1 && s.ranges[0].First <= First && s.ranges[0].Last >= Max
}

// Has tells whether a descriptor is in the set.
func (s *Set) Has(fd uint32) bool {
	for i := range s.n {
		if fd <= s.ranges[i].Last {
			return fd >= s.ranges[i].First
		}
	}
	return false
}

// Add puts a range into the set and merges it with those that it overlaps or
// touches. It returns false, and leaves the set as it was, if that would need more
// than MaxRanges ranges.
func (s *Set) Add(r Range) bool {
	// from..to are the present ranges that melt into r.
	from := 0
	for from < s.n && uint64(s.ranges[from].Last)+1 < uint64(r.First) {
		from++
	}
	to := from
	for to < s.n && uint64(s.ranges[to].First) <= uint64(r.Last)+1 {
		r.First = min(r.First, s.ranges[to].First)
		r.Last = max(r.Last, s.ranges[to].Last)
		to++
	}
	if to == from {
		if s.n == MaxRanges {
			return false
		}
		for i := s.n; i > from; i-- {
			s.ranges[i] = s.ranges[i-1]
		}
		s.n++
	} else if gone := to - from - 1; gone > 0 {
		for i := to; i < s.n; i++ {
			s.ranges[i-gone] = s.ranges[i]
		}
		s.n -= gone
	}
	s.ranges[from] = r
	return true
}

// AddOne puts a single descriptor into the set.
func (s *Set) AddOne(fd int) bool { return s.Add(Range{uint32(fd), uint32(fd)}) }
