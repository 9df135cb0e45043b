package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What installAt copies is the running program: here that of the tests.

// self is the running program.
func self(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	return content
}

// mustInstall installs and checks the outcome.
func mustInstall(t *testing.T, at, names, file string) {
	t.Helper()
	if problem := installAt(at, names); problem != "" {
		t.Fatal(problem)
	}
	checkInstalled(t, file)
}

func checkInstalled(t *testing.T, file string) {
	t.Helper()
	st, err := os.Lstat(file)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode() != 0o555 {
		t.Errorf("%s has mode %v", file, st.Mode())
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, self(t)) {
		t.Errorf("%s is not this program", file)
	}
}

// checkFiles compares what is in a directory: nothing may be left behind.
func checkFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		name := e.Name()
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			name += " -> " + target
		}
		got = append(got, name)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}

func TestInstallPlaces(t *testing.T) {
	dir := t.TempDir()
	t.Run("as a file", func(t *testing.T) {
		mustInstall(t, dir+"/init", "", dir+"/init")
		checkFiles(t, dir, "init")
	})
	dir = t.TempDir()
	t.Run("into a directory", func(t *testing.T) {
		mustInstall(t, dir, "", dir+"/fdinit")
		mustInstall(t, dir+"//", "", dir+"/fdinit")
		mustInstall(t, dir+"/.", "", dir+"/fdinit")
		checkFiles(t, dir, "fdinit")
	})
	t.Run("by a relative path", func(t *testing.T) {
		t.Chdir(t.TempDir())
		mustInstall(t, ".", "", "fdinit")
		mustInstall(t, "tini", "dumb-init", "tini")
		checkFiles(t, ".", "fdinit", "tini", "dumb-init -> tini")
	})
	t.Run("through a link to a directory", func(t *testing.T) {
		real := t.TempDir()
		link := t.TempDir() + "/link"
		if err := os.Symlink(real, link); err != nil {
			t.Fatal(err)
		}
		mustInstall(t, link, "tini", real+"/fdinit")
		checkFiles(t, real, "fdinit", "tini -> fdinit")
	})
	t.Run("with a umask", func(t *testing.T) {
		was := unix.Umask(0o077)
		defer unix.Umask(was)
		dir := t.TempDir()
		mustInstall(t, dir, "tini", dir+"/fdinit")
	})
}

// TestInstallReplaces: whatever is at the place gives way, and what else it belongs to
// stays as it is.
func TestInstallReplaces(t *testing.T) {
	old := []byte("#!/bin/sh\necho old\n")
	for name, prepare := range map[string]func(at, aside string) error{
		"a file":           func(at, _ string) error { return os.WriteFile(at, old, 0o755) },
		"a read-only file": func(at, _ string) error { return os.WriteFile(at, old, 0o444) },
		"a longer file":    func(at, _ string) error { return os.WriteFile(at, make([]byte, 16<<20), 0o555) },
		"an empty file":    func(at, _ string) error { return os.WriteFile(at, nil, 0o555) },
		"a file with another name": func(at, aside string) error {
			if err := os.WriteFile(aside, old, 0o755); err != nil {
				return err
			}
			return os.Link(aside, at)
		},
		"a symbolic link": func(at, aside string) error {
			if err := os.WriteFile(aside, old, 0o755); err != nil {
				return err
			}
			return os.Symlink(aside, at)
		},
		"a symbolic link to this very program": func(at, _ string) error { return os.Symlink("/proc/self/exe", at) },
		"a symbolic link to nowhere":           func(at, _ string) error { return os.Symlink("nowhere", at) },
		"a symbolic link to itself":            func(at, _ string) error { return os.Symlink(filepath.Base(at), at) },
		"a pipe":                               func(at, _ string) error { return unix.Mkfifo(at, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at, aside := dir+"/fdinit", t.TempDir()+"/aside"
			if err := prepare(at, aside); err != nil {
				t.Fatal(err)
			}
			mustInstall(t, at, "", at)
			checkFiles(t, dir, "fdinit")
			if content, err := os.ReadFile(aside); err == nil && !bytes.Equal(content, old) {
				t.Error("the other file was changed")
			}
		})
	}
}

// TestInstallTwice: what is there and right is not touched, so that a restarted init
// container does not tear a running program's file away from under a page cache.
func TestInstallTwice(t *testing.T) {
	dir := t.TempDir()
	at := dir + "/fdinit"
	stat := func(name string) (st unix.Stat_t) {
		t.Helper()
		if err := unix.Lstat(name, &st); err != nil {
			t.Fatal(err)
		}
		st.Atim = unix.Timespec{}
		return st
	}
	mustInstall(t, at, "tini,dumb-init", at)
	before := []unix.Stat_t{stat(dir), stat(at), stat(dir + "/tini"), stat(dir + "/dumb-init")}
	mustInstall(t, at, "tini,dumb-init", at)
	mustInstall(t, dir, "tini", at)
	after := []unix.Stat_t{stat(dir), stat(at), stat(dir + "/tini"), stat(dir + "/dumb-init")}
	if !slices.Equal(before, after) {
		t.Errorf("something was changed:\n%+v\n%+v", before, after)
	}
	// A wrong mode is not right, nor is one byte.
	if err := os.Chmod(at, 0o755); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, at, "", at)
	if stat(at).Ino == before[1].Ino {
		t.Error("a file with another mode was left in place")
	}
	content := self(t)
	content[len(content)/2] ^= 1
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, content, 0o555); err != nil {
		t.Fatal(err)
	}
	mustInstall(t, at, "", at)
}

func TestInstallLinks(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.Symlink("elsewhere", dir+"/tini"),
		os.WriteFile(dir+"/dumb-init", []byte("old"), 0o755),
		os.Symlink("fdinit-but-longer", dir+"/catatonit"),
	); err != nil {
		t.Fatal(err)
	}
	// Its own name is no link, and the same name twice is one.
	mustInstall(t, dir, "tini,dumb-init,catatonit,fdinit,tini,docker-init,.x", dir+"/fdinit")
	checkFiles(t, dir, "fdinit", "tini -> fdinit", "dumb-init -> fdinit", "catatonit -> fdinit", "docker-init -> fdinit", ".x -> fdinit")

	// A directory does not give way.
	if err := os.Mkdir(dir+"/podman-init", 0o755); err != nil {
		t.Fatal(err)
	}
	want := "linking podman-init to " + dir + "/fdinit: " + unix.EISDIR.Error()
	if problem := installAt(dir, "podman-init"); !strings.HasPrefix(problem, want) {
		t.Errorf("got %q, want %q", problem, want)
	}
	checkFiles(t, dir, "fdinit", "tini -> fdinit", "dumb-init -> fdinit", "catatonit -> fdinit", "docker-init -> fdinit", ".x -> fdinit", "podman-init")

	// Names that are none are found before anything is done.
	for _, names := range []string{",", "tini,", ",tini", "tini,,dumb-init", ".", "..", "/", "a/b", "/tini", "tini/", "tini,../tini"} {
		dir := t.TempDir()
		problem := installAt(dir, names)
		if !strings.HasPrefix(problem, fmt.Sprintf("--install-as %q: ", names)) || !strings.Contains(problem, "is not a file name: use plain names such as tini,dumb-init; the links are created next to "+dir+"/fdinit") {
			t.Errorf("%q: %q", names, problem)
		}
		checkFiles(t, dir)
	}
}

// TestInstallProblems has what can be wrong with a place that needs no privileges to
// be made.
func TestInstallProblems(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(dir+"/file", []byte("x"), 0o644), os.MkdirAll(dir+"/sub/fdinit", 0o755)); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		dir + "/none/fdinit":                 fmt.Sprintf("installing at %[1]s/none/fdinit: no such file or directory: there is no directory %[1]s/none/: mount a volume there", dir),
		dir + "/none/":                       fmt.Sprintf("installing at %[1]s/none/: no such file or directory: there is no directory %[1]s/none/: mount a volume there", dir),
		dir + "/file/fdinit":                 fmt.Sprintf("installing at %[1]s/file/fdinit: not a directory: there is no directory %[1]s/file/: mount a volume there", dir),
		dir + "/sub":                         fmt.Sprintf("installing at %s/sub/fdinit: %v", dir, unix.EISDIR),
		dir + "/" + strings.Repeat("x", 256): fmt.Sprintf("installing at %s/%s: file name too long", dir, strings.Repeat("x", 256)),
	} {
		if problem := installAt(at, ""); problem != want {
			t.Errorf("%s:\n got %s\nwant %s", at, problem, want)
		}
	}
	checkFiles(t, dir, "file", "sub")
	checkFiles(t, dir+"/sub", "fdinit")
}

// onVolume runs f with a fresh tmpfs mounted at dir, in a mount namespace of its own
// that goes with its thread.
func onVolume(t *testing.T, options string, f func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	var skip error
	var group sync.WaitGroup
	group.Go(func() {
		runtime.LockOSThread() // and not unlocked, so that the thread ends with the goroutine
		if skip = unix.Unshare(unix.CLONE_NEWNS); skip != nil {
			return
		}
		if skip = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); skip != nil {
			return
		}
		if skip = unix.Mount("volume", dir, "tmpfs", 0, options); skip != nil {
			return
		}
		f(dir)
	})
	group.Wait()
	if skip != nil {
		t.Skip("needs the right to mount a tmpfs: ", skip)
	}
}

// TestInstallFullVolume: nothing is left behind, and what was there stays.
func TestInstallFullVolume(t *testing.T) {
	const remedy = ": no space left on device: the volume is full: it needs about 5 MiB"
	onVolume(t, "size=256k", func(dir string) {
		if problem := installAt(dir, "tini"); problem != "installing at "+dir+"/fdinit"+remedy {
			t.Error(problem)
		}
		checkFiles(t, dir)
		old := []byte("old")
		if err := os.WriteFile(dir+"/fdinit", old, 0o755); err != nil {
			t.Error(err)
		}
		if problem := installAt(dir, "tini"); problem != "installing at "+dir+"/fdinit"+remedy {
			t.Error(problem)
		}
		checkFiles(t, dir, "fdinit")
		if content, err := os.ReadFile(dir + "/fdinit"); err != nil || !bytes.Equal(content, old) {
			t.Errorf("%q, %v", content, err)
		}
	})
	// There may be room for the program, but no inode for the link.
	onVolume(t, "nr_inodes=2", func(dir string) {
		if problem := installAt(dir, "tini"); problem != "linking tini to "+dir+"/fdinit"+remedy {
			t.Error(problem)
		}
		checkFiles(t, dir, "fdinit")
	})
}

func TestInstallReadOnly(t *testing.T) {
	onVolume(t, "", func(dir string) {
		readOnly := func(flags uintptr) {
			if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
				t.Error(err)
			}
		}
		readOnly(unix.MS_RDONLY)
		want := "installing at " + dir + "/fdinit: read-only file system: mount a volume there that can be written"
		if problem := installAt(dir, ""); problem != want {
			t.Errorf("got %s\nwant %s", problem, want)
		}
		readOnly(0)
		if problem := installAt(dir, "tini"); problem != "" {
			t.Error(problem)
		}
		// Once it is there, there is nothing to write.
		readOnly(unix.MS_RDONLY)
		if problem := installAt(dir, "tini"); problem != "" {
			t.Error(problem)
		}
		if problem := installAt(dir, "dumb-init"); !strings.HasPrefix(problem, "linking dumb-init to "+dir+"/fdinit: read-only file system: ") {
			t.Error(problem)
		}
	})
}

func TestInstallNoexec(t *testing.T) {
	onVolume(t, "", func(dir string) {
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_NOEXEC, ""); err != nil {
			t.Error(err)
		}
		for range 2 { // nor is it any better the second time
			problem := installAt(dir, "tini")
			if !strings.Contains(problem, dir+"/fdinit") || !strings.Contains(problem, "cannot be executed from there") || !strings.Contains(problem, "noexec") {
				t.Error(problem)
			}
		}
		if err := exec.Command(dir + "/fdinit").Run(); !errors.Is(err, unix.EACCES) {
			t.Errorf("executing it: %v", err)
		}
	})
}

// TestInstallSimultaneously: containers that share a volume may install at the same
// moment, all as process 1. Whenever there is a file, it must be the whole one.
func TestInstallSimultaneously(t *testing.T) {
	want := self(t)
	for range 5 {
		dir := t.TempDir()
		at := dir + "/fdinit"
		done := make(chan struct{})
		var watcher, installers sync.WaitGroup
		watcher.Go(func() {
			for {
				var st unix.Stat_t
				if unix.Stat(at, &st) == nil && (st.Size != int64(len(want)) || st.Mode&0o777 != 0o555) {
					t.Errorf("there was a file of %d bytes, of %d, with mode %o", st.Size, len(want), st.Mode)
					return
				}
				select {
				case <-done:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		})
		for range 4 {
			installers.Go(func() {
				if problem := installAt(at, "tini,dumb-init"); problem != "" {
					t.Error(problem)
				}
			})
		}
		installers.Wait()
		close(done)
		watcher.Wait()
		checkInstalled(t, at)
		checkFiles(t, dir, "fdinit", "tini -> fdinit", "dumb-init -> fdinit")
		if t.Failed() {
			return
		}
	}
}

// built makes the program as it is shipped.
func built(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "built")
	build := exec.Command("go", "build", "-ldflags=-s -w -E=github.com/fdinit/fdinit/internal/freestanding.Entry", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("needs the go command and the sources: %v\n%s", err, out)
	}
	// Whatever the umask: others execute it, too.
	if err := os.Chmod(exe, 0o755); err != nil {
		t.Fatal(err)
	}
	return exe
}

// admit lets everybody into a directory for tests.
func admit(t *testing.T, dir string) {
	t.Helper()
	for ; dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInstalledProgram installs the real one, and uses it.
func TestInstalledProgram(t *testing.T) {
	exe := built(t)
	whole, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}

	t.Run("works", func(t *testing.T) {
		dir := t.TempDir()
		if out, err := exec.Command(exe, "--install", dir+"/fdinit", "--install-as=tini,dumb-init,catatonit").CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v, %s", err, out)
		}
		for name, want := range map[string]string{
			"fdinit": "fdinit version " + version, "tini": "tini version " + version, "dumb-init": "dumb-init v" + version, "catatonit": "tini version " + version,
		} {
			if out, err := exec.Command(dir+"/"+name, "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
				t.Errorf("%s: %v, %s", name, err, out)
			}
			err := exec.Command(dir+"/"+name, "--", "sh", "-c", "exit 9").Run()
			if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 9 {
				t.Errorf("%s: %v", name, err)
			}
		}
		// A copy installs itself, even over itself.
		if out, err := exec.Command(dir+"/tini", "--install="+dir).CombinedOutput(); err == nil {
			t.Errorf("tini has no --install: %s", out)
		}
		if out, err := exec.Command(dir+"/fdinit", "--install="+dir+"/tini").CombinedOutput(); err != nil {
			t.Errorf("%v, %s", err, out)
		}
		checkFiles(t, dir, "fdinit", "tini", "dumb-init -> fdinit", "catatonit -> fdinit")
		if content, err := os.ReadFile(dir + "/tini"); err != nil || !bytes.Equal(content, whole) {
			t.Errorf("the copy of the copy differs: %v", err)
		}
	})

	// A file that is being executed cannot be written to (ETXTBSY), but can be replaced.
	t.Run("over a running copy", func(t *testing.T) {
		dir := t.TempDir()
		at := dir + "/fdinit"
		if err := os.WriteFile(at, append(slices.Clone(whole), "another version"...), 0o755); err != nil {
			t.Fatal(err)
		}
		running := exec.Command(at, "cat")
		stdin, err := running.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Start(); err != nil {
			t.Fatal(err)
		}
		defer running.Wait()
		defer stdin.Close()
		if _, err := os.OpenFile(at, os.O_WRONLY, 0); !errors.Is(err, unix.ETXTBSY) {
			t.Errorf("it is not busy: %v", err)
		}
		if out, err := exec.Command(exe, "--install", at).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v, %s", err, out)
		}
		if content, err := os.ReadFile(at); err != nil || !bytes.Equal(content, whole) {
			t.Errorf("it was not replaced: %v", err)
		}
		if err := running.Process.Signal(unix.Signal(0)); err != nil {
			t.Errorf("the running one: %v", err)
		}
		checkFiles(t, dir, "fdinit")
	})

	t.Run("where one may not", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		install := exec.Command(exe, "--install", dir)
		user := os.Getuid()
		if user == 0 {
			// Root may write anywhere, and nobody else may enter what only root may.
			user = 65532
			install.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
			admit(t, filepath.Dir(dir))
			admit(t, filepath.Dir(exe))
		}
		out, err := install.CombinedOutput()
		want := fmt.Sprintf("fdinit: installing at %[1]s/fdinit: permission denied: user %[2]d may not write into %[1]s/\n", dir, user)
		if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 125 || string(out) != want {
			t.Errorf("%v\n got %s\nwant %s", err, out, want)
		}
	})

	// Killed at whatever moment, it leaves what was there before, or the whole program.
	t.Run("killed on the way", func(t *testing.T) {
		dir := t.TempDir()
		at := dir + "/fdinit"
		begin := time.Now()
		if err := exec.Command(exe, "--install", at).Run(); err != nil {
			t.Fatal(err)
		}
		duration := time.Since(begin)
		old := []byte("old")
		const times = 40
		before := 0
		for i := range times {
			if err := os.RemoveAll(at); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, old, 0o755); err != nil {
				t.Fatal(err)
			}
			install := exec.Command(exe, "--install", at)
			if err := install.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(duration * time.Duration(i) / times)
			install.Process.Kill()
			install.Wait()
			content, err := os.ReadFile(at)
			switch {
			case err != nil:
				t.Fatal(err)
			case bytes.Equal(content, old):
				before++
			case !bytes.Equal(content, whole):
				t.Fatalf("after %d/%d of %v there is a file of %d bytes", i, times, duration, len(content))
			}
		}
		t.Logf("killed %d times: %d times before the new file was there", times, before)
		// What was left behind does not disturb.
		if out, err := exec.Command(exe, "--install", at).CombinedOutput(); err != nil {
			t.Errorf("%v, %s", err, out)
		}
		if content, err := os.ReadFile(at); err != nil || !bytes.Equal(content, whole) {
			t.Errorf("in the end it is not there: %v", err)
		}
	})
}
