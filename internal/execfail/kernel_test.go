package execfail

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// predict is the errno that the looks of a file lead to, 0 if it seems fine.
func predict(path string) syscall.Errno {
	p := &probe{}
	return p.explainFile(path).errno
}

// The explanations stand on predicting the kernel. Here it is asked about files that
// nobody would write.

func TestPredictsShebangLines(t *testing.T) {
	kernelRuns(t)
	dir := t.TempDir()
	put(t, 0o644, "", dir, "plain")
	put(t, 0o755, "#!/bin/sh\n", dir, "script")
	t.Chdir(dir)
	words := []string{
		" ", "\t", "\r", "\n", "\x00", "script", "plain", "none", "./script", "/", ".", "-x", " ", "\n",
		strings.Repeat(" ", 100), strings.Repeat("\t", 151), strings.Repeat("a", 120), strings.Repeat("/", 240),
	}
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := map[syscall.Errno]int{}
	for i := range 600 {
		line := "#!"
		for range random.IntN(7) {
			line += words[random.IntN(len(words))]
		}
		// Around the end of what the kernel reads.
		if i%3 == 0 {
			line += strings.Repeat([]string{" ", "x", "/"}[random.IntN(3)], max(0, 250-len(line)+random.IntN(9)))
			line += words[random.IntN(len(words))]
		}
		name := put(t, 0o755, line, dir, fmt.Sprint(i))
		kernel := forkExec(name, []string{name})
		outcomes[kernel]++
		got := predict(name)
		if _, bad := parseShebang(line[:min(len(line), headSize)]); bad == shebangUnnamed {
			// Kernels differ, see TestUnfinishedShebang.
			if kernel == 0 || got == 0 {
				t.Errorf("%q: predicted %q, the kernel answers %q", line, got.Error(), kernel.Error())
			}
			continue
		}
		if got != kernel {
			t.Errorf("%q: predicted %q, the kernel answers %q", line, got.Error(), kernel.Error())
		}
	}
	t.Log(outcomes)
	for _, errno := range []syscall.Errno{0, unix.ENOENT, unix.EACCES, unix.ENOEXEC} {
		if outcomes[errno] < 5 {
			t.Errorf("only %d of the lines gave errno %d: they test too little", outcomes[errno], errno)
		}
	}
}

func TestPredictsELFHeaders(t *testing.T) {
	kernelRuns(t)
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		t.Fatal(err)
	}
	// What the kernel accepts here dies at once.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: core.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &core) }()

	dir := t.TempDir()
	m := native(t)
	m.loader = dir + "/none\x00"
	whole := m.bytes()
	outcomes := map[syscall.Errno]int{}
	compare := func(what, content string) {
		name := put(t, 0o755, content, dir, "run")
		kernel := forkExec(name, []string{name})
		outcomes[kernel]++
		if got := predict(name); got != kernel {
			t.Errorf("%s: predicted %q, the kernel answers %q", what, got.Error(), kernel.Error())
		}
	}
	for i := range len(whole) - len(m.loader) {
		// The kernel does not look at class and byte order, only at the machine and at
		// the layout that goes with it.
		if i == 4 || i == 5 {
			continue
		}
		for _, v := range []byte{0, 1, 0x80, 0xff} {
			b := []byte(whole)
			b[i] = v
			// Another machine may be one that the kernel runs after all.
			if i == 18 || i == 19 {
				h, _ := parseHeader(string(b), int64(len(b)))
				if runs((&probe{}).machine(), h.name()) == depends {
					continue
				}
			}
			compare(fmt.Sprintf("byte %d is %#x", i, v), string(b))
		}
	}
	for i := len(elfMagic); i < len(whole); i++ {
		compare(fmt.Sprintf("cut to %d bytes", i), whole[:i])
	}
	t.Log(outcomes)
	for _, errno := range []syscall.Errno{unix.ENOENT, unix.EIO, unix.ENOEXEC} {
		if outcomes[errno] < 5 {
			t.Errorf("only %d of the headers gave errno %d: they test too little", outcomes[errno], errno)
		}
	}
}
