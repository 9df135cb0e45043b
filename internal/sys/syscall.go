package sys

// syscall6 enters the kernel. It does what unix.RawSyscall6 does and exists because of
// where the linker puts that: the three functions which it is made of lie far apart
// in the binary, and the kernel maps 64 KiB of a file around each address that is
// touched first. Calling this one instead keeps 128 KiB out of the init's resident
// memory and saves the page faults.
//
// It is called directly, not through a Go function with uintptr parameters, because
// the compiler keeps what a converted pointer points at alive only for assembly.
//
//go:noescape
func syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r uintptr)

// errnoOf is the errno in what syscall6 returned: the kernel returns it negated, as a
// number from -4095 to -1.
func errnoOf(r uintptr) Errno {
	if r > ^uintptr(4095) {
		return Errno(-r)
	}
	return 0
}
