package execfail

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func TestParseShebang(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		line, want string
		bad        shebang
	}{
		{"#!/bin/sh\n", "/bin/sh", shebangFine},
		{"#!/bin/sh", "/bin/sh", shebangFine},
		{"#! \t/bin/sh \t\n", "/bin/sh", shebangFine},
		{"#!/bin/sh -e\nexit\n", "/bin/sh", shebangFine},
		{"#!/bin/sh\t-e", "/bin/sh", shebangFine},
		{"#!/bin/sh\r\n", "/bin/sh\r", shebangFine},
		{"#!/bin/sh -e\r\n", "/bin/sh", shebangFine},
		{"#!\r\n", "\r", shebangFine},
		{"#!\n", "", shebangEmpty},
		{"#!  \t\n/bin/sh\n", "", shebangEmpty},
		{"#!", "", shebangUnnamed},
		{"#!  ", "", shebangUnnamed},
		{"#!" + strings.Repeat(" ", 300), "", shebangEmpty},
		{"#!/" + long, "", shebangLong},
		{"#!/" + long + "\n", "", shebangLong},
		{"#!/bin/sh " + long + "\n", "/bin/sh", shebangFine},
		{"#!/" + long[:252] + "\n", "/" + long[:252], shebangFine},
	} {
		got, bad := parseShebang(c.line[:min(len(c.line), headSize)])
		if got != c.want || bad != c.bad {
			t.Errorf("%.40q: %q %d, expected %q %d", c.line, got, bad, c.want, c.bad)
		}
	}
}

// FuzzShebang checks what any interpreter must fulfil, whatever the line.
func FuzzShebang(f *testing.F) {
	for _, s := range []string{
		"#!/bin/sh\n", "#! /usr/bin/env -S a b\n", "#!\n", "#!", "#!\r\n", "#!\x00\n", "#!/bin/sh\r\n", "#!   ",
		"#!" + strings.Repeat("x", 255), "#!" + strings.Repeat(" ", 252) + "x\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		line := "#!" + string(b)
		line = line[:min(len(line), headSize)]
		name, bad := parseShebang(line)
		switch {
		case (name == "") != (bad != shebangFine):
			t.Errorf("name %q with %d", name, bad)
		case strings.ContainsAny(name, " \t\n\x00"):
			t.Errorf("name %q does not end where it should", name)
		case !strings.HasPrefix(strings.TrimLeft(line[2:], " \t"), name):
			t.Errorf("name %q is not the first word of %q", name, line)
		}
	})
}

// FuzzUnknownFormat checks that any content is worded on one line.
func FuzzUnknownFormat(f *testing.F) {
	for _, s := range []string{"", "MZ", "\xef\xbb\xbf#!", "\xca\xfe\xba\xbe\x00\x00\x00\x02", "\xca\xfe\xba\xbe\x00\x00\x00\x34", "echo\n", "\x00", "é"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := unknownFormat(string(b[:min(len(b), headSize)]), "it")
		if got.cause == "" || got.errno == 0 || strings.ContainsAny(got.cause, "\n\r\x00") {
			t.Errorf("%q: %+v", b, got)
		}
	})
}

func TestUnknownFormats(t *testing.T) {
	for content, want := range map[string]string{
		"":                                        "it is empty (0 bytes)",
		"MZ\x90\x00":                              "it is a Windows program",
		"\xcf\xfa\xed\xfe\x07\x00\x00\x01":        "it is a macOS program",
		"\xca\xfe\xba\xbe\x00\x00\x00\x02":        "it is a macOS program",
		"\xca\xfe\xba\xbe\x00\x00\x00\x41":        "it is a Java class file",
		"PK\x03\x04":                              "it is a ZIP or JAR archive",
		"\xef\xbb\xbf#!/bin/sh\n":                 "it has a UTF-8 byte order mark before its #!",
		"\xff\xfe#\x00!\x00":                      "it is encoded in UTF-16",
		"\n#!/bin/sh\n":                           "it has blanks or empty lines before its #!",
		"echo hi\n":                               "it has no #! line and is not an ELF program",
		"# Grüße\n":                               "it has no #! line and is not an ELF program",
		strings.Repeat("x", headSize-1) + "\xc3":  "it has no #! line and is not an ELF program",
		"\x01\x02\x00\x04\x05":                    "it is a binary file of unknown format",
		"\xff\xff\xff\xff binary but on one line": "it is a binary file of unknown format",
	} {
		if got := unknownFormat(content, "it").cause; got != want {
			t.Errorf("%.20q: %q, expected %q", content, got, want)
		}
	}
}

func TestParseMountInfo(t *testing.T) {
	table := `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 22 0:26 / /mnt/my\040disk rw,nosuid,noexec,relatime shared:5 - tmpfs tmpfs rw
32 22 0:27 / /b rw,relatime - tmpfs tmpfs rw,noexec
broken
33
34 22 0:28 / /no break rw,noexec - tmpfs tmpfs rw
`
	for id, want := range map[uint64]string{22: "", 31: "/mnt/my disk", 32: "", 33: "", 3: "", 34: "/no break"} {
		if got := parseMountInfo(table, id); got != want {
			t.Errorf("mount %d: %q, expected %q", id, got, want)
		}
	}
}

func FuzzMountInfo(f *testing.F) {
	f.Add([]byte("31 22 0:26 / /a\\040b rw,noexec - tmpfs tmpfs rw\n"), uint64(31))
	f.Add([]byte("31 22 0:26 / \\ noexec"), uint64(31))
	f.Add([]byte("31 22 0:26 / \\999 noexec"), uint64(31))
	f.Fuzz(func(t *testing.T, b []byte, id uint64) {
		if got := parseMountInfo(string(b), id); got != "" && !bytes.Contains(b, []byte("noexec")) {
			t.Errorf("%q from a table without noexec", got)
		}
	})
}

func TestParseCapabilities(t *testing.T) {
	words := func(w ...uint32) []byte {
		var b []byte
		for _, v := range w {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	for _, c := range []struct {
		b    []byte
		want fileCaps
		ok   bool
	}{
		{words(0x02000001, 1<<13, 0, 1<<8, 2), fileCaps{1<<13 | 1<<40, 2 << 32, true}, true},
		{words(0x01000000, 1<<13, 4), fileCaps{1 << 13, 4, false}, true},
		{words(0x03000001, 1<<13, 0, 0, 0, 1000), fileCaps{1 << 13, 0, true}, true},
		{words(0x02000001, 1<<13, 0), fileCaps{}, false},
		{words(0x04000001, 1, 2, 3, 4), fileCaps{}, false},
		{nil, fileCaps{}, false},
	} {
		got, ok := parseCapabilities(c.b)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("% x: %+v %t, expected %+v %t", c.b, got, ok, c.want, c.ok)
		}
	}
}

func FuzzCapabilities(f *testing.F) {
	f.Add([]byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := parseCapabilities(b); ok && len(b) < 20 && c.permitted>>32 != 0 {
			t.Errorf("% x: more than there is: %+v", b, c)
		}
	})
}

func TestParseLabel(t *testing.T) {
	for in, want := range map[string]string{
		"docker-default (enforce)\n":                 "docker-default (enforce)",
		"system_u:system_r:container_t:s0:c1,c2\x00": "system_u:system_r:container_t:s0:c1,c2",
		"unconfined\n":                               "",
		"docker-default (complain)\n":                "",
		"":                                           "",
		"\x00":                                       "",
		"system_u:system_r:a_t:s0\nsecond line: ignored": "system_u:system_r:a_t:s0",
	} {
		if got := parseLabel(in); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
	}
}

func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"/bin/sh":                 "/bin/sh",
		"":                        `""`,
		"ls -l":                   `"ls -l"`,
		"/bin/sh\r":               `"/bin/sh\r"`,
		"a\x1b[31m":               `"a\x1b[31m"`,
		"/größe":                  "/größe",
		"\xff":                    `"\xff"`,
		strings.Repeat("x", 1000): strings.Repeat("x", maxShown) + "...",
	} {
		if got := show(in); got != want {
			t.Errorf("%q: %s, expected %s", in, got, want)
		}
	}
}

func TestDirectoryOf(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for in, want := range map[string]string{"/a/b/run": "/a/b", "/run": "/", "a/run": "a", "./run": ".", "run": dir} {
		if got := directoryOf(in); got != want {
			t.Errorf("of %q: %q, expected %q", in, got, want)
		}
	}
}

func TestParent(t *testing.T) {
	for in, want := range map[string]string{"/": "/", "/a": "/", "/a/b": "/a", "a": "", "a/b": "a", "": "..", "..": "../..", "../a": ".."} {
		if got := parent(in); got != want {
			t.Errorf("above %q: %q, expected %q", in, got, want)
		}
	}
}
