// Passescallback breaks the rule twice: a callback is called through a register,
// and the one that is passed allocates, which is found by its address.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

var kept *[64]byte

//go:linkname freestanding
func freestanding(stack *uintptr) { each(int(*stack), keep) }

//go:noinline
func each(n int, f func()) {
	for range n {
		f()
	}
}

func keep() { kept = new([64]byte) }
