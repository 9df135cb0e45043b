package engines

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A podman is a sandbox in which podman works and finds the base image.
type podman struct{ *sandbox }

func newPodman(t *testing.T) *podman {
	t.Helper()
	need(t, "podman", "podman")
	need(t, "conmon", "conmon")
	runc := need(t, "runc", "runc")
	s := newSandbox(t)
	// The engine's configuration is the one that users are told to write. This is what
	// such a machine needs besides: crun refuses a hybrid cgroup hierarchy, and podman asks
	// for more descriptors and processes than may be had without CAP_SYS_RESOURCE.
	limit := func(resource int) uint64 {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			t.Fatal(err)
		}
		return min(l.Max, 1<<20)
	}
	machine := fmt.Sprintf(`[containers]
default_ulimits = ["nofile=%[1]d:%[1]d", "nproc=%[2]d:%[2]d"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[engine.runtimes]
runc = [%[3]q]
`, limit(unix.RLIMIT_NOFILE), limit(unix.RLIMIT_NPROC), runc)
	for path, content := range map[string]string{
		"/etc/containers/containers.conf":                readFile(t, deployed("podman/containers.conf")),
		"/etc/containers/containers.conf.d/machine.conf": machine,
		"/etc/containers/storage.conf":                   "[storage]\ndriver = \"vfs\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n",
		"/etc/containers/policy.json":                    `{"default": [{"type": "insecureAcceptAnything"}]}`,
		"/etc/containers/registries.conf":                "unqualified-search-registries = []\n",
	} {
		s.write(t, path, content)
	}
	p := &podman{s}
	s.must(t, "podman", "import", baseArchive(t, s), "localhost/"+base)
	t.Cleanup(func() {
		// Removing the containers removes their cgroups, except the one above them all.
		for _, args := range [][]string{{"pod", "rm", "-fa", "-t", "0"}, {"rm", "-fa", "-t", "0"}} {
			if out, err := s.inside(context.Background(), "podman", args...).CombinedOutput(); err != nil {
				t.Errorf("podman %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	})
	return p
}

// podman runs a container to its end.
func (p *podman) podman(t *testing.T, args ...string) outcome {
	t.Helper()
	return p.run(t, nil, "podman", append([]string{"run", "--rm", "--network", "none"}, args...)...)
}

func TestPodman(t *testing.T) {
	p := newPodman(t)

	for _, c := range []struct {
		name  string
		flags string
		check func(t *testing.T, s state)
	}{
		{"--init-path", "--init-path " + installedFdinit, nil},
		{"init_path in containers.conf", "", nil},
		{"everything dropped", "--user 65532 --read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges", func(t *testing.T, s state) {
			if s.UID != 65532 || !s.NoNewPrivs {
				t.Errorf("%+v", s)
			}
		}},
		{"terminal", "-t", func(t *testing.T, s state) {
			if s.Foreground == 0 || s.Foreground != s.Group {
				t.Errorf("the terminal belongs to group %d, the workload's is %d", s.Foreground, s.Group)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const script = settled + `tr '\0' ' ' </proc/1/cmdline; echo; echo "init:" $(ls /proc/1/fd); exec probe state`
			o := p.podman(t, append(words("--init "+c.flags), base, "sh", "-c", script)...)
			output := strings.ReplaceAll(o.stdout, "\r", "")
			lines := strings.Split(strings.TrimSpace(output), "\n")
			if o.status != 0 || !strings.HasPrefix(output, "/run/podman-init -- sh -c ") || !strings.Contains(output, "\ninit: 0 1 2\n") {
				t.Fatal(o)
			}
			s := parseState(t, lines[len(lines)-1])
			s.onlyStandard(t)
			if s.PPID != 1 {
				t.Errorf("%+v", s)
			}
			if c.check != nil {
				c.check(t, s)
			}
		})
	}

	t.Run("exit status", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			want    int
			command []string
		}{
			{3, []string{"sh", "-c", "exit 3"}},
			{143, []string{"sh", "-c", "kill -TERM $$"}},
			// catatonit's own answer to a program that is not there.
			{1, []string{"/no/such/program"}},
		} {
			o := p.podman(t, append([]string{"--init", base}, c.command...)...)
			if o.status != c.want {
				t.Errorf("%q: want %d, %s", c.command, c.want, o)
			}
		}
	})

	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		id := p.must(t, "podman", "run", "-d", "--network", "none", "--init", base, "sh", "-c", `trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done`)
		eventually(t, "the container is ready", func() bool { return p.run(t, nil, "podman", "logs", id).stdout == "ready\n" })
		p.must(t, "podman", "stop", "-t", stopPatience, id)
		if got := p.must(t, "podman", "inspect", "--format", "{{.State.ExitCode}}", id); got != "7" {
			t.Errorf("status %s", got)
		}
	})

	// The engine passes descriptors on, and no variable says so.
	t.Run("--preserve-fds", func(t *testing.T) {
		t.Parallel()
		var files []*os.File
		for range 2 {
			f, err := os.CreateTemp(p.dir, "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			files = append(files, f)
		}
		names := func(files []*os.File) (names []string) {
			for _, f := range files {
				var st unix.Stat_t
				if err := unix.Fstat(int(f.Fd()), &st); err != nil {
					t.Fatal(err)
				}
				names = append(names, fmt.Sprintf("%d:%d", st.Dev, st.Ino))
			}
			return names
		}(files)
		for _, c := range []struct {
			flags string
			kept  []int
		}{
			{"--init", []int{3, 4}},
			{"--init -e FDINIT_KEEP_FDS=4", []int{4}},
			// Under its own name fdinit closes what nobody asked it to keep.
			{"-v " + installedFdinit + ":/fdinit:ro --entrypoint /fdinit", nil},
			{"-v " + installedFdinit + ":/fdinit:ro --entrypoint /fdinit -e FDINIT_KEEP_FDS=3-4", []int{3, 4}},
		} {
			args := append([]string{"run", "--rm", "--network", "none", "--preserve-fds", "2"}, words(c.flags)...)
			o := p.run(t, files, "podman", append(args, base, "sh", "-c", settled+`ls /proc/1/fd | tr '\n' ' '; echo; exec probe state`)...)
			descriptors, text, _ := strings.Cut(o.stdout, "\n")
			if o.status != 0 || descriptors != "0 1 2 " {
				t.Errorf("%s: %s", c.flags, o)
				continue
			}
			s := parseState(t, text)
			want := map[int]string{0: s.Descriptors[0], 1: s.Descriptors[1], 2: s.Descriptors[2]}
			for _, fd := range c.kept {
				want[fd] = names[fd-3]
			}
			if fmt.Sprint(s.Descriptors) != fmt.Sprint(want) {
				t.Errorf("%s: descriptors %v, want %v", c.flags, s.Descriptors, want)
			}
		}
	})

	t.Run("socket activation", func(t *testing.T) {
		t.Parallel()
		for _, flags := range []string{"--init", "-v " + installedFdinit + ":/fdinit:ro --entrypoint /fdinit"} {
			t.Run(flags[:6], func(t *testing.T) {
				l, err := net.Listen("unix", p.path(fmt.Sprintf("activation%d", len(flags))))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				file, err := l.(*net.UnixListener).File()
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				answer := make(chan string, 1)
				go func() {
					// The listener is the container's by now: nobody here accepts.
					conn, err := net.Dial("unix", l.Addr().String())
					if err != nil {
						answer <- err.Error()
						return
					}
					defer conn.Close()
					line, _ := bufio.NewReader(conn).ReadString('\n')
					answer <- line
				}()
				// LISTEN_PID has to be podman's own process, which the shell becomes.
				o := p.run(t, []*os.File{file}, "sh", "-c", "export LISTEN_FDS=1 LISTEN_PID=$$; exec podman run --rm --network none "+flags+" "+base+" probe accept")
				if o.status != 0 {
					t.Fatal(o)
				}
				var got struct {
					PID        int
					LISTEN_PID string
					LISTEN_FDS string
					Init       []string
				}
				if err := json.Unmarshal([]byte(<-answer), &got); err != nil {
					t.Fatal(err)
				}
				// catatonit issue 13: LISTEN_PID=1 is wrong under an init. Issue 12: nor may the
				// init hold on to the socket.
				if got.PID == 1 || got.LISTEN_PID != strconv.Itoa(got.PID) || got.LISTEN_FDS != "1" || fmt.Sprint(got.Init) != "[0 1 2]" {
					t.Errorf("%+v", got)
				}
			})
		}
	})

	t.Run("pod", func(t *testing.T) {
		t.Parallel()
		p.must(t, "podman", "pod", "create", "--network", "none", "--share", "pid,ipc,uts", "--name", "paused")
		// podman does not wait until the pause process has been executed, let alone until it waits.
		const waiting = settled + `while [ $i -lt 2000 ] && ! grep -q 'State:.S' /proc/1/status; do i=$((i+1)); sleep 0.1; done
			`
		o := p.run(t, nil, "podman", "run", "--rm", "--pod", "paused", base, "sh", "-c", waiting+`tr '\0' ' ' </proc/1/cmdline; echo; sha256sum </proc/1/exe; grep -E 'State|Threads' /proc/1/status; ls /proc/1/fd; readlink /proc/1/cwd; exec probe orphans 20`)
		sum, _, _ := strings.Cut(p.must(t, "sha256sum", installedFdinit), " ")
		want := regexp.MustCompile(`^/catatonit -P \n` + sum + `  -\nState:\tS \(sleeping\)\nThreads:\t1\n0\n1\n2\n/\nreaped 20\n$`)
		if o.status != 0 || !want.MatchString(o.stdout) {
			t.Errorf("want %s\n%s", want, o)
		}
		infra := p.must(t, "podman", "pod", "inspect", "--format", "{{.InfraContainerID}}", "paused")
		p.must(t, "podman", "pod", "stop", "-t", stopPatience, "paused")
		if got := p.must(t, "podman", "inspect", "--format", "{{.State.ExitCode}} {{.State.Running}}", infra); got != "0 false" {
			t.Errorf("the pause process ended with %s", got)
		}
	})
}
