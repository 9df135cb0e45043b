// Package purity proves, on a linked binary, that the code which runs before
// or instead of the Go runtime needs nothing that the runtime would have set
// up.
//
// It starts at the entry point of an ELF file, disassembles that function,
// follows every call, every jump to another function and every function whose
// address is taken, and holds what it finds against a Policy. What it rejects:
//
//   - a symbol outside the module that is not on the allow-list,
//   - a call or jump through a register or memory, because nobody can tell
//     where it goes; the jump table of a switch is the exception, it is read
//     and its every entry checked,
//   - an instruction it cannot decode, because that could be anything,
//   - a package with init functions: freestanding code runs before them, so
//     its variables would still be zero,
//   - a package variable of somebody else, for the same reason,
//   - a function that runs off its end into whatever was linked next to it.
//
// The verdict is about machine code, not about source: inlining, escape
// analysis and dead code are settled by then, and what the compiler added
// (write barriers, bounds checks, comparison functions) is in plain view. It
// therefore holds only for the toolchain and flags the file was built with.
//
// What it rests on: the file is a statically linked, position dependent
// executable of Go's internal linker with its symbol table; the compiler emits
// a bounds check right before the jump through a table; on arm64 the assembler
// keeps ADRP next to the instruction that adds the low twelve bits. Where one
// of these does not hold the walk reports a violation, it never guesses.
//
// What it cannot see: a pointer that is computed at run time, a return address that assembly made up, and code the
// kernel is told to call (no signal handler is ever installed in freestanding
// state; a handler's function would still be followed, its address is taken).
//
// It is for tests. Nothing that ships may import it.
package purity
