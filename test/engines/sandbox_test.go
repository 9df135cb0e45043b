package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sandboxRole is set for the process that keeps a sandbox.
const sandboxRole = "FDINIT_ENGINES_SANDBOX"

// Where fdinit is installed in a sandbox, under the names by which engines look for
// their init. Both directories come first in the engines' own search.
const (
	installedFdinit    = "/usr/local/bin/fdinit"
	installedDocker    = "/usr/local/libexec/docker/docker-init"
	installedCatatonit = "/usr/local/libexec/podman/catatonit"
)

// A sandbox is a mount and a PID namespace, and a directory outside of them.
type sandbox struct {
	dir  string
	pid  int
	env  []string
	held io.Closer
	cmd  *exec.Cmd
}

// newSandbox makes a sandbox that lasts as long as the test.
func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "container engines need root here")
	}
	need(t, "nsenter", "util-linux")
	dir, err := os.MkdirTemp(scratch, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &sandbox{dir: dir}
	for _, sub := range []string{"tmp", "home"} {
		if err := os.Mkdir(s.path(sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=xterm",
		"HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"), "XDG_RUNTIME_DIR=/run",
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(self)
	s.cmd.Env = append([]string{sandboxRole + "=" + fdinit}, s.env...)
	var messages bytes.Buffer
	s.cmd.Stderr = &messages
	ready, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.held, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.pid = s.cmd.Process.Pid
	before := engineCgroups()
	t.Cleanup(func() {
		s.end(t)
		removeCgroups(before)
	})
	if line, err := io.ReadAll(io.LimitReader(ready, 6)); err != nil || string(line) != "ready\n" {
		s.held.Close()
		_ = s.cmd.Wait()
		t.Fatalf("the sandbox is not ready: %v %s", err, messages.String())
	}
	return s
}

// end kills whatever is still there.
func (s *sandbox) end(t *testing.T) {
	s.held.Close()
	_ = s.cmd.Wait()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Errorf("something is left behind: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(s.dir)) {
		t.Errorf("mounts are left behind: %v", err)
	}
}

// engineCgroups are the directories in which engines make those of their containers,
// and which they leave.
func engineCgroups() map[string]bool {
	found := map[string]bool{}
	for _, pattern := range []string{"/sys/fs/cgroup/%s", "/sys/fs/cgroup/*/%s"} {
		for _, name := range []string{"docker", "libpod_parent", "buildah*", "engines*"} {
			dirs, _ := filepath.Glob(fmt.Sprintf(pattern, name))
			for _, dir := range dirs {
				found[dir] = true
			}
		}
	}
	return found
}

// removeCgroups removes those that were not there before. The kernel refuses where a
// process is left, such as one of a test that runs beside this one.
func removeCgroups(before map[string]bool) {
	for dir := range engineCgroups() {
		if before[dir] {
			continue
		}
		var all []string
		_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				all = append(all, path)
			}
			return nil
		})
		for _, path := range slices.Backward(all) {
			_ = unix.Rmdir(path)
		}
	}
}

func (s *sandbox) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

// keepSandbox is process 1 of a sandbox: it arranges the mounts, then reaps until its
// stdin, the pipe from the test, ends.
func keepSandbox() {
	if err := arrange(os.Getenv(sandboxRole)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			for {
				if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.EINTR {
					continue
				} else if err != nil || pid == 0 {
					break
				}
			}
		}
	}()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func arrange(binary string) error {
	mount := func(source, target, kind string, flags uintptr, data string) error {
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
		return nil
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/dev/shm", "/etc/containers", "/etc/docker", "/var/lib/containers", "/var/lib/cni", "/etc/cni"} {
		// Nothing to hide where there is nothing.
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	// An upper directory on a tmpfs works even where / is an overlay itself.
	layers := "/run/usr-local"
	if err := errors.Join(os.MkdirAll(layers+"/upper", 0o755), os.MkdirAll(layers+"/work", 0o755)); err != nil {
		return err
	}
	if err := mount("overlay", "/usr/local", "overlay", 0, "lowerdir=/usr/local,upperdir="+layers+"/upper,workdir="+layers+"/work"); err != nil {
		return err
	}
	if err := os.WriteFile(installedFdinit, content, 0o755); err != nil {
		return err
	}
	for _, link := range []string{installedDocker, installedCatatonit} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(installedFdinit, link)); err != nil {
			return err
		}
	}
	return nil
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	status         int
}

func (o outcome) String() string {
	return fmt.Sprintf("status %d\nstdout: %s\nstderr: %s", o.status, o.stdout, o.stderr)
}

// inside is a command that will run in the sandbox.
func (s *sandbox) inside(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(s.pid), "-m", "-p", "--", name}, args...)...)
	cmd.Env = s.env
	// nsenter does not hand signals on, and what it started may hold the pipes. Reading
	// what is left in them may take a moment, too.
	cmd.WaitDelay = time.Minute
	return cmd
}

// run runs a command in the sandbox to its end. The files become descriptors 3 and up.
func (s *sandbox) run(t *testing.T, files []*os.File, name string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := s.inside(ctx, name, args...)
	cmd.ExtraFiles = files
	return finish(t, ctx, cmd)
}

func finish(t *testing.T, ctx context.Context, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	o := outcome{stdout: stdout.String(), stderr: stderr.String(), status: cmd.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		t.Fatalf("%s does not end\n%s", strings.Join(cmd.Args, " "), o)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
	return o
}

// must runs a command that has to succeed and returns what it printed.
func (s *sandbox) must(t *testing.T, args ...string) string {
	t.Helper()
	o := s.run(t, nil, args[0], args[1:]...)
	if o.status != 0 {
		t.Fatalf("%s: %s", strings.Join(args, " "), o)
	}
	return strings.TrimSpace(o.stdout)
}

// write makes a file that exists in the sandbox only.
func (s *sandbox) write(t *testing.T, path, content string) {
	t.Helper()
	// The sandbox's view of the file system, as process 1 there has it.
	writeFile(t, filepath.Join("/proc", strconv.Itoa(s.pid), "root", path), content)
}
