// Needsinit breaks the rule: it depends on a variable that an init function
// computes. No function of that package is called, reading it is enough.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
	"github.com/fdinit/fdinit/internal/freestanding/testdata/needsinit/table"
)

func main() { entry.Entry() }

//go:linkname freestanding
func freestanding(stack *uintptr) { *stack = table.Limit }
