package purity

import "debug/elf"

// Flow says where control goes after an instruction.
type Flow uint8

const (
	// Next continues with the following instruction.
	Next Flow = iota
	// Branch goes to Target or continues.
	Branch
	// Jump goes to Target.
	Jump
	// Call goes to Target and comes back, unless the callee never returns.
	Call
	// Switch goes to one of the entries of Table.
	Switch
	// Indirect calls or jumps to an address that only the running program knows.
	Indirect
	// Return goes back to the caller.
	Return
	// Trap ends the process.
	Trap
	// Unknown is an instruction that could not be decoded, or that has no
	// business in a user program.
	Unknown
)

// An Inst is what the walk needs to know about one instruction.
type Inst struct {
	Addr   uint64
	Len    int
	Flow   Flow
	Target uint64   // of Branch, Jump and Call
	Table  Table    // of Switch
	Refs   []uint64 // addresses of functions or data that it mentions
	Pad    bool     // filler: it does nothing, or is never reached
	Text   string   // for people; set where a violation may quote it
}

// fallsThrough reports whether the next instruction may follow this one.
func (in Inst) fallsThrough() bool {
	switch in.Flow {
	case Next, Branch, Call:
		return true
	}
	return false
}

// A Table is the jump table of a switch: Len addresses, starting at Addr.
type Table struct {
	Addr uint64
	Len  int
}

// An Arch decodes one instruction set. Adding one means one file with one
// implementation, and a line in arches.
type Arch interface {
	// Decode returns the instructions of a whole function, in order and
	// without a gap: bytes it does not understand become Unknown ones. Code
	// starts at addr.
	Decode(code []byte, addr uint64) []Inst
}

var arches = map[elf.Machine]Arch{
	elf.EM_X86_64:  amd64{},
	elf.EM_AARCH64: arm64{},
}

// targets returns every address that insts branch, jump or call to.
func targets(insts []Inst) map[uint64]bool {
	set := map[uint64]bool{}
	for _, in := range insts {
		switch in.Flow {
		case Branch, Jump, Call:
			set[in.Target] = true
		}
	}
	return set
}
