package execfail

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Each test builds a file that cannot be executed, lets the kernel say so, and compares
// the words. Together they are the list of what is explained. DIR stands for the
// directory of the test.

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	put(t, 0o644, "", dir, "file")
	makeLink(t, "nowhere", dir, "dangling")
	makeLink(t, "dangling", dir, "twice")
	makeLink(t, "/no/such/dir", dir, "dirlink")
	makeLink(t, "loop2", dir, "loop1")
	makeLink(t, "loop1", dir, "loop2")
	makeLink(t, ".", dir, "here")
	for _, c := range []struct {
		command string
		errno   syscall.Errno
		want    string
	}{
		{"", unix.ENOENT, `exec "": no such file or directory: the command is an empty word`},
		{dir + "/run", unix.ENOENT, "exec DIR/run: no such file or directory"},
		{dir + "/a/b/run", unix.ENOENT, "exec DIR/a/b/run: no such file or directory: the directory DIR/a does not exist"},
		{dir + "/here/a/run", unix.ENOENT, "exec DIR/here/a/run: no such file or directory: the directory DIR/a does not exist"},
		{dir + "/file/run", unix.ENOTDIR, "exec DIR/file/run: not a directory: DIR/file is not a directory"},
		{dir + "/file/", unix.ENOTDIR, "exec DIR/file/: not a directory: DIR/file is not a directory"},
		{dir + "/dangling", unix.ENOENT, "exec DIR/dangling: no such file or directory: it is a symbolic link to nowhere, which does not exist"},
		{dir + "/twice", unix.ENOENT, "exec DIR/twice: no such file or directory: it is a symbolic link that leads to DIR/nowhere, which does not exist"},
		{dir + "/dirlink/run", unix.ENOENT, "exec DIR/dirlink/run: no such file or directory: DIR/dirlink is a symbolic link to /no/such/dir, which does not exist"},
		{dir + "/loop1", unix.ELOOP, "exec DIR/loop1: too many levels of symbolic links: the symbolic link DIR/loop1 leads back to itself"},
		{dir + "/" + strings.Repeat("n", 256), unix.ENAMETOOLONG, "exec DIR/" + strings.Repeat("n", 256) + ": file name too long: the name " + strings.Repeat("n", 256) + " has 256 bytes, more than its file system allows"},
		{dir + "/my program --flag", unix.ENOENT, `exec "DIR/my program --flag": no such file or directory`},
	} {
		check(t, dir, Attempt{Command: c.command}, c.errno, c.want)
	}
	long := dir + strings.Repeat("/.", 2100)
	got := Explain(Attempt{Command: long, Errno: try(Attempt{Command: long})})
	if want := fmt.Sprintf("file name too long: the path has %d bytes, at most 4095 are allowed", len(long)); !strings.HasSuffix(got.String(), want) {
		t.Errorf("%s", got)
	}
}

func TestManySymbolicLinks(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	put(t, 0o755, "#!/bin/sh\n", dir, "0")
	for i := range 41 {
		makeLink(t, fmt.Sprint(i), dir, fmt.Sprint(i+1))
	}
	check(t, dir, Attempt{Command: dir + "/41"}, unix.ELOOP, "exec DIR/41: too many levels of symbolic links: more than 40 symbolic links lead to it")
}

func TestRelative(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	put(t, 0o755, "#!lib/interpreter\n", dir, "script")
	makeLink(t, "nowhere", dir, "dangling")
	check(t, dir, Attempt{Command: "bin/run"}, unix.ENOENT, "exec bin/run: no such file or directory: the directory bin does not exist, the working directory is DIR")
	check(t, dir, Attempt{Command: "./run"}, unix.ENOENT, "exec ./run: no such file or directory: the working directory is DIR")
	check(t, dir, Attempt{Command: "./dangling"}, unix.ENOENT, "exec ./dangling: no such file or directory: it is a symbolic link to nowhere, which does not exist")
	check(t, dir, Attempt{Command: "./script"}, unix.ENOENT, "exec ./script: no such file or directory: its interpreter lib/interpreter is missing, the working directory is DIR")
}

func TestSearch(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"one", "two", "three", "home"} {
		makeDir(t, 0o755, dir, sub)
	}
	put(t, 0o644, "#!/bin/sh\n", dir, "one", "tool")
	makeDir(t, 0o755, dir, "one", "folder")
	put(t, 0o755, "#!"+dir+"/none\n", dir, "two", "script")
	put(t, 0o755, "#!/bin/sh\n", dir, "home", "local")
	put(t, 0o755, "#!/bin/sh\n", dir, "three", "fine")
	makeLink(t, "gone", dir, "two", "link")
	put(t, 0o755, "MZ", dir, "two", "both")
	put(t, 0o644, "MZ", dir, "one", "both")
	t.Chdir(filepath.Join(dir, "home"))
	path := dir + "/one:" + dir + "/two/:" + dir + "/three:" + dir + "/one/tool"
	for _, c := range []struct {
		command string
		errno   syscall.Errno
		want    string
	}{
		{"absent", unix.ENOENT, "exec absent: no such file or directory: not found in PATH (DIR/one:DIR/two/:DIR/three:DIR/one/tool)"},
		{"local", unix.ENOENT, "exec local: no such file or directory: not found in PATH (DIR/one:DIR/two/:DIR/three:DIR/one/tool): write ./local to run the one in the working directory"},
		{"tool", unix.EACCES, "exec DIR/one/tool: permission denied: it has no execute permission for anybody (mode 0644, owner UID:GID): make it executable with chmod +x"},
		{"folder", unix.EACCES, "exec DIR/one/folder: permission denied: it is a directory"},
		{"script", unix.ENOENT, "exec DIR/two/script: no such file or directory: its interpreter DIR/none is missing"},
		{"link", unix.ENOENT, "exec DIR/two/link: no such file or directory: it is a symbolic link to gone, which does not exist"},
		{"both", unix.ENOEXEC, "exec DIR/two/both: exec format error: it is a Windows program"},
		{"fine --flag", unix.ENOENT, `exec "fine --flag": no such file or directory: not found in PATH (DIR/one:DIR/two/:DIR/three:DIR/one/tool): give the command fine and its arguments as separate words`},
		{strings.Repeat("n", 256), unix.ENAMETOOLONG, "exec DIR/one/" + strings.Repeat("n", 256) + ": file name too long: the name " + strings.Repeat("n", 256) + " has 256 bytes, more than its file system allows"},
	} {
		check(t, dir, Attempt{Command: c.command, Path: path, PathSet: true}, c.errno, ownedBy(c.want))
	}
	check(t, dir, Attempt{Command: "absent", Path: "/bin:/usr/bin"}, unix.ENOENT, "exec absent: no such file or directory: not found in /bin:/usr/bin, which is searched because PATH is not set")
	check(t, dir, Attempt{Command: "absent", PathSet: true}, unix.ENOENT, "exec absent: no such file or directory: PATH is empty, so only the working directory DIR/home was searched")
	check(t, dir, Attempt{Command: "tool", PathSet: true, Path: ":" + dir + "/one"}, unix.EACCES, ownedBy("exec DIR/one/tool: permission denied: it has no execute permission for anybody (mode 0644, owner UID:GID): make it executable with chmod +x"))
}

// ownedBy fills in the owner of the files that the test makes.
func ownedBy(s string) string {
	return strings.ReplaceAll(s, "UID:GID", fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()))
}

func TestNotARegularFile(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/pipe", 0o777); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// The address of a socket is short; the directory of a test may not be.
	t.Chdir(dir)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "socket"}); err != nil {
		t.Fatal(err)
	}
	put(t, 0o755, "#!"+dir+"\n", dir, "script")
	check(t, dir, Attempt{Command: dir}, unix.EACCES, "exec DIR: permission denied: it is a directory")
	check(t, dir, Attempt{Command: dir + "/pipe"}, unix.EACCES, "exec DIR/pipe: permission denied: it is a named pipe, not a regular file")
	check(t, dir, Attempt{Command: dir + "/socket"}, unix.EACCES, "exec DIR/socket: permission denied: it is a socket, not a regular file")
	check(t, dir, Attempt{Command: "/dev/null"}, unix.EACCES, "exec /dev/null: permission denied: it is a character device, not a regular file")
	check(t, dir, Attempt{Command: dir + "/script"}, unix.EACCES, "exec DIR/script: permission denied: its interpreter DIR is a directory")
}

func TestNoExecutePermission(t *testing.T) {
	dir := t.TempDir()
	put(t, 0o644, "#!/bin/sh\n", dir, "plain")
	put(t, 0o755, "#!"+dir+"/plain\n", dir, "script")
	check(t, dir, Attempt{Command: dir + "/plain"}, unix.EACCES, ownedBy("exec DIR/plain: permission denied: it has no execute permission for anybody (mode 0644, owner UID:GID): make it executable with chmod +x"))
	check(t, dir, Attempt{Command: dir + "/script"}, unix.EACCES, ownedBy("exec DIR/script: permission denied: its interpreter DIR/plain has no execute permission for anybody (mode 0644, owner UID:GID): make it executable with chmod +x"))
}

// reachable makes the directory of a test reachable for every user.
func reachable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOtherUser(t *testing.T) {
	needRoot(t)
	dir := reachable(t)
	put(t, 0o700, "#!/bin/sh\n", dir, "mine")
	put(t, 0o705, "#!/bin/sh\n", dir, "group")
	if err := os.Chown(dir+"/group", 0, 1234); err != nil {
		t.Fatal(err)
	}
	closed := makeDir(t, 0o700, dir, "closed")
	put(t, 0o755, "#!/bin/sh\n", closed, "run")
	makeLink(t, closed, dir, "link")
	put(t, 0o755, "#!"+closed+"/run\n", dir, "script")
	put(t, 0o711, "#!/no/such\n", dir, "unreadable")
	as := []step{{"setuid", "1234"}}
	for _, c := range []struct {
		command string
		errno   syscall.Errno
		want    string
	}{
		{dir + "/mine", unix.EACCES, "exec DIR/mine: permission denied: it may not be executed by uid 1234, gid 1234 (mode 0700, owner 0:0): give this user execute permission (x)"},
		{dir + "/group", unix.EACCES, "exec DIR/group: permission denied: it may not be executed by uid 1234, gid 1234 (mode 0705, owner 0:1234): give this user execute permission (x)"},
		{dir + "/closed/run", unix.EACCES, "exec DIR/closed/run: permission denied: uid 1234, gid 1234 may not search the directory DIR/closed (mode 0700, owner 0:0): give this user search permission (x) on it"},
		{dir + "/link/run", unix.EACCES, "exec DIR/link/run: permission denied: uid 1234, gid 1234 may not search the directory DIR/closed (mode 0700, owner 0:0): give this user search permission (x) on it"},
		{dir + "/script", unix.EACCES, "exec DIR/script: permission denied: its interpreter DIR/closed/run cannot be reached, uid 1234, gid 1234 may not search the directory DIR/closed (mode 0700, owner 0:0): give this user search permission (x) on it"},
		// The interpreter is missing, but this user cannot know: nothing is claimed.
		{dir + "/unreadable", unix.ENOENT, "exec DIR/unreadable: no such file or directory"},
	} {
		judge(t, dir, ask(t, scenario{Command: c.command, Steps: as}), c.errno, c.want)
	}
	path := closed + ":" + dir
	judge(t, dir, ask(t, scenario{Command: "tool", Path: path, PathSet: true, Steps: as}), unix.EACCES,
		"exec DIR/closed/tool: permission denied: uid 1234, gid 1234 may not search the directory DIR/closed (mode 0700, owner 0:0), and tool is nowhere else in PATH: give this user search permission (x) on it")
	judge(t, dir, ask(t, scenario{Command: "mine", Path: path, PathSet: true, Steps: as}), unix.EACCES,
		"exec DIR/mine: permission denied: it may not be executed by uid 1234, gid 1234 (mode 0700, owner 0:0): give this user execute permission (x)")
}

func TestNoexecMount(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	mount := makeDir(t, 0o755, dir, "my data")
	makeDir(t, 0o755, mount, "sub")
	put(t, 0o755, "#!/bin/sh\n", mount, "sub", "run")
	put(t, 0o755, "#!"+dir+"/interpreter\n", dir, "script")
	makeLink(t, "my data/sub/run", dir, "interpreter")
	steps := []step{{"mount noexec", mount}}
	judge(t, dir, ask(t, scenario{Command: mount + "/sub/run", Steps: steps}), unix.EACCES,
		`exec "DIR/my data/sub/run": permission denied: it is on "DIR/my data", which is mounted noexec: mount it without noexec or use another directory`)
	judge(t, dir, ask(t, scenario{Command: dir + "/script", Steps: steps}), unix.EACCES,
		`exec DIR/script: permission denied: its interpreter DIR/interpreter is on "DIR/my data", which is mounted noexec: mount it without noexec or use another directory`)
	// Nor has the mount a name where statx does not tell its number (before Linux 5.8),
	// and without /proc.
	old := append(slices.Clone(steps), step{"refuse statx", fmt.Sprint(int(unix.ENOSYS))})
	judge(t, dir, ask(t, scenario{Command: mount + "/sub/run", Steps: old}), unix.EACCES,
		`exec "DIR/my data/sub/run": permission denied: it is in "DIR/my data/sub", on a file system mounted noexec: mount it without noexec or use another directory`)
	judge(t, dir, ask(t, scenario{Command: "/sub/run", Steps: append(steps, step{"chroot", mount})}), unix.EACCES,
		`exec /sub/run: permission denied: it is in /sub, on a file system mounted noexec: mount it without noexec or use another directory`)
}

func TestShebang(t *testing.T) {
	dir := t.TempDir()
	put(t, 0o755, "#!/bin/sh\r\nexit 0\r\n", dir, "windows")
	put(t, 0o755, "#!\r\n", dir, "windows-empty")
	put(t, 0o755, "#! "+dir+"/no/python3 -u\n", dir, "python")
	put(t, 0o755, "#!"+dir+"/python\n", dir, "nested")
	put(t, 0o755, "#!"+dir+"/windows\n", dir, "nested-windows")
	put(t, 0o755, "#!\n", dir, "empty")
	put(t, 0o755, "#!"+dir+"/empty\n", dir, "nested-empty")
	put(t, 0o755, "#!/"+strings.Repeat("x", 300)+"\n", dir, "long")
	put(t, 0o755, "#!"+dir+"/long\n", dir, "nested-long")
	put(t, 0o755, "\xef\xbb\xbf#!/bin/sh\n", dir, "bom")
	put(t, 0o755, "#!"+dir+"/dangling\n", dir, "to-dangling")
	makeLink(t, "/usr/no/bash", dir, "dangling")
	put(t, 0o755, "#!"+dir+"/long/sh\n", dir, "to-file")
	const dos = "convert the file to Unix line endings, for example with dos2unix"
	for _, c := range []struct {
		command string
		errno   syscall.Errno
		want    string
	}{
		{"windows", unix.ENOENT, `no such file or directory: its #! line ends in a carriage return, so its interpreter would be "/bin/sh\r": ` + dos},
		{"windows-empty", unix.ENOENT, `no such file or directory: its #! line ends in a carriage return, so its interpreter would be "\r": ` + dos},
		{"nested-windows", unix.ENOENT, `no such file or directory: the #! line of DIR/windows ends in a carriage return, so its interpreter would be "/bin/sh\r": ` + dos},
		{"python", unix.ENOENT, "no such file or directory: its interpreter DIR/no/python3 is missing"},
		{"nested", unix.ENOENT, "no such file or directory: the interpreter DIR/no/python3 of DIR/python is missing"},
		{"empty", unix.ENOEXEC, "exec format error: its #! line names no interpreter"},
		{"nested-empty", unix.ENOEXEC, "exec format error: the #! line of DIR/empty names no interpreter"},
		{"long", unix.ENOEXEC, "exec format error: its #! line does not end within the 256 bytes that the kernel reads: shorten the path of the interpreter"},
		{"nested-long", unix.ENOEXEC, "exec format error: the #! line of DIR/long does not end within the 256 bytes that the kernel reads: shorten the path of the interpreter"},
		{"bom", unix.ENOEXEC, "exec format error: it has a UTF-8 byte order mark before its #!: save it without the byte order mark"},
		{"to-dangling", unix.ENOENT, "no such file or directory: its interpreter DIR/dangling is a symbolic link to /usr/no/bash, which does not exist"},
		{"to-file", unix.ENOTDIR, "not a directory: its interpreter DIR/long/sh cannot be reached, DIR/long is not a directory"},
	} {
		check(t, dir, Attempt{Command: dir + "/" + c.command}, c.errno, "exec DIR/"+c.command+": "+c.want)
	}
}

// A #! line without a newline and without a name makes newer kernels open the empty
// name, older ones refuse the format.
func TestUnfinishedShebang(t *testing.T) {
	dir := t.TempDir()
	put(t, 0o755, "#!", dir, "run")
	a := Attempt{Command: dir + "/run"}
	a.Errno = try(a)
	e := Explain(a)
	t.Log(e)
	if a.Errno == 0 || e.Cause != "its #! line names no interpreter" {
		t.Errorf("errno %d: %s", a.Errno, e)
	}
}

func TestNestedInterpreters(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	put(t, 0o755, "#!/bin/sh\n", dir, "0")
	for i := range 7 {
		put(t, 0o755, fmt.Sprintf("#!%s/%d\n", dir, i), dir, fmt.Sprint(i+1))
	}
	want := "too many levels of symbolic links: its interpreters are scripts themselves, more than 5 deep"
	for i := range 8 {
		name := fmt.Sprintf("%s/%d", dir, i)
		if i <= 4 {
			if errno := try(Attempt{Command: name}); errno != 0 {
				t.Errorf("%d levels: the kernel answers %q", i, errno.Error())
			}
			if e := Explain(Attempt{Command: name}); e.Cause != "" {
				t.Errorf("%d levels are no defect, but: %s", i, e)
			}
			continue
		}
		check(t, dir, Attempt{Command: name}, unix.ELOOP, fmt.Sprintf("exec DIR/%d: %s", i, want))
	}
}

func TestELF(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	base := native(t)
	with := func(change func(*image)) string {
		m := base
		change(&m)
		return m.bytes()
	}
	loader := func(name string) string { return with(func(m *image) { m.loader = name + "\x00" }) }
	put(t, 0o644, "", dir, "plain")
	put(t, 0o755, strings.Repeat("text", 40), dir, "text")
	put(t, 0o755, "text", dir, "short")
	put(t, 0o755, platform(t, another()).bytes(), dir, "ld-foreign")
	put(t, 0o755, loader("/none/ld-musl-x86_64.so.1"), dir, "interpreter")
	size := len(base.bytes())
	const use = "use an image with that C library or link the program statically"
	for _, c := range []struct {
		name, content string
		errno         syscall.Errno
		want          string
	}{
		{"musl", loader("/none/ld-musl-x86_64.so.1"), unix.ENOENT, "no such file or directory: its ELF loader /none/ld-musl-x86_64.so.1 is missing (the program is built for musl, the C library of Alpine): " + use},
		{"glibc", loader("/none/ld-linux-x86-64.so.2"), unix.ENOENT, "no such file or directory: its ELF loader /none/ld-linux-x86-64.so.2 is missing (the program is built for glibc): " + use},
		{"nix", loader("/nix/store/0-glibc/lib/ld-linux-x86-64.so.2"), unix.ENOENT, "no such file or directory: its ELF loader /nix/store/0-glibc/lib/ld-linux-x86-64.so.2 is missing (the program is built for Nix or Guix): include its whole closure or link it statically"},
		{"uclibc", loader("/none/ld-uClibc.so.0"), unix.ENOENT, "no such file or directory: its ELF loader /none/ld-uClibc.so.0 is missing (the program is built for uClibc): " + use},
		{"uclibc64", loader("/none/ld64-uClibc.so.1"), unix.ENOENT, "no such file or directory: its ELF loader /none/ld64-uClibc.so.1 is missing (the program is built for uClibc): " + use},
		{"android", loader("/none/bin/linker64"), unix.ENOENT, "no such file or directory: its ELF loader /none/bin/linker64 is missing (the program is built for Android): use a build for Linux"},
		{"android32", loader("/none/bin/linker"), unix.ENOENT, "no such file or directory: its ELF loader /none/bin/linker is missing (the program is built for Android): use a build for Linux"},
		{"freebsd", loader("/none/ld-elf.so.1"), unix.ENOENT, "no such file or directory: its ELF loader /none/ld-elf.so.1 is missing (the program is built for FreeBSD): use a build for Linux"},
		{"other", loader("/none/loader"), unix.ENOENT, "no such file or directory: its ELF loader /none/loader is missing: install it or link the program statically"},
		{"plain-loader", loader(dir + "/plain"), unix.EACCES, ownedBy("permission denied: its ELF loader DIR/plain has no execute permission for anybody (mode 0644, owner UID:GID): make it executable with chmod +x")},
		{"directory-loader", loader(dir), unix.EACCES, "permission denied: its ELF loader DIR is a directory"},
		{"text-loader", loader(dir + "/text"), unix.ELIBBAD, "accessing a corrupted shared library: its ELF loader DIR/text is not an ELF file"},
		{"short-loader", loader(dir + "/short"), unix.EIO, "input/output error: its ELF loader DIR/short has only 4 bytes"},
		{"foreign-loader", loader(dir + "/ld-foreign"), unix.ELIBBAD, "accessing a corrupted shared library: its ELF loader DIR/ld-foreign is built for " + another() + ", this machine is " + (&probe{}).machine()},
		{"script", "#!" + dir + "/interpreter\n", unix.ENOENT, "no such file or directory: the ELF loader /none/ld-musl-x86_64.so.1 of DIR/interpreter is missing (the program is built for musl, the C library of Alpine): " + use},
		{"foreign", platform(t, another()).bytes(), unix.ENOEXEC, "exec format error: it is built for " + another() + ", this machine is " + (&probe{}).machine() + ": choose the image for this platform or install binfmt_misc emulation"},
		{"object", with(func(m *image) { m.kind = typeRelocatable }), unix.ENOEXEC, "exec format error: it is an object file that was not linked"},
		{"core", with(func(m *image) { m.kind = typeCore }), unix.ENOEXEC, "exec format error: it is a core dump"},
		{"type", with(func(m *image) { m.kind = 77 }), unix.ENOEXEC, "exec format error: it is a corrupt ELF file (its type is 77)"},
		{"magic", elfMagic, unix.ENOEXEC, "exec format error: it is a truncated ELF file of 4 bytes"},
		{"header", base.bytes()[:40], unix.ENOEXEC, "exec format error: it is a truncated ELF file of 40 bytes"},
		{"cut", base.bytes()[:size-10], unix.ENOEXEC, fmt.Sprintf("exec format error: it is a truncated ELF file of %d bytes (its program headers are beyond the end)", size-10)},
		{"far", with(func(m *image) { m.phoff = 1 << 30 }), unix.ENOEXEC, fmt.Sprintf("exec format error: it is a truncated ELF file of %d bytes (its program headers are beyond the end)", size)},
		{"none", with(func(m *image) { m.phnum = 0 }), unix.ENOEXEC, "exec format error: it is a corrupt ELF file (it has no program headers)"},
		{"many", with(func(m *image) { m.phnum = 0xfff0 }), unix.ENOEXEC, "exec format error: it is a corrupt ELF file (it has 65520 program headers)"},
		{"size", with(func(m *image) { m.phsize = 8 }), unix.ENOEXEC, fmt.Sprintf("exec format error: it is a corrupt ELF file (its program headers have 8 bytes, not %d)", map[byte]int{1: programSize32, 2: programSize64}[base.class])},
		{"endless-loader", with(func(m *image) { m.loader = "/lib/ld.so" }), unix.ENOEXEC, "exec format error: it is a corrupt ELF file (the name of its ELF loader does not end)"},
		{"nameless-loader", with(func(m *image) { m.loader = "\x00" }), unix.ENOEXEC, "exec format error: it is a corrupt ELF file (the name of its ELF loader has 1 bytes)"},
		{"far-loader", with(func(m *image) { m.loader, m.loaderAt = "/lib/ld.so\x00", 1<<30 }), unix.EIO, fmt.Sprintf("input/output error: it is a truncated ELF file of %d bytes (the name of its ELF loader is beyond the end)", size+11)},
		{"pe", "MZ\x90\x00", unix.ENOEXEC, "exec format error: it is a Windows program"},
		{"zero", "", unix.ENOEXEC, "exec format error: it is empty (0 bytes)"},
		{"nothing", "exit 0\n", unix.ENOEXEC, "exec format error: it has no #! line and is not an ELF program"},
	} {
		put(t, 0o755, c.content, dir, c.name)
		check(t, dir, Attempt{Command: dir + "/" + c.name}, c.errno, "exec DIR/"+c.name+": "+c.want)
	}
	// The name of a loader that begins with NUL is empty; kernels differ in the errno.
	put(t, 0o755, loader("\x00"), dir, "empty-loader")
	a := Attempt{Command: dir + "/empty-loader"}
	a.Errno = try(a)
	if e := Explain(a); e.Cause != "it has an empty ELF loader name" {
		t.Errorf("errno %d: %s", a.Errno, e)
	}
}

// A real program for another platform, as an image for the wrong platform has it.
func TestForeignProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	put(t, 0o644, "package main\nfunc main() {}\n", dir, "main.go")
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	cmd := exec.Command("go", "build", "-o", dir+"/run", dir+"/main.go")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("cannot compile for %s: %v\n%s", arch, err, out)
	}
	a := Attempt{Command: dir + "/run"}
	if a.Errno = try(a); a.Errno == 0 {
		t.Skip("binfmt_misc emulation is installed here")
	}
	check(t, dir, a, unix.ENOEXEC, "exec DIR/run: exec format error: it is built for "+arch+", this machine is "+(&probe{}).machine()+": choose the image for this platform or install binfmt_misc emulation")
}

// In an image without a shell the fallback to /bin/sh fails, whichever errno is then
// handed over.
func TestNoShell(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	put(t, 0o755, "echo hello\n", dir, "run")
	put(t, 0o755, "#!/bin/bash\n", dir, "script")
	put(t, 0o755, platform(t, another()).bytes(), dir, "foreign")
	steps := []step{{"chroot", dir}}
	judge(t, "", ask(t, scenario{Command: "/run", Steps: steps}), unix.ENOEXEC,
		"exec /run: exec format error: it has no #! line and is not an ELF program, and /bin/sh is missing: start it with #! and an interpreter that exists here")
	judge(t, "", ask(t, scenario{Command: "/script", Steps: steps}), unix.ENOENT,
		"exec /script: no such file or directory: its interpreter /bin/bash is missing")
	judge(t, "", ask(t, scenario{Command: "/foreign", Steps: steps}), unix.ENOEXEC,
		"exec /foreign: exec format error: it is built for "+another()+", this machine is "+(&probe{}).machine()+": choose the image for this platform or install binfmt_misc emulation")
	judge(t, "", ask(t, scenario{Command: "run", Path: "/bin:/usr/bin", Steps: steps}), unix.ENOENT,
		"exec run: no such file or directory: not found in /bin:/usr/bin, which is searched because PATH is not set: write ./run to run the one in the working directory")

	p := &probe{got: unix.ENOENT}
	f := p.match(finding{errno: unix.ENOEXEC, shell: true, cause: "it has no #! line"})
	if _, err := os.Stat("/bin/sh"); err == nil && f.errno != unix.ENOEXEC {
		t.Errorf("/bin/sh exists, but a failure of it is claimed: %+v", f)
	}
}

// A shell that cannot be executed either is what the kernel's answer is about, unless
// it is missing.
func TestBrokenShell(t *testing.T) {
	needRoot(t)
	const beginning = "it has no #! line and is not an ELF program, and "
	const remedy = ": start it with #! and an interpreter that exists here"
	program := native(t)
	program.loader = "/lib/ld-some.so.1\x00"
	for _, c := range []struct {
		name, shell string
		mode        os.FileMode
		errno       syscall.Errno
		want        string
	}{
		{"not executable", "#!/bin/bash\n", 0o644, unix.EACCES, "permission denied: " + beginning + "/bin/sh has no execute permission for anybody (mode 0644, owner 0:0)"},
		{"without its loader", program.bytes(), 0o755, unix.ENOEXEC, "exec format error: " + beginning + "the ELF loader /lib/ld-some.so.1 of /bin/sh is missing"},
		{"for another machine", platform(t, another()).bytes(), 0o755, unix.ENOEXEC, "exec format error: " + beginning + "/bin/sh is built for " + another() + ", this machine is " + (&probe{}).machine()},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, 0o755, "echo hello\n", dir, "run")
			put(t, c.mode, c.shell, makeDir(t, 0o755, dir, "bin"), "sh")
			steps := []step{{"chroot", dir}}
			judge(t, "", ask(t, scenario{Command: "/run", Steps: steps}), c.errno, "exec /run: "+c.want+remedy)
			judge(t, "", ask(t, scenario{Command: "run", Path: "/bin:/", PathSet: true, Steps: steps}), c.errno, "exec /run: "+c.want+remedy)
		})
	}
}

// Kernels before 5.8 say of an interpreter that it is a directory, later ones that it
// may not be executed. A filter stands for an old one.
func TestDirectoryOnOldKernels(t *testing.T) {
	dir := t.TempDir()
	put(t, 0o755, "#!"+dir+"\n", dir, "script")
	put(t, 0o755, "#!/bin/sh\n", dir, "fine")
	steps := []step{{"refuse execve", fmt.Sprint(int(unix.EISDIR))}}
	judge(t, dir, ask(t, scenario{Command: dir + "/script", Steps: steps}), unix.EISDIR, "exec DIR/script: is a directory: its interpreter DIR is a directory")
	judge(t, dir, ask(t, scenario{Command: dir + "/fine", Steps: steps}), unix.EISDIR, "exec DIR/fine: is a directory")
}

func TestTextFileBusy(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	name := put(t, 0o755, "#!/bin/sh\n", dir, "run")
	put(t, 0o755, "#!"+name+"\n", dir, "script")
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if try(Attempt{Command: name}) == 0 {
		t.Skip("this kernel lets files be executed that are open for writing (Linux 6.11 and 6.12 did)")
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Skip("needs /proc to name the writer")
	}
	me := fmt.Sprintf("process %d (%s)", os.Getpid(), strings.TrimSpace(string(comm)))
	// On a busy machine with many processes the search for the writer may be given up
	// before it comes to this one: then it is repeated.
	busy := func(command, want string) {
		t.Helper()
		a := Attempt{Command: command}
		a.Errno = try(a)
		e := Explain(a)
		for range 500 {
			if strings.Contains(e.Cause, me) {
				break
			}
			e = Explain(a)
		}
		judge(t, dir, outcome{a.Errno, e, ""}, unix.ETXTBSY, want)
	}
	busy(name, "exec DIR/run: text file busy: it is open for writing in "+me+": start it after the writer has closed it")
	busy(dir+"/script", "exec DIR/script: text file busy: its interpreter DIR/run is open for writing in "+me+": start it after the writer has closed it")
	// Closed, nobody can be named any more.
	f.Close()
	if got := Explain(Attempt{Command: name, Errno: unix.ETXTBSY}).Cause; got != "it or its interpreter /bin/sh is open for writing" {
		// The shell has a loader too.
		if !strings.HasPrefix(got, "it or ") || !strings.HasSuffix(got, " is open for writing") {
			t.Errorf("%q", got)
		}
	}
}

func TestTooManyArguments(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	put(t, 0o755, "#!/bin/sh\n", dir, "run")
	a := Attempt{Command: dir + "/run", Args: 2, ArgBytes: 200_000}
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: 8 << 20, Max: stack.Max}); err != nil || os.Getpagesize() != 4096 {
		t.Skip("the figures below are those of a stack limit of 8 MiB and pages of 4 KiB")
	}
	defer unix.Setrlimit(unix.RLIMIT_STACK, &stack)
	check(t, dir, a, unix.E2BIG, "exec DIR/run: argument list too long: 2 arguments and environment strings take 200000 bytes; "+
		"2097152 bytes are allowed for all arguments and environment strings (a quarter of RLIMIT_STACK), 131072 for each: pass fewer or shorter ones", strings.Repeat("x", 200_000))
	many := make([]string, 25)
	for i := range many {
		many[i] = strings.Repeat("x", 100_000)
	}
	a.Args, a.ArgBytes = 26, 2_500_300
	check(t, dir, a, unix.E2BIG, "exec DIR/run: argument list too long: 26 arguments and environment strings take 2500300 bytes, "+
		"more than the 2097152 allowed (a quarter of RLIMIT_STACK): pass fewer or shorter ones", many...)
}

func TestFileCapabilities(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	name := put(t, 0o755, native(t).bytes(), dir, "ping")
	put(t, 0o755, "#!"+name+"\n", dir, "script")
	var attr []byte
	for _, v := range []uint32{0x02000001, 1<<unix.CAP_NET_RAW | 1<<unix.CAP_CHOWN, 0, 0, 0} {
		attr = binary.LittleEndian.AppendUint32(attr, v)
	}
	if err := unix.Setxattr(name, "security.capability", attr, 0); err != nil {
		t.Skip("cannot give a file capabilities here: ", err)
	}
	steps := []step{{"forget capability", fmt.Sprint(unix.CAP_NET_RAW)}}
	judge(t, dir, ask(t, scenario{Command: name, Steps: steps}), unix.EPERM,
		"exec DIR/ping: operation not permitted: it has file capabilities that this container does not allow (cap_net_raw): allow them or remove them from the file with setcap -r")
	judge(t, dir, ask(t, scenario{Command: dir + "/script", Steps: steps}), unix.EPERM,
		"exec DIR/script: operation not permitted: its interpreter DIR/ping has file capabilities that this container does not allow (cap_net_raw): allow them or remove them from the file with setcap -r")
	if errno := ask(t, scenario{Command: name}).Errno; errno == unix.EPERM {
		t.Error("refused although nothing was taken away")
	}
}

func TestSeccomp(t *testing.T) {
	dir := t.TempDir()
	put(t, 0o755, "#!/bin/sh\n", dir, "run")
	run := func(errno syscall.Errno) outcome {
		return ask(t, scenario{Command: dir + "/run", Steps: []step{{"refuse execve", fmt.Sprint(int(errno))}}})
	}
	judge(t, dir, run(unix.EPERM), unix.EPERM, "exec DIR/run: operation not permitted: this is usually a security module such as AppArmor or SELinux"+confinement()+", or the seccomp filter that is active here")
	judge(t, dir, run(unix.ENOSYS), unix.ENOSYS, "exec DIR/run: function not implemented: the seccomp filter that is active here may refuse execve")
	// A permission that is refused although the file has it.
	o := run(unix.EACCES)
	if want := "its mode and mount allow it, so probably a security module such as AppArmor or SELinux" + confinement() + " refused it"; o.Explanation.Cause != want {
		t.Errorf("%s", o.Explanation)
	}
	// A missing file is claimed only if one is missing.
	if o := run(unix.ENOENT); o.Explanation.Cause != "" {
		t.Errorf("%s", o.Explanation)
	}
	if o := run(unix.EINVAL); o.Explanation.String() != "exec "+dir+"/run: invalid argument" {
		t.Errorf("%s", o.Explanation)
	}
}

func TestTooManyProcesses(t *testing.T) {
	needRoot(t)
	dir := reachable(t)
	put(t, 0o755, "#!/bin/sh\n", dir, "run")
	o := ask(t, scenario{Command: dir + "/run", Self: true, Steps: []step{{"crowd user", "54321"}}})
	judge(t, dir, o, unix.EAGAIN, "exec DIR/run: resource temporarily unavailable: this is the answer when uid 54321 has more processes than RLIMIT_NPROC (0) allows: raise the limit or stop other processes of this user")
}

// The errnos that a test cannot bring about: at least nothing wrong is said.
func TestRareErrnos(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	name := put(t, 0o755, "#!/bin/sh\n", dir, "run")
	for _, errno := range []syscall.Errno{unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EIO, unix.EISDIR, unix.ENODEV, unix.ESTALE, 4000} {
		e := Explain(Attempt{Command: name, Errno: errno})
		t.Log(e)
		if e.Reason != errno.Error() || e.File != name {
			t.Errorf("%d: %+v", errno, e)
		}
		if strings.Contains(e.Cause, "interpreter") || strings.Contains(e.Cause, "it is") {
			t.Errorf("blamed a file that is fine: %s", e)
		}
	}
	if e := Explain(Attempt{Command: name, Errno: unix.ENFILE}); !strings.Contains(e.Cause, "fs.file-max") {
		if _, err := os.Stat("/proc/sys/fs/file-nr"); err == nil {
			t.Errorf("%s", e)
		}
	}
	// The answer was lost and the file is fine.
	if e := Explain(Attempt{Command: name}); e.Reason != "it could not be executed" || e.Cause != "" {
		t.Errorf("%+v", e)
	}
}

// A file that vanished or appeared between the attempt and the explanation.
func TestRace(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	if got := Explain(Attempt{Command: dir + "/gone", Errno: unix.EACCES}); got.Cause != "" {
		t.Errorf("%s", got)
	}
	name := put(t, 0o755, "#!/bin/sh\n", dir, "appeared")
	if got := Explain(Attempt{Command: name, Errno: unix.ENOENT}); got.Cause != "" {
		t.Errorf("%s", got)
	}
}

// The links below /proc/PID are not what their text says.
func TestMagicLinks(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	name := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.Fd())
	check(t, "", Attempt{Command: name}, unix.EACCES, "exec "+name+": permission denied: it is a named pipe, not a regular file")
	name = fmt.Sprintf("/proc/%d/fd/%d/run", os.Getpid(), r.Fd())
	e := Explain(Attempt{Command: name, Errno: try(Attempt{Command: name})})
	if e.Cause != "" {
		t.Errorf("%s", e)
	}
}

// Root without capabilities is a user like any other.
func TestRootWithoutCapabilities(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	put(t, 0o700, "#!/bin/sh\n", dir, "run")
	if err := os.Chown(dir+"/run", 1234, 1234); err != nil {
		t.Skip("cannot give the file away: ", err)
	}
	steps := []step{{"lose capability", fmt.Sprint(unix.CAP_DAC_OVERRIDE)}, {"lose capability", fmt.Sprint(unix.CAP_DAC_READ_SEARCH)}}
	judge(t, dir, ask(t, scenario{Command: dir + "/run", Steps: steps}), unix.EACCES,
		"exec DIR/run: permission denied: it may not be executed by uid 0, gid 0 without cap_dac_override (mode 0700, owner 1234:1234): give this user execute permission (x)")
}

// An emulator that was registered without flag F has to exist in every container.
func TestMissingEmulator(t *testing.T) {
	dir := t.TempDir()
	mount := makeDir(t, 0o755, dir, "binfmt")
	m := platform(t, another())
	put(t, 0o755, m.bytes(), dir, "run")
	rule := fmt.Sprintf(`%s :test:M:18:\x%02x\x%02x::/no/such/qemu:`, mount, m.bytes()[18], m.bytes()[19])
	o := ask(t, scenario{
		Command: dir + "/run", Namespace: true,
		Steps: []step{{"mount binfmt_misc", mount}, {"register emulator", rule}},
	})
	judge(t, dir, o, unix.ENOENT, "exec DIR/run: no such file or directory: it is built for "+another()+", this machine is "+(&probe{}).machine()+
		", and the emulator that binfmt_misc names for it does not exist here: choose the image for this platform or register the emulator with binfmt_misc's flag F")
}

// A 32-bit program runs or not as the kernel is built; only if the kernel refuses its
// format is that the cause.
func TestNarrowProgram(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("builds a 386 program")
	}
	dir := t.TempDir()
	m := platform(t, "386")
	put(t, 0o755, m.bytes(), dir, "static")
	m.loader = "/none/ld-linux.so.2\x00"
	put(t, 0o755, m.bytes(), dir, "dynamic")
	a := Attempt{Command: dir + "/dynamic"}
	a.Errno = try(a)
	want := "its ELF loader /none/ld-linux.so.2 is missing (the program is built for glibc)"
	if a.Errno == unix.ENOEXEC {
		want = "it is built for 386, which this amd64 machine does not run"
	}
	if got := Explain(a); got.Cause != want {
		t.Errorf("%s", got)
	}
	if got := Explain(Attempt{Command: dir + "/static", Errno: unix.ENOEXEC}); got.Cause != "it is built for 386, which this amd64 machine does not run" {
		t.Errorf("%s", got)
	}
}
