package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// state mirrors what the probe prints.
type state struct {
	PID, PPID, UID, GID int
	Group, Session      int
	Foreground          int
	NoNewPrivs          bool
	Descriptors         map[int]string
	Environment         []string
	Directory           string
}

func parseState(t *testing.T, text string) state {
	t.Helper()
	var s state
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return s
}

// onlyStandard demands that nothing but 0, 1 and 2 is open.
func (s state) onlyStandard(t *testing.T) {
	t.Helper()
	if len(s.Descriptors) != 3 || s.Descriptors[0] == "" || s.Descriptors[1] == "" || s.Descriptors[2] == "" {
		t.Errorf("the workload's descriptors are %v", s.Descriptors)
	}
}

// A dockerd is a daemon of our own in a sandbox.
type dockerd struct {
	*sandbox
	pid int
	log string
}

// base is the name of the image that holds the base tree.
const base = "base"

func startDockerd(t *testing.T, flags ...string) *dockerd {
	t.Helper()
	need(t, "dockerd", "docker.io")
	need(t, "docker", "docker.io")
	need(t, "containerd", "docker.io")
	need(t, "runc", "runc")
	s := newSandbox(t)
	d := &dockerd{sandbox: s, log: s.path("dockerd.log")}
	// DOCKER_BUILDKIT: the classic builder is in the daemon, the other one may not be here.
	s.env = append(s.env, "DOCKER_HOST=unix://"+s.path("docker.sock"), "DOCKER_BUILDKIT=0", "DOCKER_CONFIG="+s.path("home"), "COMPOSE_PROJECT_NAME=engines", "COMPOSE_HTTP_TIMEOUT="+stopPatience)

	var ended chan error
	t.Cleanup(func() { d.stop(t, ended) })
	// It gives its containerd fifteen seconds to start, and gives up itself if that is late.
	for try := 1; ; try++ {
		ended = d.start(t, flags...)
		up := false
		eventually(t, "dockerd answers, or ends", func() bool {
			select {
			case err := <-ended:
				ended <- err
				return true
			default:
			}
			up = s.run(t, nil, "docker", "version").status == 0
			return up
		})
		if up {
			break
		}
		if try == 3 {
			t.Fatalf("dockerd ended: %v\n%s", <-ended, readFile(t, d.log))
		}
	}
	var err error
	if d.pid, err = strconv.Atoi(strings.TrimSpace(readFile(t, s.path("dockerd.pid")))); err != nil {
		t.Fatal(err)
	}
	s.must(t, "docker", "import", baseArchive(t, s), base)
	return d
}

// start starts the daemon. The channel tells its end.
func (d *dockerd) start(t *testing.T, flags ...string) chan error {
	t.Helper()
	log, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := d.inside(context.Background(), "dockerd", append([]string{
		"--data-root", d.path("data"), "--exec-root", d.path("exec"), "-H", "unix://" + d.path("docker.sock"),
		"--pidfile", d.path("dockerd.pid"), "--bridge", "none", "--iptables=false", "--ip6tables=false", "--storage-driver", "vfs",
	}, flags...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended
}

// stop removes the containers, whose cgroups would stay, and ends the daemon.
func (d *dockerd) stop(t *testing.T, ended chan error) {
	// The test's own context has ended by now.
	run := func(name string, args ...string) string {
		out, err := d.inside(context.Background(), name, args...).CombinedOutput()
		if err != nil {
			t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if d.pid != 0 {
		if ids := words(run("docker", "ps", "-aq")); len(ids) > 0 {
			run("docker", append([]string{"rm", "-f"}, ids...)...)
		}
		// The number is the sandbox's.
		run("kill", strconv.Itoa(d.pid))
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("dockerd does not end")
		}
	}
	if t.Failed() {
		text, _ := os.ReadFile(d.log)
		lines := strings.Split(string(text), "\n")
		t.Logf("the end of dockerd's log:\n%s", strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

// docker runs a container to its end.
func (d *dockerd) docker(t *testing.T, args ...string) outcome {
	t.Helper()
	return d.run(t, nil, "docker", append([]string{"run", "--rm", "--network", "none"}, args...)...)
}

// detached starts a container and waits for a line of its output.
func (d *dockerd) detached(t *testing.T, line string, args ...string) string {
	t.Helper()
	id := d.must(t, append([]string{"docker", "run", "-d", "--network", "none"}, args...)...)
	t.Cleanup(func() {
		if out, err := d.inside(context.Background(), "docker", "rm", "-f", id).CombinedOutput(); err != nil {
			t.Errorf("docker rm: %v\n%s", err, out)
		}
	})
	d.logged(t, id, line)
	return id
}

func (d *dockerd) logged(t *testing.T, id, line string) {
	t.Helper()
	eventually(t, "the container prints "+line, func() bool {
		o := d.run(t, nil, "docker", "logs", id)
		return regexp.MustCompile(`(?m)^` + line + `\r?$`).MatchString(o.stdout + o.stderr)
	})
}

func TestDocker(t *testing.T) {
	d := startDockerd(t, "--config-file", dockerConfig(t), "--init-path", installedDocker)

	t.Run("info", func(t *testing.T) {
		t.Parallel()
		version := d.must(t, installedDocker, "--version")
		match := regexp.MustCompile(`^tini version ([^ ]+) - git\.([0-9a-f]{1,7})$`).FindStringSubmatch(version)
		if match == nil {
			t.Fatalf("docker-init --version prints %q", version)
		}
		if got := d.must(t, "docker", "info", "--format", "{{.InitBinary}} {{.InitCommit.ID}}"); got != installedDocker+" "+match[2] {
			t.Errorf("docker info: %q, want commit %s", got, match[2])
		}
		got := d.must(t, "docker", "version", "--format", `{{range .Server.Components}}{{if eq .Name "docker-init"}}{{.Version}} {{.Details.GitCommit}}{{end}}{{end}}`)
		if got != match[1]+" "+match[2] {
			t.Errorf("docker version: %q, want %s %s", got, match[1], match[2])
		}
		for line := range strings.Lines(readFile(t, d.log)) {
			// moby issue 28494: a line like this every 20 seconds.
			if strings.Contains(line, "failed to parse") || strings.Contains(line, "failed to retrieve") {
				t.Errorf("dockerd warns: %s", line)
			}
		}
	})

	for _, c := range []struct {
		name  string
		flags string
		check func(t *testing.T, s state, lines []string)
	}{
		{"plain", "", func(t *testing.T, s state, _ []string) {
			if s.UID != 0 || s.NoNewPrivs {
				t.Errorf("%+v", s)
			}
		}},
		{"user", "--user 65532:65532", func(t *testing.T, s state, _ []string) {
			if s.UID != 65532 || s.GID != 65532 {
				t.Errorf("uid %d gid %d", s.UID, s.GID)
			}
		}},
		{"read only", "--read-only", nil},
		{"no capabilities", "--cap-drop ALL", func(t *testing.T, _ state, lines []string) {
			if !strings.Contains(strings.Join(lines, "\n"), "CapEff:\t0000000000000000") {
				t.Errorf("capabilities: %q", lines)
			}
		}},
		{"no new privileges", "--security-opt no-new-privileges", func(t *testing.T, s state, _ []string) {
			if !s.NoNewPrivs {
				t.Error("no_new_privs is not set")
			}
		}},
		{"everything dropped", "--user 65532 --read-only --cap-drop ALL --security-opt no-new-privileges --pids-limit 20 --memory 32m", func(t *testing.T, s state, _ []string) {
			if s.UID != 65532 || !s.NoNewPrivs {
				t.Errorf("%+v", s)
			}
		}},
		{"terminal", "-t", func(t *testing.T, s state, _ []string) {
			if s.Foreground == 0 || s.Foreground != s.Group {
				t.Errorf("the terminal belongs to group %d, the workload's is %d", s.Foreground, s.Group)
			}
		}},
		{"terminal, everything dropped", "-t --user 65532 --read-only --cap-drop ALL --security-opt no-new-privileges", func(t *testing.T, s state, _ []string) {
			if s.Foreground == 0 || s.Foreground != s.Group {
				t.Errorf("the terminal belongs to group %d, the workload's is %d", s.Foreground, s.Group)
			}
		}},
		{"working directory", "--workdir /usr/bin", func(t *testing.T, s state, lines []string) {
			if s.Directory != "/usr/bin" {
				t.Errorf("the workload is in %s", s.Directory)
			}
			if !strings.Contains(strings.Join(lines, "\n"), "init in /\n") {
				t.Errorf("the init pins a directory: %q", lines)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The shell becomes the probe, so that both are the workload.
			const script = settled + `tr '\0' ' ' </proc/1/cmdline; echo; echo "descriptors of init:" $(ls /proc/1/fd)
				echo "init in $(readlink /proc/1/cwd)"; grep CapEff /proc/self/status
				touch /new 2>&1; exec probe state`
			o := d.docker(t, append(words("--init "+c.flags), base, "sh", "-c", script)...)
			if o.status != 0 {
				t.Fatal(o)
			}
			lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(o.stdout, "\r", "")), "\n")
			s := parseState(t, lines[len(lines)-1])
			output := strings.Join(lines, "\n") + "\n"
			if !strings.HasPrefix(output, "/sbin/docker-init -- sh -c ") {
				t.Errorf("process 1 is %q", lines[0])
			}
			if !strings.Contains(output, "descriptors of init: 0 1 2\n") {
				t.Errorf("process 1 holds descriptors:\n%s", output)
			}
			if s.PPID != 1 || s.PID == 1 {
				t.Errorf("pid %d, parent %d", s.PID, s.PPID)
			}
			if strings.Contains(c.flags, "--read-only") != strings.Contains(output, "touch: /new: Read-only file system\n") {
				t.Errorf("the root file system is not as asked for:\n%s", output)
			}
			s.onlyStandard(t)
			if o.stderr != "" {
				t.Errorf("stderr: %s", o.stderr)
			}
			if c.check != nil {
				c.check(t, s, lines)
			}
		})
	}

	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ flags, want string }{
			{"--ulimit nofile=4096:8192", "4096 8192"},
			{"--ulimit nofile=4096:8192 -e FDINIT_NOFILE=1024", "1024 8192"},
			{"--ulimit nofile=4096:8192 -e FDINIT_NOFILE=hard", "8192 8192"},
			{"--ulimit nofile=4096:8192 -e FDINIT_RLIMIT=nofile=100:200", "100 200"},
		} {
			o := d.docker(t, append(words("--init "+c.flags), base, "sh", "-c", "echo $(ulimit -Sn) $(ulimit -Hn)")...)
			if got := strings.TrimSpace(o.stdout); got != c.want || o.status != 0 {
				t.Errorf("%s: want %s, %s", c.flags, c.want, o)
			}
		}
	})

	t.Run("pid namespace of the host", func(t *testing.T) {
		t.Parallel()
		// Docker adds no init there, silently.
		o := d.docker(t, "--init", "--pid=host", base, "sh", "-c", `tr '\0' ' ' </proc/$PPID/cmdline; exec probe state`)
		if o.status != 0 || strings.Contains(o.stdout, "docker-init") {
			t.Errorf("%s", o)
		}
		// An init in the image is not process 1, and has to adopt orphans all the same.
		const script = `o=$(sh -c 'sleep 100 >/dev/null & echo $!'); read _ _ _ parent _ </proc/$o/stat
			test $PPID != 1 && test $parent = $PPID && echo adopted; kill $o`
		o = d.docker(t, "--pid=host", "-v", installedFdinit+":/fdinit:ro", "--entrypoint", "/fdinit", base, "--", "sh", "-c", script)
		if o.status != 0 || strings.TrimSpace(o.stdout) != "adopted" || o.stderr != "" {
			t.Errorf("%s", o)
		}
	})

	t.Run("exit status", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			want    int
			command []string
			stderr  string
		}{
			{0, []string{"true"}, `^$`},
			{3, []string{"sh", "-c", "exit 3"}, `^$`},
			{255, []string{"sh", "-c", "exit 255"}, `^$`},
			{137, []string{"sh", "-c", "kill -KILL $$"}, `^$`},
			{143, []string{"sh", "-c", "kill -TERM $$"}, `^$`},
			{139, []string{"sh", "-c", "kill -SEGV $$"}, `^$`},
			{127, []string{"/no/such/program"}, `exec /no/such/program failed: No such file or directory`},
			{126, []string{"/etc/passwd"}, `exec /etc/passwd failed: Permission denied`},
			// podman issue 6554: not the init's help.
			{127, []string{"-h"}, `exec -h failed: No such file or directory`},
		} {
			t.Run(strconv.Itoa(c.want), func(t *testing.T) {
				t.Parallel()
				o := d.docker(t, append([]string{"--init", base}, c.command...)...)
				if o.status != c.want || !regexp.MustCompile(c.stderr).MatchString(o.stderr) || o.stdout != "" {
					t.Errorf("%q: want %d, %s", c.command, c.want, o)
				}
			})
		}
	})

	t.Run("signals", func(t *testing.T) {
		t.Parallel()
		// SIGRTMIN is 34 to C and to docker.
		id := d.detached(t, "ready", "--init", base, "probe", "signals", "10", "1", "28", "37", "2", "12")
		for _, s := range []struct{ name, number string }{
			{"USR1", "10"}, {"HUP", "1"}, {"WINCH", "28"}, {"RTMIN+3", "37"}, {"INT", "2"}, {"SIGUSR2", "12"},
		} {
			d.must(t, "docker", "kill", "-s", s.name, id)
			d.logged(t, id, "signal "+s.number)
		}
		if got := strings.Count(d.must(t, "docker", "logs", id), "signal "); got != 6 {
			t.Errorf("%d signals arrived instead of 6", got)
		}
	})

	t.Run("signals to the group", func(t *testing.T) {
		t.Parallel()
		id := d.detached(t, "ready", "--init", "-e", "TINI_KILL_PROCESS_GROUP=1", base, "sh", "-c", "trap : USR1; probe signals 10; true")
		d.must(t, "docker", "kill", "-s", "USR1", id)
		d.logged(t, id, "signal 10")
	})

	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			flags, script string
			want          string
		}{
			// A program without a handler would ignore TERM as process 1.
			{"", "echo ready; exec sleep 1000", "143"},
			{"", `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.1; done`, "7"},
			{"--stop-signal QUIT", `trap 'exit 8' QUIT; echo ready; while :; do sleep 0.1; done`, "8"},
			{"--user 65532 --cap-drop ALL", "echo ready; exec sleep 1000", "143"},
		} {
			id := d.detached(t, "ready", append(words("--init "+c.flags), base, "sh", "-c", c.script)...)
			d.must(t, "docker", "stop", "-t", stopPatience, id)
			// 137 would be that of one that did not end by itself.
			if got := d.must(t, "docker", "inspect", "--format", "{{.State.ExitCode}}", id); got != c.want {
				t.Errorf("%q: status %s, want %s", c.script, got, c.want)
			}
		}
	})

	t.Run("zombies", func(t *testing.T) {
		t.Parallel()
		o := d.docker(t, "--init", base, "probe", "orphans", "50")
		if o.status != 0 || strings.TrimSpace(o.stdout) != "reaped 50" {
			t.Errorf("%s", o)
		}
	})

	t.Run("typing", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := d.inside(ctx, "docker", "run", "--rm", "-it", "--init", "--network", "none", base, "sh", "-i")
		screen := typed(t, cmd, `# `,
			[2]string{"(trap 'echo got INT; exit 5' INT; echo wait''ing; while :; do sleep 0.1; done)\r", `waiting\r*\n`},
			[2]string{"\x03", `got INT`},
			[2]string{"echo status $?\r", `status 5\r*\n`},
			// ^Z needs job control, and that the workload's TSTP is not blocked (podman issue 18095).
			[2]string{"sh -c 'echo sleep''ing; exec sleep 1000'\r", `sleeping\r*\n`},
			[2]string{"\x1a", `Stopped`},
			[2]string{"exit 9\r", `stopped jobs`},
			[2]string{"exit 9\r", ``},
		)
		if strings.Contains(screen, "job control turned off") || cmd.ProcessState.ExitCode() != 9 {
			t.Errorf("status %d\n%s", cmd.ProcessState.ExitCode(), screen)
		}
	})

	t.Run("SHELL in a build", func(t *testing.T) {
		t.Parallel()
		context := d.path("shell")
		installed(t, fdinit, context+"/fdinit")
		installed(t, need(t, "busybox", "busybox-static"), context+"/busybox")
		writeFile(t, context+"/Dockerfile", `FROM scratch
COPY busybox /bin/sh
COPY fdinit /fdinit
SHELL ["/fdinit", "--", "/bin/sh", "-c"]
RUN /bin/sh --install -s /bin
RUN test $PPID = 1 && tr '\0' '!' </proc/1/cmdline >/one && echo $(ulimit -Sn) $(ulimit -Hn) >/limits
RUN ls /proc/1/fd | tr '\n' ' ' >/descriptors
CMD cat /one /limits /descriptors
`)
		o := d.run(t, nil, "docker", "build", "--network", "none", "--ulimit", "nofile=2000:3000", "-t", "shell", context)
		if o.status != 0 {
			t.Fatal(o)
		}
		if got := d.docker(t, "shell"); !regexp.MustCompile(`^/fdinit!--!/bin/sh!-c!test .*!2000 3000\n0 1 2 $`).MatchString(got.stdout) {
			t.Errorf("%s", got)
		}
		// A failing step has to fail the build, with its status.
		writeFile(t, context+"/Dockerfile", "FROM shell\nRUN exit 42\n")
		o = d.run(t, nil, "docker", "build", "--network", "none", context)
		if o.status == 0 || !strings.Contains(o.stdout+o.stderr, "returned a non-zero code: 42") {
			t.Errorf("%s", o)
		}
	})

	t.Run("names in an image", func(t *testing.T) {
		t.Parallel()
		context := d.path("names")
		installed(t, fdinit, context+"/fdinit")
		writeFile(t, context+"/Dockerfile", `FROM `+base+`
COPY fdinit /fdinit
RUN ["/fdinit", "--install=/bin/fdinit", "--install-as=tini,dumb-init,catatonit"]
`)
		if o := d.run(t, nil, "docker", "build", "--network", "none", "-t", "names", context); o.status != 0 {
			t.Fatal(o)
		}
		for _, c := range []struct {
			entrypoint, command string
			status              int
			stdout, stderr      string
		}{
			{"/bin/tini", "--version", 0, `^tini version [^ ]+ - git\.[0-9a-f]+\n$`, `^$`},
			{"/bin/tini", "-e 3 -- sh -c exit\t3", 0, `^$`, `^$`},
			{"/bin/tini", "-- /no", 127, `^$`, `\[FATAL tini \([0-9]+\)\] exec /no failed: No such file or directory`},
			{"/bin/dumb-init", "--version", 0, `^$`, `^dumb-init v`},
			{"/bin/dumb-init", "-r 15:3 -- sh -c exit\t4", 4, `^$`, `^$`},
			{"/bin/dumb-init", "/no", 2, `^$`, `^\[dumb-init\] /no: No such file or directory\n$`},
			{"/bin/catatonit", "-g -- sh -c exit\t5", 5, `^$`, `^$`},
			{"/bin/catatonit", "/no", 1, `^$`, `^ERROR \(catatonit:[0-9]+\): failed to exec pid1: No such file or directory\n$`},
		} {
			args := []string{"--entrypoint", c.entrypoint, "names"}
			for _, word := range words(strings.ReplaceAll(c.command, "\t", "\x00")) {
				args = append(args, strings.ReplaceAll(word, "\x00", " "))
			}
			o := d.docker(t, args...)
			if o.status != c.status || !regexp.MustCompile(c.stdout).MatchString(o.stdout) || !regexp.MustCompile(c.stderr).MatchString(o.stderr) {
				t.Errorf("%s %s: want %d, %s", c.entrypoint, c.command, c.status, o)
			}
		}
		// What an init container may meet.
		for _, c := range []struct {
			flags, path, says string
		}{
			{"--read-only", "/new", `read-only`},
			{"--read-only --tmpfs /t:rw,noexec,mode=1777", "/t/fdinit", `noexec`},
			{"--read-only --tmpfs /t:rw,exec,size=64k,mode=1777", "/t/fdinit", `no space left`},
			{"--user 65532", "/new", `permission denied`},
		} {
			o := d.docker(t, append(words(c.flags+" --entrypoint /fdinit names"), "--install="+c.path)...)
			if o.status != 125 || o.stdout != "" || !strings.Contains(o.stderr, c.says) {
				t.Errorf("%s: want %q, %s", c.flags, c.says, o)
			}
		}
	})

	t.Run("pathological limit", func(t *testing.T) {
		t.Parallel()
		const most = 1073741816
		script := `echo $(ulimit -Sn):$(ulimit -Hn); probe loop $(ulimit -Sn)`
		run := func(runtime string) (outcome, bool) {
			o := d.docker(t, "--init", "--runtime", runtime, "--ulimit", fmt.Sprintf("nofile=%d:%d", most, most), base, "sh", "-c", script)
			refused := o.status != 0 && strings.Contains(o.stderr, "rlimit")
			return o, !refused
		}
		// Natively that takes CAP_SYS_RESOURCE, and fs.nr_open is the bound.
		o, could := run("runc")
		if !could {
			if _, err := exec.LookPath("runsc"); err != nil {
				nrOpen, _ := os.ReadFile("/proc/sys/fs/nr_open")
				skip(t, "runc cannot set it (fs.nr_open is %s), and runsc, whose kernel could, is missing: apt-get install runsc\n%s", strings.TrimSpace(string(nrOpen)), o)
			}
			o, could = run("runsc")
		}
		match := regexp.MustCompile(`^65536:1048576\n([0-9]+) milliseconds\n$`).FindStringSubmatch(o.stdout)
		if !could || match == nil {
			t.Fatal(o)
		}
		t.Logf("a loop over all descriptors takes %s ms", match[1])
	})
}

// dockerConfig makes gVisor known, whose kernel allows any limit.
func dockerConfig(t *testing.T) string {
	t.Helper()
	config := map[string]any{}
	if runsc, err := exec.LookPath("runsc"); err == nil {
		config["runtimes"] = map[string]any{"runsc": map[string]any{
			"path": runsc, "runtimeArgs": []string{"--platform=ptrace", "--ignore-cgroups", "--network=none"},
		}}
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/daemon.json"
	writeFile(t, path, string(text))
	return path
}

// typed runs a command on a terminal: when the screen has come to match prompt, it
// types the first of each pair and waits for the second, and so on. A line may end with
// two carriage returns: one from the container's terminal and one from this one, for a
// command that passes on what is typed shows output before it has set either of them.
func typed(t *testing.T, cmd *exec.Cmd, prompt string, dialogue ...[2]string) string {
	t.Helper()
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	input := make(chan string)
	go func() {
		defer close(input)
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			if err != nil {
				return // EIO: the last one on the other side closed it
			}
			input <- string(buffer[:n])
		}
	}()
	var screen, fresh strings.Builder
	await := func(pattern string) {
		for late := time.After(patience); !regexp.MustCompile(pattern).MatchString(fresh.String()); {
			select {
			case text, ok := <-input:
				if !ok {
					t.Fatalf("no %q before the end:\n%s", pattern, screen.String())
				}
				screen.WriteString(text)
				fresh.WriteString(text)
			case <-late:
				t.Fatalf("no %q:\n%q", pattern, screen.String())
			}
		}
		fresh.Reset()
	}
	await(prompt)
	// Before that ^C would be for the command itself.
	eventually(t, "the command passes on what is typed", func() bool { return isRaw(t, terminal) })
	for _, d := range dialogue {
		if _, err := terminal.WriteString(d[0]); err != nil {
			t.Fatal(err)
		}
		await(d[1])
	}
	for text := range input {
		screen.WriteString(text)
	}
	_ = cmd.Wait()
	return screen.String()
}

// isRaw tells whether a terminal has stopped to make signals of what is typed.
func isRaw(t *testing.T, terminal *os.File) bool {
	t.Helper()
	raw, err := terminal.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var mode *unix.Termios
	// Not by Fd, which would make reading block for good.
	if control := raw.Control(func(fd uintptr) { mode, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); control != nil || err != nil {
		t.Fatal(control, err)
	}
	return mode.Lflag&unix.ISIG == 0
}
