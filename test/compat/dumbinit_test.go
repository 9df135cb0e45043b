package compat

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	dumbUsage   = "Usage: dumb-init [option] command [[arg] ...]"
	dumbVersion = `^dumb-init v\d+\.\d+\.\d+\S*( - git\.[0-9a-f]{1,7})?\n$`
)

func dumbInitRows() []row {
	row1 := func(id string, args ...string) row { return row{id: "dumb-init/" + id, as: dumbInit, args: args} }
	diff := func(r row, d *difference) row { r.diff = d; return r }
	env := func(r row, e ...string) row { r.env = append(r.env, e...); return r }
	child := func(r row) row { r.child = true; return r }
	named := func(r row, argv0 string) row { r.argv0 = argv0; return r }
	anyOrder := func(r row) row { r.anyOrder = true; return r }
	exit := func(n int) []string { return []string{"sh", "-c", fmt.Sprintf("exit %d", n)} }
	var rows []row
	add := func(r ...row) { rows = append(rows, r...) }

	// Version and help, both on stderr.
	version := func(r row) row {
		return diff(r, &difference{"version", []string{"stderr"}, all(peerIs("stderr", `^dumb-init v1\.2\.5\n$`), matches("stderr", dumbVersion))})
	}
	help := func(r row) row {
		return diff(r, &difference{"help-text", []string{"stderr"}, helps("stderr", strings.Replace(dumbUsage, "dumb-init", dumbArgv0(r), 1))})
	}
	for id, a := range map[string][]string{
		"V": {"-V"}, "long": {"--version"}, "abbreviated": {"--vers"}, "and-command": {"-V", "true"}, "clustered": {"-vcV"}, "before-help": {"-Vh"}, "before-error": {"-Vx"}, "after-rewrite": {"-r", "15:3", "-V"},
	} {
		add(version(row1("version-"+id, a...)))
	}
	add(child(version(row1("version-not-pid1", "--version"))), version(named(row1("version-path", "-V"), "/usr/bin/dumb-init")))
	for _, how := range []string{"hard link", "copy"} {
		r := row1("version-"+strings.ReplaceAll(how, " ", "-"), "--version")
		r.file = how
		add(version(r))
	}
	for id, a := range map[string][]string{"h": {"-h"}, "long": {"--help"}, "abbreviated-1": {"--h"}, "abbreviated-3": {"--hel"}, "clustered": {"-vch"}, "before-version": {"-hV"}, "and-command": {"-h", "true"}} {
		add(help(row1("help-"+id, a...)))
	}
	add(help(named(row1("help-path", "-h"), "/usr/bin/dumb-init")))

	// Usage errors, word for word.
	for id, a := range map[string][]string{"none": {}, "dashes": {"--"}, "c": {"-c"}, "v": {"-v"}, "rewrite": {"-r", "15:3"}, "rewrite-long": {"--rewrite=15:3"}} {
		add(row1("no-command-"+id, a...))
		add(named(row1("no-command-path-"+id, a...), "/usr/bin/dumb-init"))
	}
	for id, a := range map[string][]string{
		"unknown": {"-x"}, "unknown-command": {"-x", "true"}, "unknown-clustered": {"-cx", "true"}, "unknown-long": {"--bogus", "true"}, "unknown-long-value": {"--bogus=1", "true"}, "unknown-digit": {"-9", "true"},
		"ambiguous-v": {"--v", "true"}, "ambiguous-ver": {"--ver", "true"}, "ambiguous-value": {"--ver=1", "true"}, "empty-name": {"--=x", "true"},
		"value-missing": {"-r"}, "value-missing-long": {"--rewrite"}, "value-missing-abbreviated": {"--rew"}, "value-missing-clustered": {"-cr"},
		"value-refused-version": {"--version=x"}, "value-refused-verbose": {"--verbose=1", "true"}, "value-refused-abbreviated": {"--sing=1", "true"}, "value-refused-help": {"--help="}, "unknown-before-help": {"-x", "-h"},
	} {
		add(row1("option-"+id, a...))
	}
	add(named(row1("option-unknown-path", "-x"), "/usr/bin/dumb-init"), env(row1("option-unknown-posix", "-x", "true"), "POSIXLY_CORRECT=1"))

	// Every flag.
	for id, a := range map[string][]string{
		"c": {"-c"}, "cc": {"-cc"}, "single-child": {"--single-child"}, "single": {"--single"}, "s": {"--s"}, "rewrite-short": {"-r", "15:3"}, "rewrite-attached": {"-r15:3"}, "rewrite-clustered": {"-cr15:3"},
		"rewrite-long": {"--rewrite", "15:3"}, "rewrite-equals": {"--rewrite=15:3"}, "rewrite-abbreviated": {"--r", "15:3"}, "rewrite-abbreviated-equals": {"--rew=15:3"}, "dashes": {"-c", "--"}, "dashes-only": {"--"}, "rewrite-twice": {"-r", "15:3", "-r", "2:1"},
	} {
		add(row1("flag-"+id, with(a, exit(3)...)...))
	}
	add(row1("flags-after-command", "echo", "-c", "--version", "-x", "--"), row1("dashes-then-option", "--", "--version"), row1("shebang", "/bin/sh", "$W/script", "a"))
	add(named(row1("shebang-path", "/bin/sh", "$W/script", "a", "-h"), "/usr/bin/dumb-init"))

	// Values of -r.
	for i, v := range []string{"15:0", "15:31", "1:1", "31:1", " 15:3", "15: 3", "+15:3", "015:3", "15:3x", "15:3:2", "15:+3", "15:03", "15:0x3"} {
		add(row1(fmt.Sprintf("rewrite-accepted-%d", i), with([]string{"-r", v}, exit(3)...)...))
	}
	for i, v := range []string{"", "15", "15:", ":3", ":", "a:b", "TERM:INT", "SIGTERM:SIGINT", "15:INT", "15 :3", "15,3", "0xf:3", "-1:3", "15:-1", "0:3", "32:3", "15:32", "64:1", "1:64"} {
		add(row1(fmt.Sprintf("rewrite-refused-%d", i), "-r", v, "true"))
	}
	add(row1("rewrite-refused-attached", "-rTERM:INT", "true"), row1("rewrite-refused-long", "--rewrite=TERM:INT", "true"), row1("rewrite-refused-empty-long", "--rewrite=", "true"), row1("rewrite-refused-second", "-r", "15:3", "-r", "x", "true"), row1("rewrite-refused-before-help", "-r", "x", "-h"))

	// What they do.
	rewrite := func(id string, send []int, flags ...string) row {
		r := row1("rewrites-"+id, with(flags, deaf("main", deaf("kid")).argv()...)...)
		r.steps = []step{ready(2)}
		for _, s := range send {
			r.steps = append(r.steps, signal(s), idle())
		}
		r.steps = append(r.steps, signal(64), arrivedOrStopped(64), idle(), pending("after"), signal(18), idle(), killMain(9))
		return r
	}
	for _, r := range []row{
		rewrite("one", []int{15}, "-r", "15:2"), rewrite("drop", []int{15}, "-r", "15:0"), rewrite("last-wins", []int{15}, "-r", "15:2", "-r", "15:3"), rewrite("no-chain", []int{15}, "-r", "15:2", "-r", "2:3"),
		rewrite("swap", []int{15, 2}, "-r", "15:2", "-r", "2:15"), rewrite("other-untouched", []int{1}, "-r", "15:2"), rewrite("chld", []int{17}, "-r", "17:10"), rewrite("to-chld", []int{15}, "-r", "15:17"), rewrite("single", []int{15}, "-c", "-r", "15:2"),
		rewrite("octal-looking", []int{15}, "-r", "015:2"), rewrite("trailing", []int{15}, "-r", "15:2x"), rewrite("three", []int{15}, "-r", "15:2:3"), rewrite("identity", []int{15}, "-r", "15:15"), rewrite("wraps", []int{15}, "-r", "4294967311:2"),
		rewrite("usr1", []int{10}, "-r10:12"), rewrite("many", []int{1, 2, 3}, "-r", "1:10", "--rewrite", "2:10", "--rewrite=3:12"),
	} {
		add(modes(r)...)
	}
	for _, s := range []int{20, 21, 22} {
		n := fmt.Sprint(s)
		add(rewrite("job-control-kept-"+n, []int{s}, "-r", n+":"+n), rewrite("job-control-dropped-"+n, []int{s}, "-r", n+":0"), rewrite("job-control-to-term-"+n, []int{s}, "-r", n+":15"))
	}
	for id, f := range map[string][]string{"dropped": {"-r", "15:0"}, "other": {"-r", "15:10"}, "single": {"-c"}, "single-other": {"-c", "-r", "15:10"}} {
		r := row1("end-term-"+id, with(f, deaf("main", deaf("kid"), sessionOf(deaf("daemon"))).argv()...)...)
		r.steps = []step{ready(3), killMain(9)}
		add(child(r))
	}

	// Environment.
	for _, v := range []string{"0", "yes", "", "2", "true", "01"} {
		add(env(row1("debug-env-off-"+v, exit(3)...), "DUMB_INIT_DEBUG="+v))
	}
	for _, v := range []string{"0", "", "1", "00", "no", "false"} {
		r := env(row1("setsid-env-"+v, with(nil, deaf("main", deaf("kid")).argv()...)...), "DUMB_INIT_SETSID="+v)
		r.steps = []step{ready(2), snap("s"), signal(15), arrived(15), idle(), pending("after"), killMain(9)}
		add(modes(r)...)
	}

	// Debug lines. The parent's and the child's come in any order.
	debug := func(id string, flags []string, e ...string) {
		add(anyOrder(env(row1("debug-"+id, with(flags, "sh", "-c", "echo out; echo err >&2; exit 3")...), e...)))
		add(anyOrder(env(row1("debug-"+id+"-signal", with(flags, "sh", "-c", "kill -TERM $$")...), e...)))
		add(anyOrder(env(row1("debug-"+id+"-exec-failure", with(flags, "/nonexistent")...), e...)))
		add(anyOrder(child(env(row1("debug-"+id+"-not-pid1", with(flags, exit(3)...)...), e...))))
	}
	debug("v", []string{"-v"})
	debug("vv", []string{"-vv"})
	debug("long", []string{"--verbose"})
	debug("abbreviated", []string{"--verb"})
	debug("vc", []string{"-vc"})
	debug("env", nil, "DUMB_INIT_DEBUG=1")
	debug("env-c", []string{"-c"}, "DUMB_INIT_DEBUG=1")
	debug("env-v", []string{"-v"}, "DUMB_INIT_DEBUG=1")
	debug("setsid-off", []string{"-v"}, "DUMB_INIT_SETSID=0")
	debug("setsid-off-env", nil, "DUMB_INIT_SETSID=0", "DUMB_INIT_DEBUG=1")
	debug("setsid-off-c", []string{"-vc"}, "DUMB_INIT_SETSID=0")
	for _, f := range [][]string{{"-v"}, {"-v", "-c"}, {"-v", "-r", "10:12"}, {"-v", "-r", "10:0"}, {"-v", "-r", "15:0"}, {"-v", "-r", "15:2"}} {
		r := anyOrder(row1("debug-forward"+strings.Join(f, ""), with(f, deaf("main").argv()...)...))
		r.steps = []step{ready(1), signal(10), idle(), signal(1), arrived(1), idle(), signal(34), arrived(34), idle(), killMain(9)}
		add(modes(r)...)
	}
	for _, s := range []int{20, 21, 22} {
		for _, f := range [][]string{{"-v"}, {"-vc"}} {
			r := anyOrder(row1(fmt.Sprintf("debug-stop-%d%s", s, f[0]), with(f, deaf("main").argv()...)...))
			r.steps = []step{ready(1), signal(s), idle(), pending("stopped"), idle(), signal(18), idle(), mainState("S"), idle(), signal(64), arrived(64), idle(), pending("after"), killMain(9)}
			add(modes(r)...)
		}
	}
	reap := anyOrder(row1("debug-reap", with([]string{"-v"}, deafWithOrphan()...)...))
	reap.steps = []step{ready(1), orphaned("kid"), parents("orphan"), killActor("kid", 9), actorGone("kid"), idle(), killMain(9)}
	add(reap)
	orphans := row1("orphans-not-pid1", deafWithOrphan()...)
	orphans.steps = reap.steps
	add(child(diff(orphans, &difference{"subreaper", []string{"orphan.kid.parent"}, all(peerIs("orphan.kid.parent", "^PARENT$"), is("orphan.kid.parent", "INIT"))})))

	add(execFailures(dumbInit, nil, nil)...)
	for _, r := range execFailures(dumbInit, []string{"-c", "--"}, nil)[:8] {
		r.id += "-c"
		add(r)
	}
	add(exitCodes(dumbInit, nil)...)
	add(deaths(dumbInit, nil)...)
	for _, r := range inherited(dumbInit, nil) {
		if strings.Contains(r.id, "-ignored") || strings.Contains(r.id, "blocked") {
			r.diff = lostState(r)
		}
		add(r)
	}
	for _, r := range inherited(dumbInit, []string{"-c"}) {
		r.id = strings.Replace(r.id, "/inherit-", "/inherit-c-", 1)
		if strings.Contains(r.id, "-ignored") || strings.Contains(r.id, "blocked") {
			r.diff = lostState(r)
		}
		add(r)
	}
	add(forwarded(dumbInit, nil, nil, func(s int, isChild bool) *difference {
		if s == 32 || s == 33 {
			return notForwarded(s, isChild)
		}
		return nil
	})...)
	for _, r := range forwarded(dumbInit, []string{"-c"}, nil, func(s int, isChild bool) *difference {
		if s == 32 || s == 33 {
			return notForwarded(s, isChild)
		}
		return nil
	}) {
		if n, _ := strconv.Atoi(strings.Split(strings.TrimPrefix(r.id, "dumb-init/signal-"), "/")[0]); n > 34 && n < 64 && n != 50 {
			continue // alike
		}
		r.id = strings.Replace(r.id, "/signal-", "/signal-c-", 1)
		add(r)
	}
	add(common(dumbInit, nil, []string{"-c"})...)
	add(terminals(dumbInit, nil)...)
	for _, r := range terminals(dumbInit, []string{"-c"}) {
		r.id = strings.Replace(r.id, "/terminal-", "/terminal-c-", 1)
		add(r)
	}
	for _, r := range terminals(dumbInit, []string{"-v"}) {
		if strings.Contains(r.id, "/terminal-state") || strings.Contains(r.id, "/terminal-hup") || strings.Contains(r.id, "/terminal-cont") {
			if strings.Contains(r.id, "/terminal-state") {
				r.steps = []step{ready(1), killMain(9)}
			}
			r.id = strings.Replace(r.id, "/terminal-", "/terminal-debug-", 1)
			add(anyOrder(r))
		}
	}

	// Groups.
	for _, f := range [][]string{nil, {"-c"}} {
		r := row1("group"+strings.Join(f, ""), with(f, deaf("main", deaf("kid"), sessionOf(deaf("daemon"))).argv()...)...)
		r.steps = []step{ready(3), signal(10), arrived(10), idle(), pending("after"), killMain(9)}
		add(modes(r)...)
	}
	eperm := row1("forward-refused", foreignUser().argv()...)
	eperm.in.DropCaps = []int{5}
	eperm.steps = []step{ready(1), signal(10), idle(), pending("after"), killMain(9)}
	add(eperm)
	for _, r := range modes(row1("sigchld-ignored", plain...)) {
		r.in.Ignore = []int{17}
		r.steps = []step{ready(1), killMain(9)}
		add(r)
	}
	return rows
}

func dumbArgv0(r row) string {
	if r.argv0 != "" {
		return r.argv0
	}
	return "dumb-init"
}

// lostState: dumb-init unblocks every signal and makes every ignored one default.
func lostState(r row) *difference {
	if strings.Contains(r.id, "blocked-32-33") {
		return &difference{"dumb-init-inherited-signals", []string{"s.main.blocked"}, all(peerIs("s.main.blocked", "^32 33$"), is("s.main.blocked", "10 32 33"))}
	}
	key := "s.main.ignored"
	want := signalList(maskOf(r.in.Ignore))
	if len(r.in.Block) > 0 {
		key, want = "s.main.blocked", signalList(maskOf(r.in.Block)&^(1<<8|1<<18))
	}
	return &difference{"dumb-init-inherited-signals", []string{key}, all(peerIs(key, "^(34 64)?$"), is(key, want))}
}
