package rlimit

import (
	"github.com/fdinit/fdinit/internal/ascii"
	"golang.org/x/sys/unix"
)

// Count is how many resources setrlimit(2) knows.
const Count = 16

// types are the resources' names as OCI runtimes spell them, by their number on all
// architectures but Alpha, MIPS and SPARC.
var types = [Count]string{
	unix.RLIMIT_CPU:        "RLIMIT_CPU",
	unix.RLIMIT_FSIZE:      "RLIMIT_FSIZE",
	unix.RLIMIT_DATA:       "RLIMIT_DATA",
	unix.RLIMIT_STACK:      "RLIMIT_STACK",
	unix.RLIMIT_CORE:       "RLIMIT_CORE",
	unix.RLIMIT_RSS:        "RLIMIT_RSS",
	unix.RLIMIT_NPROC:      "RLIMIT_NPROC",
	unix.RLIMIT_NOFILE:     "RLIMIT_NOFILE",
	unix.RLIMIT_MEMLOCK:    "RLIMIT_MEMLOCK",
	unix.RLIMIT_AS:         "RLIMIT_AS",
	unix.RLIMIT_LOCKS:      "RLIMIT_LOCKS",
	unix.RLIMIT_SIGPENDING: "RLIMIT_SIGPENDING",
	unix.RLIMIT_MSGQUEUE:   "RLIMIT_MSGQUEUE",
	unix.RLIMIT_NICE:       "RLIMIT_NICE",
	unix.RLIMIT_RTPRIO:     "RLIMIT_RTPRIO",
	unix.RLIMIT_RTTIME:     "RLIMIT_RTTIME",
}

const typePrefix = "RLIMIT_"

// Type is a resource's name as OCI runtimes spell it, such as RLIMIT_NOFILE.
func Type(resource int) string { return types[resource] }

// ParseResource reads a resource: its name in any case with or without RLIMIT_, as
// docker's --ulimit spells it, or its number.
func ParseResource(s string) (resource int, ok bool) {
	if n, digits, fits := ascii.Decimal(s, Count-1); digits {
		return int(n), fits
	}
	if len(s) > len(typePrefix) && ascii.EqualFold(s[:len(typePrefix)], typePrefix) {
		s = s[len(typePrefix):]
	}
	for i := range types {
		if ascii.EqualFold(s, types[i][len(typePrefix):]) {
			return i, true
		}
	}
	return 0, false
}
