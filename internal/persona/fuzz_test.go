package persona

import (
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/sys"
)

// FuzzParse reads a command line and an environment, each a list of strings that end
// with NUL, as /proc/PID/cmdline and environ have them. Whatever is in them, the
// verdict must fit them.
func FuzzParse(f *testing.F) {
	environments := []string{
		"",
		"TINI_VERBOSITY=3\x00TINI_SUBREAPER=\x00TINI_KILL_PROCESS_GROUP=\x00",
		"DUMB_INIT_DEBUG=1\x00DUMB_INIT_SETSID=0\x00",
		"CATATONIT_DEBUG=\x00",
		"A=1\x00CATATONIT_LOG=x\x00",
		"FDINIT_GROUP=0\x00FDINIT_KEEP_FDS=3,\x00",
		"FDINIT_LOG=info\x00FDINIT_LOG_FORMAT=json\x00FDINIT_NOFILE=5:4\x00",
		"FDINIT_RLIMIT=core=0 x\x00",
	}
	for _, line := range []string{
		"", "tini", "tini ls", "/sbin/docker-init -- ls -l", "tini -gvvw -e 3 -pSIGTERM ls", "tini -e", "tini -e256 ls", "tini -p x ls", "tini --version",
		"tini-static -h", "/dev/init -l", "tini --x", "tini -- --",
		"dumb-init ls", "dumb-init -cvr 15:3 ls", "dumb-init --rewrite=15:0 --s -- ls", "dumb-init --ver", "dumb-init --verbose=1 ls", "dumb-init -r 1: ls", "dumb-init -hV",
		"catatonit ls", "podman-init -gP", "catatonit --v", "catatonit --version=1", "catatonit -L", "catatonit -x",
		"fdinit -g ls", "fdinit --log=x ls", "/",
	} {
		cmdline := ""
		if line != "" {
			cmdline = strings.ReplaceAll(line, " ", "\x00") + "\x00"
		}
		for _, env := range environments {
			f.Add(cmdline, env)
		}
	}
	f.Fuzz(func(t *testing.T, cmdline, environ string) {
		args, env := strings.Split(cmdline, "\x00"), strings.Split(environ, "\x00")
		args, env = args[:len(args)-1], env[:len(env)-1]
		argv, envp := sys.VectorOf(args...), sys.VectorOf(env...)
		var c, again config.Config
		v := Parse(argv, envp, &c)
		if w := Parse(argv, envp, &again); w != v || again != c {
			t.Fatalf("%q, %q: %+v %+v the first time, %+v %+v the second", args, env, v, c, w, again)
		}
		for i, s := range args {
			if argv.String(i) != s {
				t.Fatalf("%q: word %d became %q", args, i, argv.String(i))
			}
		}
		if len(args) > 0 && c.Dialect != Of(args[0]) {
			t.Fatalf("%q: dialect %d", args, c.Dialect)
		}
		switch v.Action {
		case config.Run:
			checkRun(t, &c, args)
		case config.Refuse:
			checkPlace(t, v.Problem, args, env)
		default:
			if v.Problem != (config.Problem{}) {
				t.Fatalf("%q, %q: %+v", args, env, v)
			}
			if v.Action == config.Install && c.Dialect != config.Native || v.Action == config.License && c.Dialect == config.Native {
				t.Fatalf("%q: action %d in dialect %d", args, v.Action, c.Dialect)
			}
		}
	})
}

// checkRun sees to it that there is something to be run, and that signals stay signals.
func checkRun(t *testing.T, c *config.Config, args []string) {
	t.Helper()
	switch {
	case c.Pause && c.Command == 0 && c.Dialect == config.Catatonit:
	case c.Pause || c.Command < 1 || c.Command >= len(args):
		t.Fatalf("%q: the command is word %d", args, c.Command)
	}
	const last = 64
	if c.ParentDeathSignal > last || c.Dialect == config.Tini && c.ParentDeathSignal > 31 {
		t.Fatalf("%q: signal %d", args, c.ParentDeathSignal)
	}
	for sig := sys.Signal(1); sig <= last; sig++ {
		to := c.Rewrites.Of(sig)
		if to != sig && (c.Dialect != config.DumbInit || sig > 31 || to > 31) {
			t.Fatalf("%q: signal %d is rewritten to %d", args, sig, to)
		}
	}
	if c.Log.Wanted && c.Log.Level == events.Warn && (c.Log.Style != config.Tini || c.Log.Notes&config.NoteReaped == 0) {
		t.Fatalf("%q: a process for a log that says nothing: %+v", args, c.Log)
	}
	if c.Log.Style != config.Native && c.Log.Style != c.Dialect {
		t.Fatalf("%q: the log is in another dialect: %+v", args, c)
	}
}

// checkPlace sees to it that a problem is where there is something.
func checkPlace(t *testing.T, p config.Problem, args, env []string) {
	t.Helper()
	if p.Code == config.NoProblem || p.Code > config.ReservedVariable {
		t.Fatalf("%q, %q: %+v", args, env, p)
	}
	if p.Code == config.NoCommand || p.Code == config.LoneInstallAs {
		return
	}
	list, i := args, p.Arg
	switch {
	case p.Arg == -1:
		list, i = env, p.Env
	case p.Arg < 1:
		t.Fatalf("%q, %q: %+v is no place", args, env, p)
	}
	if i < 0 || i >= len(list) {
		t.Fatalf("%q, %q: %+v is no place", args, env, p)
	}
	if word := list[i]; p.Value < 0 || p.From < p.Value || p.To < p.From || p.To > len(word) {
		t.Fatalf("%q, %q: %+v is no part of %q", args, env, p, word)
	}
	if p.Code == config.ReservedVariable && !strings.HasPrefix(list[i], "CATATONIT_LOG=") {
		t.Fatalf("%q, %q: %+v is about %q", args, env, p, list[i])
	}
}
