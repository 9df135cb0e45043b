// Readsforeign breaks the rule: the variable of x/sys has not been set up. A
// pointer to it is no better.
package main

import (
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

var pointer = &unix.SocketDisableIPv6

//go:linkname freestanding
func freestanding(stack *uintptr) {
	if plainly() || hidden() {
		*stack = 0
	}
}

//go:noinline
func plainly() bool { return unix.SocketDisableIPv6 }

//go:noinline
func hidden() bool { return *pointer }
