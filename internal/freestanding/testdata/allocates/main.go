// Allocates breaks the rule: what it makes lives on the heap.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

var (
	kept  *[64]byte
	slice []byte
)

//go:linkname freestanding
func freestanding(stack *uintptr) {
	object()
	space(int(*stack))
}

//go:noinline
func object() { kept = new([64]byte) }

//go:noinline
func space(n int) { slice = make([]byte, n) }
