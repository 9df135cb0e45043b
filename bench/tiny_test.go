package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func programs(t *testing.T, orphans int) workloads {
	t.Helper()
	w, err := buildWorkloads(t.TempDir(), orphans)
	if err != nil {
		t.Skip(err)
	}
	return w
}

func TestStaticTrueIsOneSystemCall(t *testing.T) {
	w := programs(t, 1)
	n, err := countSyscalls([]string{w.staticTrue}, false)
	if err != nil {
		t.Fatal(err)
	}
	if n != 1 {
		t.Errorf("%d system calls, want only exit_group", n)
	}
}

func TestCountSyscallsFollowsChildren(t *testing.T) {
	w := programs(t, 1)
	once, err := countSyscalls([]string{"/bin/sh", "-c", w.staticTrue + "; :"}, false)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := countSyscalls([]string{"/bin/sh", "-c", w.staticTrue + "; " + w.staticTrue + "; :"}, false)
	if err != nil {
		t.Fatal(err)
	}
	// At least the fork, the execve and exit_group of the child, and the wait
	// for it.
	if twice < once+4 {
		t.Errorf("%d system calls with one child, %d with two", once, twice)
	}
}

func TestStormMakesItsOrphans(t *testing.T) {
	const orphans = 50
	w := programs(t, orphans)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()

	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	storm, err := syscall.ForkExec(w.storm, []string{w.storm}, prepareSpawn(spawnOptions{stdout: wr}))
	wr.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		t.Errorf("no byte at the end of the storm: %v", err)
	}
	if err := syscall.Kill(storm, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	reaped := 0
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			break // ECHILD
		}
		if pid != storm {
			reaped++
		}
	}
	if reaped != orphans {
		t.Errorf("%d orphans came to their reaper, want %d", reaped, orphans)
	}
}

func TestStampAnswersWithTheTime(t *testing.T) {
	w := programs(t, 1)
	for _, program := range []string{w.stamp, w.stampStorm} {
		goinit, err := buildGoInit(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		target, err := startTarget(contender{name: "plain-go", path: goinit}, program)
		if err != nil {
			skipWithoutNamespaces(t, err)
			t.Fatal(err)
		}
		before := monotonic()
		us, err := target.ask()
		after := monotonic()
		target.stop()
		if err != nil {
			t.Fatal(err)
		}
		if us < 0 || us > float64((after-before)/time.Microsecond)+1 {
			t.Errorf("the workload woke up %.1f µs after the signal, all within %v", us, after-before)
		}
	}
}

func skipWithoutNamespaces(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("no PID namespace can be made here: %v", err)
	}
}
