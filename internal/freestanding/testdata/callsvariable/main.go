// Callsvariable breaks the rule: where its call goes is not in the code.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

var hook func()

//go:linkname freestanding
func freestanding(stack *uintptr) { run() }

//go:noinline
func run() { hook() }
