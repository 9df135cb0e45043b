// Package signals knows the names of Linux signals: the standard ones, 1 to 31, and
// the real-time ones, 34 to 64 as C libraries count them (32 and 33 belong to the C
// library's threads and have no name). It is a leaf without state, usable in
// freestanding code; sending and receiving signals is package sys's business.
package signals

import (
	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/sys"
)

const (
	// RTMin and RTMax are SIGRTMIN and SIGRTMAX as glibc and musl give them out.
	RTMin sys.Signal = 34
	RTMax sys.Signal = 64
)

// names are signal(7)'s for x86 and ARM, which share them with all architectures
// but Alpha, SPARC, MIPS and PA-RISC.
var names = [...]string{
	1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE",
	9: "KILL", 10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM",
	16: "STKFLT", 17: "CHLD", 18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU",
	23: "URG", 24: "XCPU", 25: "XFSZ", 26: "VTALRM", 27: "PROF", 28: "WINCH", 29: "IO",
	30: "PWR", 31: "SYS",
	34: "RTMIN", 64: "RTMAX",
}

// aliases are other names in use for the same numbers.
var aliases = [...]struct {
	name   string
	signal sys.Signal
}{{"IOT", 6}, {"CLD", 17}, {"POLL", 29}}

// Parse reads a signal: a number from 1 to 64, or a name in any case with or without
// SIG, such as TERM, sigterm, RTMIN+3 or RTMAX-1. ok is false for anything else.
func Parse(s string) (sig sys.Signal, ok bool) {
	if n, digits, fits := ascii.Decimal(s, uint64(RTMax)); digits {
		return sys.Signal(n), fits && n >= 1
	}
	if len(s) > 3 && ascii.EqualFold(s[:3], "SIG") {
		s = s[3:]
	}
	for i := range names {
		if names[i] != "" && ascii.EqualFold(s, names[i]) {
			return sys.Signal(i), true
		}
	}
	for i := range aliases {
		if ascii.EqualFold(s, aliases[i].name) {
			return aliases[i].signal, true
		}
	}
	return realTime(s)
}

// realTime reads RTMIN+n and RTMAX-n.
func realTime(s string) (sig sys.Signal, ok bool) {
	const prefix = len("RTMIN+")
	if len(s) <= prefix {
		return 0, false
	}
	n, digits, fits := ascii.Decimal(s[prefix:], uint64(RTMax-RTMin))
	if !digits || !fits {
		return 0, false
	}
	switch {
	case ascii.EqualFold(s[:prefix], "RTMIN+"):
		return RTMin + sys.Signal(n), true
	case ascii.EqualFold(s[:prefix], "RTMAX-"):
		return RTMax - sys.Signal(n), true
	}
	return 0, false
}

// Standard is the name, without SIG, of a signal up to 31; empty for others.
func Standard(sig sys.Signal) string {
	if sig >= RTMin || int(sig) >= len(names) {
		return ""
	}
	return names[sig]
}
