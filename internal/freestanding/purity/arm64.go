package purity

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/arm64/arm64asm"
)

// arm64 decodes AArch64. Every instruction has four bytes, and the manual's
// top-level encoding table puts all that can change the flow of control into
// one group, bits 28 to 26 being 101. So the group is decoded here, bit by
// bit, and anything outside of it goes on to the next instruction, whether a
// disassembler has heard of it or not.
type arm64 struct{}

func (arm64) Decode(code []byte, addr uint64) []Inst {
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	insts := make([]Inst, len(words), len(words)+1)
	literal := make([]bool, len(words)) // data among the code
	for i, w := range words {
		insts[i] = classifyARM64(w, addr+uint64(4*i))
		if a, n, ok := literalARM64(w, insts[i].Addr); ok {
			if a < addr || a >= addr+uint64(len(code)) {
				insts[i].Refs = append(insts[i].Refs, a)
				continue
			}
			for k := int(a-addr) / 4; n > 0 && k < len(words); k, n = k+1, n-4 {
				literal[k] = true
			}
		}
	}
	for i, w := range words {
		if literal[i] { // nothing to execute, see below
			insts[i] = Inst{Addr: insts[i].Addr, Len: 4, Flow: Trap, Pad: true}
			continue
		}
		reg, page, ok := adrpARM64(w, insts[i].Addr)
		if !ok {
			continue
		}
		if i+1 < len(words) {
			if low, ok := lowARM64(words[i+1], reg); ok {
				insts[i].Refs = append(insts[i].Refs, page+low)
				continue
			}
		}
		insts[i].Flow = Unknown
		insts[i].Text = textARM64(code[4*i:], insts[i].Addr) + " (ADRP without its other half)"
	}
	branchedTo := targets(insts)
	for i, in := range insts {
		if literal[i] && (branchedTo[in.Addr] || i == 0 || insts[i-1].fallsThrough()) {
			insts[i].Flow = Unknown
			insts[i].Pad, insts[i].Text = false, "data that may be executed"
			continue
		}
		if in.Flow == Indirect {
			if t, ok := tableARM64(insts, words, i, branchedTo); ok {
				insts[i].Flow, insts[i].Table = Switch, t
				continue
			}
		}
		if in.Flow == Indirect || in.Flow == Unknown && in.Text == "" {
			insts[i].Text = textARM64(code[4*i:], in.Addr)
		}
	}
	if n := len(code) % 4; n != 0 {
		insts = append(insts, Inst{
			Addr: addr + uint64(len(code)-n), Len: n, Flow: Unknown, Text: hexBytes(code[len(code)-n:]),
		})
	}
	return insts
}

func classifyARM64(w uint32, pc uint64) Inst {
	in := Inst{Addr: pc, Len: 4}
	switch {
	case w&0xffff0000 == 0: // UDF, with which the linker also fills gaps
		in.Flow, in.Pad = Trap, true
	case w == 0xd503201f: // NOP
		in.Pad = true
	case w&0x9f000000 == 0x10000000: // ADR
		in.Refs = []uint64{pc + signed(w>>5&0x7ffff<<2|w>>29&3, 21)}
	case w>>26&7 != 5: // not of the group that branches
	case w&0xfc000000 == 0x14000000: // B
		in.Flow, in.Target = Jump, pc+signed(w&0x3ffffff, 26)*4
	case w&0xfc000000 == 0x94000000: // BL
		in.Flow, in.Target = Call, pc+signed(w&0x3ffffff, 26)*4
	case w&0x7e000000 == 0x34000000, // CBZ, CBNZ
		w&0xff000000 == 0x54000000: // B.cond, BC.cond
		in.Flow, in.Target = Branch, pc+signed(w>>5&0x7ffff, 19)*4
	case w&0x7e000000 == 0x36000000: // TBZ, TBNZ
		in.Flow, in.Target = Branch, pc+signed(w>>5&0x3fff, 14)*4
	case w == 0xd65f03c0: // RET through the link register
		in.Flow = Return
	case w&0xfffffc1f == 0xd61f0000, w&0xfffffc1f == 0xd63f0000, w&0xfffffc1f == 0xd65f0000: // BR, BLR, RET
		in.Flow = Indirect
	case w&0xffe0001f == 0xd4000001: // SVC
	case w&0xffe0001f == 0xd4200000, w&0xffe0001f == 0xd4400000: // BRK, HLT
		in.Flow = Trap
	case w&0xffc00000 == 0xd5000000: // hints, barriers, system registers
	default: // ERET, HVC, branches with pointer authentication, …
		in.Flow = Unknown
	}
	return in
}

// adrpARM64 decodes ADRP: the register, and the page put into it.
func adrpARM64(w uint32, pc uint64) (reg uint32, page uint64, ok bool) {
	if w&0x9f000000 != 0x90000000 {
		return 0, 0, false
	}
	return w & 31, pc&^0xfff + signed(w>>5&0x7ffff<<2|w>>29&3, 21)<<12, true
}

// lowARM64 decodes the second half of an address: the offset that an ADD, a
// load or a store puts on top of base.
func lowARM64(w, base uint32) (uint64, bool) {
	imm := uint64(w >> 10 & 0xfff)
	switch {
	case w>>5&31 != base:
		return 0, false
	case w&0xff800000 == 0x91000000: // ADD $imm
		if w>>22&1 == 1 {
			imm <<= 12
		}
		return imm, true
	case w&0x3b000000 == 0x39000000: // load or store, unsigned offset
		scale := w >> 30
		if w>>26&1 == 1 && w>>23&1 == 1 { // a 128-bit vector register
			scale = 4
		}
		return imm << scale, true
	}
	return 0, false
}

// literalARM64 decodes a load relative to the program counter: the address
// and the length of what it reads.
func literalARM64(w uint32, pc uint64) (addr uint64, size int, ok bool) {
	if w&0x3b000000 != 0x18000000 {
		return 0, 0, false
	}
	size = [...]int{4, 8, 4, 0}[w>>30]
	if w>>26&1 == 1 {
		size = 4 << (w >> 30)
	}
	return pc + signed(w>>5&0x7ffff, 19)*4, size, true
}

// tableARM64 recognises how the compiler jumps through the table of a switch,
//
//	CMP  $max, idx
//	BHI  default
//	ADRP, ADD    table, base
//	MOVD (base)(idx<<3), to
//	JMP  (to)
//
// possibly with instructions around the BHI that leave idx and the flags alone.
// Nothing may branch to the middle of it, or the comparison would prove nothing.
func tableARM64(insts []Inst, words []uint32, i int, branchedTo map[uint64]bool) (Table, bool) {
	if i < 5 || words[i]&0xfffffc1f != 0xd61f0000 {
		return Table{}, false
	}
	for _, in := range insts[i-2 : i+1] {
		if branchedTo[in.Addr] {
			return Table{}, false
		}
	}
	to := words[i] >> 5 & 31
	load, add, adrp := words[i-1], words[i-2], words[i-3]
	base, idx := load>>5&31, load>>16&31
	switch {
	case load&0xffe0fc00 != 0xf8607800, load&31 != to, base == idx, // LDR to, [base, idx, LSL #3]
		add&0xff8003ff != 0x91000000|base<<5|base, // ADD base, base, #low
		adrp&0x9f00001f != 0x90000000|base,        // ADRP base
		len(insts[i-3].Refs) != 1:
		return Table{}, false
	}
	guarded := false // the BHI was seen, the CMP is still to come
	for j := i - 4; j >= 0; j-- {
		if branchedTo[insts[j+1].Addr] {
			break
		}
		switch w := words[j]; {
		case !guarded && w&0xff00001f == 0x54000008: // B.HI
			guarded = true
		case guarded && w&0xffc003ff == 0xf100001f|idx<<5: // SUBS xzr, idx, #max
			return Table{Addr: insts[i-3].Refs[0], Len: int(w>>10&0xfff) + 1}, true
		case !keepsARM64(w, idx):
			return Table{}, false
		}
	}
	return Table{}, false
}

// keepsARM64 reports whether w is one of a few common instructions that leave the
// flags alone, and reg too.
func keepsARM64(w, reg uint32) bool {
	writes := w&31 == reg
	switch {
	case w == 0xd503201f: // NOP
		return true
	case w&0x3fc00000 == 0x39000000, // STR, all integer sizes, unsigned offset
		w&0x7fc00000 == 0x29000000: // STP, signed offset
		return true
	case w&0x3f000000 == 0x39000000, // LDR, all integer sizes, unsigned offset
		w&0x7fe0ffe0 == 0x2a0003e0, // MOV (register)
		w&0x1f800000 == 0x12800000, // MOVZ, MOVN, MOVK
		w&0x3f000000 == 0x11000000, // ADD, SUB (immediate)
		w&0x1f000000 == 0x10000000: // ADR, ADRP
		return !writes
	}
	return false
}

// signed extends the two's complement number in the low bits of v.
func signed(v uint32, bits uint) uint64 {
	return uint64(int64(v) << (64 - bits) >> (64 - bits))
}

func textARM64(code []byte, pc uint64) string {
	x, err := arm64asm.Decode(code)
	if err != nil {
		return fmt.Sprintf("%#08x", binary.LittleEndian.Uint32(code))
	}
	return arm64asm.GoSyntax(x, pc, nil, nil)
}
