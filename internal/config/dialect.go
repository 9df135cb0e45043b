package config

import (
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// Dialect is whose command line, messages and statuses are spoken.
type Dialect uint8

const (
	Native Dialect = iota
	Tini
	DumbInit
	Catatonit
)

// The statuses that fdinit itself ends with, as docker, env(1) and timeout(1) use them.
const (
	StatusFailed        = 125 // bad usage, or a failure of its own
	StatusNotExecutable = 126
	StatusNotFound      = 127
)

// FailureStatus is the status for bad usage and for failures of the init itself.
func (d Dialect) FailureStatus() int {
	if d == Native {
		return StatusFailed
	}
	return 1
}

// ExecStatus is the status for a workload that could not be executed.
func (d Dialect) ExecStatus(errno sys.Errno) int {
	switch {
	case d == DumbInit:
		return 2
	case d == Catatonit:
		return 1
	case errno == unix.ENOENT:
		return StatusNotFound
	case errno == unix.EACCES:
		return StatusNotExecutable
	case d == Tini:
		return 1
	case errno == unix.ENOTDIR:
		return StatusNotFound
	}
	return StatusNotExecutable
}
