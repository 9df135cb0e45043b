// Clean keeps to the rule. It uses, on purpose, much of what is allowed: what
// the compiler adds on its own must not make the test fail.
package main

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fdinit/fdinit/internal/freestanding/testdata/clean/lib"
	"github.com/fdinit/fdinit/internal/freestanding/testdata/entry"
	"github.com/fdinit/fdinit/internal/sys"
)

func main() { entry.Entry() }

var (
	buffer [4096]byte
	names  = [...]string{"none", "one", "two"}
	first  *record
)

type record struct {
	name, value string
	digest      [64]byte
	next        *record
}

//go:linkname freestanding
func freestanding(stack *uintptr) {
	argc := int(*stack)
	arg := unsafe.String(*(**byte)(unsafe.Add(unsafe.Pointer(stack), 8)), argc)
	n := tabled(argc) + lib.Spelled(arg) + lib.Ones(uint64(argc))
	n += copy(buffer[argc:], arg)
	clear(buffer[n:])
	var a, b record
	a.name, b.name = arg, names[argc%len(names)]
	b.digest[argc] = byte(argc)
	if a == b || b.digest == [64]byte{} {
		n++
	}
	if i := strings.IndexByte(arg, '='); i > 0 {
		a.name, a.value = arg[:i], arg[i+1:]
	}
	link(&a)
	if arg < names[1] {
		n += argc / n
	}
	n <<= tabled(n)
	lib.Each(argc, func(i int) { n += i })
	sys.Exit(n + int(unix.SIGCHLD))
}

// link stores a pointer where a collector would want to know about it.
//
//go:noinline
func link(r *record) {
	r.next = first
	first = (*record)(unsafe.Pointer(&buffer))
}

// tabled has enough cases for a jump table.
//
//go:noinline
func tabled(n int) int {
	switch n {
	case 10:
		return lib.Ones(3)
	case 11:
		return 17
	case 12:
		return lib.Ones(4) + 1
	case 13:
		return 99
	case 14:
		return lib.Ones(5)
	case 15:
		return 20
	case 16:
		return 4
	case 17:
		return lib.Ones(6)
	case 18:
		return 1
	}
	return 0
}
