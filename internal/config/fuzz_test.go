package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// FuzzParse reads a command line and an environment, each a list of strings that end
// with NUL, as /proc/PID/cmdline and environ have them, and compares the outcome with
// that of a parser which is made differently.
func FuzzParse(f *testing.F) {
	lines := []string{
		"", "ls -l", "--", "-- ls", "-", "-g ls", "-gg ls", "-gpTERM ls", "-gp TERM ls", "-h", "-V", "-hx", "-xh",
		"--help", "--version", "--help=1", "--group ls", "--parent-death-signal=rtmin+3 ls", "-p", "-p 0 ls", "-p 64 ls",
		"--nofile=auto ls", "--nofile=keep ls", "--nofile 5:6 ls", "--nofile=6:5 ls", "--nofile= ls", "--nofile",
		"--rlimit=core=0 --rlimit=4=1 ls", "--rlimit=nofile=5 --nofile=keep ls", "--nofile=auto --rlimit=7=1 ls",
		"--rlimit=core=0 --rlimit=RLIMIT_CPU=unlimited:-1 ls", "--keep-fds=all ls", "--keep-fds=3,5-7,6-9 ls",
		"--keep-fds=9-8 ls", "--keep-fds=3, ls", "--keep-fds=2147483648 ls", "--keep-fds=3 --keep-fds=3 ls", "--=x ls",
		"--nofile=18446744073709551615:18446744073709551616 ls", "-\xff ls", "--nofile=hard ls", "--keep-fds",
		"--log=info ls", "--log debug --log-format=json ls", "--log=warn --log=warn ls", "--log= ls", "--log-format=xml ls",
		"--install=/mnt/fdinit", "--install-as=tini --install /mnt", "--install=x ls", "--install-as=x", "--install-as=x ls",
		"--install=", "--install-as '' --install=x", "--install=x --", "--install=x --install=x",
	}
	environments := []string{
		"",
		"PATH=/bin\x00FDINIT_GROUP=1\x00",
		"FDINIT_GROUP=0\x00FDINIT_GROUP=x\x00",
		"FDINIT_GROUP=yes\x00",
		"FDINIT_NOFILE=keep\x00FDINIT_RLIMIT=core=0 as=5:6\x00FDINIT_KEEP_FDS=all\x00",
		"FDINIT_NOFILE=5\x00FDINIT_RLIMIT= nofile=6\x00",
		"FDINIT_RLIMIT=  \x00",
		"FDINIT_RLIMIT=core=0\tas=5\n\x00",
		"FDINIT_RLIMIT=core=0 core=0\x00",
		"FDINIT_KEEP_FDS=3,4\x00",
		"FDINIT_KEEP_FDS=\x00",
		"FDINIT_NOFILE\x00=\x00\x00FDINIT_NOFILE=\x00",
		"FDINIT_LOG=debug\x00FDINIT_LOG_FORMAT=json\x00",
		"FDINIT_LOG=\x00",
		"FDINIT_LOG_FORMAT=JSON\x00",
	}
	for _, line := range lines {
		f.Add(joined(words(line)), "")
		for _, env := range environments[1:] {
			f.Add(joined(words(line)), env)
		}
	}
	f.Add("", environments[1])
	f.Fuzz(func(t *testing.T, cmdline, environ string) {
		args, env := split(cmdline), split(environ)
		argv, envp := sys.VectorOf(args...), sys.VectorOf(env...)
		var c, again Config
		v := Parse(argv, envp, &c)
		if w := Parse(argv, envp, &again); w != v || again != c {
			t.Fatalf("%q, %q: %+v %+v the first time, %+v %+v the second", args, env, v, c, w, again)
		}
		for i, s := range args {
			if argv.String(i) != s {
				t.Fatalf("%q: argument %d became %q", args, i, argv.String(i))
			}
		}

		want := newReference()
		action := want.parse(args, env)
		if v.Action != action {
			t.Fatalf("%q, %q: %+v, want %d", args, env, v, action)
		}
		switch v.Action {
		case Run:
			if c.Command < 1 || c.Command >= len(args) {
				t.Fatalf("%q: the command is argument %d", args, c.Command)
			}
			want.compare(t, &c)
		case Refuse:
			checkProblem(t, v.Problem, args, env)
		case Install:
			for name, text := range map[string]Text{"install": v.Path, "install-as": v.As} {
				value, given := want.values[name]
				if given != (text.Arg != 0) || given && args[text.Arg][text.Off:] != value {
					t.Fatalf("%q: the value of --%s is at %+v", args, name, text)
				}
			}
			if v.Problem != (Problem{}) {
				t.Fatalf("%q, %q: %+v", args, env, v)
			}
		default:
			if v.Problem != (Problem{}) {
				t.Fatalf("%q, %q: %+v", args, env, v)
			}
		}
	})
}

func joined(args []string) string { return strings.Join(args, "\x00") + "\x00" }

func split(s string) []string {
	parts := strings.Split(s, "\x00")
	return parts[:len(parts)-1]
}

// checkProblem sees to it that describing the problem cannot go wrong.
func checkProblem(t *testing.T, p Problem, args, env []string) {
	t.Helper()
	if p.Code == NoProblem || p.Code >= ReservedVariable {
		t.Fatalf("%q, %q: %+v", args, env, p)
	}
	if p.Code == NoCommand || p.Code == LoneInstallAs {
		return
	}
	list, i := args, p.Arg
	if p.Arg == -1 {
		list, i = env, p.Env
	} else if p.Arg < 1 {
		t.Fatalf("%q, %q: %+v is no place", args, env, p)
	}
	if i < 0 || i >= len(list) {
		t.Fatalf("%q, %q: %+v is no place", args, env, p)
	}
	if word := list[i]; p.Value < 0 || p.From < p.Value || p.To < p.From || p.To > len(word) {
		t.Fatalf("%q, %q: %+v is no part of %q", args, env, p, word)
	}
	if p.Code == BadKeep && (p.Reason == 0 || p.Reason > uint8(fds.TooManyRanges)) ||
		p.Code == BadLimit && (p.Reason == 0 || p.Reason > uint8(rlimit.NoValue)) {
		t.Fatalf("%q, %q: %+v has no reason", args, env, p)
	}
}

// reference is a Config made with maps and the library: slow, and without places. What
// it has from the parsers of single values is fuzzed in their packages.
type reference struct {
	command int
	values  map[string]string // settings made by options, by the name of the long one
	limits  map[int]rlimit.Request

	group, nofileKeep bool
	signal            sys.Signal
	keep              fds.Set
	log               Log
}

func newReference() *reference {
	return &reference{values: map[string]string{}, limits: map[int]rlimit.Request{}}
}

func (r *reference) parse(args, env []string) Action {
	valued := []string{"parent-death-signal", "nofile", "rlimit", "keep-fds", "log", "log-format", "install", "install-as"}
	plain := []string{"help", "version", "group"}
	short := map[byte]string{'h': "help", 'V': "version", 'g': "group", 'p': "parent-death-signal"}
	i := 1
	for i < len(args) && len(args[i]) > 1 && args[i][0] == '-' && args[i] != "--" {
		word := args[i]
		i++
		// Make of each word a list of long options, the last of which may have a value.
		names, value, attached := []string(nil), "", false
		if rest, ok := strings.CutPrefix(word, "--"); ok {
			name := ""
			name, value, attached = strings.Cut(rest, "=")
			names = []string{name}
			if !slices.Contains(plain, name) && !slices.Contains(valued, name) || attached && slices.Contains(plain, name) {
				return Refuse
			}
		} else {
			for j := 1; j < len(word); j++ {
				name := short[word[j]]
				names = append(names, name)
				if name == "parent-death-signal" {
					value, attached = word[j+1:], j+1 < len(word)
					break
				}
			}
		}
		for _, name := range names {
			value := value
			switch {
			case name == "help":
				return Help
			case name == "version":
				return Version
			case name == "":
				return Refuse
			case slices.Contains(valued, name) && !attached:
				if i >= len(args) {
					return Refuse
				}
				value = args[i]
				i++
			}
			if !r.option(name, value) {
				return Refuse
			}
		}
	}
	if i < len(args) && args[i] == "--" {
		i++
	}
	_, install := r.values["install"]
	_, installAs := r.values["install-as"]
	if install && i >= len(args) {
		return Install
	}
	if install || installAs || i >= len(args) {
		return Refuse
	}
	r.command = i
	if !r.variables(env) {
		return Refuse
	}
	return Run
}

// option takes one setting of the command line.
func (r *reference) option(name, value string) bool {
	if name == "rlimit" {
		return r.limit(r.limits, r.values["nofile"] != "", value)
	}
	if _, repeated := r.values[name]; repeated {
		return false
	}
	r.values[name] = value
	switch name {
	case "group":
		r.group = true
	case "parent-death-signal":
		var ok bool
		r.signal, ok = signals.Parse(value)
		return ok
	case "keep-fds":
		problem, _, _ := fds.ParseKeep(value, &r.keep)
		return problem == 0
	case "nofile":
		return r.nofile(r.limits, value)
	case "log":
		return r.logLevel(value)
	case "log-format":
		return r.logFormat(value)
	case "install", "install-as":
		return value != ""
	}
	return true
}

func (r *reference) logLevel(value string) bool {
	level, ok := map[string]events.Level{"warn": events.Warn, "info": events.Info, "debug": events.Debug}[value]
	r.log.Level, r.log.Wanted = level, value != "warn"
	return ok
}

func (r *reference) logFormat(value string) bool {
	r.log.JSON = value == "json"
	return value == "json" || value == "text"
}

func (r *reference) nofile(limits map[int]rlimit.Request, value string) bool {
	if value == "auto" || value == "keep" {
		_, twice := limits[unix.RLIMIT_NOFILE]
		r.nofileKeep = value == "keep"
		return !twice
	}
	return r.limit(limits, false, "nofile="+value)
}

func (r *reference) limit(limits map[int]rlimit.Request, nofileGiven bool, value string) bool {
	resource, q, problem, _, _ := rlimit.ParseNamed(value)
	_, twice := limits[resource]
	if problem != 0 || twice || resource == unix.RLIMIT_NOFILE && nofileGiven {
		return false
	}
	limits[resource] = q
	return true
}

// variables takes the environment's settings, where no option has made them.
func (r *reference) variables(env []string) bool {
	set := map[string]string{}
	for _, s := range slices.Backward(env) { // so that the first one stays
		if name, value, ok := strings.Cut(s, "="); ok {
			set["="+name] = value
		}
	}
	unset := func(option, name string) (value string, ok bool) {
		value, ok = set["="+name]
		_, given := r.values[option]
		return value, ok && !given
	}
	if value, ok := unset("group", "FDINIT_GROUP"); ok {
		if value != "0" && value != "1" {
			return false
		}
		r.group = value == "1"
	}
	if value, ok := unset("keep-fds", "FDINIT_KEEP_FDS"); ok {
		if problem, _, _ := fds.ParseKeep(value, &r.keep); problem != 0 {
			return false
		}
	}
	if value, ok := unset("log", "FDINIT_LOG"); ok && !r.logLevel(value) {
		return false
	}
	if value, ok := unset("log-format", "FDINIT_LOG_FORMAT"); ok && !r.logFormat(value) {
		return false
	}
	limits := map[int]rlimit.Request{}
	_, nofileGiven := r.values["nofile"]
	_, limited := r.limits[unix.RLIMIT_NOFILE]
	nofileByVariable := false
	if value, ok := unset("nofile", "FDINIT_NOFILE"); ok && !limited {
		nofileByVariable = true
		if !r.nofile(limits, value) {
			return false
		}
	}
	if value, ok := unset("", "FDINIT_RLIMIT"); ok {
		words := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\n", c) })
		if len(words) == 0 {
			return false
		}
		for _, word := range words {
			if !r.limit(limits, nofileByVariable, word) {
				return false
			}
		}
	}
	for resource, q := range limits {
		if _, asked := r.limits[resource]; !asked && !(resource == unix.RLIMIT_NOFILE && nofileGiven) {
			r.limits[resource] = q
		}
	}
	return true
}

func (r *reference) compare(t *testing.T, c *Config) {
	t.Helper()
	if c.Command != r.command || (c.Scope == ToGroup) != r.group || c.ParentDeathSignal != r.signal || c.NofileKeep != r.nofileKeep || c.Keep != r.keep || c.Log != r.log {
		t.Fatalf("%+v, want %+v", c, r)
	}
	for resource := range rlimit.Count {
		q, want := c.Limits.Of(resource), r.limits[resource]
		if _, asked := r.limits[resource]; asked != (q != nil) {
			t.Fatalf("%s is asked for: %v", rlimit.Type(resource), q != nil)
		}
		if q != nil {
			want.Type = rlimit.Type(resource)
			if *q != want {
				t.Fatalf("%s: %+v, want %+v", rlimit.Type(resource), *q, want)
			}
		}
	}
}

// FuzzScanner checks, for a dialect with abbreviations, that scanning ends, goes on
// from word to word and finds only what is there.
func FuzzScanner(f *testing.F) {
	for _, line := range []string{"", "-vvcs1 a", "--si a", "--signal=1 -s 2 -- a", "--single- a", "-", "-\x80-", "--=", "---"} {
		f.Add(joined(words(line)), true)
		f.Add(joined(words(line)), false)
	}
	f.Fuzz(func(t *testing.T, cmdline string, abbreviating bool) {
		args := split(cmdline)
		s := Scanner{Args: sys.VectorOf(args...), Table: dialect, Abbreviating: abbreviating, Next: 1}
		for budget := len(cmdline) + 1; ; budget-- {
			if budget < 0 {
				t.Fatalf("%q: more options than bytes", args)
			}
			before := s.Next
			f := s.Scan()
			if s.Next < before {
				t.Fatalf("%q: went back from word %d to %d", args, before, s.Next)
			}
			if f.ID == EndOfOptions {
				break
			}
			if f.Arg < 1 || f.Arg >= len(args) || f.From < 0 || f.From >= f.To || f.To > len(args[f.Arg]) {
				t.Fatalf("%q: %+v is nowhere", args, f)
			}
			if f.At != 0 && (f.At >= len(args) || args[f.At][f.Off:] != f.Value) {
				t.Fatalf("%q: %+v has its value from elsewhere", args, f)
			}
			if f.At == 0 && f.Value != "" {
				t.Fatalf("%q: %+v has its value from nowhere", args, f)
			}
		}
		if s.Next < len(args) && s.Next > 1 && args[s.Next-1] != "--" {
			if word := args[s.Next]; len(word) > 1 && word[0] == '-' && word != "--" {
				t.Fatalf("%q: stopped at the option %q", args, word)
			}
		}
	})
}
