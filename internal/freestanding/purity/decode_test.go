package purity

import (
	"encoding/binary"
	"slices"
	"testing"
)

const base = 0x401000

func TestDecodeAMD64(t *testing.T) {
	tests := []struct {
		name string
		code []byte
		want []Inst
	}{
		{"call", []byte{0xe8, 0xfb, 0x00, 0x00, 0x00}, []Inst{{Len: 5, Flow: Call, Target: base + 0x100}}},
		{"jump back", []byte{0xeb, 0xfe}, []Inst{{Len: 2, Flow: Jump, Target: base}}},
		{"conditional jump", []byte{0x0f, 0x86, 0x00, 0x01, 0x00, 0x00}, []Inst{{Len: 6, Flow: Branch, Target: base + 0x106}}},
		{"count and jump", []byte{0xe3, 0x10}, []Inst{{Len: 2, Flow: Branch, Target: base + 0x12}}},
		{"call through a register", []byte{0xff, 0xd0}, []Inst{{Len: 2, Flow: Indirect}}},
		{"call through memory", []byte{0xff, 0x12}, []Inst{{Len: 2, Flow: Indirect}}},
		{"jump through a variable", []byte{0xff, 0x25, 0xfa, 0x0f, 0x00, 0x00}, []Inst{{Len: 6, Flow: Indirect, Refs: []uint64{base + 0x1000}}}},
		{"address", []byte{0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff}, []Inst{{Len: 7, Refs: []uint64{base}}}},
		{"absolute address", []byte{0x48, 0x8b, 0x04, 0x25, 0x00, 0x20, 0x40, 0x00}, []Inst{{Len: 8, Refs: []uint64{0x402000}}}},
		{"thread-local", []byte{0x64, 0x4c, 0x8b, 0x34, 0x25, 0xf8, 0xff, 0xff, 0xff}, []Inst{{Len: 9}}},
		{"system call", []byte{0x0f, 0x05}, []Inst{{Len: 2}}},
		{"return", []byte{0xc3}, []Inst{{Len: 1, Flow: Return}}},
		{"far return", []byte{0xcb}, []Inst{{Len: 1, Flow: Unknown}}},
		{"undefined", []byte{0x0f, 0x0b}, []Inst{{Len: 2, Flow: Trap}}},
		{"breakpoint", []byte{0xcd, 0x03}, []Inst{{Len: 2, Flow: Trap}}},
		{"old system call", []byte{0xcd, 0x80}, []Inst{{Len: 2, Flow: Unknown}}},
		{"filler", []byte{0x90, 0xcc}, []Inst{{Len: 1, Pad: true}, {Addr: base + 1, Len: 1, Flow: Trap, Pad: true}}},
		{"vector extension", []byte{0xc5, 0xf8, 0x77, 0xc3}, []Inst{{Len: 4, Flow: Unknown}}},
		{"garbage", []byte{0x90, 0x06, 0xc3}, []Inst{{Len: 1, Pad: true}, {Addr: base + 1, Len: 2, Flow: Unknown}}},
		{"cut off", []byte{0xe8, 0x00}, []Inst{{Len: 2, Flow: Unknown}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { compare(t, amd64{}.Decode(test.code, base), test.want) })
	}
}

func TestDecodeARM64(t *testing.T) {
	tests := []struct {
		name  string
		words []uint32
		want  []Inst
	}{
		{"call", []uint32{0x94000040}, []Inst{{Flow: Call, Target: base + 0x100}}},
		{"jump back", []uint32{0x17ffffff}, []Inst{{Flow: Jump, Target: base - 4}}},
		{"conditional jump", []uint32{0x54000808}, []Inst{{Flow: Branch, Target: base + 0x100}}},
		{"compare with zero", []uint32{0xb4000800}, []Inst{{Flow: Branch, Target: base + 0x100}}},
		{"test a bit", []uint32{0xb7f80800}, []Inst{{Flow: Branch, Target: base + 0x100}}},
		{"call through a register", []uint32{0xd63f0020}, []Inst{{Flow: Indirect}}},
		{"jump through a register", []uint32{0xd61f0360}, []Inst{{Flow: Indirect}}},
		{"return", []uint32{0xd65f03c0}, []Inst{{Flow: Return}}},
		{"return through another register", []uint32{0xd65f0020}, []Inst{{Flow: Indirect}}},
		{"authenticated call", []uint32{0xd73f0822}, []Inst{{Flow: Unknown}}},
		{"compare and branch, one day", []uint32{0x74000820}, []Inst{{Flow: Unknown}}},
		{"return from an exception", []uint32{0xd69f03e0}, []Inst{{Flow: Unknown}}},
		{"system call", []uint32{0xd4000001}, []Inst{{}}},
		{"hypervisor call", []uint32{0xd4000002}, []Inst{{Flow: Unknown}}},
		{"breakpoint", []uint32{0xd4200000}, []Inst{{Flow: Trap}}},
		{"filler", []uint32{0xd503201f, 0}, []Inst{{Pad: true}, {Flow: Trap, Pad: true}}},
		{"near address", []uint32{0x10000800}, []Inst{{Refs: []uint64{base + 0x100}}}},
		{"far address", []uint32{0xf0000121, 0x91328021}, []Inst{{Refs: []uint64{base + 0x27000 + 0xca0}}, {}}},
		{"load a variable", []uint32{0x9000071b, 0xb94ff362}, []Inst{{Refs: []uint64{base + 0xe0000 + 0xff0}}, {}}},
		{"half an address", []uint32{0x9000071b, 0xd65f03c0}, []Inst{{Flow: Unknown}, {Flow: Return}}},
		{"half an address, another register", []uint32{0x9000071b, 0xb94ff342}, []Inst{{Flow: Unknown}, {}}},
		{"constant behind the code", []uint32{0x58000040, 0xd65f03c0, 0x94000040, 0x94000040}, []Inst{
			{}, {Flow: Return}, {Flow: Trap, Pad: true}, {Flow: Trap, Pad: true},
		}},
		{"constant in the way", []uint32{0x18000020, 0x94000040}, []Inst{{}, {Flow: Unknown}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i := range test.want {
				test.want[i].Addr, test.want[i].Len = base+uint64(4*i), 4
			}
			compare(t, arm64{}.Decode(bytesOf(test.words), base), test.want)
		})
	}
}

// TestSwitchAMD64 takes the guard of a jump table apart, piece by piece.
func TestSwitchAMD64(t *testing.T) {
	var (
		cmp    = []byte{0x48, 0x83, 0xf8, 0x09}                   // CMPQ AX, $9
		narrow = []byte{0x83, 0xf8, 0x09}                         // CMPL AX, $9
		other  = []byte{0x48, 0x83, 0xfb, 0x09}                   // CMPQ BX, $9
		ja     = []byte{0x77, 0x20}                               // JA +32
		jb     = []byte{0x72, 0x20}                               // JB +32
		lea    = []byte{0x48, 0x8d, 0x0d, 0x00, 0x10, 0x00, 0x00} // LEAQ 4096(IP), CX
		spill  = []byte{0x48, 0x89, 0x44, 0x24, 0x08}             // MOVQ AX, 8(SP)
		spoil  = []byte{0x88, 0xd8}                               // MOVB BX, AX
		jump   = []byte{0xff, 0x24, 0xc1}                         // JMP (CX)(AX*8)
		inside = []byte{0x75, 0xf2}                               // JNE to lea, from behind jump
	)
	tests := []struct {
		name string
		code []byte
		ok   bool
	}{
		{"as the compiler does", slices.Concat(cmp, ja, lea, jump), true},
		{"with a move", slices.Concat(cmp, ja, spill, lea, jump), true},
		{"no comparison", slices.Concat(ja, lea, jump), false},
		{"no jump past it", slices.Concat(cmp, lea, jump), false},
		{"another condition", slices.Concat(cmp, jb, lea, jump), false},
		{"half of the index", slices.Concat(narrow, ja, lea, jump), false},
		{"another index", slices.Concat(other, ja, lea, jump), false},
		{"the index is changed", slices.Concat(cmp, ja, spoil, lea, jump), false},
		{"a way around the comparison", slices.Concat(cmp, ja, lea, jump, inside), false},
		{"no table", slices.Concat(cmp, ja, jump), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			insts := amd64{}.Decode(test.code, base)
			i := slices.IndexFunc(insts, func(in Inst) bool { return in.Flow == Switch || in.Flow == Indirect })
			if i < 0 {
				t.Fatal("no jump at all")
			}
			in := insts[i]
			if got := in.Flow == Switch; got != test.ok {
				t.Fatalf("taken for a switch: %v, want %v", got, test.ok)
			}
			lea := insts[max(i-1, 0)]
			if want := (Table{Addr: lea.Addr + uint64(lea.Len) + 0x1000, Len: 10}); test.ok && in.Table != want {
				t.Errorf("table %+v, want %+v", in.Table, want)
			}
		})
	}
}

// TestSwitchARM64 does the same; the words are those of a real switch.
func TestSwitchARM64(t *testing.T) {
	real := []uint32{
		0xf100241f, // CMP $9, R0
		0x54000688, // BHI
		0xf0000121, // ADRP R1
		0x91328021, // ADD $3232, R1, R1
		0xf860783b, // MOVD (R1)(R0<<3), R27
		0xd61f0360, // JMP (R27)
	}
	with := func(i int, w uint32) []uint32 {
		c := slices.Clone(real)
		c[i] = w
		return c
	}
	tests := []struct {
		name  string
		words []uint32
		ok    bool
	}{
		{"as the compiler does", real, true},
		{"with a store", slices.Insert(slices.Clone(real), 2, 0xf90043e1), true}, // MOVD R1, 128(RSP)
		{"with a store in the guard", slices.Insert(slices.Clone(real), 1, 0xf90043e1), true},
		{"the index is loaded anew", slices.Insert(slices.Clone(real), 2, 0xf94043e0), false}, // MOVD 128(RSP), R0
		{"the flags are set anew", slices.Insert(slices.Clone(real), 1, 0xf100045f), false},   // CMP $1, R2
		{"another index", with(0, 0xf100245f), false},
		{"half of the index", with(0, 0x7100241f), false},
		{"another condition", with(1, 0x54000683), false},
		{"another base", with(4, 0xf860785b), false},
		{"another target", with(4, 0xf860783a), false},
		{"a call", with(5, 0xd63f0360), false},
		{"a way around the comparison", append(slices.Clone(real), 0x54ffff81), false},
		{"no comparison", real[1:], false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			insts := arm64{}.Decode(bytesOf(test.words), base)
			i := slices.IndexFunc(insts, func(in Inst) bool { return in.Flow == Switch || in.Flow == Indirect })
			if i < 0 {
				t.Fatal("no jump at all")
			}
			in := insts[i]
			if got := in.Flow == Switch; got != test.ok {
				t.Fatalf("taken for a switch: %v, want %v", got, test.ok)
			}
			if want := (Table{Addr: base + 0x27000 + 0xca0, Len: 10}); test.ok && in.Table != want {
				t.Errorf("table %+v, want %+v", in.Table, want)
			}
		})
	}
}

func TestPackage(t *testing.T) {
	for symbol, want := range map[string]string{
		"main.main":                               "main",
		"example.org/m/internal/a.(*T).Method":    "example.org/m/internal/a",
		"example.org/m/a.F[example.org/m/b.T]":    "example.org/m/a",
		"example.org/m/a.F.func1":                 "example.org/m/a",
		"gopkg.in/yaml%2ev3.Node":                 "gopkg.in/yaml.v3",
		"type:.eq.example.org/m/a.T":              "example.org/m/a",
		"runtime.memmove":                         "runtime",
		"_rt0_amd64_linux":                        "",
		"internal/runtime/syscall/linux.Syscall6": "internal/runtime/syscall/linux",
	} {
		if got := Package(symbol); got != want {
			t.Errorf("Package(%q) = %q, want %q", symbol, got, want)
		}
	}
}

func TestEveryRuleHasAReason(t *testing.T) {
	for _, rules := range [][]Rule{allow, vars, hints} {
		for _, r := range rules {
			if r.Why == "" {
				t.Errorf("%s has no reason", r.Name)
			}
		}
	}
}

func bytesOf(words []uint32) (code []byte) {
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return code
}

// compare leaves out the text, which must be there only when a message needs it.
func compare(t *testing.T, got, want []Inst) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d instructions, want %d: %+v", len(got), len(want), got)
	}
	for i, g := range got {
		w := want[i]
		if w.Addr == 0 {
			w.Addr = base
		}
		if (g.Flow == Indirect || g.Flow == Unknown) && g.Text == "" {
			t.Errorf("instruction %d has no text: %+v", i, g)
		}
		if g.Addr != w.Addr || g.Len != w.Len || g.Flow != w.Flow || g.Target != w.Target || g.Pad != w.Pad || !slices.Equal(g.Refs, w.Refs) {
			t.Errorf("instruction %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}
