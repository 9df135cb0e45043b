package compat

import (
	"fmt"
	"strings"
)

const (
	catatonitUsage   = "usage: catatonit [-ghLPV] [--] <progname> [<arguments>...]"
	catatonitVersion = tiniVersion
)

func catatonitRows() []row {
	row1 := func(id string, args ...string) row { return row{id: "catatonit/" + id, as: catatonit, args: args} }
	diff := func(r row, d *difference) row { r.diff = d; return r }
	env := func(r row, e ...string) row { r.env = append(r.env, e...); return r }
	child := func(r row) row { r.child = true; return r }
	named := func(r row, argv0 string) row { r.argv0 = argv0; return r }
	anyOrder := func(r row) row { r.anyOrder = true; return r }
	exit := func(n int) []string { return []string{"--", "sh", "-c", fmt.Sprintf("exit %d", n)} }
	var rows []row
	add := func(r ...row) { rows = append(rows, r...) }

	version := func(r row) row {
		return diff(r, &difference{"version", []string{"stdout"}, all(peerIs("stdout", `^tini version 0\.1\.7_catatonit\n$`), matches("stdout", catatonitVersion))})
	}
	help := func(r row) row {
		return diff(r, &difference{"help-text", []string{"stderr"}, helps("stderr", catatonitUsage)})
	}
	for id, a := range map[string][]string{"V": {"-V"}, "long": {"--version"}, "abbreviated-1": {"--v"}, "abbreviated-4": {"--vers"}, "and-command": {"-V", "true"}, "clustered": {"-gV"}, "before-help": {"-Vh"}, "before-error": {"-Vx"}, "with-pause": {"-PV"}} {
		add(version(row1("version-"+id, a...)))
	}
	for _, n := range []string{"podman-init", "/run/podman-init", "/usr/libexec/podman/catatonit"} {
		add(version(named(row1("version-as"+strings.ReplaceAll("/"+strings.Trim(n, "/"), "/", "-"), "--version"), n)))
	}
	add(child(version(row1("version-not-pid1", "-V"))), version(env(row1("version-debug", "-V"), "CATATONIT_DEBUG=")))
	for _, how := range []string{"hard link", "copy"} {
		r := row1("version-"+strings.ReplaceAll(how, " ", "-"), "--version")
		r.file = how
		add(version(r))
	}
	for id, a := range map[string][]string{"h": {"-h"}, "clustered": {"-gh"}, "before-version": {"-hV"}, "before-licence": {"-hL"}, "and-command": {"-h", "true"}} {
		add(help(row1("help-"+id, a...)))
	}
	add(help(named(row1("help-podman", "-h"), "/run/podman-init")))
	add(diff(row1("licence", "-L"), &difference{"licence", []string{"stdout"}, all(peerIs("stdout", `^catatonit: `), matches("stdout", `(?i)licen[cs]e`))}))

	for id, a := range map[string][]string{"none": {}, "dashes": {"--"}, "g": {"-g"}, "gg-dashes": {"-gg", "--"}} {
		add(row1("no-command-"+id, a...))
		add(child(row1("no-command-not-pid1-"+id, a...)))
	}
	add(named(row1("no-command-podman"), "/run/podman-init"))
	for id, a := range map[string][]string{
		"unknown": {"-x"}, "unknown-command": {"-x", "true"}, "unknown-clustered": {"-gx", "true"}, "unknown-digit": {"-1"}, "unknown-long": {"--bogus", "true"}, "unknown-long-value": {"--bogus=1", "true"}, "help-long": {"--help"}, "help-abbreviated": {"--h"},
		"license-long": {"--license"}, "pause-long": {"--pause"}, "group-long": {"--g"}, "value-refused": {"--version=1"}, "value-refused-abbreviated": {"--v=1"}, "unknown-before-version": {"-x", "-V"},
	} {
		add(row1("option-"+id, a...))
	}
	add(named(row1("option-unknown-podman", "-x"), "/run/podman-init"))

	for _, f := range []string{"-g", "-gg"} {
		add(row1("flag"+f, with([]string{f}, exit(3)...)...))
	}
	add(row1("no-dashes", "true"), row1("flag-no-dashes", "-g", "true"), row1("dashes-only-first", "--", "echo", "--", "-x"), row1("dashes-then-option", "--", "--version"))
	add(diff(row1("permute-invalid", "sh", "-c", "exit 3"), permutes([]string{"exit", "stderr"}, all(is("exit", "exit 3"), is("stderr", ""), peerIs("stderr", `^catatonit: invalid option -- 'c'\n`)))))
	add(diff(row1("permute-version", "./script", "--version"), permutes([]string{"stdout"}, is("stdout", "script: ./script --version\n"))))
	add(diff(row1("permute-V", "echo", "-V"), permutes([]string{"stdout"}, is("stdout", "-V\n"))))
	add(diff(row1("permute-eats", "echo", "a", "-g", "b"), permutes([]string{"stdout"}, is("stdout", "a -g b\n"))))
	add(env(row1("posixly-correct", "sh", "-c", "exit 3"), "POSIXLY_CORRECT=1"), env(row1("posixly-correct-empty", "-g", "sh", "-c", "exit 3"), "POSIXLY_CORRECT="))

	// Environment.
	for id, a := range map[string][]string{"run": exit(3), "version": {"-V"}, "help": {"-h"}, "none": {}, "pause": {"-P"}, "error": {"-x"}} {
		add(env(row1("log-reserved-"+id, a...), "CATATONIT_LOG=debug"))
	}
	add(env(row1("log-reserved-empty", exit(3)...), "CATATONIT_LOG="), child(env(row1("log-reserved-not-pid1", exit(3)...), "CATATONIT_LOG=")))
	for id, v := range map[string]string{"": "1", "-empty": "", "-zero": "0"} {
		e := "CATATONIT_DEBUG=" + v
		add(anyOrder(env(row1("debug"+id, exit(3)...), e)), anyOrder(env(row1("debug"+id+"-signal", "--", "sh", "-c", "kill -TERM $$"), e)), anyOrder(env(row1("debug"+id+"-exec-failure", "--", "/nonexistent"), e)), anyOrder(child(env(row1("debug"+id+"-not-pid1", exit(3)...), e))))
	}
	dbg := func(id string, args []string, steps ...step) row {
		r := anyOrder(env(row1("debug-"+id, args...), "CATATONIT_DEBUG=1"))
		r.steps = steps
		return r
	}
	for _, s := range []int{1, 10, 15, 34} {
		add(modes(dbg(fmt.Sprintf("forward-%d", s), with([]string{"--"}, deaf("main").argv()...), ready(1), signal(s), arrived(s), idle(), killMain(9)))...)
	}
	for _, s := range []int{20, 21, 22} {
		r := dbg(fmt.Sprintf("stop-%d", s), with([]string{"--"}, deaf("main").argv()...), ready(1), signal(s), signal(64), arrived(64), idle(), pending("after"), killMain(9))
		r.diff = stopSignals(s)
		r.diff.keys = append(r.diff.keys, "stderr")
		add(modes(r)...)
	}
	add(dbg("reap", with([]string{"--"}, deafWithOrphan()...), ready(1), orphaned("kid"), parents("orphan"), killActor("kid", 9), actorGone("kid"), idle(), killMain(9)))
	add(dbg("stragglers", with([]string{"--"}, deaf("main", deaf("kid")).argv()...), ready(2), killMain(9)))
	add(child(dbg("reap-not-pid1", with([]string{"--"}, deafWithOrphan()...), ready(1), orphaned("kid"), parents("orphan"), killActor("kid", 9), actorGone("kid"), idle(), killMain(9))))

	// Pause mode.
	pause := func(id string, args []string, steps ...step) {
		r := row1("pause-"+id, args...)
		r.steps = append([]step{initReady()}, steps...)
		add(modes(r)...)
	}
	pause("term", []string{"-P"}, signal(15))
	pause("int", []string{"-P"}, signal(2))
	pause("command-ignored", []string{"-P", "/nonexistent"}, signal(15))
	pause("clustered", []string{"-gP"}, signal(15))
	pause("dashes", []string{"-P", "--", "x"}, signal(15))
	pause("state", []string{"-P"}, snap("s"), signal(15))
	pause("others", []string{"-P"}, signal(1), idle(), signal(3), idle(), signal(10), idle(), signal(12), idle(), signal(13), idle(), signal(14), idle(), signal(17), idle(), signal(18), idle(), signal(20), idle(), signal(21), idle(), signal(22), idle(), signal(28), idle(), signal(34), idle(), signal(64), idle(), snap("s"), signal(15))
	pd := env(row1("pause-debug", "-P"), "CATATONIT_DEBUG=1")
	pd.steps = []step{initReady(), signal(10), idle(), signal(20), idle(), signal(15)}
	pd.diff = &difference{"stop-signals", []string{"stderr"}, all(peerIs("stderr", "ignoring kernel attempting to stop us"), is("stderr", ""))}
	add(modes(pd)...)
	// Processes that end up below a pausing init are reaped, as in a pod whose containers share its PID namespace.
	pr := row1("pause-reaps", "-P")
	pr.in.Kids = []stage{orphan("kid")}
	pr.steps = []step{initReady(), orphaned("kid"), parents("orphan"), killActor("kid", 9), actorGone("kid"), idle(), signal(15)}
	add(pr)

	add(execFailures(catatonit, []string{"--"}, nil)...)
	add(exitCodes(catatonit, []string{"--"})...)
	add(deaths(catatonit, []string{"--"})...)
	for _, r := range inherited(catatonit, []string{"--"}) {
		if !strings.Contains(r.id, "all-blocked") && r.diff == nil {
			r.diff = childMask()
		}
		add(r)
	}
	add(forwarded(catatonit, []string{"--"}, nil, func(s int, isChild bool) *difference {
		switch s {
		case 4, 5, 6, 7, 8, 11, 31, 32, 33:
			return notForwarded(s, isChild)
		case 20, 21, 22:
			return stopSignals(s)
		}
		return nil
	})...)
	for _, r := range common(catatonit, []string{"--"}, []string{"-g", "--"}) {
		add(addMask(r))
	}
	for _, r := range terminals(catatonit, []string{"--"}) {
		if strings.Contains(r.id, "/terminal-suspend-shared") {
			d := &difference{"catatonit-child-mask", []string{"after.main.state"}, all(peerIs("after.main.state", "^S$"), is("after.main.state", "T"))}
			d.keys, d.check = append(d.keys, r.diff.keys...), all(d.check, r.diff.check)
			r.diff = d
		}
		add(addMask(r))
	}

	// Groups.
	for _, f := range [][]string{{"--"}, {"-g", "--"}} {
		r := row1("group"+strings.TrimSuffix(strings.Join(f, ""), "--"), with(f, deaf("main", deaf("kid"), sessionOf(deaf("daemon"))).argv()...)...)
		r.steps = []step{ready(3), signal(10), arrived(10), idle(), pending("after"), killMain(9)}
		add(modes(r)...)
	}
	empty := row1("group-empty", with([]string{"-g", "--"}, emptyGroup().argv()...)...)
	empty.steps = []step{ready(2), signal(10), idle(), pending("after"), killMain(9)}
	empty.diff = emptyGroupReached(true)
	add(empty)
	empty.id, empty.diff = empty.id+"-debug", emptyGroupReached(false)
	add(anyOrder(env(empty, "CATATONIT_DEBUG=1")))
	eperm := row1("forward-refused", with([]string{"--"}, foreignUser().argv()...)...)
	eperm.in.DropCaps = []int{5}
	eperm.steps = []step{ready(1), signal(10), idle(), pending("after"), killMain(9)}
	add(eperm, anyOrder(env(func() row { r := eperm; r.id += "-debug"; return r }(), "CATATONIT_DEBUG=1")))
	for _, r := range modes(row1("sigchld-ignored", with([]string{"--"}, plain...)...)) {
		r.in.Ignore = []int{17}
		r.steps = []step{ready(1), killMain(9)}
		r.mayHang = true
		r.diff = &difference{"sigchld-ignored", []string{"exit"}, all(peerIs("exit", "^hangs$"), is("exit", "exit 137"))}
		add(r)
	}
	return rows
}

// childMask: catatonit leaves TSTP, TTIN and TTOU blocked in the workload.
func childMask() *difference {
	return &difference{"catatonit-child-mask", []string{"s.main.blocked"}, func(peer, ours obs) error {
		have := map[string]bool{}
		for _, s := range strings.Fields(ours["s.main.blocked"]) {
			have[s] = true
		}
		if have["20-22"] || have["22"] {
			return fmt.Errorf("fdinit: the workload blocks %q", ours["s.main.blocked"])
		}
		return peerIs("s.main.blocked", `(^| )20-22($| )`)(peer, ours)
	}}
}

// addMask adds that to a row which looks at the workload's mask.
func addMask(r row) row {
	// It needs a plain workload: a deaf one blocks everything by itself.
	looks := false
	for _, id := range []string{"/group-of-its-own", "/not-a-leader", "/descriptors", "/closed-", "/working-directory", "/listen-", "/terminal-state-"} {
		looks = looks || strings.Contains(r.id, id)
	}
	if !looks {
		return r
	}
	m := childMask()
	if r.diff == nil {
		r.diff = m
		return r
	}
	old := *r.diff
	r.diff = &difference{old.group, append(append([]string{}, old.keys...), m.keys...), all(old.check, m.check)}
	return r
}
