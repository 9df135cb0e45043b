// Usesmap breaks the rule: a map hashes with a seed that nobody has chosen.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

var byNumber map[uintptr]int

//go:linkname freestanding
func freestanding(stack *uintptr) { *stack = uintptr(lookup(*stack)) }

//go:noinline
func lookup(n uintptr) int { return byNumber[n] }
