package compat

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// table is every row. Each file of a persona adds its own.
func table() []row {
	var rows []row
	rows = append(rows, tiniRows()...)
	rows = append(rows, dumbInitRows()...)
	rows = append(rows, catatonitRows()...)
	for i := range rows {
		if rows[i].argv0 == "" {
			rows[i].argv0 = rows[i].as.name
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].id < rows[j].id })
	return rows
}

// Workloads.

// deaf is a workload that blocks every signal, so that what it was sent stays pending and can be read from outside. It
// is found under its actor's name once it is ready.
func deaf(name string, kids ...stage) stage {
	return stage{Block: allSignals, Kids: kids, Path: filepath.Join(fixtures, "bin", name), Argv: []string{name, "600"}}
}

// orphan is a process whose parent is gone: the init's to reap.
func orphan(name string) stage {
	return stage{Kids: []stage{deaf(name)}, Path: "/bin/true", Argv: []string{"true"}}
}

var allSignals = func() []int {
	var all []int
	for s := 1; s <= 64; s++ {
		all = append(all, s)
	}
	return all
}()

// normalSignals are those that the C library lets a program handle.
var normalSignals = func() []int {
	var some []int
	for _, s := range allSignals {
		if s != 32 && s != 33 {
			some = append(some, s)
		}
	}
	return some
}()

// plain is the command line of a workload that does nothing at all.
var plain = []string{"main", "600"}

// with joins flags and a command.
func with(flags []string, command ...string) []string {
	return append(slices.Clone(flags), command...)
}

// modes returns a row twice: the init as PID 1 and not.
func modes(r row, childArgs ...string) []row {
	c := r
	r.id += "/pid1"
	c.id += "/child"
	c.child = true
	c.args = append(slices.Clone(childArgs), c.args...)
	return []row{r, c}
}

// Assertions on fdinit's own behaviour in the rows that differ.

type check = func(peer, ours obs) error

func all(checks ...check) check {
	return func(peer, ours obs) error {
		for _, c := range checks {
			if err := c(peer, ours); err != nil {
				return err
			}
		}
		return nil
	}
}

// is asserts one observation.
func is(key, want string) check {
	return func(_, ours obs) error {
		if ours[key] != want {
			return fmt.Errorf("fdinit: %s is %q, want %q", key, ours[key], want)
		}
		return nil
	}
}

// matches asserts the form of one.
func matches(key, pattern string) check {
	re := regexp.MustCompile(pattern)
	return func(_, ours obs) error {
		if !re.MatchString(ours[key]) {
			return fmt.Errorf("fdinit: %s is %q, want a match of %s", key, ours[key], pattern)
		}
		return nil
	}
}

// peerIs asserts what the peer does, where the reason of the difference rests on it.
func peerIs(key, pattern string) check {
	re := regexp.MustCompile(pattern)
	return func(peer, _ obs) error {
		if !re.MatchString(peer[key]) {
			return fmt.Errorf("the peer: %s is %q, want a match of %s", key, peer[key], pattern)
		}
		return nil
	}
}

var word = regexp.MustCompile(`(?m)^ +(-[A-Za-z](?:, --[a-z-]+)?|--[a-z-]+|TINI_[A-Z_]+)`)

// helps asserts that a help text, though in other words, is in the same stream, begins with the same lines but for the
// version, and names every option and variable that the peer's names.
func helps(key string, sameLines ...string) check {
	return func(peer, ours obs) error {
		for _, l := range sameLines {
			if !strings.Contains(peer[key], l+"\n") {
				return fmt.Errorf("the peer's help lacks %q", l)
			}
			if !strings.Contains(ours[key], l+"\n") {
				return fmt.Errorf("fdinit's help lacks %q: %q", l, ours[key])
			}
		}
		names := word.FindAllStringSubmatch(peer[key], -1)
		if len(names) < 5 {
			return fmt.Errorf("cannot read the peer's help: %q", peer[key])
		}
		for _, n := range names {
			for _, part := range strings.Split(n[1], ", ") {
				if !regexp.MustCompile(`(?m)(^|[^A-Za-z-])` + regexp.QuoteMeta(part) + `($|[^A-Za-z_-])`).MatchString(ours[key]) {
					return fmt.Errorf("fdinit's help does not mention %s: %q", part, ours[key])
				}
			}
		}
		return nil
	}
}

// sameLinesOnStderr asserts that what a peer prints about itself on stdout is, word for word, on stderr, and that
// stdout holds the workload's output alone.
func sameLinesOnStderr(isOwn func(line string) bool) check {
	return func(peer, ours obs) error {
		out := "stdout"
		if _, ok := peer["tty"]; ok {
			out = "tty"
		}
		var rest, want []string
		for line := range strings.Lines(peer[out]) {
			if strings.HasSuffix(line, "tcsetpgrp failed: no tty (ok to proceed)\n") {
				continue // the workload's exec throws this away with the buffer, so it shows in some runs only
			}
			if isOwn(line) {
				want = append(want, line)
			} else {
				rest = append(rest, line)
			}
		}
		for line := range strings.Lines(peer["stderr"]) {
			want = append(want, line)
		}
		if got := ours[out]; got != strings.Join(rest, "") {
			return fmt.Errorf("fdinit: %s is %q, want %q", out, got, strings.Join(rest, ""))
		}
		got := slices.Collect(strings.Lines(ours["stderr"]))
		// How many SIGCHLD are received for several ends is the kernel's affair: it merges
		// those that are pending at the same time.
		a, b := mergeChildSignals(want), mergeChildSignals(got)
		if !slices.Equal(a, b) {
			return fmt.Errorf("fdinit: stderr is %q, want the lines %q", got, want)
		}
		return nil
	}
}

// diagnosis: one more line says what the error number does not.
func diagnosis() *difference {
	return &difference{"exec-diagnosis", []string{"stderr"}, func(peer, ours obs) error {
		more, ok := strings.CutPrefix(ours["stderr"], peer["stderr"])
		if !ok || !regexp.MustCompile(`^fdinit: exec \S+: [^\n]+\n$`).MatchString(more) {
			return fmt.Errorf("fdinit: stderr is %q, want %q and one line more", ours["stderr"], peer["stderr"])
		}
		return nil
	}}
}

// The options of a command line that execve refuses for the workload only: the init's own is just below the limit, and a
// script adds its interpreter and that one's argument.
func tooLong(before ...string) []string {
	limit := 131072 // a stack limit of 512 KiB makes this ARG_MAX
	args := append(slices.Clone(before), "./longarg")
	used := 0
	count := 0
	for _, s := range (row{argv0: "tini", args: args}).argv() {
		used += len(s) + 1
		count++
	}
	for _, s := range (row{}).environ() {
		used += len(s) + 1
		count++
	}
	// The file name is on the stack as well, and its length is not the same on both sides.
	const fileName, spare = 80, 40
	free := limit - used - fileName - spare - 8*(count+2)
	return append(args, fill(free/2), fill(free-free/2-2))
}

// execFailures are the ways a workload cannot be started, or can although it looks odd: the rules of execvp.
func execFailures(p *persona, flags []string, more func(*row)) []row {
	type c struct {
		id   string
		env  []string
		args []string
		why  bool // the error alone does not tell what is wrong
	}
	cases := []c{
		{"not-found-path", nil, []string{"/nonexistent/file"}, false},
		{"not-found-name", nil, []string{"nonexistent-name"}, false},
		{"not-found-relative", nil, []string{"./nonexistent"}, false},
		{"empty-name", nil, []string{""}, false},
		{"dash", nil, []string{"-", "x"}, false},
		{"directory", nil, []string{"/etc"}, true},
		{"not-executable", nil, []string{"$W/plain"}, true},
		{"not-a-directory", nil, []string{"$W/plain/x"}, false},
		{"loop", nil, []string{"$W/loop"}, false},
		{"below-loop", nil, []string{"./loop/x"}, false},
		{"name-too-long", nil, []string{"./" + strings.Repeat("n", 300)}, false},
		{"path-too-long", nil, []string{strings.Repeat("/nn", 1500)}, false},
		{"interpreter-missing", nil, []string{"./badinterp"}, true},
		{"no-shebang", nil, []string{"./noshebang", "a", "b c"}, false},
		{"empty-file", nil, []string{"./empty"}, false},
		{"not-really-elf", nil, []string{"./badelf"}, false},
		{"script", nil, []string{"./script", "a", "b c"}, false},
		{"path-refused-only", []string{"PATH=$W/refused:/bin"}, []string{"prog"}, true},
		{"path-refused-then-found", []string{"PATH=$W/refused:$W/found"}, []string{"prog", "x"}, false},
		{"path-file-then-found", []string{"PATH=$W/plain:/nonexistent:$W/found"}, []string{"prog"}, false},
		{"path-file-only", []string{"PATH=$W/plain"}, []string{"prog"}, false},
		{"path-loop-then-found", []string{"PATH=$W/loop:$W/found"}, []string{"prog"}, false},
		{"path-long-name", []string{"PATH=$W/found"}, []string{strings.Repeat("n", 300)}, false},
		{"path-no-shebang", []string{"PATH=$W/found"}, []string{"noshebang2", "a"}, false},
		{"path-empty", []string{"PATH="}, []string{"script", "a"}, false},
		{"path-empty-entry", []string{"PATH=/nonexistent::/bin"}, []string{"script", "a"}, false},
		{"path-trailing-colon", []string{"PATH=/nonexistent:"}, []string{"script", "a"}, false},
		{"path-unset", []string{"PATH"}, []string{"true"}, false},
		{"path-unset-not-here", []string{"PATH"}, []string{"script"}, false},
		{"argument-list-too-long", nil, nil, true},
	}
	var rows []row
	for _, c := range cases {
		r := row{id: p.name + "/exec-" + c.id, as: p, env: c.env, args: with(flags, c.args...)}
		if c.args == nil {
			r.args = tooLong(flags...)
			r.in.Stack = 512 << 10
		}
		if c.why {
			r.diff = diagnosis()
		}
		if more != nil {
			more(&r)
		}
		rows = append(rows, r)
	}
	return rows
}

// exitCodes: the workload's code is the init's.
func exitCodes(p *persona, flags []string) []row {
	var rows []row
	for _, n := range []int{0, 1, 2, 42, 125, 126, 127, 128, 137, 143, 254, 255, 256} {
		rows = append(rows, row{id: fmt.Sprintf("%s/exit-%d", p.name, n), as: p, args: with(flags, "sh", "-c", fmt.Sprintf("exit %d", n))})
	}
	return rows
}

// deaths: 128 and the signal that ended the workload.
func deaths(p *persona, flags []string) []row {
	var rows []row
	for s := 1; s <= 64; s++ {
		switch s {
		case 17, 18, 19, 20, 21, 22, 23, 28: // these end nobody
			continue
		case 32, 33: // the shell's C library keeps these two for itself
			continue
		}
		rows = append(rows, row{id: fmt.Sprintf("%s/death-%d", p.name, s), as: p, args: with(flags, "sh", "-c", fmt.Sprintf("kill -%d $$; exit 3", s))})
	}
	return rows
}

// inherited is what the workload gets of the state the init was started in.
func inherited(p *persona, flags []string) []row {
	base := row{as: p, args: with(flags, plain...), steps: []step{ready(1), snap("s"), killMain(9)}}
	mk := func(id string, f func(*row)) []row {
		r := base
		r.id = p.name + "/inherit-" + id
		f(&r)
		return modes(r)
	}
	var rows []row
	rows = append(rows, mk("nothing-special", func(*row) {})...)
	rows = append(rows, mk("blocked", func(r *row) { r.in.Block = []int{1, 10, 15, 20, 35, 64} })...)
	rows = append(rows, mk("all-blocked", func(r *row) { r.in.Block = normalSignals })...)
	rows = append(rows, mk("blocked-32-33", func(r *row) {
		r.in.Block = []int{10, 32, 33}
		// The C library of the peers keeps 32 and 33 for itself, and neither sets nor clears them when asked to.
		if p != dumbInit {
			r.diff = &difference{"signals-32-33", []string{"s.main.blocked"}, is("s.main.blocked", "10 32 33")}
		}
	})...)
	rows = append(rows, mk("ignored", func(r *row) { r.in.Ignore = []int{1, 2, 13, 15, 34, 64} })...)
	rows = append(rows, mk("ignored-job-control", func(r *row) { r.in.Ignore = []int{20, 21, 22} })...)
	rows = append(rows, mk("ignored-faults", func(r *row) { r.in.Ignore = []int{4, 5, 6, 7, 8, 11, 31} })...)
	rows = append(rows, mk("umask", func(r *row) { r.in.Umask = 0o27 })...)
	rows = append(rows, mk("limits", func(r *row) { r.in.Files = 1000; r.in.Stack = 4 << 20 })...)
	rows = append(rows, mk("environment", func(r *row) {
		r.env = []string{"EMPTY=", "SPACES=a  b", "NEWLINE=a\nb", "PATH", "HOME", "TINI_VERBOSITY=1", "DUMB_INIT_DEBUG=0", "POSIXLY_CORRECT=1"}
		r.args[len(r.args)-2] = "$W/bin/main"
	})...)
	return rows
}

// forwarded is one row for each signal in each mode: the workload blocks everything, the signal is sent, and then one
// more, of the highest number, which the init cannot handle before the one in question.
func forwarded(p *persona, flags, childFlags []string, diff func(s int, child bool) *difference) []row {
	var rows []row
	for s := 1; s <= 64; s++ {
		if s == 9 || s == 19 {
			continue
		}
		for _, child := range []bool{false, true} {
			mode := "pid1"
			f := flags
			if child {
				mode, f = "child", with(childFlags, flags...)
			}
			r := row{id: fmt.Sprintf("%s/signal-%d/%s", p.name, s, mode), as: p, child: child, args: with(f, deaf("main").argv()...)}
			r.steps = []step{ready(1), signal(s), signal(64), arrivedOrStopped(64), idle(), pending("after"), signal(18), idle(), killMain(9)}
			if s == 64 {
				r.steps = []step{ready(1), signal(64), arrived(64), pending("after"), killMain(9)}
			}
			r.diff = diff(s, child)
			rows = append(rows, r)
		}
	}
	return rows
}

// mergeChildSignals sorts lines and leaves one that tells of a SIGCHLD received.
func mergeChildSignals(lines []string) []string {
	received := false
	sorted := slices.Sorted(slices.Values(lines))
	return slices.DeleteFunc(sorted, func(line string) bool {
		repeated := received && strings.HasSuffix(line, "Received SIGCHLD\n")
		received = received || strings.HasSuffix(line, "Received SIGCHLD\n")
		return repeated
	})
}
