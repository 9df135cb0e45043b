package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A shell is small enough for surroundings in which a Go program does not start.
const shell = "/bin/sh"

// user is nobody's number, so that no other process counts against its limits.
const user = 54321

const missing = "/nonexistent/program"

// wantWords wants an end with a status of fdinit's own and a message of its own that
// holds a text. The Go runtime's death throes are no message.
func (b *box) wantWords(t testing.TB, status int, text string) {
	t.Helper()
	b.wantStatus(t, status)
	said := b.err.String()
	if !ownWords.MatchString(said) || !strings.Contains(said, text) || strings.Count(said, "\n") != 1 {
		t.Errorf("status %d without a line about %q\n%s", status, text, b.report())
	}
}

func TestOneMebibyte(t *testing.T) {
	group := cgroup(t, "memory", map[string]string{"memory.limit_in_bytes": "1048576"})
	// On one processor, because the kernel charges a group for 256 KiB in advance on each,
	// and takes that back too late when there is not enough.
	s := setup{Cgroups: []string{group}, OneCPU: true}
	b := start(t, s, tiny)
	b.wantStatus(t, 3)
	if text := b.err.String(); text != "" {
		t.Errorf("on stderr: %s", text)
	}
	// The Go runtime does not fit. It must not take the init with it.
	start(t, s, missing).wantWords(t, 127, missing)
	start(t, s, "--nofile=10:9223372036854775807", tiny).wantWords(t, 125, "setting RLIMIT_NOFILE")
}

func TestNoProcess(t *testing.T) {
	pids := func(most int) setup {
		return setup{Cgroups: []string{cgroup(t, "pids", map[string]string{"pids.max": strconv.Itoa(most)})}}
	}
	user := setup{UID: user, Limits: map[int][2]uint64{unix.RLIMIT_NPROC: {1, 1}}}
	tests := []struct {
		name string
		setup
		args   []string
		status int
		words  string
	}{
		{"RLIMIT_NPROC", user, []string{shell, "-c", "exit 3"}, 125, "starting a process"},
		{"RLIMIT_NPROC and a log", user, []string{"--log=info", shell, "-c", "exit 3"}, 125, "starting the log"},
		{"pids.max 1", pids(1), []string{shell, "-c", "exit 3"}, 125, "starting a process"},
		{"pids.max 2", pids(2), []string{shell, "-c", "exit 3"}, 3, ""},
		{"pids.max 2 and nothing to run", pids(2), []string{missing}, 127, missing},
		{"pids.max 3 and nothing to run", pids(3), []string{missing}, 127, missing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := start(t, test.setup, test.args...)
			if test.words == "" {
				b.wantStatus(t, test.status)
			} else {
				b.wantWords(t, test.status, test.words)
			}
		})
	}
	t.Run("clone answers ENOMEM", func(t *testing.T) {
		// As it does when the PID namespace's first process is dying.
		s := setup{Refuse: []refusal{{callNumbers(t)["SYS_CLONE"], int(unix.ENOMEM)}}}
		start(t, s, shell, "-c", "exit 3").wantWords(t, 125, "memory")
	})
}

// TestTinyLimits gives process 1, and so the workload, next to nothing of one resource
// at a time.
func TestTinyLimits(t *testing.T) {
	limits := []struct {
		name     string
		resource int
		most     uint64
	}{
		{"AS", unix.RLIMIT_AS, 8 << 20},
		{"DATA", unix.RLIMIT_DATA, 1 << 20},
		{"STACK", unix.RLIMIT_STACK, 64 << 10},
		{"FSIZE", unix.RLIMIT_FSIZE, 0},
		{"NOFILE", unix.RLIMIT_NOFILE, 4},
		{"MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"SIGPENDING", unix.RLIMIT_SIGPENDING, 0},
		{"MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
		{"CPU", unix.RLIMIT_CPU, 1},
	}
	for _, l := range limits {
		t.Run(l.name, func(t *testing.T) {
			s := setup{Limits: map[int][2]uint64{l.resource: {l.most, l.most}}, Leaks: []int{3, 5, 40}}
			start(t, s, shell, "-c", "(true &); exit 3").wantStatus(t, 3)
			b := start(t, s, missing)
			b.wantWords(t, 127, missing)
			t.Log(strings.TrimSpace(b.err.String()))
		})
	}
}

// TestFullTable refuses the list of descriptors, as the kernel does when the system's
// table of files (ENFILE) or the process's (EMFILE) is full, for ever.
func TestFullTable(t *testing.T) {
	numbers := callNumbers(t)
	for _, errno := range []unix.Errno{unix.ENFILE, unix.EMFILE, unix.ENOMEM} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			s := setup{Leaks: []int{3, 5, 40}, Refuse: []refusal{
				{numbers["SYS_CLOSE_RANGE"], int(unix.ENOSYS)},
				{numbers["SYS_OPENAT"], int(errno)},
			}}
			b := start(t, s, probe, "work")
			b.says(t, "leaked \n")
			b.says(t, "reaped\n")
			b.signal(t, unix.SIGUSR2)
			b.wantStatus(t, 7)
		})
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := setup{
		Tmpfs: map[string]string{dir: "size=1m"}, Path: shell,
		Argv: []string{"sh", "-c", `"$0" --install="$1/fdinit"; echo "status $?"; echo "left" $(ls -A "$1")`, fdinit, dir},
	}
	b := start(t, s)
	b.wantStatus(t, 0)
	if out := b.out.String(); out != "status 125\nleft\n" {
		t.Errorf("it says %q, not that it failed and left nothing behind", out)
	}
	if text := b.err.String(); !ownWords.MatchString(text) || !strings.Contains(text, "full") {
		t.Errorf("no word about a full disk\n%s", b.report())
	}
	t.Run("the log", func(t *testing.T) {
		// What cannot be written is lost, and that is all.
		s := setup{Path: shell, Argv: []string{"sh", "-c", `exec "$0" --log=debug ` + shell + ` -c 'exit 3' 2>/dev/full`, fdinit}}
		start(t, s).wantStatus(t, 3)
	})
}

func TestRestrictedProc(t *testing.T) {
	numbers := callNumbers(t)
	for _, test := range []struct {
		name, proc string
		uid        int
	}{
		{"hidepid=2", "hidepid=2", user},
		{"subset=pid", "subset=pid", user},
		{"both, as root", "hidepid=2,subset=pid", 0},
		{"of an outer namespace", "inherited", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := setup{
				Proc: test.proc, UID: test.uid, Leaks: []int{3, 5, 40, 700},
				Refuse: []refusal{{numbers["SYS_CLOSE_RANGE"], int(unix.ENOSYS)}},
			}
			b := start(t, s, "--log=info", probe, "work")
			b.says(t, "leaked \n")
			b.says(t, "reaped\n")
			// In the end the init waits for its log two seconds at most, so this comes before it.
			eventually(t, "the list of descriptors was of use", func() bool {
				return strings.Contains(b.err.String(), "closed 4 inherited descriptors with proc")
			}, b.report)
			b.signal(t, unix.SIGUSR2)
			b.wantStatus(t, 7)
		})
	}
}

func TestHugeCommandLine(t *testing.T) {
	const count, bytes = 100_000, 2_000_000
	s := setup{
		EnvCount: count, ArgBytes: bytes, Listen: true, Leaks: []int{3},
		Limits: map[int][2]uint64{unix.RLIMIT_STACK: {64 << 20, 64 << 20}}, // a quarter of it, at most 6 MiB
	}
	b := start(t, s, probe, "work")
	b.says(t, fmt.Sprintf("args %d env %d\n", bytes/100_000, count+3))
	b.says(t, "leaked 3\nactivation 1 true\n")
	b.says(t, "reaped\n")
	b.signal(t, unix.SIGUSR2)
	b.wantStatus(t, 7)

	// The same for a script without a shebang, which needs room for one word more.
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("exit 4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.EnvCount = 0 // a shell takes seconds for so many
	start(t, s, script).wantStatus(t, 4)
	start(t, s, missing).wantWords(t, 127, missing)
}
