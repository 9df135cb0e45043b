package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"github.com/rogpeppe/go-internal/testscript"
)

// machineHere is the ELF machine type of this architecture.
func machineHere(ts *testscript.TestScript) uint16 {
	f, err := elf.Open("/proc/self/exe")
	ts.Check(err)
	defer f.Close()
	return uint16(f.Machine)
}

// elfFile makes the smallest program file that the kernel takes far enough to
// refuse it for its machine, or for its loader.
func elfFile(machine uint16, loader string) []byte {
	const (
		base       = 0x400000
		headerSize = 64
		entrySize  = 56
	)
	interp := append([]byte(loader), 0)
	at := uint64(headerSize + 2*entrySize)
	size := at + uint64(len(interp))
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: machine, Version: uint32(elf.EV_CURRENT),
		Entry: base, Phoff: headerSize, Ehsize: headerSize, Phentsize: entrySize, Phnum: 1,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	if loader != "" {
		header.Phnum = 2
	}
	programs := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 0x10000},
		{Type: uint32(elf.PT_INTERP), Flags: uint32(elf.PF_R), Off: at, Vaddr: base + at, Paddr: base + at, Filesz: uint64(len(interp)), Memsz: uint64(len(interp)), Align: 1},
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, header)
	binary.Write(&b, binary.LittleEndian, programs)
	b.Write(interp)
	return b.Bytes()
}
