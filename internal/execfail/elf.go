package execfail

import (
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/fdinit/fdinit/internal/ascii"
	"golang.org/x/sys/unix"
)

const (
	elfMagic = "\x7fELF"

	// Sizes of the 64-bit and the 32-bit structures.
	headerSize64, headerSize32   = 64, 52
	programSize64, programSize32 = 56, 32

	// nativeHeaderSize is what the kernel reads of an ELF loader.
	nativeHeaderSize = headerSize32 + (headerSize64-headerSize32)*(strconv.IntSize/64)

	// maxPrograms is the size of all program headers that the kernel accepts
	// (load_elf_phdrs in fs/binfmt_elf.c).
	maxPrograms = 64 << 10

	typeRelocatable, typeExecutable, typeDynamic, typeCore = 1, 2, 3, 4
	programInterpreter                                     = 3 // PT_INTERP
)

// header is what exec looks at in an ELF header.
type header struct {
	big     bool // big-endian
	wide    bool // 64 bits
	machine uint16
	phoff   uint64
	phsize  uint16
	phnum   uint16
}

// parseHeader reads an ELF header. The second result is not empty if no kernel executes
// the file: it completes "it is …".
func parseHeader(head string, size int64) (header, string) {
	var h header
	if len(head) < headerSize32 {
		return h, truncated(size)
	}
	switch head[4] {
	case 1:
	case 2:
		h.wide = true
	default:
		return h, corrupt("its class is " + decimal(int(head[4])) + ", neither 32 nor 64 bits")
	}
	switch head[5] {
	case 1:
	case 2:
		h.big = true
	default:
		return h, corrupt("its byte order is " + decimal(int(head[5])) + ", neither little nor big endian")
	}
	if h.wide && len(head) < headerSize64 {
		return h, truncated(size)
	}
	h.machine = uint16(h.read(head, 18, 2))
	if h.wide {
		h.phoff, h.phsize, h.phnum = h.read(head, 32, 8), uint16(h.read(head, 54, 2)), uint16(h.read(head, 56, 2))
	} else {
		h.phoff, h.phsize, h.phnum = h.read(head, 28, 4), uint16(h.read(head, 42, 2)), uint16(h.read(head, 44, 2))
	}
	switch kind := h.read(head, 16, 2); kind {
	case typeExecutable, typeDynamic:
		return h, ""
	case typeRelocatable:
		return h, "an object file that was not linked"
	case typeCore:
		return h, "a core dump"
	default:
		return h, corrupt("its type is " + decimal(kind))
	}
}

// read reads a number of so many bytes.
//
//go:noinline
func (h *header) read(s string, at, bytes int) uint64 {
	var n uint64
	for i := range bytes {
		if h.big {
			n = n<<8 | uint64(s[at+i])
		} else {
			n |= uint64(s[at+i]) << (8 * i)
		}
	}
	return n
}

//go:noinline
func corrupt(how string) string { return "a corrupt ELF file (" + how + ")" }

//go:noinline
func truncated(size int64) string { return "a truncated ELF file of " + decimal(size) + " bytes" }

// interpreter returns the name of the ELF loader, if the program needs one. The cause
// of a finding completes "it is …".
func (h *header) interpreter(r io.ReaderAt, size int64) (string, bool, finding) {
	bad := func(errno syscall.Errno, cause string) (string, bool, finding) {
		return "", false, finding{errno: errno, cause: cause}
	}
	each := programSize32
	if h.wide {
		each = programSize64
	}
	total := each * int(h.phnum)
	switch {
	case int(h.phsize) != each:
		return bad(unix.ENOEXEC, corrupt("its program headers have "+decimal(int(h.phsize))+" bytes, not "+decimal(each)))
	case h.phnum == 0:
		return bad(unix.ENOEXEC, corrupt("it has no program headers"))
	case total > maxPrograms:
		return bad(unix.ENOEXEC, corrupt("it has "+decimal(int(h.phnum))+" program headers"))
	case h.phoff > uint64(size) || uint64(size)-h.phoff < uint64(total):
		return bad(unix.ENOEXEC, truncated(size)+" (its program headers are beyond the end)")
	}
	table, ok := readString(r, total, int64(h.phoff))
	if !ok {
		return bad(0, "")
	}
	for ; table != ""; table = table[each:] {
		if h.read(table, 0, 4) != programInterpreter {
			continue
		}
		var off, length uint64
		if h.wide {
			off, length = h.read(table, 8, 8), h.read(table, 32, 8)
		} else {
			off, length = h.read(table, 4, 4), h.read(table, 16, 4)
		}
		switch {
		case length < 2 || length > unix.PathMax:
			return bad(unix.ENOEXEC, corrupt("the name of its ELF loader has "+decimal(length)+" bytes"))
		case off > math.MaxInt64:
			// The kernel's read refuses a negative position.
			return bad(unix.EINVAL, corrupt("the name of its ELF loader is at a negative position"))
		case off > uint64(size) || uint64(size)-off < length:
			return bad(unix.EIO, truncated(size)+" (the name of its ELF loader is beyond the end)")
		}
		name, ok := readString(r, int(length), int64(off))
		if !ok {
			return bad(0, "")
		}
		if name[length-1] != 0 {
			return bad(unix.ENOEXEC, corrupt("the name of its ELF loader does not end"))
		}
		return name[:strings.IndexByte(name, 0)], true, finding{}
	}
	return bad(0, "")
}

// readString reads so many bytes, which the size of the file promises.
func readString(r io.ReaderAt, length int, at int64) (string, bool) {
	b := make([]byte, length)
	n, _ := r.ReadAt(b, at)
	return string(b), n == length
}

// platforms are the known values of e_machine and the names of the platforms, spelled
// as those of images are, by class and byte order. Combinations that do not exist are
// empty.
var platforms = [...]struct {
	machine                          uint16
	little32, little64, big32, big64 string
}{
	{2, "", "", "sparc", ""},
	{3, "386", "", "", ""},
	{4, "", "", "m68k", ""},
	{8, "mipsle", "mips64le", "mips", "mips64"},
	{15, "", "", "hppa", "hppa64"},
	{18, "", "", "sparc", ""},
	{20, "ppcle", "", "ppc", ""},
	{21, "", "ppc64le", "", "ppc64"},
	{22, "", "", "s390", "s390x"},
	{40, "arm", "", "armbe", ""},
	{42, "sh4", "", "sh4eb", ""},
	{43, "", "", "", "sparc64"},
	{50, "", "ia64", "", ""},
	{62, x32, "amd64", "", ""},
	{183, "arm64 with 32-bit pointers", "arm64", "", "arm64be"},
	{243, "riscv32", "riscv64", "", ""},
	{247, "", "bpf", "", "bpf"},
	{258, "loong32", "loong64", "", ""},
	{0x9026, "", "alpha", "", ""},
}

const x32 = "x32 (32-bit amd64)"

// name is the platform of a program.
func (h *header) name() string {
	size, order := "32-bit ", "little-endian "
	for i := range platforms {
		p := &platforms[i]
		if p.machine != h.machine {
			continue
		}
		name := p.little32
		switch {
		case h.wide && h.big:
			name = p.big64
		case h.wide:
			name = p.little64
		case h.big:
			name = p.big32
		}
		if name != "" {
			return name
		}
		break
	}
	if h.wide {
		size = "64-bit "
	}
	if h.big {
		order = "big-endian "
	}
	return size + order + "ELF machine " + decimal(int(h.machine))
}

// machine names this machine in the same spelling: uname tells, because fdinit itself
// may be a 32-bit program.
func (p *probe) machine() string {
	if p.native != "" {
		return p.native
	}
	p.native = runtime.GOARCH
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return p.native
	}
	if name := platformOf(unix.ByteSliceToString(u.Machine[:])); name != "" {
		p.native = name
	}
	return p.native
}

// platformOf is the platform of a machine that uname names so, empty if that does not
// tell: MIPS machines of either byte order have the same name.
func platformOf(machine string) string {
	switch {
	case machine == "x86_64":
		return "amd64"
	case machine == "aarch64":
		return "arm64"
	case len(machine) == 4 && machine[0] == 'i' && machine[2:] == "86":
		return "386"
	case strings.HasPrefix(machine, "armv"):
		return "arm"
	case machine == "loongarch64":
		return "loong64"
	case machine == "riscv64", machine == "s390x", machine == "ppc64", machine == "ppc64le":
		return machine
	}
	return ""
}

// ability tells whether a machine runs programs of a platform without emulation.
type ability int

const (
	foreign ability = iota
	depends         // on processor and kernel: only the kernel's answer tells
	same
)

// families are platforms and those that the same processor may or may not run as well.
var families = [...][3]string{
	{"amd64", "386", x32},
	{"arm64", "arm"},
	{"ppc64", "ppc"},
	{"s390x", "s390"},
	{"riscv64", "riscv32"},
	{"loong64", "loong32"},
	{"mips64", "mips"},
	{"mips64le", "mipsle"},
}

func runs(machine, program string) ability {
	if machine == program || program == runtime.GOARCH {
		return same
	}
	for i := range families {
		var m, p bool
		for _, name := range &families[i] {
			m, p = m || name == machine, p || name == program
		}
		if m && p {
			return depends
		}
	}
	return foreign
}

// loaderOf tells from the name of an ELF loader which C library a program was built
// for, and what to do if there is none.
func loaderOf(path string) (libc, remedy string) {
	name := ascii.Base(path)
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
