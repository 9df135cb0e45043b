// Readsforeign breaks the rule: the variable of x/sys has not been set up.
package main

import (
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

//go:linkname freestanding
func freestanding(stack *uintptr) {
	if unix.SocketDisableIPv6 {
		*stack = 0
	}
}
