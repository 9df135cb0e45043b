package purity

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// amd64 decodes 64-bit x86. Its instructions have different lengths, so an
// instruction that is not understood leaves no safe place to go on from: the
// rest of the function becomes one Unknown instruction.
//
// x86asm v0.33 was held against GNU objdump on all of cmd/vet, 766789
// instructions: it gets every length right, but for VZEROUPPER. So what starts
// like a vector extension is left alone; the compiler uses none for GOAMD64=v1.
type amd64 struct{}

func (amd64) Decode(code []byte, addr uint64) []Inst {
	var insts []Inst
	var raw []x86asm.Inst
	for off := 0; off < len(code); {
		pc := addr + uint64(off)
		x, err := x86asm.Decode(code[off:], 64)
		if err != nil || x.Len == 0 || x.Op == 0 || vectorAMD64(code[off]) {
			insts = append(insts, Inst{
				Addr: pc, Len: len(code) - off, Flow: Unknown,
				Text: hexBytes(code[off:min(len(code), off+15)]),
			})
			break
		}
		insts = append(insts, classifyAMD64(x, pc))
		raw = append(raw, x)
		off += x.Len
	}
	branchedTo := targets(insts)
	for i := range raw {
		if insts[i].Flow == Indirect {
			if t, ok := tableAMD64(insts, raw, i, branchedTo); ok {
				insts[i].Flow, insts[i].Table = Switch, t
			}
		}
	}
	return insts
}

// vectorAMD64 reports whether b starts a VEX or EVEX prefix.
func vectorAMD64(b byte) bool { return b == 0xc4 || b == 0xc5 || b == 0x62 }

func classifyAMD64(x x86asm.Inst, pc uint64) Inst {
	in := Inst{Addr: pc, Len: x.Len}
	end := pc + uint64(x.Len)
	direct := false
	for _, arg := range x.Args {
		switch a := arg.(type) {
		case x86asm.Rel:
			direct = true
			in.Target = end + uint64(int64(a))
		case x86asm.Mem:
			if ref, ok := addressAMD64(a, end); ok {
				in.Refs = append(in.Refs, ref)
			}
		}
	}
	switch x.Op {
	case x86asm.CALL:
		in.Flow = Call
	case x86asm.JMP:
		in.Flow = Jump
	case x86asm.LCALL, x86asm.LJMP:
		in.Flow, direct = Indirect, false
	case x86asm.RET:
		in.Flow = Return
	case x86asm.UD1, x86asm.UD2, x86asm.HLT:
		in.Flow = Trap
	case x86asm.INT:
		if x.Args[0] == x86asm.Imm(3) { // a breakpoint; the short form is also a filler
			in.Flow, in.Pad = Trap, x.Len == 1
		} else { // a way into the kernel, of old
			in.Flow = Unknown
		}
	case x86asm.NOP, x86asm.PAUSE:
		in.Pad = true
	case x86asm.XCHG: // 0x90 under some prefixes
		in.Pad = x.Args[0] == x86asm.EAX && x.Args[1] == x86asm.EAX || x.Args[0] == x86asm.RAX && x.Args[1] == x86asm.RAX
	case x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.SYSRET, x86asm.SYSEXIT, x86asm.SYSENTER, x86asm.RSM:
		in.Flow = Unknown
	default:
		if direct { // a conditional jump, LOOP, JRCXZ, XBEGIN
			in.Flow = Branch
		}
	}
	if (in.Flow == Call || in.Flow == Jump) && !direct {
		in.Flow = Indirect
	}
	if in.Flow == Indirect || in.Flow == Unknown {
		in.Text = x86asm.GoSyntax(x, pc, nil)
	}
	return in
}

// addressAMD64 returns the address in a memory operand when it is a constant:
// relative to the instruction pointer, or an absolute displacement, with or
// without an index.
func addressAMD64(m x86asm.Mem, end uint64) (uint64, bool) {
	switch {
	case m.Segment == x86asm.FS || m.Segment == x86asm.GS: // thread-local
		return 0, false
	case m.Base == x86asm.RIP:
		return end + uint64(m.Disp), true
	case m.Base == 0 && m.Disp > 0:
		return uint64(m.Disp), true
	}
	return 0, false
}

// tableAMD64 recognises how the compiler jumps through the table of a switch,
//
//	CMPQ idx, $max
//	JA   default
//	LEAQ table(SB), base
//	JMP  (base)(idx*8)
//
// possibly with moves in between that leave idx and base alone. Nothing may
// branch to the middle of it, or the comparison would prove nothing.
func tableAMD64(insts []Inst, raw []x86asm.Inst, i int, branchedTo map[uint64]bool) (Table, bool) {
	m, ok := raw[i].Args[0].(x86asm.Mem)
	if !ok || raw[i].Op != x86asm.JMP || m.Scale != 8 || m.Disp != 0 || m.Base == 0 || m.Index == 0 {
		return Table{}, false
	}
	var t Table
	guarded := false // the JA was seen, the CMP is still to come
	for j := i - 1; j >= 0; j-- {
		if branchedTo[insts[j+1].Addr] {
			return Table{}, false
		}
		x := raw[j]
		dst, _ := x.Args[0].(x86asm.Reg)
		switch {
		case x.Op == x86asm.LEA && dst == m.Base && t.Addr == 0 && !guarded && len(insts[j].Refs) == 1:
			t.Addr = insts[j].Refs[0]
		case x.Op == x86asm.JA && t.Addr != 0 && !guarded:
			guarded = true
		case x.Op == x86asm.CMP && guarded:
			limit, ok := x.Args[1].(x86asm.Imm)
			if !ok || dst != m.Index || limit < 0 || limit >= 1<<16 {
				return Table{}, false
			}
			t.Len = int(limit) + 1
			return t, true
		case moveAMD64(x.Op) && !sameAMD64(dst, m.Base) && !sameAMD64(dst, m.Index):
		default:
			return Table{}, false
		}
	}
	return Table{}, false
}

// moveAMD64 reports whether op writes nothing but its first operand, and no
// flags either.
func moveAMD64(op x86asm.Op) bool {
	return slices.Contains([]x86asm.Op{
		x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.MOVUPS, x86asm.LEA, x86asm.NOP,
	}, op)
}

// sameAMD64 reports whether r names all or a part of the 64-bit register q.
func sameAMD64(r, q x86asm.Reg) bool {
	if r == 0 || r == q {
		return r == q
	}
	n := q - x86asm.RAX
	switch {
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return r-x86asm.EAX == n
	case r >= x86asm.AX && r <= x86asm.R15W:
		return r-x86asm.AX == n
	case r >= x86asm.AL && r <= x86asm.R15B:
		return true // the numbering of byte registers has holes: assume the worst
	}
	return false
}
