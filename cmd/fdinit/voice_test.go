package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/fdinit/fdinit/internal/persona"
	"github.com/fdinit/fdinit/internal/reaper"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// A recorder stands for a standard stream.
type recorder struct{ file *os.File }

func newRecorder(t testing.TB, stream **os.File) *recorder {
	t.Helper()
	fd, err := unix.MemfdCreate("recorder", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{os.NewFile(uintptr(fd), "recorder")}
	was := *stream
	*stream = r.file
	t.Cleanup(func() {
		*stream = was
		r.file.Close()
	})
	return r
}

// take returns what was written since the last time.
func (r *recorder) take(t testing.TB) string {
	t.Helper()
	_, err := r.file.Seek(0, io.SeekStart)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(r.file)
	}
	if err == nil {
		err = r.file.Truncate(0)
	}
	if err == nil {
		_, err = r.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// calledAs makes args this process's own, since the voices look there.
func calledAs(t testing.TB, args []string) {
	was := os.Args
	os.Args = args
	t.Cleanup(func() { os.Args = was })
}

// answer is what fdinit does with a command line that is not run.
func answer(t *testing.T, line string, env ...string) (stdout, stderr string, status int) {
	t.Helper()
	args := strings.Split(line, " ")
	calledAs(t, args)
	was := os.Environ()
	setEnvironment(t, env)
	t.Cleanup(func() { setEnvironment(t, was) })
	out, errOut := newRecorder(t, &os.Stdout), newRecorder(t, &os.Stderr)
	// As in a binary that was linked without its entry point.
	status = run(freestanding.Outcome{})
	return out.take(t), errOut.take(t), status
}

// setEnvironment sets the variables in this order, which is what a Problem counts in.
func setEnvironment(t *testing.T, env []string) {
	t.Helper()
	os.Clearenv()
	for _, s := range env {
		name, value, _ := strings.Cut(s, "=")
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGetoptComplaints has what getopt_long(3) of glibc says, as the peers do.
func TestGetoptComplaints(t *testing.T) {
	for line, want := range map[string]string{
		"tini -x ls":           "tini: invalid option -- 'x'",
		"/sbin/tini -gvx ls":   "/sbin/tini: invalid option -- 'x'",
		"tini --help":          "tini: invalid option -- '-'",
		"tini -g --version ls": "tini: invalid option -- '-'",
		"tini -e":              "tini: option requires an argument -- 'e'",
		"docker-init -gp":      "docker-init: option requires an argument -- 'p'",

		"dumb-init -x ls":            "dumb-init: invalid option -- 'x'",
		"dumb-init -cx ls":           "dumb-init: invalid option -- 'x'",
		"dumb-init -r":               "dumb-init: option requires an argument -- 'r'",
		"dumb-init --bogus ls":       "dumb-init: unrecognized option '--bogus'",
		"dumb-init --bogus=1=2 ls":   "dumb-init: unrecognized option '--bogus=1=2'",
		"dumb-init --rewrite":        "dumb-init: option '--rewrite' requires an argument",
		"dumb-init --re":             "dumb-init: option '--rewrite' requires an argument",
		"dumb-init --verb=1 ls":      "dumb-init: option '--verbose' doesn't allow an argument",
		"/x/dumb-init --help= ls":    "/x/dumb-init: option '--help' doesn't allow an argument",
		"dumb-init --ver ls":         "dumb-init: option '--ver' is ambiguous; possibilities: '--verbose' '--version'",
		"dumb-init --v=1 ls":         "dumb-init: option '--v=1' is ambiguous; possibilities: '--verbose' '--version'",
		"catatonit --bogus ls":       "catatonit: unrecognized option '--bogus'",
		"catatonit --vers=1":         "catatonit: option '--version' doesn't allow an argument",
		"podman-init -gx":            "podman-init: invalid option -- 'x'",
		"catatonit --versions=1 ls ": "catatonit: unrecognized option '--versions=1'",
	} {
		_, stderr, status := answer(t, line)
		if got, _, _ := strings.Cut(stderr, "\n"); got != want || status != 1 {
			t.Errorf("%s: status %d\n got %s\nwant %s", line, status, got, want)
		}
	}
}

// TestAnswers has where each dialect answers, how it begins, and with what status.
func TestAnswers(t *testing.T) {
	const usageOfDumbInit = "Usage: dumb-init [option] program [args]\nTry dumb-init --help for full usage.\n"
	for _, c := range []struct {
		line           string
		env            []string
		stdout, stderr string // their beginnings; empty: nothing at all
		status         int
	}{
		{line: "tini --version", stdout: tiniVersion() + "\n"},
		{line: "/sbin/docker-init --version", stdout: "tini version " + version + "_fdinit"},
		{line: "tini -h", stdout: "tini (" + tiniVersion() + ")\nUsage: tini [OPTIONS] PROGRAM -- [ARGS] | --version\n"},
		{line: "tini -l", stdout: "fdinit is licensed under the Apache License"},
		{line: "/x/tini", stderr: "tini (" + tiniVersion() + ")\nUsage: tini ", status: 1},
		{line: "tini -e 256 ls", stderr: "[FATAL tini (", status: 1},
		{line: "tini ls", env: []string{"A=1", "FDINIT_LOG=x"}, stderr: "fdinit: FDINIT_LOG \"x\" is not a log level", status: 125},

		{line: "dumb-init -V", stderr: "dumb-init v" + version + "_fdinit\n"},
		{line: "dumb-init --help", stderr: dumbInitVersion() + "\nUsage: dumb-init [option] command [[arg] ...]\n"},
		{line: "dumb-init", stderr: usageOfDumbInit, status: 1},
		{line: "dumb-init -r 32:1 ls", stderr: "Usage: -r option takes <signum>:<signum>, where <signum> is between 1 and 31.\n", status: 1},
		{line: "dumb-init ls", env: []string{"FDINIT_GROUP=2"}, stderr: "fdinit: FDINIT_GROUP \"2\" must be 0 or 1", status: 125},

		{line: "catatonit -V", stdout: tiniVersion() + "\n"},
		{line: "podman-init --version", stdout: "tini version "},
		{line: "catatonit -h", stderr: catatonitUsage + "\n"},
		{line: "catatonit -L", stdout: "fdinit is licensed under the Apache License"},
		{line: "catatonit", stderr: "ERROR (catatonit:", status: 1},
		{line: "catatonit ls", env: []string{"A=1", "CATATONIT_LOG="}, stderr: "ERROR (catatonit:", status: 1},

		{line: "fdinit --version", stdout: "fdinit version " + version},
		{line: "fdinit --help", stdout: usage},
		{line: "init", stderr: "fdinit: no command to run", status: 125},
	} {
		stdout, stderr, status := answer(t, c.line, c.env...)
		if !begins(stdout, c.stdout) || !begins(stderr, c.stderr) || status != c.status {
			t.Errorf("%s, %q: status %d, want %d\n[stdout]\n%s[stderr]\n%s", c.line, c.env, status, c.status, stdout, stderr)
		}
		if all := stdout + stderr; !strings.HasSuffix(all, "\n") {
			t.Errorf("%s: %q does not end its line", c.line, all)
		}
	}
}

func begins(text, with string) bool {
	return strings.HasPrefix(text, with) && (text == "") == (with == "")
}

// TestVersions: dockerd splits the line at " - ", wants "tini version " and "git.", and
// old ones panic over a commit of more than seven digits.
func TestVersions(t *testing.T) {
	was := commit
	t.Cleanup(func() { commit = was })
	for given, want := range map[string]string{
		"": "", "abc": " - git.abc", "abcdef0": " - git.abcdef0", "abcdef0123456789": " - git.abcdef0",
	} {
		commit = given
		for line, begin := range map[string]string{
			"tini --version": "tini version " + version + "_fdinit", "catatonit -V": "tini version " + version + "_fdinit",
			"fdinit -V": "fdinit version " + version,
		} {
			if stdout, _, status := answer(t, line); stdout != begin+want+"\n" || status != 0 {
				t.Errorf("commit %q, %s: status %d, %s", given, line, status, stdout)
			}
		}
	}
}

// FuzzRefuse asks every dialect for words for whatever is refused. Lists are joined
// with NUL, as in /proc.
func FuzzRefuse(f *testing.F) {
	for _, line := range []string{
		"", "tini", "tini -x", "tini --", "tini -e", "tini -e256 ls", "tini -gp x ls", "tini --help", "tini -\xff ls", "tini -e - ls",
		"dumb-init", "dumb-init -x", "dumb-init --ver=\xff", "dumb-init --verb= ls", "dumb-init -r", "dumb-init --re", "dumb-init -rx", "dumb-init --=", "dumb-init --",
		"catatonit", "catatonit -gx", "catatonit --version=", "catatonit --versionx", "catatonit -P -\n",
		"fdinit --nofile", "fdinit -p x ls", "/", "%s -%s", "dumb-init --%d",
	} {
		cmdline := ""
		if line != "" {
			cmdline = strings.ReplaceAll(line, " ", "\x00") + "\x00"
		}
		f.Add(cmdline, "")
		f.Add(cmdline, "A\x00CATATONIT_LOG=\x00")
		f.Add(cmdline, "FDINIT_RLIMIT=core=1 x\x00")
	}
	f.Fuzz(func(t *testing.T, cmdline, environ string) {
		args, env := strings.Split(cmdline, "\x00"), strings.Split(environ, "\x00")
		args, env = args[:len(args)-1], env[:len(env)-1]
		var c config.Config
		v := persona.Parse(sys.VectorOf(args...), sys.VectorOf(env...), &c)
		if v.Action != config.Refuse {
			return
		}
		p := v.Problem
		if isVariableProblem(p) {
			// The variables are not this process's, so describe what refuse would look up.
			if words := describeProblem(p, args, env); words == "" || strings.ContainsAny(words, "\n\r") {
				t.Fatalf("%q, %q: %q is not one line", args, env, words)
			}
			return
		}
		calledAs(t, args)
		stdout, stderr := newRecorder(t, &os.Stdout), newRecorder(t, &os.Stderr)
		status := voiceOf(freestanding.Outcome{Dialect: c.Dialect, Verdict: v}).refuse(p)
		if want := c.Dialect.FailureStatus(); status != want {
			t.Fatalf("%q, %q: status %d, want %d", args, env, status, want)
		}
		words := stderr.take(t)
		if !strings.HasSuffix(words, "\n") || stdout.take(t) != "" {
			t.Fatalf("%q, %q: %q", args, env, words)
		}
		if part := ""; p.Arg > 0 {
			part = args[p.Arg][p.From:p.To]
			// An abbreviation is told in full, and what is wrong with a pair of signals is not told.
			quotes := isOptionProblem(p) && !(strings.HasPrefix(part, "--") && c.Dialect != config.Tini) || p.Code == config.BadStatus || p.Code == config.BadSignal
			if quotes && c.Dialect != config.Native && !strings.Contains(words, part) {
				t.Fatalf("%q, %q: %q does not quote %q", args, env, words, part)
			}
		}
	})
}

// TestDescribeLimit: what was wanted, what there is, and what would help.
func TestDescribeLimit(t *testing.T) {
	most, known := rlimit.MaxOpen()
	if !known {
		t.Skip("needs /proc/sys/fs/nr_open")
	}
	const (
		seccomp    = ": does a seccomp filter refuse prlimit64?"
		capability = ": raising a hard limit needs CAP_SYS_RESOURCE"
		unlimited  = rlimit.Unlimited
	)
	beyond := fmt.Sprintf(": it cannot be above fs.nr_open, %d", most)
	for _, c := range []struct {
		resource        int
		wanted, present sys.Rlimit
		errno           unix.Errno
		want            string
	}{
		{
			unix.RLIMIT_CORE,
			sys.Rlimit{Soft: 5, Hard: 6},
			sys.Rlimit{Soft: 1, Hard: 2},
			unix.EPERM,
			"setting RLIMIT_CORE to 5:6 (soft:hard) from 1:2: operation not permitted" + capability,
		},
		{
			unix.RLIMIT_MEMLOCK,
			sys.Rlimit{Soft: unlimited, Hard: unlimited},
			sys.Rlimit{Soft: 0, Hard: 65536},
			unix.EPERM,
			"setting RLIMIT_MEMLOCK to unlimited:unlimited (soft:hard) from 0:65536: operation not permitted" + capability,
		},
		{
			unix.RLIMIT_NOFILE,
			sys.Rlimit{Soft: 5, Hard: most},
			sys.Rlimit{Soft: 5, Hard: most - 1},
			unix.EPERM,
			fmt.Sprintf("setting RLIMIT_NOFILE to 5:%d (soft:hard) from 5:%d: operation not permitted", most, most-1) + capability,
		},
		{
			unix.RLIMIT_NOFILE,
			sys.Rlimit{Soft: 5, Hard: most + 1},
			sys.Rlimit{Soft: 5, Hard: 6},
			unix.EPERM,
			fmt.Sprintf("setting RLIMIT_NOFILE to 5:%d (soft:hard) from 5:6: operation not permitted", most+1) + beyond,
		},
		{
			unix.RLIMIT_NOFILE,
			sys.Rlimit{Soft: 5, Hard: unlimited},
			sys.Rlimit{Soft: unlimited, Hard: unlimited},
			unix.EPERM,
			"setting RLIMIT_NOFILE to 5:unlimited (soft:hard) from unlimited:unlimited: operation not permitted" + beyond,
		},
		{
			unix.RLIMIT_CPU,
			sys.Rlimit{Soft: 1, Hard: 2},
			sys.Rlimit{Soft: 1, Hard: 2},
			unix.EPERM,
			"setting RLIMIT_CPU to 1:2 (soft:hard) from 1:2: operation not permitted" + seccomp,
		},
		{
			unix.RLIMIT_CPU,
			sys.Rlimit{Soft: 1, Hard: 1},
			sys.Rlimit{Soft: 1, Hard: 2},
			unix.ENOSYS,
			"setting RLIMIT_CPU to 1:1 (soft:hard) from 1:2: function not implemented" + seccomp,
		},
		{
			unix.RLIMIT_AS,
			sys.Rlimit{Soft: 2, Hard: 1},
			sys.Rlimit{Soft: 1, Hard: 2},
			unix.EINVAL,
			"setting RLIMIT_AS to 2:1 (soft:hard) from 1:2: invalid argument",
		},
	} {
		f := rlimit.Failure{Resource: c.resource, Errno: c.errno, Wanted: c.wanted, Present: c.present}
		if got := describeLimit(f); got != c.want {
			t.Errorf("\n got %s\nwant %s", got, c.want)
		}
		if got := describeFailure(reaper.Handover{Stage: reaper.SetLimit, Limit: f}); got != c.want {
			t.Errorf("as a failure: %s", got)
		}
	}
}

// TestDescribeFailure: there are words for every way not to have a workload, and they
// name the errno where there is one.
func TestDescribeFailure(t *testing.T) {
	seen := map[string]reaper.Stage{}
	for stage := reaper.BlockSignals; stage < reaper.WriteLog; stage++ {
		if stage == reaper.SetLimit || stage == reaper.Exec {
			continue // see TestDescribeLimit, and package execfail
		}
		for _, errno := range []unix.Errno{unix.EAGAIN, unix.ENOMEM, unix.EPERM, unix.ENOSYS, unix.EMFILE} {
			words := describeFailure(reaper.Handover{Stage: stage, Errno: errno})
			if strings.Contains(words, "unknown") || strings.ContainsAny(words, "\n%") || seen[words] != 0 && seen[words] != stage {
				t.Errorf("stage %d, %v: %s", stage, errno, words)
			}
			if stage != reaper.OutsideRoot && !strings.Contains(words, errno.Error()) {
				t.Errorf("stage %d: %s does not name %v", stage, words, errno)
			}
			seen[words] = stage
		}
	}
	if words := describeFailure(reaper.Handover{Stage: 200, Errno: unix.EIO}); !strings.Contains(words, "200") {
		t.Errorf("a stage that does not exist: %s", words)
	}
}
