package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

var (
	stageBinary string // this test binary, where anybody may execute it
	probeBinary string // testdata's workload, see directory probe
	outputDir   string // the output of what was started
	scriptPath  string // $PATH of the scripts, which begins with the binaries
	workRoot    string

	privileged bool // namespaces can be made as we are
)

func TestMain(m *testing.M) {
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func prepareAndRun(m *testing.M) (int, error) {
	unix.Umask(0o022) // other users execute what is made here, and messages tell modes
	root, err := os.MkdirTemp("", "fdinit-e2e")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	binaries := filepath.Join(root, "bin")
	outputDir = filepath.Join(root, "out")
	workRoot = filepath.Join(root, "work")
	for _, dir := range []string{root, binaries, outputDir, workRoot} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
		// Other users must get through: MkdirTemp makes it 0700.
		if err := os.Chmod(dir, 0o755); err != nil {
			return 0, err
		}
	}
	scriptPath = binaries + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	stageBinary = filepath.Join(binaries, "stage")
	probeBinary = filepath.Join(binaries, "probe")
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	if err := copyFile(self, stageBinary); err != nil {
		return 0, err
	}
	if err := buildAll(binaries); err != nil {
		return 0, err
	}
	findPrivileges()
	return m.Run(), nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// entry makes the linker start at fdinit's own entry point: see the Makefile, which
// says the same.
const entry = "-s -w -buildid= -E=github.com/fdinit/fdinit/internal/freestanding.Entry"

func buildAll(dir string) error {
	build := func(in, name, ldflags, what string) error {
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+ldflags, "-o", filepath.Join(dir, name), what)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOAMD64=v1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		return os.Chmod(filepath.Join(dir, name), 0o755)
	}
	if err := build(".", "probe", "-s -w -E=main.Entry", "./probe"); err != nil {
		return err
	}
	if given := os.Getenv("FDINIT_BINARY"); given != "" {
		if err := copyFile(given, filepath.Join(dir, "fdinit")); err != nil {
			return err
		}
	} else if err := build("../..", "fdinit", entry, "./cmd/fdinit"); err != nil {
		return err
	}
	return build("../..", "fdinit-plain", "", "./cmd/fdinit")
}

// findPrivileges tries whether the namespaces can be had as we are, or only behind a
// user namespace.
func findPrivileges() {
	privileged = true
	s := &spec{}
	cmd := &exec.Cmd{Path: "/bin/true"}
	cmd.SysProcAttr, _ = s.attributes()
	privileged = cmd.Run() == nil
}

func TestBehaviour(t *testing.T) {
	// A fresh one each time, for -count.
	root, err := os.MkdirTemp(workRoot, "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		Cmds:               commands,
		RequireUniqueNames: true,
		WorkdirRoot:        root,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "privileged":
				return privileged, nil
			case "pidfs":
				_, err := pidfdID(os.Getpid())
				return err == nil, nil
			case "cores":
				// A pattern that begins with | or @ feeds a program instead.
				pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
				if err != nil || len(pattern) < 2 || pattern[0] == '|' || pattern[0] == '@' {
					return false, nil
				}
				if _, err := os.Stat(filepath.Dir(strings.TrimSpace(string(pattern)))); err != nil {
					return false, nil
				}
				var limit unix.Rlimit
				if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
					return false, err
				}
				limit.Max = unix.RLIM_INFINITY
				return unix.Setrlimit(unix.RLIMIT_CORE, &limit) == nil, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			// The script's files have been written. Whoever was started meanwhile may have
			// them open for writing until it has executed the stage: see starting.
			starting.Lock()
			//lint:ignore SA2001 it waits, and guards nothing
			starting.Unlock()
			if err := os.Chmod(e.WorkDir, 0o777); err != nil {
				return err
			}
			e.Setenv("PATH", scriptPath)
			e.Setenv("PROBE", probeBinary)
			s := &script{t: e.T()}
			e.Values[scriptKey{}] = s
			e.Defer(func() {
				if s.container != nil {
					s.container.kill()
				}
			})
			return nil
		},
	})
}
