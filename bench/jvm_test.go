package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseTrace(t *testing.T) {
	const trace = `10 execve("/usr/bin/java", ["java"], 0x1 /* 2 vars */) = 0
10 close(3) = 0
11 execve("/lib/jvm/lib/jspawnhelper", ["jspawnhelper"], 0x1 /* 2 vars */ <unfinished ...>
10 close(4) = 0
11 <... execve resumed>) = 0
11 openat(AT_FDCWD, "/lib/libc.so.6", O_RDONLY|O_CLOEXEC) = 3
11 close(3) = 0
11 openat(AT_FDCWD, "/proc/self/fd", O_RDONLY|O_DIRECTORY) = 4
11 getdents64(4, 0x5 /* 7 entries */, 32768) = 168
11 close(5 <unfinished ...>
10 getdents64(9, 0x5 /* 7 entries */, 32768) = 168
11 <... close resumed>) = 0
11 close(6) = -1 EBADF (Bad file descriptor)
11 fcntl(3, F_SETFD, FD_CLOEXEC) = 0
11 fcntl(3, F_GETFD) = 0
11 close_range(7, 4294967295, 0) = 0
11 execve("/bin/true", ["/bin/true"], 0x1 /* 2 vars */) = 0
11 close(3) = 0
11 +++ exited with 0 +++
`
	got, err := parseTrace(trace, "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	// The library that the helper's loader closes is in it.
	if want := (Calls{Helper: "jspawnhelper", Walked: true, Closed: 2, Vain: 1, Marks: 1, Ranges: 1}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	hidden := strings.Replace(trace, `O_RDONLY|O_DIRECTORY) = 4`, `O_RDONLY|O_DIRECTORY) = -1 ENOENT (No such file or directory)`, 1)
	if got, err = parseTrace(hidden, "/bin/true"); err != nil || got.Walked {
		t.Errorf("without /proc: %+v, %v", got, err)
	}
	if _, err := parseTrace(trace, "/bin/false"); err == nil {
		t.Error("found a command that never ran")
	}
}

func TestJVMBreakEven(t *testing.T) {
	r := &JVMReport{Files: 50, Rows: []JVMRow{
		{Limit: 100, Proc: true, Front: aloneFront, Min: 2000},
		{Limit: 1100, Proc: true, Front: aloneFront, Min: 2000},
		{Limit: 100, Proc: true, Front: fdinitFront, Min: 1},
		{Limit: 100, Front: aloneFront, Min: 1500},
	}}
	if e, ok := r.breakEven(); ok {
		t.Errorf("one point makes a line that crosses at %s", e)
	}
	r.Rows = append(r.Rows, JVMRow{Limit: 1100, Front: aloneFront, Min: 2500})
	if e, ok := r.breakEven(); !ok || e.String() != "about 600" {
		t.Errorf("it breaks even at %s, want about 600", e)
	}
}

// A real virtual machine, behind tini-static under fdinit's name: what is tested
// is the measurement.
func TestJVM(t *testing.T) {
	for _, tool := range jvmTools {
		if _, err := exec.LookPath(tool.tool); err != nil {
			t.Skipf("%s is not installed (apt: %s)", tool.tool, tool.apt)
		}
	}
	subject, err := exec.LookPath(referenceName)
	if err != nil {
		t.Skipf("something has to stand in front (apt: tini): %v", err)
	}
	dir, out := t.TempDir(), t.TempDir()
	size := jvmSizes{executions: 3, starts: 1, limits: []int{256, 1 << 30}}
	t.Setenv("FDINIT_NO_SKIP", "")
	if err := reportJVM(dir, Header{}, out, subject, size); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out, "jvm.md"))
	if err != nil {
		t.Fatal(err)
	}
	md := string(b)
	for _, want := range []string{"\n| 256 | nothing | 256 | 3 | ", "\n| 256 | fdinit | 256 | 3 | "} {
		if !strings.Contains(md, want) {
			t.Errorf("no row %q", want)
		}
	}
	if !strings.Contains(md, "\n| 1073741824 | ") && !strings.Contains(md, "Skipped: limit 1073741824 (the hard limit here is ") {
		t.Error("a limit is neither measured nor accounted for")
	}
	for _, private := range []string{dir, out, subject} {
		if strings.Contains(md, private) {
			t.Errorf("the document tells of %s", private)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "jvm.svg")); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(md)
	}

	// What is not there is named, and fails only where nothing may be skipped.
	t.Setenv("PATH", t.TempDir())
	if err := reportJVM(dir, Header{}, t.TempDir(), subject, size); err != nil {
		t.Errorf("without Java: %v", err)
	}
	t.Setenv("FDINIT_NO_SKIP", "1")
	err = reportJVM(dir, Header{}, t.TempDir(), subject, size)
	if err == nil || !strings.Contains(err.Error(), "apt: default-jdk-headless") {
		t.Errorf("without Java, where nothing may be skipped: %v", err)
	}
}
