package execfail

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// shebang is what can be wrong with a #! line by itself.
type shebang int

const (
	shebangFine shebang = iota
	shebangLong         // the interpreter's path does not end within what the kernel reads
	shebangEmpty
)

// parseShebang finds the interpreter in the head of a script as load_script in fs/binfmt_script.c does: blanks are
// spaces and tabs only, so a carriage return is part of the name, and a missing newline is fine as long as the name
// ends. An empty name that the kernel nevertheless opens is returned as empty but not nil.
func parseShebang(head []byte) ([]byte, shebang) {
	var buf [headSize]byte // the kernel's buffer, padded with NULs
	copy(buf[:], head)
	line := buf[2:]
	if i := bytes.IndexAny(line, "\n\x00"); i >= 0 && line[i] == '\n' {
		name := bytes.Trim(line[:i], " \t")
		if i := bytes.IndexAny(name, " \t"); i >= 0 {
			name = name[:i]
		}
		if len(name) == 0 {
			return nil, shebangEmpty
		}
		return name, shebangFine
	}
	// The kernel looks for the end of the name up to and including the last byte of its buffer.
	rest := bytes.TrimLeft(buf[2:], " \t")
	if len(rest) == 0 {
		return nil, shebangEmpty
	}
	i := bytes.IndexAny(rest, " \t\x00")
	switch {
	case i < 0:
		return nil, shebangLong
	case i == 0:
		return rest[:0], shebangEmpty
	}
	return rest[:i], shebangFine
}

// formats are the beginnings of files that Linux does not execute by itself but that people try to.
var formats = []struct{ magic, name string }{
	{"MZ", "a Windows program"},
	{"\xfe\xed\xfa\xce", "a macOS program"},
	{"\xfe\xed\xfa\xcf", "a macOS program"},
	{"\xce\xfa\xed\xfe", "a macOS program"},
	{"\xcf\xfa\xed\xfe", "a macOS program"},
	{"!<arch>\n", "a static library"},
	{"\x00asm", "a WebAssembly module"},
	{"PK\x03\x04", "a ZIP or JAR archive"},
	{"\x1f\x8b", "compressed with gzip"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd"},
	{"\xfd7zXZ\x00", "compressed with xz"},
}

// unknownFormat words a file that is neither ELF nor starts with #!.
func unknownFormat(head []byte, subject string) finding {
	f := finding{errno: unix.ENOEXEC}
	s := string(head)
	switch {
	case len(head) == 0:
		f.cause = subject + " is empty (0 bytes)"
		return f
	case strings.HasPrefix(s, "\xef\xbb\xbf#!"):
		f.cause = subject + " has a UTF-8 byte order mark before its #!"
		f.remedy = "save it without the byte order mark"
		return f
	case strings.HasPrefix(s, "\xff\xfe#\x00!\x00"), strings.HasPrefix(s, "\xfe\xff\x00#\x00!"):
		f.cause = subject + " is encoded in UTF-16"
		f.remedy = "save it as UTF-8 without a byte order mark"
		return f
	case strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "#!"):
		f.cause = subject + " has blanks or empty lines before its #!"
		f.remedy = "let it start with #!"
		return f
	case strings.HasPrefix(s, "\xca\xfe\xba\xbe") && len(head) >= 8:
		// Java took the magic number of macOS's universal binaries. What follows is a count there, a version here; the
		// oldest version of a class file is 45.
		f.cause = subject + " is a Java class file"
		if binary.BigEndian.Uint32(head[4:]) < 45 {
			f.cause = subject + " is a macOS program"
		}
		return f
	}
	for _, format := range formats {
		if strings.HasPrefix(s, format.magic) {
			f.cause = subject + " is " + format.name
			return f
		}
	}
	f.shell = true
	f.cause = subject + " has no #! line and is not an ELF program"
	if first, _, _ := bytes.Cut(head, []byte("\n")); bytes.IndexByte(first, 0) >= 0 || !utf8.Valid(trimPartialRune(first)) {
		f.cause = fmt.Sprintf("%s is a binary file of unknown format (it starts with % x)", subject, head[:min(4, len(head))])
	}
	return f
}

// trimPartialRune drops the bytes of a rune that the end of the head may have cut.
func trimPartialRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
