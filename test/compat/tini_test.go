package compat

import (
	"fmt"
	"regexp"
	"strings"
)

var tiniOwn = regexp.MustCompile(`^\[(INFO |DEBUG|TRACE) tini \(`)

// toStderr: what tini prints on the workload's stdout.
func toStderr() *difference {
	return &difference{"tini-stdout", []string{"stdout", "stderr"}, sameLinesOnStderr(tiniOwn.MatchString)}
}

// silent: tini's warning when it is neither PID 1 nor a subreaper.
func silent(keys ...string) *difference {
	return &difference{"tini-warning", append([]string{"stderr"}, keys...), all(
		peerIs("stderr", `^\[WARN  tini \(<init>\)\] Tini is not running as PID 1`),
		func(peer, ours obs) error {
			// What tini says beyond the three lines of the warning is said by fdinit as well.
			lines := strings.SplitAfterN(peer["stderr"], "\n", 4)
			return is("stderr", lines[3])(peer, ours)
		},
	)}
}

const tiniUsage = "Usage: tini [OPTIONS] PROGRAM -- [ARGS] | --version"

func tiniHelp(key string, first ...string) *difference {
	return &difference{"help-text", []string{key}, helps(key, append(first, tiniUsage)...)}
}

const tiniVersion = `^tini version \d+\.\d+\.\d+\S*_fdinit( - git\.[0-9a-f]{1,7})?\n$`

// permutes: glibc's getopt looks for options behind the command as well.
func permutes(keys []string, c check) *difference { return &difference{"first-argument", keys, c} }

func tiniRows() []row {
	row1 := func(id string, args ...string) row { return row{id: "tini/" + id, as: tini, args: args} }
	diff := func(r row, d *difference) row { r.diff = d; return r }
	env := func(r row, e ...string) row { r.env = append(r.env, e...); return r }
	child := func(r row) row { r.child = true; return r }
	named := func(r row, argv0 string) row { r.argv0 = argv0; return r }
	exit := func(n int) []string { return []string{"--", "sh", "-c", fmt.Sprintf("exit %d", n)} }
	var rows []row
	add := func(r ...row) { rows = append(rows, r...) }

	// Version, help, licence.
	version := func(r row) row {
		return diff(r, &difference{"version", []string{"stdout"}, all(peerIs("stdout", `^tini version 0\.19\.0\n$`), matches("stdout", tiniVersion))})
	}
	add(version(row1("version", "--version")))
	for _, n := range []string{"tini-static", "docker-init", "/sbin/docker-init", "/usr/bin/tini", "/dev/init", "./tini"} {
		add(version(named(row1("version-as-"+strings.Trim(strings.ReplaceAll(n, "/", "-"), "-."), "--version"), n)))
	}
	for _, how := range []string{"hard link", "copy"} {
		r := row1("version-"+strings.ReplaceAll(how, " ", "-"), "--version")
		r.file = how
		add(version(r))
		r = row1("run-"+strings.ReplaceAll(how, " ", "-"), exit(7)...)
		r.file = how
		add(r)
	}
	add(child(version(row1("version-not-pid1", "--version"))))
	add(version(env(row1("version-verbose", "--version"), "TINI_VERBOSITY=3", "TINI_SUBREAPER=")))
	add(diff(row1("version-and-more", "--version", "x"), tiniHelp("stderr", "tini: invalid option -- '-'")))
	add(diff(row1("version-abbreviated", "--versio"), tiniHelp("stderr", "tini: invalid option -- '-'")))
	add(row1("version-as-command", "--", "--version"))
	add(diff(row1("help", "-h"), tiniHelp("stdout")))
	add(diff(row1("help-clustered", "-sgh"), tiniHelp("stdout")))
	add(diff(row1("help-before-error", "-h", "-x"), tiniHelp("stdout")))
	add(diff(row1("help-before-licence", "-hl"), tiniHelp("stdout")))
	add(diff(named(row1("help-names-itself", "-h"), "/sbin/docker-init"),
		&difference{"help-text", []string{"stdout"}, helps("stdout", strings.Replace(tiniUsage, "tini", "docker-init", 1))}))
	add(diff(row1("help-long", "--help"), tiniHelp("stderr", "tini: invalid option -- '-'")))
	licence := &difference{"licence", []string{"stdout"}, all(peerIs("stdout", `^The MIT License`), matches("stdout", `(?i)licen[cs]e`))}
	add(diff(row1("licence", "-l"), licence))
	add(diff(row1("licence-before-help", "-lh"), licence))

	// Usage errors.
	for id, args := range map[string][]string{
		"none": {}, "dashes": {"--"}, "s": {"-s"}, "g": {"-g"}, "v": {"-v"}, "vvv": {"-vvv"}, "w": {"-w"}, "e": {"-e", "3"}, "p": {"-p", "SIGTERM"}, "sg-dashes": {"-sg", "--"},
	} {
		add(diff(row1("no-command-"+id, args...), tiniHelp("stderr")))
	}
	for id, c := range map[string]struct {
		line string
		args []string
	}{
		"option-unknown":           {"tini: invalid option -- 'x'", []string{"-x"}},
		"option-unknown-command":   {"tini: invalid option -- 'x'", []string{"-x", "true"}},
		"option-unknown-dashes":    {"tini: invalid option -- 'x'", []string{"-x", "--", "true"}},
		"option-unknown-clustered": {"tini: invalid option -- 'x'", []string{"-sx", "true"}},
		"option-unknown-second":    {"tini: invalid option -- 'y'", []string{"-s", "-y", "-z", "true"}},
		"option-unknown-before-h":  {"tini: invalid option -- 'x'", []string{"-x", "-h"}},
		"option-unknown-digit":     {"tini: invalid option -- '1'", []string{"-1", "true"}},
		"option-unknown-question":  {"tini: invalid option -- '?'", []string{"-?"}},
		"option-unknown-colon":     {"tini: invalid option -- ':'", []string{"-:"}},
		"option-long-unknown":      {"tini: invalid option -- '-'", []string{"--subreaper", "true"}},
		"value-missing-e":          {"tini: option requires an argument -- 'e'", []string{"-e"}},
		"value-missing-p":          {"tini: option requires an argument -- 'p'", []string{"-sp"}},
	} {
		add(diff(row1(c0(id), c.args...), tiniHelp("stderr", c.line)))
	}
	add(diff(named(row1("option-unknown-argv0", "-x"), "/sbin/docker-init"),
		&difference{"help-text", []string{"stderr"}, helps("stderr", "/sbin/docker-init: invalid option -- 'x'", strings.Replace(tiniUsage, "tini", "docker-init", 1))}))

	// Every flag, alone, clustered, with values.
	for _, f := range []string{"-s", "-g", "-w", "-sg", "-gs", "-sgw", "-ss", "-gg"} {
		add(row1("flag"+f, with([]string{f}, exit(3)...)...))
	}
	add(row1("flags-apart", with([]string{"-s", "-g", "-w"}, exit(3)...)...))
	add(row1("no-dashes", "true"))
	add(row1("flag-no-dashes", "-s", "true"))
	add(row1("dashes-only-first", "--", "echo", "--", "-x"))
	add(row1("dash-is-not-an-option", "--", "echo", "-"))
	for id, c := range map[string][]string{
		"apart": {"-e", "143"}, "attached": {"-e143"}, "clustered": {"-sge143"}, "clustered-apart": {"-sge", "143"}, "first-of-two": {"-e", "143", "-e", "4"}, "second-of-two": {"-e", "4", "-e", "143"},
		"plus": {"-e", "+143"}, "space": {"-e", " 143"}, "zeros": {"-e", "0143"}, "other": {"-e", "3"}, "zero": {"-e", "0"}, "empty": {"-e", ""}, "max": {"-e", "255"},
	} {
		add(row1("remap-"+id, with(c, exit(143)...)...))
	}
	add(row1("remap-signal", "-e", "143", "--", "sh", "-c", "kill -TERM $$; exit 9"))
	add(row1("remap-signal-other", "-e", "15", "--", "sh", "-c", "kill -TERM $$; exit 9"))
	add(row1("remap-255", with([]string{"-e", "255"}, exit(255)...)...))
	add(row1("remap-exec-failure", "-e", "127", "--", "/nonexistent"))
	for id, v := range map[string]string{"256": "256", "negative": "-1", "word": "x", "trailing": "3x", "hex": "0x3", "huge": "99999999999999999999", "trailing-space": "3 ", "float": "3.0", "minus-zero": "-0"} {
		add(row1("remap-bad-"+id, "-e", v, "true"))
	}
	add(row1("remap-bad-clustered", "-eg3", "true"))
	add(row1("remap-bad-before-help", "-e", "x", "-h"))
	add(env(row1("remap-bad-quiet", "-e", "x", "true"), "TINI_VERBOSITY=0"))
	add(child(row1("remap-bad-not-pid1", "-e", "x", "true")))
	for _, s := range strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH SYS") {
		add(row1("death-signal-"+strings.ToLower(s), with([]string{"-p", "SIG" + s}, exit(3)...)...))
	}
	add(row1("death-signal-attached", with([]string{"-pSIGTERM"}, exit(3)...)...))
	add(row1("death-signal-clustered", with([]string{"-spSIGTERM"}, exit(3)...)...))
	for _, s := range []string{"TERM", "sigterm", "SigTerm", "15", "SIG", "", "SIGRTMIN", "SIGRTMIN+3", "SIGIOT", "SIGPOLL", "SIGIO", "SIGCLD", "SIGUNUSED", "SIGSTKFLT", "SIGPWR", "SIGTERM "} {
		add(row1("death-signal-bad-"+s, "-p", s, "true"))
	}
	for _, s := range []int{10, 15} {
		r := row1(fmt.Sprintf("death-signal-told-%d", s), with([]string{"-s", "-p", map[int]string{10: "SIGUSR1", 15: "SIGTERM"}[s], "--"}, deaf("main").argv()...)...)
		r.child, r.wrapped = true, true
		r.script = `"$0" "$@" & wait`
		r.steps = []step{actorsReady(1), parentDies(s)}
		add(r)
	}

	// Verbosity. The same lines, but never on the workload's stdout.
	for id, c := range map[string]row{
		"v": row1("", "-v"), "vv": row1("", "-vv"), "vvv": row1("", "-vvv"), "vvvv": row1("", "-vvvv"), "v-apart": row1("", "-v", "-v"), "v-clustered": row1("", "-svg"),
		"env-2": env(row1(""), "TINI_VERBOSITY=2"), "env-3": env(row1(""), "TINI_VERBOSITY=3"), "env-4": env(row1(""), "TINI_VERBOSITY=4"),
		"env-wins": env(row1("", "-vvv"), "TINI_VERBOSITY=2"), "env-negative": env(row1(""), "TINI_VERBOSITY=-1"), "env-trailing": env(row1(""), "TINI_VERBOSITY=2x"), "env-space": env(row1(""), "TINI_VERBOSITY= 3"),
	} {
		c.id = "tini/verbose-" + id
		a, b := c, c
		a.args = with(c.args, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
		a.diff = toStderr()
		b.id += "-signal"
		b.args = with(c.args, "--", "sh", "-c", "kill -TERM $$")
		b.diff = toStderr()
		add(a, b)
	}
	for id, v := range map[string]string{"0": "0", "1": "1", "word": "x", "empty": ""} {
		add(env(row1("quiet-env-"+id, exit(3)...), "TINI_VERBOSITY="+v))
		add(env(row1("quiet-env-"+id+"-exec-failure", "/nonexistent"), "TINI_VERBOSITY="+v))
		r := child(env(row1("quiet-env-"+id+"-not-pid1", exit(3)...), "TINI_VERBOSITY="+v))
		if v == "1" {
			r.diff = silent()
		}
		add(r)
	}
	add(env(row1("quiet-env-0-beats-v", with([]string{"-vvv"}, exit(3)...)...), "TINI_VERBOSITY=0"))
	add(diff(row1("verbose-exec-failure", "-vvv", "--", "/nonexistent"), toStderr()))
	add(diff(row1("verbose-remap", with([]string{"-vv", "-e", "3"}, exit(3)...)...), toStderr()))
	add(child(diff(row1("verbose-subreaper", with([]string{"-vvv", "-s"}, exit(3)...)...), toStderr())))
	add(child(diff(env(row1("verbose-subreaper-env", with([]string{"-vvv"}, exit(3)...)...), "TINI_SUBREAPER="), toStderr())))
	add(diff(row1("verbose-subreaper-pid1", with([]string{"-vvv", "-s"}, exit(3)...)...), toStderr()))
	for _, s := range []int{1, 10, 15, 20, 28, 34, 64} {
		r := row1(fmt.Sprintf("verbose-forward-%d", s), with([]string{"-vv", "--"}, deaf("main").argv()...)...)
		r.steps = []step{ready(1), signal(s), arrived(s), idle(), killMain(9)}
		r.diff = toStderr()
		add(r)
	}

	// Not PID 1, not a subreaper.
	add(child(diff(row1("warning", exit(3)...), silent())))
	add(child(diff(row1("warning-g", with([]string{"-g"}, exit(3)...)...), silent())))
	add(child(diff(row1("warning-exec-failure", "--", "/nonexistent"), silent())))
	add(child(diff(named(row1("warning-docker-init", exit(3)...), "/sbin/docker-init"), silent())))
	add(child(row1("subreaper-s", with([]string{"-s"}, exit(3)...)...)))
	add(child(env(row1("subreaper-env", exit(3)...), "TINI_SUBREAPER=1")))
	add(child(env(row1("subreaper-env-empty", exit(3)...), "TINI_SUBREAPER=")))
	add(child(env(row1("subreaper-env-zero", exit(3)...), "TINI_SUBREAPER=0")))

	// glibc permutes, fdinit stops at the command.
	add(diff(row1("permute-licence", "sh", "-lc", "exit 3"), permutes([]string{"exit", "stdout"}, all(is("exit", "exit 3"), is("stdout", "")))))
	add(diff(row1("permute-invalid", "sh", "-c", "exit 3"), permutes([]string{"exit", "stderr"}, all(is("exit", "exit 3"), is("stderr", ""), peerIs("stderr", `^tini: invalid option -- 'c'\n`)))))
	add(diff(row1("permute-eats", "echo", "a", "-g", "b"), permutes([]string{"stdout"}, is("stdout", "a -g b\n"))))
	add(diff(row1("permute-version", "./script", "--version"), permutes([]string{"exit", "stderr", "stdout"}, all(is("exit", "exit 0"), is("stdout", "script: ./script --version\n"), is("stderr", "")))))
	add(diff(row1("permute-dashes", "echo", "--", "-x"), permutes([]string{"stdout"}, is("stdout", "-- -x\n"))))
	for _, v := range []string{"1", ""} {
		id := "posixly-correct"
		if v == "" {
			id += "-empty"
		}
		add(env(row1(id, "sh", "-c", "exit 3"), "POSIXLY_CORRECT="+v))
		add(env(row1(id+"-flag", "-s", "sh", "-c", "exit 3"), "POSIXLY_CORRECT="+v))
	}

	add(execFailures(tini, []string{"--"}, nil)...)
	add(exitCodes(tini, []string{"--"})...)
	add(deaths(tini, []string{"--"})...)
	for _, r := range inherited(tini, []string{"-s", "--"}) {
		add(r)
	}
	add(forwarded(tini, []string{"--"}, []string{"-s"}, func(s int, isChild bool) *difference {
		switch s {
		case 4, 5, 6, 7, 8, 11, 31, 32, 33:
			return notForwarded(s, isChild)
		}
		if s == 21 || s == 22 {
			return stopSignals(s)
		}
		return nil
	})...)
	add(common(tini, []string{"-s", "--"}, []string{"-s", "-g", "--"})...)
	add(terminals(tini, []string{"-s", "--"})...)

	// Zombies of others.
	reap := func(id string, args ...string) row {
		r := row1(id, with(args, deafWithOrphan()...)...)
		r.steps = []step{ready(1), orphaned("kid"), parents("orphan"), killActor("kid", 9), actorGone("kid"), idle(), killMain(9)}
		return r
	}
	add(reap("reap", "--"), reap("reap-w", "-w", "--"), child(reap("reap-subreaper", "-s", "-w", "--")), child(env(reap("reap-subreaper-env", "--"), "TINI_SUBREAPER=")))
	add(env(reap("reap-w-quiet", "-w", "--"), "TINI_VERBOSITY=0"))
	add(diff(reap("reap-vv", "-vv", "--"), toStderr()))
	add(diff(reap("reap-vvw", "-vvw", "--"), toStderr()))
	r := child(diff(reap("reap-no-subreaper", "-w", "--"), &difference{"subreaper", []string{"stderr", "orphan.kid.parent"}, all(
		peerIs("orphan.kid.parent", "^PARENT$"), is("orphan.kid.parent", "INIT"), matches("stderr", `^(\[WARN  tini \(<init>\)\] Reaped zombie process with pid=<process \d>\n){2}$`))}))
	add(r)

	// Groups.
	group := func(id string, args []string, e ...string) row {
		r := env(row1(id, with(args, deaf("main", deaf("kid"), sessionOf(deaf("daemon"))).argv()...)...), e...)
		r.steps = []step{ready(3), signal(10), arrived(10), pending("after"), killMain(9)}
		return r
	}
	for _, g := range []row{group("group-off", []string{"--"}), group("group-on", []string{"-g", "--"}), group("group-env", []string{"--"}, "TINI_KILL_PROCESS_GROUP=1"), group("group-env-empty", []string{"--"}, "TINI_KILL_PROCESS_GROUP="), group("group-env-zero", []string{"--"}, "TINI_KILL_PROCESS_GROUP=0")} {
		add(modes(g, "-s")...)
	}

	// Failing to forward.
	empty := row1("group-empty", with([]string{"-g", "--"}, emptyGroup().argv()...)...)
	empty.steps = []step{ready(2), signal(10), idle(), pending("after"), killMain(9)}
	empty.diff = emptyGroupReached(false)
	add(empty)
	eperm := row1("forward-refused", with([]string{"--"}, foreignUser().argv()...)...)
	eperm.in.DropCaps = []int{5}
	eperm.steps = []step{ready(1), signal(10), idle(), killMain(9)}
	eperm.diff = &difference{"forward-refused", []string{"exit", "stderr"}, all(
		peerIs("exit", "^exit 1$"), peerIs("stderr", "Unexpected error when forwarding signal: 'Operation not permitted'"), is("exit", "exit 137"),
		is("stderr", "[WARN  tini (<init>)] Unexpected error when forwarding signal: 'Operation not permitted'\n"))}
	add(eperm)

	// tini with SIGCHLD ignored never learns that its child ended.
	for _, r := range modes(row1("sigchld-ignored", with([]string{"--"}, plain...)...), "-s") {
		r.in.Ignore = []int{17}
		r.steps = []step{ready(1), killMain(9)}
		r.mayHang = true
		r.diff = &difference{"sigchld-ignored", []string{"exit"}, all(peerIs("exit", "^hangs$"), is("exit", "exit 137"))}
		add(r)
	}
	return rows
}

// c0 exists to keep map keys readable as ids.
func c0(id string) string { return id }
