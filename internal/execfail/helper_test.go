package execfail

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// helperVariable makes the test binary a helper: a process of its own that changes its
// identity, limits, mounts or root as a scenario asks, tries to execute the command,
// and explains the failure from within.
const helperVariable = "EXECFAIL_TEST_SCENARIO"

// scenario is what a helper does.
type scenario struct {
	Command string
	Path    string
	PathSet bool
	Steps   []step
	// Self executes in the helper's own place instead of a child: for what belongs to
	// the process, not to its children.
	Self bool
	// Namespace puts the helper into a user namespace of its own, with a mount
	// namespace.
	Namespace bool
}

type step struct{ Do, Arg string }

// outcome is what a helper answers.
type outcome struct {
	Errno       syscall.Errno
	Explanation Explanation
	Failed      string // a step that could not be made
}

func TestMain(m *testing.M) {
	if s := os.Getenv(helperVariable); s != "" {
		helper(s)
		return
	}
	os.Exit(m.Run())
}

func helper(text string) {
	// Capabilities and namespaces belong to threads.
	runtime.LockOSThread()
	var s scenario
	var o outcome
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		o.Failed = err.Error()
	}
	os.Unsetenv(helperVariable)
	for _, st := range s.Steps {
		if o.Failed != "" {
			break
		}
		if err := st.take(); err != nil {
			o.Failed = fmt.Sprintf("%s %s: %v", st.Do, st.Arg, err)
		}
	}
	if o.Failed == "" {
		a := Attempt{Command: s.Command, Path: s.Path, PathSet: s.PathSet}
		if s.Self {
			a.Errno, _ = syscall.Exec(s.Command, []string{s.Command}, nil).(syscall.Errno)
		} else {
			a.Errno = try(a)
		}
		o.Errno = a.Errno
		o.Explanation = Explain(a)
	}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func (s step) take() error {
	n, _ := strconv.Atoi(s.Arg)
	switch s.Do {
	case "setuid":
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setresgid(n, n, n); err != nil {
			return err
		}
		return syscall.Setresuid(n, n, n)
	case "mount noexec":
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount(s.Arg, s.Arg, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return unix.Mount("", s.Arg, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOEXEC, "")
	case "chroot":
		if err := unix.Chroot(s.Arg); err != nil {
			return err
		}
		return os.Chdir("/")
	case "chdir":
		return os.Chdir(s.Arg)
	case "forget capability":
		return unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0)
	case "lose capability":
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		data[n/32].Effective &^= 1 << (n % 32)
		data[n/32].Permitted &^= 1 << (n % 32)
		return unix.Capset(&header, &data[0])
	case "mount binfmt_misc":
		return unix.Mount("binfmt_misc", s.Arg, "binfmt_misc", 0, "")
	case "register emulator":
		where, rule, _ := strings.Cut(s.Arg, " ")
		return os.WriteFile(where+"/register", []byte(rule), 0)
	case "crowd user":
		return crowd(n)
	case "refuse execve":
		return refuse(unix.SYS_EXECVE, n)
	case "refuse statx":
		return refuse(unix.SYS_STATX, n)
	}
	return fmt.Errorf("unknown step")
}

// crowd becomes a user who has more processes than RLIMIT_NPROC allows. That is judged
// when the user id changes, before this thread counts itself: another thread has to be
// there already.
func crowd(uid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{}); err != nil {
		return err
	}
	there := make(chan error)
	go func() {
		runtime.LockOSThread()
		var err error
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
		}
		there <- err
		select {}
	}()
	if err := <-there; err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// refuse installs a seccomp filter that answers a system call with an errno.
func refuse(call uint32, errno int) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return installFilter(filter)
}

// ask runs a scenario in a helper.
func ask(t *testing.T, s scenario) outcome {
	t.Helper()
	kernelRuns(t)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), helperVariable+"="+string(text))
	if s.Namespace {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if s.Namespace && errors.Is(err, syscall.EPERM) {
		t.Skip("user namespaces are not allowed here: ", err)
	}
	if err != nil {
		t.Fatalf("helper: %v\n%s%s", err, out, stderr.String())
	}
	var o outcome
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("helper answered %q: %v", out, err)
	}
	if o.Failed != "" {
		t.Skip("this machine does not let the test prepare itself: " + o.Failed)
	}
	return o
}

// try really executes a command by the rules of execvp(3), as fdinit does, and returns
// the kernel's answer.
func try(a Attempt, more ...string) syscall.Errno {
	argv := append([]string{a.Command}, more...)
	if strings.Contains(a.Command, "/") || a.Command == "" {
		return execute(a.Command, argv)
	}
	answer := unix.ENOENT
	for _, dir := range strings.Split(a.Path, ":") {
		file := a.Command
		if dir != "" {
			file = dir + "/" + a.Command
		}
		switch errno := execute(file, argv); errno {
		case unix.ENOENT, unix.ENOTDIR:
		case unix.EACCES:
			answer = errno
		default:
			return errno
		}
	}
	return answer
}

func execute(file string, argv []string) syscall.Errno {
	errno := forkExec(file, argv)
	if errno != unix.ENOEXEC {
		return errno
	}
	switch shell := forkExec("/bin/sh", []string{"sh", "-c", "exit 0"}); shell {
	case 0:
		// A shell is here, so fdinit would have succeeded in starting it; the tests
		// want the kernel's own answer.
		return errno
	case unix.ENOENT:
		return errno // fdinit does not tell that there is no shell
	default:
		return shell
	}
}

func forkExec(file string, argv []string) syscall.Errno {
	pid, err := syscall.ForkExec(file, argv, &syscall.ProcAttr{Env: []string{}})
	if err != nil {
		errno, _ := err.(syscall.Errno)
		return errno
	}
	for {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			return 0
		}
	}
}

// check tries a command for real and compares the explanation, in which DIR stands for
// the directory of the test.
func check(t *testing.T, dir string, a Attempt, errno syscall.Errno, want string, more ...string) {
	t.Helper()
	a.Errno = try(a, more...)
	if a.Errno != errno {
		t.Fatalf("the kernel answered %q (%d), expected %q", a.Errno.Error(), a.Errno, errno.Error())
	}
	judge(t, dir, outcome{a.Errno, Explain(a), ""}, errno, want)
	// When the answer was lost, the file alone must lead to the same words, unless they
	// need the errno.
	switch errno {
	case unix.ETXTBSY, unix.E2BIG:
		return
	}
	a.Errno = 0
	judge(t, dir, outcome{errno, Explain(a), ""}, errno, want)
}

func judge(t *testing.T, dir string, o outcome, errno syscall.Errno, want string) {
	t.Helper()
	if o.Errno != errno {
		t.Fatalf("the kernel answered %q (%d), expected %q", o.Errno.Error(), o.Errno, errno.Error())
	}
	got := o.Explanation.String()
	if dir != "" {
		got = strings.ReplaceAll(got, dir, "DIR")
	}
	t.Log(got)
	if got != want {
		t.Errorf("explained as\n%s\nexpected\n%s", got, want)
	}
}

// kernelRuns skips a test where the kernel does not run the programs of the platform
// that the test is built for: under an emulator of user space. There the kernel's
// answers are those of another platform.
func kernelRuns(t *testing.T) {
	t.Helper()
	m := native(t)
	m.loader = "/no/such/loader\x00"
	name := put(t, 0o755, m.bytes(), t.TempDir(), "probe")
	if errno := forkExec(name, []string{name}); errno != unix.ENOENT {
		t.Skip("the kernel does not run programs for " + runtime.GOARCH + ": this is an emulator")
	}
}

// put writes a file.
func put(t *testing.T, mode os.FileMode, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func makeDir(t *testing.T, mode os.FileMode, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func makeLink(t *testing.T, target string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to change identity or mounts")
	}
}
