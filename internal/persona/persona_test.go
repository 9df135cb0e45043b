package persona

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

func TestOf(t *testing.T) {
	for dialect, names := range map[config.Dialect][]string{
		config.Tini: {
			"docker-init", "tini", "tini-static", "/sbin/docker-init", "/dev/init", "./tini", "//tini-static",
			"../../usr/bin/tini", "dumb-init/tini",
		},
		config.Catatonit: {"podman-init", "catatonit", "/run/podman-init", "/usr/libexec/podman/catatonit", "tini/catatonit"},
		config.DumbInit:  {"dumb-init", "/usr/bin/dumb-init", "/dev/dumb-init"},
		config.Native: {
			"", "/", "fdinit", "/fdinit", "init", "/sbin/init", "dev/init", "/dev/init/", "/dev//init", "/x/dev/init",
			"tini/", "Tini", "tini ", " tini", "tini-static-amd64", "tini\x00", "docker-init.old", "-tini", "dumbinit", "dumb-init\n",
		},
	} {
		for _, name := range names {
			if got := Of(name); got != dialect {
				t.Errorf("%q: dialect %d, want %d", name, got, dialect)
			}
		}
	}
}

// number is scanNumber made of the library, by the description of strtol(3): what the
// pattern matches is read, and what 64 bits cannot hold becomes the nearest that they
// can.
func number(s string) (n int64, length int) {
	m := regexp.MustCompile(`^[ \t\n\v\f\r]*([+-]?[0-9]+)`).FindStringSubmatch(s)
	if m == nil {
		return 0, 0
	}
	exact, _ := new(big.Int).SetString(m[1], 10)
	switch {
	case exact.IsInt64():
		n = exact.Int64()
	case exact.Sign() < 0:
		n = math.MinInt64
	default:
		n = math.MaxInt64
	}
	return n, len(m[0])
}

// numbers are texts that strtol(3) makes something, or nothing, of.
var numbers = []string{
	"", " ", "0", "1", "255", "256", "-1", "+5", "-0", "007", "08", "0x10", "1e3", "1.5", "5 ", " 5", "\t\n\v\f\r 5", "\u00a05", "\x005",
	"-", "+", "+-5", "- 5", "--5", "x", "5x", "5:6", ":6", "٣",
	"2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296", "4294967297",
	"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
	"-9223372036854775809", "18446744073709551615", "18446744073709551616", "18446744073709551617", "-18446744073709551617",
	"99999999999999999999", "-99999999999999999999", strings.Repeat("9", 500), "-" + strings.Repeat("9", 500),
	strings.Repeat("0", 500) + "7", strings.Repeat(" ", 50) + "7",
}

func TestScanNumber(t *testing.T) {
	for _, s := range numbers {
		n, length := scanNumber(s)
		if wantN, wantLength := number(s); n != wantN || length != wantLength {
			t.Errorf("%q: %d in %d bytes, want %d in %d", s, n, length, wantN, wantLength)
		}
		// The library, where it understands the same.
		if want, err := strconv.ParseInt(s, 10, 64); err == nil && (n != want || length != len(s)) {
			t.Errorf("%q: %d in %d bytes, want %d", s, n, length, want)
		}
	}
}

func FuzzScanNumber(f *testing.F) {
	for _, s := range numbers {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, length := scanNumber(s)
		if wantN, wantLength := number(s); n != wantN || length != wantLength {
			t.Errorf("%q: %d in %d bytes, want %d in %d", s, n, length, wantN, wantLength)
		}
	})
}

// TestScanRewrite has what dumb-init 1.2.5 takes and refuses. It reads both numbers with
// scanf's %d, which cuts them down to 32 bits after strtol has had them in 64.
func TestScanRewrite(t *testing.T) {
	for _, c := range []struct {
		text     string
		from, to sys.Signal
		bad      bool
	}{
		{text: "15:3", from: 15, to: 3},
		{text: "1:0", from: 1, to: 0},
		{text: "31:31", from: 31, to: 31},
		{text: "1:1", from: 1, to: 1},
		{text: " 15: 2", from: 15, to: 2},
		{text: "+15:-0", from: 15, to: 0},
		{text: "015:08", from: 15, to: 8},
		{text: "15:2x", from: 15, to: 2},
		{text: "15:2:3", from: 15, to: 2},
		{text: "15:4294967298", from: 15, to: 2},
		{text: "4294967297:1", from: 1, to: 1},
		{text: "15:-18446744073709551616", from: 15, to: 0}, // LONG_MIN, cut down

		{text: "", bad: true},
		{text: ":", bad: true},
		{text: "15", bad: true},
		{text: "15:", bad: true},
		{text: "15: ", bad: true},
		{text: "15:-", bad: true},
		{text: "15 :2", bad: true},
		{text: "15=2", bad: true},
		{text: ":2", bad: true},
		{text: "0:2", bad: true},
		{text: "-1:2", bad: true},
		{text: "32:2", bad: true},
		{text: "15:32", bad: true},
		{text: "15:-1", bad: true},
		{text: "TERM:INT", bad: true},
		{text: "15:x", bad: true},
		{text: "18446744073709551617:1", bad: true},
		{text: "18446744073709551631:9", bad: true},
		{text: "15:18446744073709551618", bad: true},
	} {
		from, to, ok := scanRewrite(c.text)
		if ok == c.bad || ok && (from != c.from || to != c.to) {
			t.Errorf("%q: %d:%d, %v; want %d:%d, %v", c.text, from, to, ok, c.from, c.to, !c.bad)
		}
	}
}

// parsed is what became of a command line, split at spaces, with ” for an empty word.
func parsed(line string, env ...string) (config.Verdict, config.Config) {
	args := strings.Split(line, " ")
	for i := range args {
		if args[i] == "''" {
			args[i] = ""
		}
	}
	var c config.Config
	v := Parse(sys.VectorOf(args...), sys.VectorOf(env...), &c)
	return v, c
}

// everything is the set that --keep-fds=all makes.
func everything() fds.Set {
	var all fds.Set
	all.Add(fds.Range{First: fds.First, Last: fds.Max})
	return all
}

// statuses is the set of these statuses.
func statuses(list ...int) (set config.StatusSet) {
	for _, status := range list {
		set.Add(status)
	}
	return set
}

// rewrites is the table of these pairs.
func rewrites(pairs ...sys.Signal) (r config.Rewrites) {
	for i := 0; i < len(pairs); i += 2 {
		r.Set(pairs[i], pairs[i+1])
	}
	return r
}

// base is what each dialect's Config has without any option.
func tiniBase() config.Config {
	return config.Config{Dialect: config.Tini, Log: config.Log{Style: config.Tini}}
}

func dumbInitBase() config.Config {
	return config.Config{
		Dialect: config.DumbInit, Log: config.Log{Style: config.DumbInit},
		Scope: config.ToGroup, Place: config.InOwnSession, TermAtEnd: true, SuspendSelf: true,
		Rewrites: rewrites(stop[0], sigstop, stop[1], sigstop, stop[2], sigstop),
	}
}

func catatonitBase() config.Config {
	return config.Config{
		Dialect: config.Catatonit, Log: config.Log{Style: config.Catatonit}, Keep: everything(), TerminalDevice: true,
	}
}

const sigstop = sys.Signal(unix.SIGSTOP)

var stop = []sys.Signal{sys.Signal(unix.SIGTSTP), sys.Signal(unix.SIGTTIN), sys.Signal(unix.SIGTTOU)}

// single is dumb-init without a session of its own.
func single(c *config.Config) {
	c.Scope, c.Place, c.Rewrites = config.ToProcess, config.WithInit, config.Rewrites{}
}

// TestRun has the command lines that are to be run. change turns the dialect's base
// into what is wanted.
func TestRun(t *testing.T) {
	type change = func(c *config.Config)
	log := func(level events.Level, notes config.Notes) change {
		return func(c *config.Config) {
			c.Log.Level, c.Log.Notes = level, notes
			c.Log.Wanted = level > events.Warn || notes&config.NoteReaped != 0
		}
	}
	debug := func(c *config.Config) { c.Log.Wanted, c.Log.Level = true, events.Debug }
	group := func(c *config.Config) { c.Scope = config.ToGroup }
	for _, test := range []struct {
		line    string
		env     []string
		command int
		change  change
	}{
		// tini
		{line: "tini ls", command: 1},
		{line: "/sbin/docker-init -- ls -l", command: 2},
		{line: "tini-static ls -h --version", command: 1},
		{line: "/dev/init -- --version", command: 2},
		{line: "tini -- --version", command: 2},
		{line: "tini - -v", command: 1},
		{line: "tini ''", command: 1},
		{line: "tini ls --", command: 1},
		{line: "tini -g ls", command: 2, change: group},
		{line: "tini -gsg -- ls", command: 3, change: func(c *config.Config) { c.Scope, c.Log.Notes = config.ToGroup, config.NoteSubreaper }},
		{line: "tini -s ls", command: 2, change: log(events.Warn, config.NoteSubreaper)},
		{line: "tini -w ls", command: 2, change: log(events.Warn, config.NoteReaped)},
		{line: "tini -v ls", command: 2, change: log(events.Info, 0)},
		{line: "tini -vv ls", command: 2, change: log(events.Debug, 0)},
		{line: "tini -v -v -v ls", command: 4, change: log(events.Debug, config.NoteTrace)},
		{line: "tini -vvvvv ls", command: 2, change: log(events.Debug, config.NoteTrace)},
		{line: "tini -e 3 ls", command: 3, change: func(c *config.Config) { c.Zero = statuses(3) }},
		{line: "tini -e143 -e 0 -e 255 ls", command: 6, change: func(c *config.Config) { c.Zero = statuses(143, 0, 255) }},
		{line: "tini -e '' ls", command: 3, change: func(c *config.Config) { c.Zero = statuses(0) }}, // as strtol(3) has it
		{line: "tini -e +7 -e -0 -e 007 ls", command: 7, change: func(c *config.Config) { c.Zero = statuses(7, 0) }},
		{line: "tini -p SIGTERM ls", command: 3, change: func(c *config.Config) { c.ParentDeathSignal = sys.Signal(unix.SIGTERM) }},
		{line: "tini -pSIGKILL -p SIGHUP ls", command: 4, change: func(c *config.Config) { c.ParentDeathSignal = sys.Signal(unix.SIGHUP) }},
		{line: "tini -gvpSIGUSR1 ls", command: 2, change: func(c *config.Config) {
			group(c)
			log(events.Info, 0)(c)
			c.ParentDeathSignal = sys.Signal(unix.SIGUSR1)
		}},
		{line: "tini ls", env: []string{"TINI_SUBREAPER="}, command: 1, change: log(events.Warn, config.NoteSubreaper)},
		{line: "tini ls", env: []string{"TINI_KILL_PROCESS_GROUP="}, command: 1, change: group},
		{line: "tini ls", env: []string{"TINI_KILL_PROCESS_GROUP=0"}, command: 1, change: group}, // set is set
		{line: "tini ls", env: []string{"TINI_VERBOSITY=3"}, command: 1, change: log(events.Debug, 0)},
		{line: "tini -vvv ls", env: []string{"TINI_VERBOSITY=1"}, command: 2},
		{line: "tini -w ls", env: []string{"TINI_VERBOSITY=0"}, command: 2, change: log(events.Warn, config.NoteQuiet)},
		{line: "tini ls", env: []string{"TINI_VERBOSITY="}, command: 1, change: log(events.Warn, config.NoteQuiet)},
		{line: "tini ls", env: []string{"TINI_VERBOSITY=x"}, command: 1, change: log(events.Warn, config.NoteQuiet)},
		{line: "tini ls", env: []string{"TINI_VERBOSITY= 2x"}, command: 1, change: log(events.Info, 0)},
		{line: "tini ls", env: []string{"TINI_VERBOSITY=-1"}, command: 1, change: log(events.Debug, config.NoteTrace)},
		{line: "tini ls", env: []string{"TINI_VERBOSITY=4294967298"}, command: 1, change: log(events.Info, 0)},                           // atoi(3)
		{line: "tini ls", env: []string{"TINI_VERBOSITY=18446744073709551618"}, command: 1, change: log(events.Debug, config.NoteTrace)}, // -1 to it
		{line: "tini ls", env: []string{"DUMB_INIT_SETSID=0", "CATATONIT_LOG=x", "DUMB_INIT_DEBUG=1", "CATATONIT_DEBUG=1"}, command: 1},

		// dumb-init
		{line: "dumb-init ls", command: 1},
		{line: "/usr/bin/dumb-init -- ls -c", command: 2},
		{line: "dumb-init -", command: 1},
		{line: "dumb-init -c ls", command: 2, change: single},
		{line: "dumb-init --single-child ls", command: 2, change: single},
		{line: "dumb-init --s ls", command: 2, change: single},
		{line: "dumb-init -v ls", command: 2, change: debug},
		{line: "dumb-init --verb -- ls", command: 3, change: debug},
		{line: "dumb-init -cvr2:3 ls", command: 2, change: func(c *config.Config) { single(c); debug(c); c.Rewrites = rewrites(2, 3) }},
		{line: "dumb-init -r 15:3 ls", command: 3, change: func(c *config.Config) { c.Rewrites.Set(15, 3) }},
		{line: "dumb-init --rewrite=15:0 --re 1:2 -r 15:9 ls", command: 6, change: func(c *config.Config) { c.Rewrites.Set(15, 9); c.Rewrites.Set(1, 2) }},
		{line: "dumb-init -r 20:20 -r 21:0 ls", command: 5, change: func(c *config.Config) { c.Rewrites.Set(20, 20); c.Rewrites.Set(21, 0) }},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_DEBUG=1"}, command: 1, change: func(c *config.Config) { debug(c); c.Log.Notes = config.NoteDebugMode }},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_DEBUG=0"}, command: 1},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_DEBUG="}, command: 1},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_DEBUG=11"}, command: 1},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_SETSID=0"}, command: 1, change: func(c *config.Config) { single(c); c.Log.Notes = config.NoteNoSession }},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_SETSID=1"}, command: 1},
		{line: "dumb-init ls", env: []string{"DUMB_INIT_SETSID=00"}, command: 1},
		{line: "dumb-init -v ls", env: []string{"DUMB_INIT_SETSID=0"}, command: 2, change: func(c *config.Config) { single(c); debug(c); c.Log.Notes = config.NoteNoSession }},
		{line: "dumb-init ls", env: []string{"TINI_VERBOSITY=3", "TINI_KILL_PROCESS_GROUP=", "CATATONIT_LOG=x", "CATATONIT_DEBUG="}, command: 1},

		// catatonit
		{line: "catatonit ls", command: 1},
		{line: "/run/podman-init -- ls -P", command: 2},
		{line: "catatonit -- --version", command: 2},
		{line: "catatonit -g ls", command: 2, change: group},
		{line: "catatonit -gg -- ls", command: 3, change: group},
		{line: "catatonit -P", change: func(c *config.Config) { c.Pause = true }},
		{line: "catatonit -gP --", change: func(c *config.Config) { c.Pause, c.Scope = true, config.ToGroup }},
		{line: "catatonit -P ls", change: func(c *config.Config) { c.Pause = true }},
		{line: "catatonit ls", env: []string{"CATATONIT_DEBUG="}, command: 1, change: debug},
		{line: "catatonit -P", env: []string{"CATATONIT_DEBUG=0"}, change: func(c *config.Config) { debug(c); c.Pause = true }},
		{line: "catatonit ls", env: []string{"TINI_VERBOSITY=3", "DUMB_INIT_SETSID=0", "CATATONIT_LOGS=x", "DUMB_INIT_DEBUG=1"}, command: 1},

		// fdinit's own variables count under every name, and win.
		{line: "tini -g ls", env: []string{"FDINIT_GROUP=0"}, command: 2},
		{line: "tini ls", env: []string{"FDINIT_GROUP=1"}, command: 1, change: group},
		{line: "dumb-init ls", env: []string{"FDINIT_GROUP=0"}, command: 1, change: func(c *config.Config) { c.Scope = config.ToProcess }},
		{line: "catatonit ls", env: []string{"FDINIT_GROUP=1"}, command: 1, change: group},
		{line: "catatonit ls", env: []string{"FDINIT_KEEP_FDS=3"}, command: 1, change: func(c *config.Config) { c.Keep = fds.Set{}; c.Keep.AddOne(3) }},
		{line: "tini ls", env: []string{"FDINIT_KEEP_FDS=all"}, command: 1, change: func(c *config.Config) { c.Keep = everything() }},
		{line: "tini ls", env: []string{"FDINIT_NOFILE=keep"}, command: 1, change: func(c *config.Config) { c.NofileKeep = true }},
		{line: "tini -vvv ls", env: []string{"FDINIT_LOG=warn"}, command: 2, change: func(c *config.Config) {
			c.Log = config.Log{Notes: config.NoteTrace}
		}},
		{line: "dumb-init ls", env: []string{"FDINIT_LOG=info", "FDINIT_LOG_FORMAT=json"}, command: 1, change: func(c *config.Config) {
			c.Log = config.Log{Wanted: true, Level: events.Info, JSON: true}
		}},
		{line: "catatonit ls", env: []string{"CATATONIT_DEBUG=1", "FDINIT_LOG_FORMAT=json"}, command: 1, change: func(c *config.Config) { debug(c); c.Log.JSON = true }},
		{line: "fdinit -g ls", env: []string{"TINI_VERBOSITY=3", "CATATONIT_LOG=x", "DUMB_INIT_SETSID=0"}, command: 2, change: group},
	} {
		v, got := parsed(test.line, test.env...)
		want := config.Config{}
		switch Of(strings.Split(test.line, " ")[0]) {
		case config.Tini:
			want = tiniBase()
		case config.DumbInit:
			want = dumbInitBase()
		case config.Catatonit:
			want = catatonitBase()
		default:
			// What was given is noted in a field of its own, unseen from here.
			_, want = parsed("fdinit -g ls")
		}
		want.Command = test.command
		if test.change != nil {
			test.change(&want)
		}
		if v != (config.Verdict{}) || got != want {
			t.Errorf("%s, %q:\n got %+v, %+v\nwant %+v", test.line, test.env, v, got, want)
		}
	}
}

// TestNotRun has the command lines that ask for something else, or are refused. part
// is what of the word is at fault.
func TestNotRun(t *testing.T) {
	type refused struct {
		code config.Code
		arg  int
		part string
	}
	for _, test := range []struct {
		line    string
		env     []string
		action  config.Action
		refused refused
	}{
		{line: "tini --version", action: config.Version},
		{line: "tini -h", action: config.Help},
		{line: "tini -gh -x", action: config.Help}, // as it comes first
		{line: "tini -l", action: config.License},
		{line: "tini -h ls", env: []string{"FDINIT_LOG=x"}, action: config.Help},
		{line: "tini", refused: refused{code: config.NoCommand}},
		{line: "tini --", refused: refused{code: config.NoCommand}},
		{line: "tini -g --", refused: refused{code: config.NoCommand}},
		{line: "tini -x ls", refused: refused{config.UnknownOption, 1, "x"}},
		{line: "tini -gvx ls", refused: refused{config.UnknownOption, 1, "x"}},
		{line: "tini --version ls", refused: refused{config.UnknownOption, 1, "-"}},
		{line: "tini -g --version", refused: refused{config.UnknownOption, 2, "-"}},
		{line: "tini --help", refused: refused{config.UnknownOption, 1, "-"}},
		{line: "tini -e", refused: refused{config.MissingValue, 1, "e"}},
		{line: "tini -g -vp", refused: refused{config.MissingValue, 2, "p"}},
		{line: "tini -e 256 ls", refused: refused{config.BadStatus, 2, "256"}},
		{line: "tini -e256 ls", refused: refused{config.BadStatus, 1, "256"}},
		{line: "tini -e -1 ls", refused: refused{config.BadStatus, 2, "-1"}},
		{line: "tini -e 5x ls", refused: refused{config.BadStatus, 2, "5x"}},
		{line: "tini -e - ls", refused: refused{config.BadStatus, 2, "-"}},
		{line: "tini -e 4294967297 ls", refused: refused{config.BadStatus, 2, "4294967297"}},
		{line: "tini -e 18446744073709551617 ls", refused: refused{config.BadStatus, 2, "18446744073709551617"}},
		{line: "tini -p TERM ls", refused: refused{config.BadSignal, 2, "TERM"}},
		{line: "tini -p sigterm ls", refused: refused{config.BadSignal, 2, "sigterm"}},
		{line: "tini -gpSIGterm ls", refused: refused{config.BadSignal, 1, "SIGterm"}},
		{line: "tini -p 15 ls", refused: refused{config.BadSignal, 2, "15"}},
		{line: "tini -p SIGRTMIN ls", refused: refused{config.BadSignal, 2, "SIGRTMIN"}},
		{line: "tini -p SIGPWR ls", refused: refused{config.BadSignal, 2, "SIGPWR"}},
		{line: "tini -p SIG ls", refused: refused{config.BadSignal, 2, "SIG"}},
		{line: "tini -p '' ls", refused: refused{config.BadSignal, 2, ""}},
		{line: "tini ls", env: []string{"A=1", "FDINIT_LOG=x"}, refused: refused{config.BadLevel, -1, "x"}},

		{line: "dumb-init -h", action: config.Help},
		{line: "dumb-init --he", action: config.Help},
		{line: "dumb-init -V", action: config.Version},
		{line: "dumb-init -c --vers ls", action: config.Version},
		{line: "dumb-init", refused: refused{code: config.NoCommand}},
		{line: "dumb-init -c", refused: refused{code: config.NoCommand}},
		{line: "dumb-init -x ls", refused: refused{config.UnknownOption, 1, "x"}},
		{line: "dumb-init --bogus=1 ls", refused: refused{config.UnknownOption, 1, "--bogus"}},
		{line: "dumb-init --ver ls", refused: refused{config.AmbiguousOption, 1, "--ver"}},
		{line: "dumb-init --verbose=1 ls", refused: refused{config.UnwantedValue, 1, "--verbose"}},
		{line: "dumb-init --rewrite", refused: refused{config.MissingValue, 1, "--rewrite"}},
		{line: "dumb-init -cr", refused: refused{config.MissingValue, 1, "r"}},
		{line: "dumb-init -r 32:1 ls", refused: refused{config.BadRewrite, 2, "32:1"}},
		{line: "dumb-init -rx ls", refused: refused{config.BadRewrite, 1, "x"}},
		{line: "dumb-init --rew= ls", refused: refused{config.BadRewrite, 1, ""}},
		{line: "dumb-init ls", env: []string{"FDINIT_NOFILE=x"}, refused: refused{config.BadLimit, -1, "x"}},

		{line: "catatonit -h", action: config.Help},
		{line: "catatonit -L", action: config.License},
		{line: "catatonit -V", action: config.Version},
		{line: "catatonit --version", action: config.Version},
		{line: "catatonit --v", action: config.Version},
		{line: "catatonit -gV", action: config.Version},
		{line: "catatonit", refused: refused{code: config.NoCommand}},
		{line: "podman-init --", refused: refused{code: config.NoCommand}},
		{line: "catatonit --help", refused: refused{config.UnknownOption, 1, "--help"}},
		{line: "catatonit --version=1", refused: refused{config.UnwantedValue, 1, "--version"}},
		{line: "catatonit -x ls", refused: refused{config.UnknownOption, 1, "x"}},
		{line: "catatonit -V", env: []string{"A=1", "CATATONIT_LOG="}, refused: refused{config.ReservedVariable, -1, ""}},
		{line: "catatonit -P", env: []string{"FDINIT_GROUP=x"}, refused: refused{config.BadSwitch, -1, "x"}},

		{line: "fdinit -V", action: config.Version},
		{line: "fdinit --install=x", action: config.Install},
	} {
		v, _ := parsed(test.line, test.env...)
		if test.refused == (refused{}) {
			if v.Action != test.action {
				t.Errorf("%s, %q: %+v, want action %d", test.line, test.env, v, test.action)
			}
			continue
		}
		got := refused{code: v.Problem.Code, arg: v.Problem.Arg}
		switch {
		case v.Action != config.Refuse:
			t.Errorf("%s, %q: not refused: %+v", test.line, test.env, v)
			continue
		case v.Problem.Arg < 0:
			got.part = test.env[v.Problem.Env][v.Problem.From:v.Problem.To]
		default:
			got.part = strings.Split(strings.ReplaceAll(test.line, "''", ""), " ")[v.Problem.Arg][v.Problem.From:v.Problem.To]
		}
		if got != test.refused {
			t.Errorf("%s, %q: %+v, want %+v", test.line, test.env, got, test.refused)
		}
	}
}

// TestWithoutName has a command line without even a first word, which Linux allowed
// before 5.18.
func TestWithoutName(t *testing.T) {
	var c config.Config
	v := Parse(sys.VectorOf(), sys.VectorOf(), &c)
	if v.Action != config.Refuse || v.Problem.Code != config.NoCommand || c.Dialect != config.Native {
		t.Errorf("%+v, %+v", v, c)
	}
}

// TestTiniSignal compares with the names that tini 0.19.0 has in its table, which are
// those of POSIX and a few more.
func TestTiniSignal(t *testing.T) {
	known := []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE,
		unix.SIGKILL, unix.SIGUSR1, unix.SIGSEGV, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGCHLD,
		unix.SIGCONT, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGURG, unix.SIGXCPU, unix.SIGXFSZ,
		unix.SIGVTALRM, unix.SIGPROF, unix.SIGWINCH, unix.SIGSYS,
	}
	for sig := sys.Signal(1); sig < signals.RTMin; sig++ {
		want := sys.Signal(0)
		if slices.Contains(known, unix.Signal(sig)) {
			want = sig
		}
		name := "SIG" + signals.Standard(sig)
		if got := tiniSignal(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
		for _, other := range []string{strings.ToLower(name), strings.TrimPrefix(name, "SIG"), name + " ", "SIG" + name} {
			if got := tiniSignal(other); got != 0 {
				t.Errorf("%q: %d", other, got)
			}
		}
	}
	for _, name := range []string{"SIGRTMIN", "SIGRTMIN+3", "SIGRTMAX-1", "SIGRTMAX", "signal 33"} {
		if got := tiniSignal(name); got != 0 {
			t.Errorf("%q: %d", name, got)
		}
	}
}

// sink keeps the compiler from leaving the calls out.
var sink config.Verdict

// TestAllocations sees to it that nothing here needs a heap: there is none in PID 1.
func TestAllocations(t *testing.T) {
	env := sys.VectorOf("A=1", "TINI_VERBOSITY=3", "TINI_SUBREAPER=", "DUMB_INIT_DEBUG=1", "CATATONIT_DEBUG=", "FDINIT_KEEP_FDS=3,5-7", "FDINIT_LOG=info")
	for _, line := range []string{
		"tini -gvvws -e 143 -pSIGTERM -- ls -l", "tini -e 300 ls", "tini --version", "tini",
		"dumb-init -cv --rew=15:3 -r 2:0 ls", "dumb-init --ver ls", "dumb-init -r x ls",
		"catatonit -g -- ls", "catatonit -P", "catatonit --x",
		"fdinit --log=debug -g ls", "fdinit --bogus",
	} {
		args := sys.VectorOf(strings.Split(line, " ")...)
		if n := testing.AllocsPerRun(100, func() {
			var c config.Config
			sink = Parse(args, env, &c)
		}); n != 0 {
			t.Errorf("%s: %v allocations", line, n)
		}
	}
}
