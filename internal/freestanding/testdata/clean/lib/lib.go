// Package lib imports a package that has init functions, and has none itself.
package lib

import (
	"math/bits"

	"golang.org/x/sys/unix"
)

const signals = int(unix.SIGCHLD)

// Ones reads a variable of the runtime on amd64.
//
//go:noinline
func Ones(n uint64) int { return bits.OnesCount64(n) + signals }

// Spelled makes the compiler search a table of strings.
//
//go:noinline
func Spelled(s string) int {
	switch s {
	case "HUP":
		return 1
	case "INT":
		return 2
	case "QUIT":
		return 3
	case "KILL":
		return 9
	case "USR1":
		return 10
	case "USR2":
		return 12
	case "TERM":
		return 15
	case "CHLD":
		return 17
	case "WINCH":
		return 28
	}
	return 0
}

// Each is inlined, and its callback with it.
func Each(n int, f func(int)) {
	for i := range n {
		f(i)
	}
}
