package purity

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sort"
	"strings"
)

// A Binary is a linked executable with its symbol table.
type Binary struct {
	file     *elf.File
	arch     Arch
	order    binary.ByteOrder
	ptrSize  uint64
	entry    Symbol
	funcs    []Symbol // by address
	objects  []Symbol // by address
	byName   map[string]Symbol
	sections []section
}

// A Symbol is a function or a variable.
type Symbol struct {
	Name string // without the suffix that marks the assembler's calling convention
	Addr uint64
	Size uint64
}

func (s Symbol) contains(addr uint64) bool { return s.Addr <= addr && addr < s.Addr+s.Size }

type section struct {
	addr  uint64
	size  uint64
	flags elf.SectionFlag
	data  []byte // nil for zeroed memory
}

func (s *section) writable() bool   { return s.flags&elf.SHF_WRITE != 0 }
func (s *section) executable() bool { return s.flags&elf.SHF_EXECINSTR != 0 }

// Open reads the executable at path. One without symbols (-s, -w) or one that
// is position independent is an error: the walk would see nothing, or only
// a part.
func Open(path string) (*Binary, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &Binary{file: f, arch: arches[f.Machine], order: f.ByteOrder, ptrSize: 8, byName: map[string]Symbol{}}
	switch {
	case b.arch == nil:
		return nil, fmt.Errorf("%s: no decoder for %v", path, f.Machine)
	case f.Type != elf.ET_EXEC:
		return nil, fmt.Errorf("%s: %v, want a position dependent executable", path, f.Type)
	case f.Class == elf.ELFCLASS32:
		b.ptrSize = 4
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0 {
			continue
		}
		sec := section{addr: s.Addr, size: s.Size, flags: s.Flags}
		if s.Type != elf.SHT_NOBITS {
			if sec.data, err = s.Data(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, s.Name, err)
			}
		}
		b.sections = append(b.sections, sec)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range symbols {
		if s.Size == 0 { // a mark, or the head of a group without names
			continue
		}
		sym := Symbol{Name: strings.TrimSuffix(s.Name, ".abi0"), Addr: s.Value, Size: s.Size}
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_FUNC:
			b.funcs = append(b.funcs, sym)
		case elf.STT_OBJECT:
			b.objects = append(b.objects, sym)
			b.byName[sym.Name] = sym
		}
	}
	for _, list := range [][]Symbol{b.funcs, b.objects} {
		sort.SliceStable(list, func(i, j int) bool { return list[i].Addr < list[j].Addr })
	}
	var ok bool
	if b.entry, ok = b.Func(f.Entry); !ok || b.entry.Addr != f.Entry {
		return nil, fmt.Errorf("%s: no function symbol at the entry point %#x", path, f.Entry)
	}
	return b, nil
}

// Entry returns the function that the kernel jumps to.
func (b *Binary) Entry() Symbol { return b.entry }

// Func returns the function that covers addr.
func (b *Binary) Func(addr uint64) (Symbol, bool) { return find(b.funcs, addr) }

// Object returns the variable that covers addr.
func (b *Binary) Object(addr uint64) (Symbol, bool) { return find(b.objects, addr) }

func find(list []Symbol, addr uint64) (Symbol, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr > addr })
	if i == 0 || !list[i-1].contains(addr) {
		return Symbol{}, false
	}
	return list[i-1], true
}

// InitFuncs returns how many init functions the runtime would run for a
// package before main: those called init, and the one that the compiler makes
// for variables it cannot lay out by itself.
//
// They are counted in the record that the compiler writes for the package,
// <pkg>..inittask: a word of state, a word with the number of functions, the
// functions. A package that has none, but imports one that has, also gets a
// record from the compiler, and the linker drops it: an absent record means
// zero. (Go 1.26: cmd/compile/internal/pkginit, cmd/link/internal/ld/inittask.go.)
func (b *Binary) InitFuncs(pkg string) (int, error) {
	sym, ok := b.byName[pkg+"..inittask"]
	if !ok {
		return 0, nil
	}
	if data := b.read(sym.Addr, 8); data != nil {
		n := b.order.Uint32(data[4:])
		if sym.Size == 8+uint64(n)*b.ptrSize {
			return int(n), nil
		}
	}
	return 0, fmt.Errorf("the record of %s's init functions is not understood: has its layout changed?", pkg)
}

func (b *Binary) section(addr uint64) *section {
	for i := range b.sections {
		if s := &b.sections[i]; s.addr <= addr && addr < s.addr+s.size {
			return s
		}
	}
	return nil
}

// read returns n initialized bytes at addr, or nil.
func (b *Binary) read(addr, n uint64) []byte {
	s := b.section(addr)
	if s == nil || s.data == nil || addr-s.addr+n > uint64(len(s.data)) {
		return nil
	}
	return s.data[addr-s.addr:][:n]
}

// pointer returns the pointer stored at addr.
func (b *Binary) pointer(addr uint64) (uint64, bool) {
	data := b.read(addr, b.ptrSize)
	switch {
	case data == nil:
		return 0, false
	case b.ptrSize == 4:
		return uint64(b.order.Uint32(data)), true
	}
	return b.order.Uint64(data), true
}

// Package returns the import path in the name of a symbol, and "" when the
// name has none.
func Package(symbol string) string {
	symbol = strings.TrimPrefix(symbol, "type:.eq.")
	if i := strings.IndexAny(symbol, "[("); i >= 0 {
		symbol = symbol[:i] // receiver and type arguments have paths of their own
	}
	slash := strings.LastIndexByte(symbol, '/') + 1
	dot := strings.IndexByte(symbol[slash:], '.')
	if dot < 0 {
		return ""
	}
	// The linker escapes dots in the last element, gopkg.in/yaml%2ev3.
	return strings.ReplaceAll(symbol[:slash+dot], "%2e", ".")
}

func hexBytes(p []byte) string { return "bytes " + hex.EncodeToString(p) }
