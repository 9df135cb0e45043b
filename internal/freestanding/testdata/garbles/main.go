// Garbles breaks the rule in assembly: bytes that no disassembler knows, and a
// function that goes on into whatever comes after it.
package main

import (
	_ "unsafe" // for go:linkname

	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
)

func main() { entry.Entry() }

//go:linkname freestanding
func freestanding(stack *uintptr) {
	garbled()
	endless()
}

func garbled()

func endless()
