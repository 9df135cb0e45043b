package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/sys"
)

// refusal is what is said about a command line and an environment, "" if nothing is.
func refusal(args, env []string) string {
	var c config.Config
	v := config.Parse(sys.VectorOf(args...), sys.VectorOf(env...), &c)
	if v.Action != config.Refuse {
		return ""
	}
	return describeProblem(v.Problem, args, env)
}

// TestProblems has the messages in full: they quote what is wrong and say what would
// be right.
func TestProblems(t *testing.T) {
	const (
		limits    = `use auto, keep or SOFT[:HARD]; each is a number or "unlimited", SOFT may also be "hard"`
		resources = `use NAME=SOFT[:HARD]; each is a number or "unlimited", SOFT may also be "hard"; NAME is one of cpu, fsize, data, stack, core, rss, nproc, nofile, memlock, as, locks, sigpending, msgqueue, nice, rtprio, rttime`
		signals   = "use a name such as TERM or SIGRTMIN+3, or a number from 1 to 64"
		lists     = "use descriptors and ranges such as 3,5-7, or all"
	)
	for _, c := range []struct{ line, env, want string }{
		{line: "", want: `no command to run: see fdinit --help`},
		{line: "-g --", want: `no command to run: see fdinit --help`},
		{line: "--bogus=1 ls", want: `unknown option "--bogus": see fdinit --help, and put -- before a command that begins with a dash`},
		{line: "-gx ls", want: `unknown option "-x": see fdinit --help, and put -- before a command that begins with a dash`},
		{line: "--nofile", want: `option --nofile needs a value: ` + limits},
		{line: "-gp", want: `option -p needs a value: ` + signals},
		{line: "--group=yes ls", want: `option --group takes no value: "--group=yes"`},
		{line: "-gg ls", want: `option -g is given more than once`},
		{line: "--keep-fds=3 --keep-fds 3 ls", want: `option --keep-fds is given more than once`},

		{line: "--install", want: `option --install needs a value: the path to copy fdinit to, such as /mnt/fdinit`},
		{line: "--install=", want: `--install "" is empty, but needs a value: the path to copy fdinit to, such as /mnt/fdinit`},
		{line: "--install=/x --install-as", want: `option --install-as needs a value: names to link to fdinit, such as tini,dumb-init`},
		{line: "--install=/x --nofile=5", want: `--install runs no command, so option --nofile has no effect: remove it`},
		{line: "--log", want: `option --log needs a value: use warn, info or debug`},
		{line: "--log=loud ls", want: `--log "loud" is not a log level: use warn, info or debug`},
		{line: "--log-format=xml ls", want: `--log-format "xml" is not a log format: use text or json`},

		{line: "--nofile=many ls", want: `--nofile "many" is not a limit: ` + limits},
		{line: "--nofile many ls", want: `--nofile "many" is not a limit: ` + limits},
		{line: "--nofile= ls", want: `--nofile "" is empty: ` + limits},
		{line: "--nofile=1:x ls", want: `--nofile "1:x": "x" is not a limit: ` + limits},
		{line: "--nofile=5:4 ls", want: `--nofile "5:4" has a soft limit above its hard limit: ` + limits},
		{line: "--rlimit=files=5 ls", want: `--rlimit "files=5": "files" is not a resource: ` + resources},
		{line: "--rlimit core ls", want: `--rlimit "core" lacks its =SOFT[:HARD]: ` + resources},
		{line: "--rlimit=core=1 --rlimit=core=2 ls", want: `--rlimit "core=2" sets a limit that is already set: give each resource once`},
		{line: "--keep-fds=3,x ls", want: `--keep-fds "3,x": "x" is neither a descriptor nor a range: ` + lists},
		{line: "-p FOO ls", want: `-p "FOO" is not a signal: ` + signals},
		{line: "-gpFOO ls", want: `-p "FOO" is not a signal: ` + signals},
		{line: "--parent-death-signal=FOO ls", want: `--parent-death-signal "FOO" is not a signal: ` + signals},

		{line: "ls", env: "FDINIT_GROUP=yes", want: `FDINIT_GROUP "yes" must be 0 or 1`},
		{line: "ls", env: "FDINIT_NOFILE=1:", want: `FDINIT_NOFILE "1:": "" is empty: ` + limits},
		{line: "ls", env: "FDINIT_KEEP_FDS=7-5", want: `FDINIT_KEEP_FDS "7-5" is a range that ends before it begins: ` + lists},
		{line: "ls", env: "FDINIT_RLIMIT=core=0 x=1 as=5", want: `FDINIT_RLIMIT "core=0 x=1 as=5": "x" is not a resource: ` + resources},
		{line: "ls", env: "FDINIT_RLIMIT=core=0 core=1 as=5", want: `FDINIT_RLIMIT "core=0 core=1 as=5": "core=1" sets a limit that is already set: give each resource once`},
		{line: "ls", env: "FDINIT_RLIMIT= ", want: `FDINIT_RLIMIT " " is empty: ` + resources},
	} {
		args := []string{"fdinit"}
		if c.line != "" {
			args = append(args, strings.Split(c.line, " ")...)
		}
		if got := refusal(args, []string{"A=1", c.env}); got != c.want {
			t.Errorf("fdinit %s, %s:\n got %s\nwant %s", c.line, c.env, got, c.want)
		}
	}
}

// FuzzDescribeProblem asks for words for whatever is refused. Lists are joined with
// NUL, as in /proc.
func FuzzDescribeProblem(f *testing.F) {
	for _, line := range []string{
		"ls", "-x", "-gx", "-p", "-pFOO ls", "-gp FOO ls", "--nofile=1:x ls", "--nofile x ls", "--rlimit=core=1 --rlimit=core=2 ls",
		"--keep-fds=3,\"\n ls", "--group=1", "-gg", "--=", "--nofile= ls", "--parent-death-signal  ls", "", "--install-as=x",
		"--install=x ls", "--install=x -g", "--install=", "--log=x ls", "--log-format x ls",
	} {
		cmdline := strings.ReplaceAll("fdinit "+line, " ", "\x00") + "\x00"
		f.Add(cmdline, "")
		f.Add(cmdline, "A=1\x00FDINIT_NOFILE=1:x\x00")
		f.Add(cmdline, "FDINIT_RLIMIT= core=1  core=2 \x00FDINIT_GROUP=\x00")
		f.Add(cmdline, "FDINIT_KEEP_FDS=3-\x00FDINIT_LOG=x\x00FDINIT_LOG_FORMAT=\x00")
	}
	f.Fuzz(func(t *testing.T, cmdline, environ string) {
		args, env := strings.Split(cmdline, "\x00"), strings.Split(environ, "\x00")
		args, env = args[:len(args)-1], env[:len(env)-1]
		var c config.Config
		v := config.Parse(sys.VectorOf(args...), sys.VectorOf(env...), &c)
		if v.Action != config.Refuse {
			return
		}
		p := v.Problem
		words := describeProblem(p, args, env)
		if words == "" || strings.ContainsAny(words, "\n\r") && !unquotedName(p.Code) {
			t.Fatalf("%q, %q: %q is not one line", args, env, words)
		}
		if strings.Contains(words, "not understood") || strings.Contains(words, "is fine") {
			t.Fatalf("%q, %q: no words for %+v: %s", args, env, p, words)
		}
		if p.Code == config.NoCommand || p.Code == config.LoneInstallAs {
			return
		}
		word := ""
		if p.Arg >= 0 {
			word = args[p.Arg]
		} else {
			word = env[p.Env]
		}
		part := word[p.From:p.To]
		quoted := strconv.Quote(part)
		if !strings.Contains(words, quoted[1:len(quoted)-1]) {
			t.Fatalf("%q, %q: %s does not quote %s", args, env, words, quoted)
		}
	})
}

// unquotedName tells whether a message has the name of an option that fdinit knows.
func unquotedName(code config.Code) bool {
	return code == config.MissingValue || code == config.Repeated
}

// TestOddEnvironments sees to it that a problem is found again among variables that Go
// does not show: a second one of the same name, an empty one, one without a name.
func TestOddEnvironments(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "fdinit")
	build := exec.Command("go", "build", "-ldflags=-E=github.com/fdinit/fdinit/internal/freestanding.Entry", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("needs the go command and the sources: %v\n%s", err, out)
	}
	for _, env := range [][]string{
		{"FDINIT_GROUP=x"},
		{"A=1", "A=2", "", "=", "B", "FDINIT_GROUP=x"},
		{"", "", "", "FDINIT_GROUP=x", "A=1"},
		{"FDINIT_GROUP=x", "FDINIT_GROUP=0"},
	} {
		stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		defer stderr.Close()
		// Not os/exec, which tidies an environment up.
		p, err := os.StartProcess(exe, []string{"fdinit", "true"}, &os.ProcAttr{Env: env, Files: []*os.File{nil, nil, stderr}})
		if err != nil {
			t.Fatal(err)
		}
		state, err := p.Wait()
		if err != nil {
			t.Fatal(err)
		}
		words, err := os.ReadFile(stderr.Name())
		if err != nil {
			t.Fatal(err)
		}
		const want = "fdinit: FDINIT_GROUP \"x\" must be 0 or 1\n"
		if state.ExitCode() != config.StatusFailed || string(words) != want {
			t.Errorf("%q: status %d, %s", env, state.ExitCode(), words)
		}
	}
}
