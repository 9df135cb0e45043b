package execfail

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	elfMagic = "\x7fELF"

	// Sizes of the 64-bit and the 32-bit structures.
	headerSize64, headerSize32   = 64, 52
	programSize64, programSize32 = 56, 32

	// nativeHeaderSize is what the kernel reads of an ELF loader.
	nativeHeaderSize = headerSize32 + (headerSize64-headerSize32)*(strconv.IntSize/64)

	// maxPrograms is the size of all program headers that the kernel accepts (load_elf_phdrs in fs/binfmt_elf.c).
	maxPrograms = 64 << 10

	typeRelocatable, typeExecutable, typeDynamic, typeCore = 1, 2, 3, 4
	programInterpreter                                     = 3 // PT_INTERP
)

// header is what exec looks at in an ELF header.
type header struct {
	order   binary.ByteOrder
	wide    bool // 64 bits
	machine uint16
	phoff   uint64
	phsize  uint16
	phnum   uint16
}

// parseHeader reads an ELF header. The second result is not empty if no kernel executes the file: it completes "it is …".
func parseHeader(head []byte, size int64) (header, string) {
	var h header
	if len(head) < headerSize32 {
		return h, fmt.Sprintf("a truncated ELF file of %d bytes", size)
	}
	switch head[4] {
	case 1:
	case 2:
		h.wide = true
	default:
		return h, fmt.Sprintf("a corrupt ELF file (its class is %d, neither 32 nor 64 bits)", head[4])
	}
	switch head[5] {
	case 1:
		h.order = binary.LittleEndian
	case 2:
		h.order = binary.BigEndian
	default:
		return h, fmt.Sprintf("a corrupt ELF file (its byte order is %d, neither little nor big endian)", head[5])
	}
	if h.wide && len(head) < headerSize64 {
		return h, fmt.Sprintf("a truncated ELF file of %d bytes", size)
	}
	h.machine = h.order.Uint16(head[18:])
	if h.wide {
		h.phoff, h.phsize, h.phnum = h.order.Uint64(head[32:]), h.order.Uint16(head[54:]), h.order.Uint16(head[56:])
	} else {
		h.phoff, h.phsize, h.phnum = uint64(h.order.Uint32(head[28:])), h.order.Uint16(head[42:]), h.order.Uint16(head[44:])
	}
	switch kind := h.order.Uint16(head[16:]); kind {
	case typeExecutable, typeDynamic:
		return h, ""
	case typeRelocatable:
		return h, "an object file that was not linked"
	case typeCore:
		return h, "a core dump"
	default:
		return h, fmt.Sprintf("a corrupt ELF file (its type is %d)", kind)
	}
}

// programSize is the size of one program header.
func (h *header) programSize() int {
	if h.wide {
		return programSize64
	}
	return programSize32
}

// interpreter returns the name of the ELF loader, nil if the program needs none. The cause of a finding completes "it is …".
func (h *header) interpreter(r io.ReaderAt, size int64) ([]byte, finding) {
	corrupt := func(format string, args ...any) ([]byte, finding) {
		return nil, finding{errno: unix.ENOEXEC, cause: "a corrupt ELF file (" + fmt.Sprintf(format, args...) + ")"}
	}
	each := h.programSize()
	total := each * int(h.phnum)
	switch {
	case int(h.phsize) != each:
		return corrupt("its program headers have %d bytes, not %d", h.phsize, each)
	case h.phnum == 0:
		return corrupt("it has no program headers")
	case total > maxPrograms:
		return corrupt("it has %d program headers", h.phnum)
	case h.phoff > uint64(size) || uint64(size)-h.phoff < uint64(total):
		return nil, finding{
			errno: unix.ENOEXEC,
			cause: fmt.Sprintf("a truncated ELF file of %d bytes (its program headers are beyond the end)", size),
		}
	}
	table := make([]byte, total)
	if _, err := r.ReadAt(table, int64(h.phoff)); err != nil && err != io.EOF {
		return nil, finding{}
	}
	for ; len(table) > 0; table = table[each:] {
		if h.order.Uint32(table) != programInterpreter {
			continue
		}
		var off, length uint64
		if h.wide {
			off, length = h.order.Uint64(table[8:]), h.order.Uint64(table[32:])
		} else {
			off, length = uint64(h.order.Uint32(table[4:])), uint64(h.order.Uint32(table[16:]))
		}
		if length < 2 || length > unix.PathMax {
			return corrupt("the name of its ELF loader has %d bytes", length)
		}
		if off > math.MaxInt64 {
			// The kernel's read refuses a negative position.
			return nil, finding{errno: unix.EINVAL, cause: "a corrupt ELF file (the name of its ELF loader is at a negative position)"}
		}
		if off > uint64(size) || uint64(size)-off < length {
			return nil, finding{
				errno: unix.EIO,
				cause: fmt.Sprintf("a truncated ELF file of %d bytes (the name of its ELF loader is beyond the end)", size),
			}
		}
		name := make([]byte, length)
		if _, err := r.ReadAt(name, int64(off)); err != nil && err != io.EOF {
			return nil, finding{}
		}
		if name[length-1] != 0 {
			return corrupt("the name of its ELF loader does not end")
		}
		return name[:bytes.IndexByte(name, 0)], finding{}
	}
	return nil, finding{}
}

// name is the platform of a program, spelled as image platforms are.
func (h *header) name() string {
	little := h.order == binary.LittleEndian
	pick := func(wide, narrow string) string {
		if h.wide {
			return wide
		}
		return narrow
	}
	ends := func(name, little32 string) string {
		if little {
			return name + little32
		}
		return name
	}
	unusual := func(name string, ok bool) string {
		if ok {
			return name
		}
		size, order := "32-bit", "big-endian"
		if h.wide {
			size = "64-bit"
		}
		if little {
			order = "little-endian"
		}
		return size + " " + order + " " + name
	}
	switch h.machine {
	case 2, 18:
		return "sparc"
	case 3:
		return unusual("386", little && !h.wide)
	case 4:
		return "m68k"
	case 8:
		return ends(pick("mips64", "mips"), pick("le", "le"))
	case 15:
		return "parisc"
	case 20:
		return ends("ppc", "le")
	case 21:
		return unusual(ends("ppc64", "le"), h.wide)
	case 22:
		return unusual(pick("s390x", "s390"), !little)
	case 40:
		return unusual("arm", little && !h.wide)
	case 42:
		return "sh"
	case 43:
		return "sparc64"
	case 50:
		return "ia64"
	case 62:
		if !h.wide && little {
			return "x32 (32-bit amd64)"
		}
		return unusual("amd64", little && h.wide)
	case 183:
		return unusual("arm64", little && h.wide)
	case 243:
		return unusual(pick("riscv64", "riscv32"), little)
	case 247:
		return "bpf"
	case 258:
		return unusual(pick("loong64", "loong32"), little)
	case 0x9026:
		return "alpha"
	}
	return fmt.Sprintf("ELF machine %d", h.machine)
}

// machine names this machine in the same spelling: uname tells, because fdinit itself may be a 32-bit program.
func (p *probe) machine() string {
	if p.native != "" {
		return p.native
	}
	p.native = runtime.GOARCH
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return p.native
	}
	switch m := unix.ByteSliceToString(u.Machine[:]); {
	case m == "x86_64":
		p.native = "amd64"
	case m == "aarch64":
		p.native = "arm64"
	case len(m) == 4 && m[0] == 'i' && m[2:] == "86":
		p.native = "386"
	case strings.HasPrefix(m, "armv"):
		p.native = "arm"
	case m == "loongarch64":
		p.native = "loong64"
	case m == "riscv64", m == "s390x", m == "ppc64", m == "ppc64le":
		p.native = m
	}
	return p.native
}

// ability tells whether a machine runs programs of a platform without emulation.
type ability int

const (
	foreign ability = iota
	depends         // on the processor and on how the kernel is built: only the kernel's answer tells
	same
)

func runs(machine, program string) ability {
	if machine == program || program == runtime.GOARCH {
		return same
	}
	for _, family := range [][]string{
		{"amd64", "386", "x32 (32-bit amd64)"},
		{"arm64", "arm"},
		{"ppc64", "ppc"},
		{"s390x", "s390"},
		{"riscv64", "riscv32"},
		{"loong64", "loong32"},
		{"mips64", "mips"},
		{"mips64le", "mipsle"},
	} {
		var m, p bool
		for _, name := range family {
			m, p = m || name == machine, p || name == program
		}
		if m && p {
			return depends
		}
	}
	return foreign
}

// loaderOf tells from the name of an ELF loader which C library a program was built for, and what to do if there is none.
func loaderOf(path string) (libc, remedy string) {
	name := base(path)
	switch {
	case strings.HasPrefix(name, "ld-musl-"):
		libc = "musl, the C library of Alpine"
	case strings.HasPrefix(path, "/nix/store/"), strings.HasPrefix(path, "/gnu/store/"):
		return "Nix or Guix", "include its whole closure or link it statically"
	case strings.HasPrefix(name, "ld-linux"), strings.HasPrefix(name, "ld64.so."), name == "ld.so.1":
		libc = "glibc"
	case strings.HasPrefix(name, "ld-uClibc"), strings.HasPrefix(name, "ld64-uClibc"):
		libc = "uClibc"
	case name == "linker", name == "linker64":
		return "Android", "use a build for Linux"
	case name == "ld-elf.so.1":
		return "FreeBSD", "use a build for Linux"
	default:
		return "", "install it or link the program statically"
	}
	return libc, "use an image with that C library or link the program statically"
}
