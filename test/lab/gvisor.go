package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/tap"
)

// sandboxCase is one start of fdinit as the first process of a gVisor sandbox.
type sandboxCase struct {
	name   string
	argv   []string
	env    []string
	signal syscall.Signal // sent to it when it has written "ready"
	status int
	output string // a regular expression of all that it writes
	noProc bool
}

// leaking starts what follows with descriptors 5 and 9 open.
const leaking = `exec 5</dev/null 9</dev/null; exec "$@"`

var showLimits = []string{plan.Busybox, "sh", "-c", "ulimit -Sn; ulimit -Hn"}

func underInit(options []string, argv ...string) []string {
	return append(append(append([]string{plan.Init}, options...), "--"), argv...)
}

// sandboxCases are what the behaviour suite tests, as far as it rests on the kernel, each
// as the first process of a sandbox. The suite itself makes containers of its own, which
// gVisor cannot: see absents.
var sandboxCases = append([]sandboxCase{
	{name: "without fdinit: the real limit", argv: showLimits, output: `^1073741816\s1073741816$`},
	{name: "--nofile=auto", argv: underInit(nil, showLimits...), output: `^65536\s1048576$`},
	{name: "--nofile=keep", argv: underInit([]string{"--nofile=keep"}, showLimits...), output: `^1073741816\s1073741816$`},
	{name: "--nofile=1024:4096", argv: underInit([]string{"--nofile=1024:4096"}, showLimits...), output: `^1024\s4096$`},
	{name: "FDINIT_NOFILE=4096", argv: underInit(nil, showLimits...), env: []string{"FDINIT_NOFILE=4096"}, output: `^4096\s1073741816$`},
	{
		name:   "without fdinit: descriptors are inherited",
		argv:   []string{plan.Busybox, "sh", "-c", leaking, "sh", plan.Busybox, "sh", "-c", "echo /proc/self/fd/*"},
		output: `/5 (.*)/9\b`,
	},
	{
		name:   "inherited descriptors are closed",
		argv:   leaky(nil, showDescriptors),
		output: `^$`,
	},
	{
		name:   "--keep-fds=5",
		argv:   leaky([]string{"--keep-fds=5"}, showDescriptors),
		output: `^5$`,
	},
	{name: "exit status", argv: underInit(nil, plan.Guest, "exit", "42"), status: 42},
	{name: "--keep-fds=all", argv: leaky([]string{"--keep-fds=all"}, showDescriptors), output: `^5\s9$`},
	{name: "inherited descriptors are closed without /proc", noProc: true, argv: leaky(nil, "for d in 5 9; do (: <&$d) 2>/dev/null && echo $d; done; true"), output: `^$`},
	{
		name: "socket activation", env: []string{"LISTEN_FDS=1", "LISTEN_PID=1"},
		argv: append([]string{plan.Busybox, "sh", "-c", `exec 3</dev/null 4</dev/null; exec "$@"`, "sh"},
			underInit(nil, plan.Busybox, "sh", "-c", "test $LISTEN_PID = $$ && test -e /proc/self/fd/3 && test ! -e /proc/$$/fd/4 && test ! -e /proc/1/fd/3 && echo activated")...),
		output: `^activated$`,
	},
	{name: "--rlimit=core=0:0", argv: underInit([]string{"--rlimit=core=0:0"}, plan.Busybox, "sh", "-c", "ulimit -Sc; ulimit -Hc"), output: `^0\s0$`},
	{name: "a limit that may not be raised", argv: underInit([]string{"--nofile=2147483584:2147483584"}, showLimits...), status: 125, output: `^fdinit: setting RLIMIT_NOFILE`},
	{name: "not as process 1", argv: []string{plan.Busybox, "sh", "-c", plan.Init + " " + plan.Busybox + " sh -c 'echo $PPID; exit 3'; echo $?"}, output: `^[2-9]\s3$`},
	// This gVisor has no subreapers, which must not keep anybody from working.
	{name: "not as process 1, orphans", argv: []string{plan.Busybox, "sh", "-c", plan.Init + " --log=debug " + plan.Busybox + ` sh -c '(sleep 0.2 & ); sleep 0.6; exit 3'; echo $?`}, output: `(?s)(cannot adopt orphans: invalid argument|reaped process \d+ with status 0).*\b3$`},
	{name: "an option that is not there", argv: underInit([]string{"--no-such-option"}, plan.Guest, "exit", "0"), status: 125, output: `^fdinit: unknown option "--no-such-option"`},
	{name: "a directory", argv: underInit(nil, "/proc"), status: 126, output: `^fdinit: exec /proc: .*directory`},
	{name: "log", argv: underInit([]string{"--log=info"}, plan.Guest, "exit", "3"), status: 3, output: `(?s)started .*guest as process \d+.*the workload ended: process \d+ with status 3`},
	{name: "log as JSON", argv: underInit([]string{"--log=info", "--log-format=json"}, plan.Guest, "exit", "3"), status: 3, output: `(?s)"event":"started".*"event":"workload-ended"`},
	{name: "as tini", argv: []string{plan.Busybox, "sh", "-c", "ln -s " + plan.Init + " /tmp/tini && exec /tmp/tini -v -- " + plan.Guest + " exit 9"}, status: 9, output: `INFO  tini \(1\)`},
	{name: "--install", argv: []string{plan.Busybox, "sh", "-c", plan.Init + " --install=/tmp/fdinit && exec /tmp/fdinit " + plan.Guest + " exit 6"}, status: 6},
	{
		name: "-g", signal: syscall.SIGUSR1, status: 4,
		argv:   underInit([]string{"-g"}, plan.Busybox, "sh", "-c", "trap : USR1; "+plan.Busybox+" sh -c 'trap \"exit 4\" USR1; echo ready; while :; do sleep 0.1; done' & while :; do wait $!; s=$?; test $s -gt 128 || exit $s; done"),
		output: `^ready`, // busybox also names the signal
	},
	{name: "killed by a signal", argv: underInit(nil, plan.Busybox, "sh", "-c", "kill -KILL $$"), status: 128 + 9},
	{name: "command not found", argv: underInit(nil, "/no/such/program"), status: 127, output: `/no/such/program`},
	{
		name: "orphans are reaped", status: 0,
		argv: underInit(nil, plan.Busybox, "sh", "-c",
			// Orphans by the dozen; in the end process 1 has no child but the shell.
			"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (sleep 0 &); done; sleep 1; for p in /proc/[0-9]*/stat; do read -r pid name state rest <$p; test \"$state\" != Z || echo zombie $pid; done"),
		output: `^$`,
	},
}, forwardedSignals()...)

// showDescriptors tells which of those that were left open there are.
const showDescriptors = "for d in 5 9; do test ! -e /proc/self/fd/$d || echo $d; test ! -e /proc/1/fd/$d || echo 1: $d; done"

func leaky(options []string, script string) []string {
	return append([]string{plan.Busybox, "sh", "-c", leaking, "sh"}, underInit(options, plan.Busybox, "sh", "-c", script)...)
}

// forwardedSignals are cases of all signals that "runsc kill" knows and a shell can trap.
func forwardedSignals() (cases []sandboxCase) {
	for _, sig := range []syscall.Signal{1, 2, 3, 10, 12, 13, 14, 15, 28} {
		cases = append(cases, sandboxCase{
			name: fmt.Sprintf("signal %d is forwarded", sig), signal: sig, status: 5,
			argv:   underInit(nil, plan.Busybox, "sh", "-c", fmt.Sprintf("trap 'exit 5' %d; echo ready; while :; do sleep 0.1; done", sig)),
			output: `^ready$`,
		})
	}
	return cases
}

// gvisor runs these in gVisor's sandbox, whose kernel is a program of its own
// and whose limit is really 2^30.
func (l *lab) gvisor() error {
	o := outcome{Scenario: "gvisor", Where: "gVisor"}
	start := time.Now()
	if err := need("runsc", "runsc"); err != nil {
		return err
	}
	if out, err := exec.Command("runsc", "--version").Output(); err == nil {
		if first, _, found := strings.Cut(string(out), "\n"); found {
			o.Where = "gVisor, " + first
		}
	}
	if os.Getuid() != 0 {
		o.Tests = append(o.Tests, tap.Test{Name: "gvisor", OK: true, Skipped: "needs root"})
		l.outcomes = append(l.outcomes, o)
		return nil
	}
	root := filepath.Join(l.dir, "gvisor", "rootfs")
	busybox, err := l.busybox()
	if err != nil {
		return err
	}
	for _, d := range []string{"dev", "proc", "tmp", plan.Dir} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(
		copyFile(l.fdinit, filepath.Join(root, plan.Init)),
		copyFile(l.guest, filepath.Join(root, plan.Guest)),
		copyFile(busybox, filepath.Join(root, plan.Busybox)),
	); err != nil {
		return err
	}
	for i, c := range sandboxCases {
		t := tap.Test{Name: "gvisor: " + c.name, OK: true}
		said, took, err := l.sandbox(fmt.Sprintf("fdinit-lab-%d-%d", os.Getpid(), i), c)
		if err != nil {
			t.OK, t.Problem = false, err.Error()
		}
		fmt.Println(t.Name, err)
		o.Tests = append(o.Tests, t)
		text := strings.Join(strings.Fields(said), " ")
		if text == "" {
			text = fmt.Sprintf("exit status %d", c.status)
		}
		o.Facts = append(o.Facts, tap.Fact{Table: "gvisor", Row: c.name, Column: "result", Text: text, Value: took.Seconds(), Unit: "s"})
	}
	o.Seconds = time.Since(start).Seconds()
	l.outcomes = append(l.outcomes, o)
	return nil
}

// sandbox runs one case.
func (l *lab) sandbox(id string, c sandboxCase) (output string, took time.Duration, err error) {
	bundle := filepath.Join(l.dir, "gvisor")
	capabilities := []string{"CAP_KILL", "CAP_CHOWN", "CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT"}
	mounts := []any{
		map[string]any{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
		map[string]any{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
	}
	if !c.noProc {
		mounts = append(mounts, map[string]any{"destination": "/proc", "type": "proc", "source": "proc"})
	}
	config := map[string]any{
		"ociVersion": "1.0.0",
		"process": map[string]any{
			"user": map[string]any{"uid": 0, "gid": 0},
			"args": c.argv,
			"env":  append([]string{"PATH=/bin:" + plan.Dir}, c.env...),
			"cwd":  "/",
			// Without CAP_SYS_RESOURCE, as engines have it.
			"capabilities": map[string]any{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
			"rlimits":      []any{map[string]any{"type": "RLIMIT_NOFILE", "soft": plan.Infinity, "hard": plan.Infinity}},
		},
		"root":     map[string]any{"path": "rootfs"},
		"hostname": "lab",
		"mounts":   mounts,
		"linux": map[string]any{"namespaces": []any{
			map[string]any{"type": "pid"}, map[string]any{"type": "mount"}, map[string]any{"type": "network"}, map[string]any{"type": "ipc"}, map[string]any{"type": "uts"},
		}},
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), encoded, 0o644); err != nil {
		return "", 0, err
	}
	global := []string{"--root", filepath.Join(l.dir, "runsc"), "--platform", "ptrace", "--ignore-cgroups", "--network", "none"}
	runsc := func(args ...string) *exec.Cmd {
		return exec.Command("runsc", append(global[:len(global):len(global)], args...)...)
	}
	cmd := runsc("run", "--bundle", bundle, id)
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return "", 0, err
	}
	defer runsc("delete", "--force", id).Run()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(2 * time.Minute)
	for signal := c.signal; ; {
		select {
		case err = <-ended:
		case <-deadline:
			runsc("kill", "--all", id, "KILL").Run()
			return out.String(), 0, fmt.Errorf("no end: %s", out.String())
		case <-time.After(50 * time.Millisecond):
			if signal != 0 && strings.Contains(out.String(), "ready") {
				if said, err := runsc("kill", id, fmt.Sprint(int(signal))).CombinedOutput(); err != nil {
					return out.String(), 0, fmt.Errorf("runsc kill: %w: %s", err, said)
				}
				signal = 0
			}
			continue
		}
		break
	}
	took = time.Since(start)
	status := cmd.ProcessState.ExitCode()
	output = strings.TrimSpace(out.String())
	if status != c.status {
		return output, took, fmt.Errorf("exit status %d instead of %d: %s", status, c.status, output)
	}
	if !regexp.MustCompile(c.output).MatchString(output) {
		return output, took, fmt.Errorf("output %q does not match %q", output, c.output)
	}
	return output, took, nil
}

// lockedBuffer may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
