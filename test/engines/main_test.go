package engines

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const module = "github.com/fdinit/fdinit"

// What the tests work with, made once by TestMain.
var (
	repository string // the root of the project
	scratch    string // a directory for everything, removed at the end
	fdinit     string // the binary under test
	probe      string // the workload
)

// testCommit goes into the binary that is built here.
const testCommit = "0123abc"

func TestMain(m *testing.M) {
	if os.Getenv(sandboxRole) != "" {
		keepSandbox()
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse()
	// Engines spend most of their time waiting for each other.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	// What leaked into the test would look as if an engine had passed it on.
	_ = unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	defer func() { os.RemoveAll(scratch) }()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func prepare() error {
	_, file, _, _ := runtime.Caller(0)
	repository = filepath.Join(filepath.Dir(file), "../..")
	var err error
	// Short, because sockets live in it, whose paths end at 108 bytes.
	if scratch, err = os.MkdirTemp("", "fdinit-"); err != nil {
		return err
	}
	if err := os.Chmod(scratch, 0o755); err != nil {
		return err
	}
	probe = filepath.Join(scratch, "probe")
	if err := goBuild(filepath.Join(repository, "test/engines"), probe, "./probe", "-s -w"); err != nil {
		return err
	}
	if fdinit = os.Getenv("FDINIT_BINARY"); fdinit != "" {
		fdinit, err = filepath.Abs(fdinit)
		return err
	}
	fdinit = filepath.Join(scratch, "fdinit")
	return goBuild(repository, fdinit, "./cmd/fdinit", linkerFlags(testCommit))
}

// linkerFlags are those of the Makefile and the Dockerfile; TestDockerfile compares.
func linkerFlags(commit string) string {
	return "-s -w -buildid= -E=" + module + "/internal/freestanding.Entry -X main.commit=" + commit
}

func goBuild(dir, out, pkg, ldflags string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+ldflags, "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// skip ends a test that cannot run here.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("FDINIT_NO_SKIP") == "1" {
		t.Fatalf("cannot run: "+format, args...)
	}
	t.Skipf(format, args...)
}

// need skips a test without this program; pkg is the Debian package that has it.
func need(t *testing.T, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		skip(t, "%s is missing: apt-get install %s", program, pkg)
	}
	return path
}

// patience is how long anything may take on a slow machine that has other things to do.
// Only what never comes takes so long.
const patience = 5 * time.Minute

// stopPatience is, in seconds, how long an engine is to wait between asking a container to
// end and killing it. A container that had to be killed has another status.
const stopPatience = "240"

// eventually waits for a condition. The deadline only ends a test that has failed.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// installed copies an executable to where a rootfs or an image wants it.
func installed(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// deployed is a file of deploy/.
func deployed(name ...string) string {
	return filepath.Join(append([]string{repository, "deploy"}, name...)...)
}

// settled is a piece of shell that waits until process 1 is an init at rest. It lets go
// of the workload's descriptors and directory when the workload has started, so a quick
// workload can see it before that.
const settled = `i=0
	while [ $i -lt 2000 ] && [ "$(echo $(ls /proc/1/fd)) $(readlink /proc/1/cwd)" != "0 1 2 /" ]; do i=$((i+1)); sleep 0.1; done
	`

func words(text string) []string { return strings.Fields(text) }
