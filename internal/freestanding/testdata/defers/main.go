// Defers breaks the rule: a deferred call is kept in lists of the runtime.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

var depth int

//go:linkname freestanding
func freestanding(stack *uintptr) { count(*stack) }

//go:noinline
func count(n uintptr) {
	for range n {
		defer leave()
	}
}

//go:noinline
func leave() { depth-- }
