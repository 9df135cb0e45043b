package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A runc is a sandbox with a root file system for bundles. There is no engine between
// the test and the runtime, so a bundle can be as strange as the specification allows.
type runc struct{ *sandbox }

func newRunc(t *testing.T) *runc {
	t.Helper()
	need(t, "runc", "runc")
	r := &runc{newSandbox(t)}
	baseTree(t, r.path("rootfs"))
	installed(t, fdinit, r.path("rootfs/fdinit"))
	return r
}

// bundle writes a bundle that runs fdinit with these arguments, changed by adjust.
func (r *runc) bundle(t *testing.T, adjust func(*specs.Spec), args ...string) (id string) {
	t.Helper()
	capabilities := []string{"CAP_KILL", "CAP_SETUID", "CAP_SETGID", "CAP_DAC_OVERRIDE"}
	spec := &specs.Spec{
		Version: "1.0.2", // as old as the oldest runc in use
		Root:    &specs.Root{Path: r.path("rootfs"), Readonly: true},
		Process: &specs.Process{
			Args: append([]string{"/fdinit"}, args...),
			Env:  []string{"PATH=/bin"},
			Cwd:  "/",
			Capabilities: &specs.LinuxCapabilities{
				Bounding: capabilities, Effective: capabilities, Permitted: capabilities,
			},
			NoNewPrivileges: true,
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"newinstance", "ptmxmode=0666", "mode=0620"}},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=1777"}},
		},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace},
				{Type: specs.MountNamespace},
				{Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace},
				{Type: specs.NetworkNamespace},
			},
		},
	}
	if adjust != nil {
		adjust(spec)
	}
	dir, err := os.MkdirTemp(r.dir, "bundle")
	if err != nil {
		t.Fatal(err)
	}
	spec.Linux.CgroupsPath = "/engines/" + filepath.Base(dir)
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/config.json", string(text))
	return dir
}

// launch runs a bundle to its end, with these files as descriptors 3 and up.
func (r *runc) launch(t *testing.T, files []*os.File, adjust func(*specs.Spec), args ...string) outcome {
	t.Helper()
	bundle := r.bundle(t, adjust, args...)
	return r.run(t, files, "runc", "run", "--preserve-fds", fmt.Sprint(len(files)), "--bundle", bundle, filepath.Base(bundle))
}

// leaks are descriptors that a runtime passes on.
func leaks(t *testing.T, n int) (files []*os.File, names []string) {
	t.Helper()
	for range n {
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		files, names = append(files, f), append(names, fmt.Sprintf("%d:%d", st.Dev, st.Ino))
	}
	return files, names
}

func TestRunc(t *testing.T) {
	r := newRunc(t)

	// Where the engine passes them on, they are there without fdinit.
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		files, names := leaks(t, 3)
		o := r.launch(t, files, func(s *specs.Spec) { s.Process.Args = []string{"/bin/probe", "state"} })
		if s := parseState(t, o.stdout); s.PID != 1 || len(s.Descriptors) != 6 || s.Descriptors[5] != names[2] {
			t.Errorf("%s", o)
		}
	})

	nonroot := func(s *specs.Spec) {
		s.Process.User = specs.User{UID: 65532, GID: 65532}
		s.Process.Capabilities = &specs.LinuxCapabilities{}
	}
	refuse := func(errno unix.Errno, names ...string) func(*specs.Spec) {
		return func(s *specs.Spec) {
			code := uint(errno)
			s.Linux.Seccomp = &specs.LinuxSeccomp{
				DefaultAction: specs.ActAllow,
				Architectures: []specs.Arch{specs.ArchX86_64},
				Syscalls:      []specs.LinuxSyscall{{Names: names, Action: specs.ActErrno, ErrnoRet: &code}},
			}
		}
	}
	for _, c := range []struct {
		name   string
		adjust []func(*specs.Spec)
		check  func(t *testing.T, s state)
	}{
		{name: "read-only root, root"},
		{"no user, no capability", []func(*specs.Spec){nonroot}, func(t *testing.T, s state) {
			if s.UID != 65532 || !s.NoNewPrivs {
				t.Errorf("%+v", s)
			}
		}},
		{name: "close_range is not there", adjust: []func(*specs.Spec){refuse(unix.ENOSYS, "close_range")}},
		{name: "close_range is not allowed", adjust: []func(*specs.Spec){refuse(unix.EPERM, "close_range")}},
		{name: "no subreaper, no process group, no limits", adjust: []func(*specs.Spec){nonroot, refuse(unix.EPERM, "setpgid", "prlimit64", "getrlimit", "setrlimit", "chdir", "getcwd")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files, _ := leaks(t, 5)
			o := r.launch(t, files, func(s *specs.Spec) {
				for _, adjust := range c.adjust {
					adjust(s)
				}
			}, "--", "probe", "state")
			if o.status != 0 || o.stderr != "" {
				t.Fatal(o)
			}
			s := parseState(t, o.stdout)
			s.onlyStandard(t)
			if s.PPID != 1 {
				t.Errorf("%+v", s)
			}
			if c.check != nil {
				c.check(t, s)
			}
		})
	}

	// runc itself needs /proc and makes /dev/null, so a shell removes them and then becomes
	// fdinit, process 1 of a container that has neither.
	strip := func(s *specs.Spec, script string) {
		s.Process.Args = append([]string{"/bin/sh", "-c", script, "sh"}, s.Process.Args...)
		all := append([]string{"CAP_SYS_ADMIN"}, s.Process.Capabilities.Bounding...)
		s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all}
	}
	for _, c := range []struct {
		name, script string
		adjust       func(*specs.Spec)
		workload     string
	}{
		{"no /proc", `umount /proc && exec "$@"`, nil, ""},
		{"no /proc and no close_range", `umount /proc && exec "$@"`, refuse(unix.ENOSYS, "close_range"), ""},
		{"no /proc, no close_range, no poll", `umount /proc && exec "$@"`, refuse(unix.EPERM, "close_range", "poll", "ppoll"), ""},
		{"no /dev/null", `rm /dev/null && exec "$@"`, nil, ""},
		// The probe is a Go program, which does not start without 0, 1 and 2.
		{"no /dev/null and nothing on stdin", `rm /dev/null && exec "$@" <&-`, nil, "</etc/passwd"},
		{"nothing on stdin", `exec "$@" <&-`, nil, ""},
		{"no /proc, no /dev/null, no close_range", `rm /dev/null && umount /proc && exec "$@"`, refuse(unix.EPERM, "close_range"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files, _ := leaks(t, 5)
			o := r.launch(t, files, func(s *specs.Spec) {
				strip(s, c.script)
				if c.adjust != nil {
					c.adjust(s)
				}
			}, "--", "sh", "-c", `test -e /proc/self || echo "no proc" >&2; test -e /dev/null || echo "no null" >&2; exec probe state `+c.workload)
			if o.status != 0 {
				t.Fatal(o)
			}
			want := ""
			if strings.Contains(c.script, "umount") {
				want += "no proc\n"
			}
			if strings.Contains(c.script, "rm") {
				want += "no null\n"
			}
			if o.stderr != want {
				t.Errorf("stderr: %q", o.stderr)
			}
			s := parseState(t, o.stdout)
			s.onlyStandard(t)
			if s.PPID != 1 || s.PID == 1 {
				t.Errorf("%+v", s)
			}
		})
	}

	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		limits := func(s *specs.Spec) {
			s.Process.Rlimits = []specs.POSIXRlimit{
				{Type: "RLIMIT_NOFILE", Soft: 5000, Hard: 9000},
				{Type: "RLIMIT_CORE", Soft: 0, Hard: 4096},
				{Type: "RLIMIT_NPROC", Soft: 600, Hard: 700},
			}
		}
		for _, c := range []struct {
			options []string
			want    string
		}{
			// What fdinit leaves alone, and what PID 1 keeps for itself in any case.
			{nil, "5000:9000"},
			{[]string{"--nofile=keep"}, "5000:9000"},
			{[]string{"--nofile=hard"}, "9000:9000"},
			{[]string{"--nofile=1024:2048"}, "1024:2048"},
			{[]string{"--rlimit=nofile=77"}, "77:9000"},
		} {
			o := r.launch(t, nil, limits, append(c.options, "--", "sh", "-c",
				`echo $(ulimit -Sn):$(ulimit -Hn); grep "open files" /proc/1/limits; grep "core file" /proc/self/limits`)...)
			want := c.want + "\nMaxopenfiles50009000files\nMaxcorefilesize04096bytes\n"
			if got := strings.ReplaceAll(o.stdout, " ", ""); o.status != 0 || got != want {
				t.Errorf("%q: want %q, %s", c.options, want, o)
			}
		}
		o := r.launch(t, nil, limits, "--nofile=1000:10000", "--", "echo", "did run")
		if o.status != 125 || o.stdout != "" || !strings.Contains(o.stderr, "CAP_SYS_RESOURCE") {
			t.Errorf("raising a hard limit: %s", o)
		}
	})

	t.Run("socket activation", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("unix", r.path("activation"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		file, err := l.(*net.UnixListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		extra, names := leaks(t, 1)
		// runc takes the variables from its own environment, and says LISTEN_PID=1 instead.
		bundle := r.bundle(t, nil, "--", "probe", "state")
		o := r.run(t, append([]*os.File{file}, extra...), "sh", "-c",
			fmt.Sprintf("export LISTEN_FDS=1 LISTEN_PID=$$; exec runc run --preserve-fds 1 --bundle %s %s", bundle, filepath.Base(bundle)))
		if o.status != 0 {
			t.Fatal(o)
		}
		s := parseState(t, o.stdout)
		var st unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		environment := strings.Join(s.Environment, " ")
		if len(s.Descriptors) != 4 || s.Descriptors[3] != fmt.Sprintf("%d:%d", st.Dev, st.Ino) ||
			!strings.Contains(environment, fmt.Sprintf("LISTEN_PID=%d", s.PID)) || !strings.Contains(environment, "LISTEN_FDS=1") {
			t.Errorf("%+v, the one that was not announced is %s", s, names[0])
		}
	})

	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		for _, adjust := range []func(*specs.Spec){func(*specs.Spec) {}, nonroot} {
			bundle := r.bundle(t, func(s *specs.Spec) {
				adjust(s)
				s.Process.Terminal = true
			}, "--", "sh", "-c", `trap 'echo interrupted; exit 6' INT; probe state; while :; do sleep 0.1; done`)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := r.inside(ctx, "runc", "run", "--bundle", bundle, filepath.Base(bundle))
			screen := typed(t, cmd, `\}\r*\n`, [2]string{"\x03", `interrupted`})
			text := screen[strings.Index(screen, "{") : strings.LastIndex(screen, "}")+1]
			if s := parseState(t, text); s.Foreground == 0 || s.Foreground != s.Group {
				t.Errorf("the terminal belongs to group %d, the workload's is %d", s.Foreground, s.Group)
			}
			if cmd.ProcessState.ExitCode() != 6 {
				t.Errorf("status %d\n%s", cmd.ProcessState.ExitCode(), screen)
			}
		}
	})
}
