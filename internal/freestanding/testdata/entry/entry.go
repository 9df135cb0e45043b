// Package entry is the smallest way into freestanding state, for the fixtures
// of the rule test. It is not the entry of fdinit: it only has to be linked and
// disassembled, although it does run.
package entry

import _ "unsafe" // for go:linkname

var (
	// block stands in for the runtime's g; all that matters is that its stack
	// guard is zero.
	block [1024]byte

	// local is the thread's own memory. amd64 keeps the address of g right
	// below its end.
	local [2]uintptr
)

// Entry is what the linker's -E names.
func Entry()

func start(stack *uintptr) { body(stack) }

// body is the fixture. Calling it through a variable would be simpler, and is one
// of the things that the rule forbids.
//
//go:linkname body main.freestanding
func body(stack *uintptr)
