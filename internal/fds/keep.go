package fds

import "github.com/fdinit/fdinit/internal/ascii"

// Problem is what is wrong with a keep list, 0 when nothing is.
type Problem uint8

const (
	ListEmpty Problem = iota + 1
	ElementEmpty
	ElementNotANumber
	ElementTooLarge
	RangeReversed
	TooManyRanges
)

// String completes a sentence whose subject is the offending part of the list.
func (p Problem) String() string {
	switch p {
	case ListEmpty, ElementEmpty:
		return "is empty"
	case ElementNotANumber:
		return "is neither a descriptor nor a range"
	case ElementTooLarge:
		return "is above the highest possible descriptor, 2147483647"
	case RangeReversed:
		return "is a range that ends before it begins"
	case TooManyRanges:
		return "is one range too many: at most 64 separate ones can be kept"
	}
	return "is fine"
}

// ParseKeep reads a list such as "3,5-7", or "all", into the set. Elements may come
// in any order and overlap; 0, 1 and 2 may be named although they are always kept.
// If there is a problem, list[from:to] is the part that has it.
func ParseKeep(list string, set *Set) (problem Problem, from, to int) {
	if list == "" {
		return ListEmpty, 0, 0
	}
	if list == "all" {
		set.Add(Range{First, Max})
		return 0, 0, 0
	}
	for from <= len(list) {
		to = from + ascii.Index(list[from:], ',')
		r, problem := parseElement(list[from:to])
		if problem == 0 && !set.Add(r) {
			problem = TooManyRanges
		}
		if problem != 0 {
			return problem, from, to
		}
		from = to + 1
	}
	return 0, 0, 0
}

// parseElement reads "N" or "N-M".
func parseElement(s string) (r Range, problem Problem) {
	if s == "" {
		return r, ElementEmpty
	}
	dash := ascii.Index(s, '-')
	if r.First, problem = parseDescriptor(s[:dash]); problem != 0 {
		return r, problem
	}
	r.Last = r.First
	if dash == len(s) {
		return r, 0
	}
	if r.Last, problem = parseDescriptor(s[dash+1:]); problem != 0 {
		return r, problem
	}
	if r.Last < r.First {
		return r, RangeReversed
	}
	return r, 0
}

// parseDescriptor reads decimal digits only: no sign, no space, nothing empty.
func parseDescriptor(s string) (uint32, Problem) {
	n, digits, fits := ascii.Decimal(s, Max)
	switch {
	case !digits:
		return 0, ElementNotANumber
	case !fits:
		return 0, ElementTooLarge
	}
	return uint32(n), 0
}
