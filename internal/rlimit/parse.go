package rlimit

import (
	"github.com/fdinit/fdinit/internal/ascii"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Unlimited is RLIM_INFINITY.
const Unlimited = ^uint64(0)

// Request is a limit as asked for.
type Request struct {
	specs.POSIXRlimit // Hard counts only if HardGiven, Soft only if not SoftIsHard

	SoftIsHard bool // raise or lower the soft limit to whatever the hard one is
	HardGiven  bool // without it the hard limit stays as it is
}

// Requests are the limits asked for, one for each resource. The zero value asks for
// nothing.
type Requests struct {
	of    [Count]Request
	asked uint32 // bit n: of[n] is asked for
}

// Asked tells whether anything is asked for a resource.
func (r *Requests) Asked(resource int) bool { return r.asked>>resource&1 != 0 }

// Of is what is asked for a resource, or nil.
func (r *Requests) Of(resource int) *Request {
	if !r.Asked(resource) {
		return nil
	}
	return &r.of[resource]
}

// Ask puts a request in place of what was asked before for its resource.
func (r *Requests) Ask(resource int, q Request) {
	q.Type = types[resource]
	r.of[resource] = q
	r.asked |= 1 << resource
}

// Problem is what is wrong with a limit's text, 0 when nothing is.
type Problem uint8

const (
	ValueEmpty Problem = iota + 1
	ValueNotANumber
	ValueTooLarge
	SoftAboveHard
	HardIsHard
	NameUnknown
	NoValue
)

// String completes a sentence whose subject is the offending part of the text.
func (p Problem) String() string {
	switch p {
	case ValueEmpty:
		return "is empty"
	case ValueNotANumber:
		return "is not a limit"
	case ValueTooLarge:
		return "is too large: use unlimited, or at most 18446744073709551615"
	case SoftAboveHard:
		return "has a soft limit above its hard limit"
	case HardIsHard:
		return "cannot be a hard limit: give a number or unlimited"
	case NameUnknown:
		return "is not a resource"
	case NoValue:
		return "lacks its =SOFT[:HARD]"
	}
	return "is fine"
}

// ParseLimit reads SOFT[:HARD]. Either may be a number or unlimited (also spelt
// infinity, or -1 as docker does); SOFT may be hard, too. If there is a problem,
// s[from:to] is the part that has it.
func ParseLimit(s string) (q Request, problem Problem, from, to int) {
	soft := ascii.Index(s, ':')
	if ascii.EqualFold(s[:soft], "HARD") {
		q.SoftIsHard = true
	} else if q.Soft, problem = parseValue(s[:soft]); problem != 0 {
		return q, problem, 0, soft
	}
	if soft == len(s) {
		return q, 0, 0, 0
	}
	from, to = soft+1, len(s)
	q.HardGiven = true
	if ascii.EqualFold(s[from:], "HARD") {
		return q, HardIsHard, from, to
	}
	if q.Hard, problem = parseValue(s[from:]); problem != 0 {
		return q, problem, from, to
	}
	if !q.SoftIsHard && q.Soft > q.Hard {
		return q, SoftAboveHard, 0, to
	}
	return q, 0, 0, 0
}

// ParseNamed reads NAME=SOFT[:HARD].
func ParseNamed(s string) (resource int, q Request, problem Problem, from, to int) {
	equals := ascii.Index(s, '=')
	resource, ok := ParseResource(s[:equals])
	if !ok {
		return 0, q, NameUnknown, 0, equals
	}
	if equals == len(s) {
		return resource, q, NoValue, 0, equals
	}
	q, problem, from, to = ParseLimit(s[equals+1:])
	return resource, q, problem, from + equals + 1, to + equals + 1
}

// parseValue reads one limit: decimal digits, or a word for no limit.
func parseValue(s string) (uint64, Problem) {
	if s == "" {
		return 0, ValueEmpty
	}
	if s == "-1" || ascii.EqualFold(s, "UNLIMITED") || ascii.EqualFold(s, "INFINITY") {
		return Unlimited, 0
	}
	n, digits, fits := ascii.Decimal(s, Unlimited)
	switch {
	case !digits:
		return 0, ValueNotANumber
	case !fits:
		return 0, ValueTooLarge
	}
	return n, 0
}
