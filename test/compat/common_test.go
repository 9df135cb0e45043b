package compat

import (
	"fmt"
	"slices"
	"strings"
)

// Workloads of several processes.

func sessionOf(s stage) stage { s.Session = true; return s }
func groupOf(s stage) stage   { s.Group = true; return s }

func deafWithOrphan() []string { return deaf("main", orphan("kid")).argv() }

// emptyGroup is a workload that has left its own process group.
func emptyGroup() stage {
	s := deaf("main", groupOf(deaf("kid")))
	s.JoinKid = true
	return s
}

// emptyGroupReached is the difference for it; quiet if the peer says nothing about it.
func emptyGroupReached(quiet bool) *difference {
	d := &difference{"empty-group", []string{"after.main.pending"}, all(peerIs("after.main.pending", "^$"), is("after.main.pending", "10"))}
	if !quiet {
		d.keys = append(d.keys, "stderr")
		d.check = all(d.check, peerIs("stderr", "Child was dead|failed: No such process"))
	}
	return d
}

// foreignUser is a workload that has changed its user: without CAP_KILL nobody else may signal it.
func foreignUser() stage {
	s := deaf("main")
	s.UID = 1000
	return s
}

// notForwarded are the signals that an init leaves to the kernel: ignored for PID 1, fatal for anything else.
func notForwarded(s int, child bool) *difference {
	group := "fault-signals"
	if s == 32 || s == 33 {
		group = "signals-32-33"
	}
	if !child {
		return &difference{group, []string{"after.main.pending"}, all(peerIs("after.main.pending", "^64$"), is("after.main.pending", fmt.Sprintf("%d 64", s)))}
	}
	return &difference{group, []string{"exit", "left", "after.main.pending", "after.main.state", "after.init.state"}, all(
		peerIs("exit", fmt.Sprintf("^killed by signal %d$", s)), is("after.main.pending", fmt.Sprintf("%d 64", s)), is("exit", "exit 137"), is("left", ""))}
}

// stopSignals: a TSTP, TTIN or TTOU that somebody sent is a signal like any other.
func stopSignals(s int) *difference {
	return &difference{"stop-signals", []string{"after.main.pending"}, all(peerIs("after.main.pending", "^64$"), is("after.main.pending", fmt.Sprintf("%d 64", s)))}
}

// common rows are the same for every persona, with flags of its own.
func common(p *persona, flags, groupFlags []string) []row {
	var rows []row
	mk := func(id string, args []string, steps ...step) row {
		return row{id: p.name + "/" + id, as: p, args: args, steps: steps}
	}
	add := func(rs ...row) { rows = append(rows, rs...) }

	add(mk("arguments", with(flags, "sh", "-c", `printf '<%s>' "$0" "$@"`, "zero", "a", "b c", "", "-x", "--", "ö", "\xff\n")))
	for _, alias := range map[*persona][]string{tini: {"tini-static", "/sbin/docker-init", "/dev/init"}, dumbInit: {"/usr/local/bin/dumb-init"}, catatonit: {"podman-init", "/run/podman-init"}}[p] {
		as := "as" + strings.ReplaceAll("/"+strings.Trim(alias, "/"), "/", "-")
		for _, r := range []row{
			mk("run-"+as, with(flags, "sh", "-c", "echo out; echo err >&2; exit 3")),
			mk("exec-failure-"+as, with(flags, "/nonexistent")),
			mk("state-"+as, with(flags, plain...), ready(1), snap("s"), signal(15)),
		} {
			r.argv0 = alias
			if p == catatonit && r.steps != nil {
				r.diff = childMask()
			}
			add(modes(r)...)
		}
	}
	add(mk("streams", with(flags, "sh", "-c", "echo out; echo err >&2; cat")))
	add(modes(mk("group-of-its-own", with(flags, plain...), ready(1), snap("s"), killMain(15)))...)
	r := mk("not-a-leader", with(flags, plain...), ready(1), snap("s"), killMain(9))
	r.term = plainGroup
	add(r)

	// A workload that does nothing about signals.
	for _, s := range []int{1, 2, 3, 10, 14, 15, 29, 30, 34, 50} {
		add(modes(mk(fmt.Sprintf("end-by-%d", s), with(flags, plain...), ready(1), signal(s)))...)
	}
	add(modes(mk("ended-from-outside", with(flags, plain...), ready(1), killMain(9)))...)
	// One that handles them. What it waits for ignores them from the start: dumb-init forwards to the whole group, and
	// the shell says of what ends by a signal that it did.
	handles := func(s, then string) string {
		return fmt.Sprintf(`trap "" HUP INT TERM USR1 50; main 600 & trap "echo got %s; exit 5" %s; %s; while :; do wait $!; done`, s, s, then)
	}
	for _, s := range []string{"HUP", "INT", "TERM", "USR1"} {
		script := handles(s, "echo ready")
		add(mk("handles-"+strings.ToLower(s), with(flags, "sh", "-c", script), says("ready"), signal(map[string]int{"HUP": 1, "INT": 2, "TERM": 15, "USR1": 10}[s])))
	}

	// Signals that the workload sends to its init.
	for _, s := range []string{"HUP", "INT", "TERM", "USR1", "WINCH", "50"} {
		// As PID 1 only, where the rest ends with it.
		add(mk("from-inside-"+strings.ToLower(s), with(flags, "sh", "-c", handles(s, "kill -"+s+" $PPID"))))
	}
	add(mk("from-inside-kill-stop", with(flags, "sh", "-c", "kill -STOP $PPID; kill -KILL $PPID; exit 5")))

	// Stop and continue.
	stop := mk("stop-continue", with(flags, plain...), ready(1), signal(20), mainState("T"), pending("stopped"), signal(18), mainState("S"), idle(), pending("continued"), signal(15))
	if p == catatonit {
		stop.steps = []step{ready(1), signal(20), idle(), mainState("ST"), pending("stopped"), signal(18), idle(), killMain(9)}
		stop.diff = &difference{"stop-signals", []string{"stopped.main.state"}, all(peerIs("stopped.main.state", "^S$"), is("stopped.main.state", "T"))}
	}
	add(modes(stop)...)

	// Signals that were there before the workload.
	// USR1, because the workload here is a Go program, whose runtime unblocks TERM.
	before := mk("pending-before-start", with(flags, deaf("main").argv()...), ready(1), arrived(10), idle(), pending("after"), killMain(9))
	before.in.Block, before.in.Raise = []int{10, 15}, []int{10}
	if p != dumbInit {
		// dumb-init forwards to a group that need not exist yet: whether the signal is lost is chance.
		add(modes(before)...)
	}
	ign := mk("ignored-is-forwarded", with(flags, deaf("main").argv()...), ready(1), signal(15), signal(64), arrived(64), idle(), pending("after"), killMain(9))
	ign.in.Ignore = []int{15}
	add(modes(ign)...)

	// Processes that outlive the workload.
	for id, f := range map[string][]string{"stragglers": flags, "stragglers-group": groupFlags} {
		if f == nil {
			continue
		}
		add(modes(mk(id, with(f, deaf("main", deaf("kid"), sessionOf(deaf("daemon"))).argv()...), ready(3), killMain(9)))...)
	}
	// Where an orphan goes, for an init that is PID 1.
	add(mk("adopts", with(flags, deafWithOrphan()...), ready(1), orphaned("kid"), parents("orphan"), killActor("kid", 9), actorGone("kid"), idle(), killMain(9)))

	// Descriptors.
	fds := mk("descriptors", with(flags, plain...), ready(1), snap("s"), killMain(9))
	fds.in.Open = []int{3, 7, 20}
	kept := fds
	kept.id += "-kept"
	kept.env = []string{"FDINIT_KEEP_FDS=all"}
	const open = "0 /dev/null, 1 stdout, 2 stderr, 3 /dev/zero, 7 /dev/zero, 20 /dev/zero"
	const std = "0 /dev/null, 1 stdout, 2 stderr"
	if p == catatonit {
		add(modes(fds)...)
	} else {
		for _, r := range modes(fds) {
			r.diff = &difference{"descriptor-sweep", []string{"s.main.files", "s.init.files"}, all(peerIs("s.main.files", "^"+open+"$"), is("s.main.files", std), is("s.init.files", std))}
			add(r)
		}
		for _, r := range modes(kept) {
			r.diff = &difference{"init-descriptors", []string{"s.init.files"}, all(peerIs("s.init.files", "^"+open+"$"), is("s.init.files", std), is("s.main.files", open))}
			add(r)
		}
	}
	for _, n := range []int{0, 1, 2} {
		c := mk(fmt.Sprintf("closed-%d", n), with(flags, plain...), ready(1), snap("s"), killMain(9))
		c.in.Close = []int{n}
		names := []string{"0 /dev/null", "1 stdout", "2 stderr"}
		names[n] = fmt.Sprintf("%d /dev/null", n)
		c.diff = &difference{"closed-streams", []string{"s.main.files", "s.init.files"}, all(is("s.main.files", strings.Join(names, ", ")), is("s.init.files", strings.Join(names, ", ")))}
		if p == tini && n == 0 {
			// tini does not even start the workload.
			c.diff = &difference{"closed-streams", []string{"exit", "stderr", "s.*"}, all(peerIs("exit", "^exit 1$"), peerIs("stderr", "tcsetpgrp failed: Bad file descriptor"), c.diff.check, is("exit", "exit 137"), is("stderr", ""))}
		}
		add(c)
	}

	// The init's own working directory.
	cwd := mk("working-directory", with(flags, plain...), ready(1), initCwd(), snap("s"), killMain(9))
	for _, r := range modes(cwd) {
		if p != dumbInit {
			r.diff = &difference{"init-cwd", []string{"init.cwd"}, all(peerIs("init.cwd", `^\$W$`), is("init.cwd", "/"))}
		}
		add(r)
	}

	// Socket activation.
	listen := func(id, format string, e ...string) row {
		r := mk("listen-"+id, with(flags, plain...), ready(1), snap("s"), killMain(9))
		r.in.Open = []int{3}
		r.env = append([]string{"LISTEN_FDS=1", "LISTEN_FDNAMES=web"}, e...)
		if format != "" {
			r.in.Self, r.in.SelfFormat = "LISTEN_PID", format
		}
		return r
	}
	const listening = std + ", 3 /dev/zero"
	for _, r := range modes(listen("own", "SELF")) {
		if p != catatonit {
			r.diff = &difference{"listen-pid", []string{"s.main.environ", "s.init.files"}, all(matches("s.main.environ", "(?m)^LISTEN_PID=<main>$"), is("s.main.files", listening), is("s.init.files", std))}
		}
		add(r)
	}
	for _, r := range modes(listen("absent", "")) {
		if p != catatonit {
			r.diff = &difference{"init-descriptors", []string{"s.init.files"}, all(is("s.main.files", listening), is("s.init.files", std))}
		}
		add(r)
	}
	for _, r := range modes(listen("stale", "", "LISTEN_PID=7777777")) {
		if p != catatonit {
			r.diff = &difference{"descriptor-sweep", []string{"s.main.files", "s.init.files"}, all(is("s.main.files", std), is("s.init.files", std))}
		}
		add(r)
	}
	for id, f := range map[string]string{"trailing": "SELFx", "leading-space": " SELF"} {
		r := listen(id, f)
		f2 := strings.ReplaceAll(f, "SELF", "<init>")
		r.diff = &difference{"descriptor-sweep", []string{"s.main.files", "s.init.files"}, all(is("s.main.files", std), is("s.init.files", std))}
		if p == catatonit {
			r.diff = &difference{"listen-pid-form", []string{"s.main.environ"}, all(peerIs("s.main.environ", "(?m)^LISTEN_PID=<main>$"), matches("s.main.environ", "(?m)^LISTEN_PID=("+f2+")$"), is("s.main.files", listening))}
		}
		add(r)
	}
	return rows
}

// suspended lets ^Z be typed. With a shell behind it fdinit stops as well, without one the workload goes on.
func suspended(r row, shell bool) row {
	steps := func(type_ step, initStates string) []step {
		return []step{ready(1), type_, mainState("ST"), initState(initStates), states("after"), signal(18), idle(), killMain(9)}
	}
	typed := presses(suspendKey)
	r.steps = steps(typed, "ST")
	switch {
	case r.as == dumbInit:
	case shell:
		r.own = steps(typed, "T")
		r.diff = &difference{"suspend", []string{"after.init.state", "left.foreground"}, all(
			peerIs("after.init.state", "^S$"), is("after.init.state", "T"),
			peerIs("left.foreground", "^(MAIN|gone)$"), is("left.foreground", "INIT"), // terminal-back
		)}
	default:
		r.own = steps(stoppedAndContinued(typed), "S")
		if r.as == tini {
			r.diff = &difference{"suspend", []string{"after.main.state"}, all(peerIs("after.main.state", "^T$"), is("after.main.state", "S"))}
		}
	}
	return r
}

// terminals: rows with a real one.
func terminals(p *persona, flags []string) []row {
	var rows []row
	mk := func(id string, t terminal, child bool, args []string, steps ...step) row {
		return row{id: p.name + "/terminal-" + id, as: p, term: t, child: child, args: with(flags, args...), steps: steps}
	}
	add := func(rs ...row) {
		for _, r := range rs {
			if r.term == sharedTerm && p != dumbInit && r.diff == nil && r.main != "bash" {
				r.diff = &difference{"terminal-back", []string{"left.foreground"}, all(peerIs("left.foreground", "^(MAIN|gone)$"), is("left.foreground", "INIT"))}
			}
			rows = append(rows, r)
		}
	}
	type place struct {
		name  string
		t     terminal
		child bool
	}
	own, ownChild, shared := place{"own/pid1", ownTerm, false}, place{"own/child", ownTerm, true}, place{"shared/child", sharedTerm, true}
	everywhere := []place{own, ownChild, shared, {"background/child", backTerm, true}, {"foreign/child", foreignTerm, true}, {"loose/pid1", looseTerm, false}}
	for _, w := range everywhere {
		state := mk("state-"+w.name, w.t, w.child, plain, ready(1), snap("s"), killMain(9))
		if w.t == backTerm && p != dumbInit {
			state.diff = &difference{"background-terminal", []string{"s.init.foreground", "s.main.foreground"}, all(peerIs("s.main.foreground", "^MAIN$"), is("s.main.foreground", "PARENT"))}
		}
		add(state)
		add(mk("exit-"+w.name, w.t, w.child, []string{"sh", "-c", "echo out; echo err >&2; exit 4"}))
		add(mk("exec-failure-"+w.name, w.t, w.child, []string{"/nonexistent"}))
	}
	crowd := deaf("main", deaf("kid"), sessionOf(deaf("daemon"))).argv()
	// after is the barrier of the rows that type.
	after := func(first ...step) []step {
		return append(first, signal(64), arrivedOrStopped(64), idle(), pending("after"), signal(18), idle(), killMain(9))
	}
	sessionMode := p == dumbInit && !slices.Contains(flags, "-c")
	for _, w := range []place{own, ownChild, shared} {
		add(mk("interrupt-"+w.name, w.t, w.child, plain, ready(1), presses(interruptKey)))
		add(mk("interrupt-who-"+w.name, w.t, w.child, crowd, after(ready(3), presses(interruptKey))...))
		add(mk("quit-"+w.name, w.t, w.child, plain, ready(1), presses(quitKey)))
		add(suspended(mk("suspend-"+w.name, w.t, w.child, plain), w == shared))
		add(mk("suspend-who-"+w.name, w.t, w.child, crowd, after(ready(3), presses(suspendKey))...))
		add(mk("resize-"+w.name, w.t, w.child, crowd, ready(3), resize(), arrived(28), idle(), pending("after"), killMain(9)))
		add(mk("terminate-"+w.name, w.t, w.child, plain, ready(1), signal(15)))
		add(mk("hup-hup-"+w.name, w.t, w.child, crowd, ready(3), signal(1), signal(64), arrived(64), idle(), pending("after"), signal(1), arrived(1), idle(), pending("again"), killMain(9)))
		add(mk("cont-"+w.name, w.t, w.child, crowd, ready(3), signal(18), signal(64), arrived(64), idle(), pending("after"), killMain(9)))
		if w != shared {
			// The kernel tells the session's leader only, and in the third place that is a shell.
			add(mk("hang-up-"+w.name, w.t, w.child, plain, ready(1), hangUp()))
			add(mk("hang-up-who-"+w.name, w.t, w.child, crowd, ready(3), hangUp(), arrived(1), idle(), pending("after"), killMain(9)))
		}
		if sessionMode && w == shared {
			continue // the workload is in a new session without a terminal
		}
		jobs := mk("jobs-"+w.name, w.t, w.child, []string{"bash", "--norc", "--noprofile", "-i"}, ready(0),
			types("echo re''ady\n"), says("ready"), types("main 600\n"), actorForeground("main"), presses(suspendKey), actorState("main", "T"), types("bg\n"), actorState("main", "S"),
			types("fg\n"), actorForeground("main"), presses(interruptKey), actorEnds("main"), types("exit 7\n"))
		jobs.main = "bash"
		jobs.quiet = true
		if p == catatonit {
			jobs.steps = []step{ready(0), types("echo re''ady\n"), says("ready"), types("main 600\n"), actorForeground("main"), presses(suspendKey), actorState("main", "ST"), pending("after"), killMain(9)}
			jobs.diff = &difference{"catatonit-child-mask", []string{"after.main.state", "after.main.pending"}, all(peerIs("after.main.pending", "^20$"), is("after.main.state", "T"), is("after.main.pending", ""))}
		}
		add(jobs)
	}
	return rows
}
