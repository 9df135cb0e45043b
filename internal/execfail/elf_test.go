package execfail

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

// image describes an ELF file that a test builds. The zero value, through native, is a
// program of this machine that the kernel accepts as far as its headers go.
type image struct {
	class, data   byte
	kind, machine uint16
	loader        string // with its NUL; none if empty
	phsize, phnum int    // -1 for the right ones
	phoff         int64  // 0 for the right one
	loaderAt      uint64 // 0 for the right one
}

// machines are the e_machine of the platforms that tests run on.
var machines = map[string]struct {
	machine     uint16
	class, data byte
}{
	"amd64": {62, 2, 1}, "386": {3, 1, 1}, "arm64": {183, 2, 1}, "arm": {40, 1, 1}, "riscv64": {243, 2, 1},
	"s390x": {22, 2, 2}, "ppc64le": {21, 2, 1}, "ppc64": {21, 2, 2}, "loong64": {258, 2, 1},
}

func platform(t testing.TB, name string) image {
	m, ok := machines[name]
	if !ok {
		t.Skip("the test does not know the ELF machine of " + name)
	}
	return image{class: m.class, data: m.data, kind: typeExecutable, machine: m.machine, phsize: -1, phnum: -1}
}

func native(t testing.TB) image { return platform(t, runtime.GOARCH) }

// another is a platform that this machine does not run.
func another() string {
	if runtime.GOARCH == "s390x" {
		return "riscv64"
	}
	return "s390x"
}

func (m image) bytes() string {
	var order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	} = binary.LittleEndian
	if m.data == 2 {
		order = binary.BigEndian
	}
	wide := m.class == 2
	header, each := int64(headerSize32), programSize32
	if wide {
		header, each = headerSize64, programSize64
	}
	phsize, phnum, phoff := each, 1, header
	if m.phsize >= 0 {
		phsize = m.phsize
	}
	if m.phnum >= 0 {
		phnum = m.phnum
	}
	if m.phoff != 0 {
		phoff = m.phoff
	}
	word := func(b []byte, v uint64) []byte {
		if wide {
			return order.AppendUint64(b, v)
		}
		return order.AppendUint32(b, uint32(v))
	}
	b := []byte{0x7f, 'E', 'L', 'F', m.class, m.data, 1, 15: 0}
	b = order.AppendUint16(b, m.kind)
	b = order.AppendUint16(b, m.machine)
	b = order.AppendUint32(b, 1)
	b = word(b, 0)             // entry
	b = word(b, uint64(phoff)) // program headers
	b = word(b, 0)             // section headers
	b = order.AppendUint32(b, 0)
	b = order.AppendUint16(b, uint16(header))
	b = order.AppendUint16(b, uint16(phsize))
	b = order.AppendUint16(b, uint16(phnum))
	b = append(b, make([]byte, int(header)-len(b))...)

	at := uint64(len(b) + each)
	if m.loaderAt != 0 {
		at = m.loaderAt
	}
	kind, length := uint32(programInterpreter), uint64(len(m.loader))
	if m.loader == "" {
		kind = 4 // PT_NOTE
	}
	ph := order.AppendUint32(nil, kind)
	if wide {
		ph = order.AppendUint32(ph, 4)
	}
	ph = word(ph, at)     // offset
	ph = word(ph, 0)      // virtual address
	ph = word(ph, 0)      // physical address
	ph = word(ph, length) // size in the file
	ph = word(ph, length) // size in memory
	if !wide {
		ph = order.AppendUint32(ph, 4)
	}
	ph = word(ph, 1)
	b = append(b, ph...)
	return string(append(b, m.loader...))
}

func TestPlatformNames(t *testing.T) {
	for name := range machines {
		m := platform(t, name)
		h, broken := parseHeader(m.bytes(), int64(len(m.bytes())))
		if broken != "" {
			t.Errorf("%s: %s", name, broken)
		}
		if got := h.name(); got != name {
			t.Errorf("%s is called %s", name, got)
		}
	}
	for _, c := range []struct {
		machine     uint16
		class, data byte
		want        string
	}{
		{62, 1, 1, x32},
		{62, 2, 2, "64-bit big-endian ELF machine 62"},
		{183, 2, 2, "arm64be"},
		{8, 1, 1, "mipsle"},
		{8, 2, 2, "mips64"},
		{243, 1, 1, "riscv32"},
		{20, 1, 2, "ppc"},
		{999, 2, 1, "64-bit little-endian ELF machine 999"},
	} {
		m := image{class: c.class, data: c.data, kind: typeDynamic, machine: c.machine, phsize: -1, phnum: -1}
		h, broken := parseHeader(m.bytes(), 1000)
		if broken != "" || h.name() != c.want {
			t.Errorf("machine %d is called %q (%s), expected %q", c.machine, h.name(), broken, c.want)
		}
	}
}

func TestPlatformOf(t *testing.T) {
	for machine, want := range map[string]string{
		"x86_64": "amd64", "i686": "386", "i386": "386", "i86": "", "x686": "",
		"aarch64": "arm64", "armv7l": "arm", "armv8l": "arm", "arm64": "",
		"riscv64": "riscv64", "s390x": "s390x", "ppc64": "ppc64", "ppc64le": "ppc64le", "loongarch64": "loong64",
		"mips": "", "mips64": "", "sparc64": "", "": "",
	} {
		if got := platformOf(machine); got != want {
			t.Errorf("%q: %q, expected %q", machine, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		machine, program string
		want             ability
	}{
		{"mips", "mips", same},
		{"mips64", "mips", depends},
		{"mips64", "mipsle", foreign},
		{"s390x", "s390", depends},
		{"ppc64", "ppc64le", foreign},
	} {
		if c.program == runtime.GOARCH {
			continue
		}
		if got := runs(c.machine, c.program); got != c.want {
			t.Errorf("a %s machine and a %s program: %d, expected %d", c.machine, c.program, got, c.want)
		}
	}
}

func TestMachineIsThisOne(t *testing.T) {
	p := &probe{}
	// A test of a 32-bit build may run on a 64-bit machine.
	if got := p.machine(); runs(got, runtime.GOARCH) != same || runs(got, another()) != foreign {
		t.Errorf("this machine is called %q, the test is built for %q", got, runtime.GOARCH)
	}
}

func TestInterpreterOfBothClasses(t *testing.T) {
	for _, name := range []string{"amd64", "386", "s390x"} {
		m := platform(t, name)
		m.loader = "/lib/ld-some.so.1\x00"
		b := m.bytes()
		h, broken := parseHeader(b, int64(len(b)))
		if broken != "" {
			t.Fatal(broken)
		}
		got, ok, f := h.interpreter(strings.NewReader(b), int64(len(b)))
		if f.errno != 0 || !ok || got != "/lib/ld-some.so.1" {
			t.Errorf("%s: loader %q, finding %+v", name, got, f)
		}
	}
}

// FuzzELF gives hostile files to the parser: it must neither panic nor read outside of
// the file nor invent a name.
func FuzzELF(f *testing.F) {
	for _, name := range []string{"amd64", "386", "s390x", "arm64"} {
		m := platform(f, name)
		f.Add([]byte(m.bytes()))
		m.loader = "/lib64/ld-linux-x86-64.so.2\x00"
		f.Add([]byte(m.bytes()))
		m.loaderAt = 1<<64 - 2
		f.Add([]byte(m.bytes()))
		m.phnum = 0xffff
		f.Add([]byte(m.bytes()))
		m.phoff = -1
		f.Add([]byte(m.bytes()))
	}
	f.Add([]byte(elfMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		size := int64(len(b))
		h, broken := parseHeader(string(b[:min(len(b), headSize)]), size)
		if broken != "" {
			return
		}
		name, ok, found := h.interpreter(bytes.NewReader(b), size)
		if found.errno != 0 && (found.cause == "" || ok) {
			t.Errorf("finding without words or with a name: %+v %q", found, name)
		}
		if !bytes.Contains(b, []byte(name)) || strings.IndexByte(name, 0) >= 0 {
			t.Errorf("the loader's name %q is not in the file", name)
		}
		if h.name() == "" {
			t.Error("a machine without a name")
		}
	})
}
