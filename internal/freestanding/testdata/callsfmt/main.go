// Callsfmt breaks the rule: it converts to an interface and calls fmt.
package main

import (
	"fmt"
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

//go:linkname freestanding
func freestanding(stack *uintptr) { fmt.Println(*stack) }
