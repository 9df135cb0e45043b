package execfail

import (
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
	shebangUnnamed // no name and no newline: the kernel opens the empty name
)

// parseShebang finds the interpreter in the head of a script as load_script in
// fs/binfmt_script.c does: blanks are spaces and tabs only, so a carriage return is
// part of the name, and a missing newline is fine as long as the name ends.
func parseShebang(head string) (string, shebang) {
	line, whole := head[2:], len(head) == headSize
	if i := strings.IndexAny(line, "\n\x00"); i >= 0 && line[i] == '\n' {
		name := strings.TrimLeft(line[:i], " \t")
		if i := strings.IndexAny(name, " \t"); i >= 0 {
			name = name[:i]
		}
		if name == "" {
			return "", shebangEmpty
		}
		return name, shebangFine
	}
	// The rest of the kernel's buffer is NULs if the file is shorter, and a NUL ends
	// the name as well.
	rest := strings.TrimLeft(line, " \t")
	i := strings.IndexAny(rest, " \t\x00")
	if i < 0 {
		i = len(rest)
		if whole && i == 0 {
			return "", shebangEmpty
		}
		if whole {
			return "", shebangLong
		}
	}
	if i == 0 {
		return "", shebangUnnamed
	}
	return rest[:i], shebangFine
}

// formats are the beginnings of files that Linux does not execute by itself but that
// people try to.
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
func unknownFormat(head, subject string) finding {
	f := finding{errno: unix.ENOEXEC}
	switch {
	case len(head) == 0:
		f.cause = subject + " is empty (0 bytes)"
		return f
	case strings.HasPrefix(head, "\xef\xbb\xbf#!"):
		f.cause = subject + " has a UTF-8 byte order mark before its #!"
		f.remedy = "save it without the byte order mark"
		return f
	case strings.HasPrefix(head, "\xff\xfe#\x00!\x00"), strings.HasPrefix(head, "\xfe\xff\x00#\x00!"):
		f.cause = subject + " is encoded in UTF-16"
		f.remedy = "save it as UTF-8 without a byte order mark"
		return f
	case strings.HasPrefix(strings.TrimLeft(head, " \t\r\n"), "#!"):
		f.cause = subject + " has blanks or empty lines before its #!"
		f.remedy = "let it start with #!"
		return f
	case strings.HasPrefix(head, "\xca\xfe\xba\xbe") && len(head) >= 8:
		// Java took the magic number of macOS's universal binaries. What follows is a
		// count there, a version here; the oldest version of a class file is 45.
		f.cause = subject + " is a Java class file"
		if head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] < 45 {
			f.cause = subject + " is a macOS program"
		}
		return f
	}
	for _, format := range formats {
		if strings.HasPrefix(head, format.magic) {
			f.cause = subject + " is " + format.name
			return f
		}
	}
	f.shell = true
	f.cause = subject + " has no #! line and is not an ELF program"
	first, _, _ := strings.Cut(head, "\n")
	if strings.Contains(first, "\x00") || !utf8.ValidString(withoutPartialRune(first)) {
		f.cause = subject + " is a binary file of unknown format"
	}
	return f
}

// withoutPartialRune drops the bytes of a rune that the end of the head may have cut.
func withoutPartialRune(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if last := s[len(s)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRuneInString(last) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}
