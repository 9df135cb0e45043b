package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// words are the command line after "fdinit", at single spaces; ” is an empty word.
func words(line string) []string {
	args := []string{"fdinit"}
	if line == "" {
		return args
	}
	for _, word := range strings.Split(line, " ") {
		args = append(args, strings.ReplaceAll(word, "''", ""))
	}
	return args
}

func parse(args, env []string) (c Config, v Verdict) {
	v = Parse(sys.VectorOf(args...), sys.VectorOf(env...), &c)
	return c, v
}

// show is a configuration in the order of its fields, without what has its zero value.
func show(c *Config, args []string) string {
	parts := []string{strings.Join(args[c.Command:], " ")}
	if c.Scope == ToGroup {
		parts = append(parts, "group")
	}
	if c.ParentDeathSignal != 0 {
		parts = append(parts, fmt.Sprintf("signal=%d", c.ParentDeathSignal))
	}
	for i := range c.Keep.Len() {
		parts = append(parts, fmt.Sprintf("keep=%d-%d", c.Keep.At(i).First, c.Keep.At(i).Last))
	}
	for resource := range rlimit.Count {
		q := c.Limits.Of(resource)
		if q == nil {
			continue
		}
		soft, hard := fmt.Sprint(q.Soft), ""
		if q.SoftIsHard {
			soft = "hard"
		}
		if q.HardGiven {
			hard = fmt.Sprintf(":%d", q.Hard)
		}
		parts = append(parts, strings.TrimPrefix(q.Type, "RLIMIT_")+"="+soft+hard)
	}
	if c.NofileKeep {
		parts = append(parts, "nofile=keep")
	}
	if c.Log.Wanted {
		parts = append(parts, "log="+map[events.Level]string{events.Warn: "warn", events.Info: "info", events.Debug: "debug"}[c.Log.Level])
	}
	if c.Log.JSON {
		parts = append(parts, "json")
	}
	return strings.Join(parts, " | ")
}

func TestAccepted(t *testing.T) {
	for _, c := range []struct {
		line string
		env  string // separated by commas
		want string // as show has it
	}{
		// Options end at the first word that is not one.
		{line: "ls", want: "ls"},
		{line: "ls -l", want: "ls -l"},
		{line: "ls -g --nofile=5", want: "ls -g --nofile=5"},
		{line: "-g ls -g", want: "ls -g | group"},
		{line: "-- ls", want: "ls"},
		{line: "-g -- ls", want: "ls | group"},
		{line: "-- -g", want: "-g"},
		{line: "-- --", want: "--"},
		{line: "-- -- ls", want: "-- ls"},
		{line: "- -g", want: "- -g"},
		{line: "''", want: ""},
		{line: "'' -g", want: " -g"},
		{line: "ls --", want: "ls --"},
		{line: "ls --help", want: "ls --help"},

		// The value stands in the same word or in the next, whatever that looks like.
		{line: "--group ls", want: "ls | group"},
		{line: "-p TERM ls", want: "ls | signal=15"},
		{line: "-pTERM ls", want: "ls | signal=15"},
		{line: "--parent-death-signal TERM ls", want: "ls | signal=15"},
		{line: "--parent-death-signal=TERM ls", want: "ls | signal=15"},
		{line: "-gp9 ls", want: "ls | group | signal=9"},
		{line: "-gp 9 ls", want: "ls | group | signal=9"},
		{line: "-gpSIGRTMIN+3 ls", want: "ls | group | signal=37"},
		{line: "--nofile 100 ls", want: "ls | NOFILE=100"},
		{line: "--nofile -1 ls", want: "ls | NOFILE=18446744073709551615"},
		{line: "--rlimit core=0 ls", want: "ls | CORE=0"},
		{line: "--keep-fds 3 ls", want: "ls | keep=3-3"},

		// Names with or without SIG or RLIMIT_, in any case, and numbers.
		{line: "-p sigterm ls", want: "ls | signal=15"},
		{line: "-p SigUsr1 ls", want: "ls | signal=10"},
		{line: "-p hup ls", want: "ls | signal=1"},
		{line: "-p 64 ls", want: "ls | signal=64"},
		{line: "-p rtmax-1 ls", want: "ls | signal=63"},
		{line: "--rlimit=RLIMIT_CORE=0 ls", want: "ls | CORE=0"},
		{line: "--rlimit=rlimit_core=0 ls", want: "ls | CORE=0"},
		{line: "--rlimit=Core=0 ls", want: "ls | CORE=0"},
		{line: "--rlimit=4=0 ls", want: "ls | CORE=0"},

		// Limits.
		{line: "--nofile=auto ls", want: "ls"},
		{line: "--nofile=keep ls", want: "ls | nofile=keep"},
		{line: "--nofile=1024 ls", want: "ls | NOFILE=1024"},
		{line: "--nofile=1024:4096 ls", want: "ls | NOFILE=1024:4096"},
		{line: "--nofile=hard ls", want: "ls | NOFILE=hard"},
		{line: "--nofile=hard:unlimited ls", want: "ls | NOFILE=hard:18446744073709551615"},
		{line: "--nofile=0 ls", want: "ls | NOFILE=0"},
		{line: "--rlimit=nofile=7 ls", want: "ls | NOFILE=7"},
		{line: "--rlimit=core=0 --rlimit=memlock=-1:-1 --nofile=5 ls", want: "ls | CORE=0 | NOFILE=5 | MEMLOCK=18446744073709551615:18446744073709551615"},

		// Keep lists.
		{line: "--keep-fds=all ls", want: "ls | keep=3-2147483647"},
		{line: "--keep-fds=3,5-7 ls", want: "ls | keep=3-3 | keep=5-7"},
		{line: "--keep-fds=9,3-5,4-7,8 ls", want: "ls | keep=3-9"},
		{line: "--keep-fds=0-2 ls", want: "ls | keep=0-2"},
		{line: "--keep-fds=2147483647 ls", want: "ls | keep=2147483647-2147483647"},

		// Variables do the same as options.
		{line: "ls", env: "FDINIT_GROUP=1", want: "ls | group"},
		{line: "ls", env: "FDINIT_GROUP=0", want: "ls"},
		{line: "ls", env: "FDINIT_NOFILE=100:200", want: "ls | NOFILE=100:200"},
		{line: "ls", env: "FDINIT_NOFILE=keep", want: "ls | nofile=keep"},
		{line: "ls", env: "FDINIT_NOFILE=auto", want: "ls"},
		{line: "ls", env: "FDINIT_KEEP_FDS=5", want: "ls | keep=5-5"},
		{line: "ls", env: "FDINIT_KEEP_FDS=all", want: "ls | keep=3-2147483647"},
		{line: "ls", env: "FDINIT_RLIMIT=core=0", want: "ls | CORE=0"},
		{line: "ls", env: "FDINIT_RLIMIT=  core=0   RLIMIT_cpu=1:2 ", want: "ls | CPU=1:2 | CORE=0"},
		{line: "ls", env: "FDINIT_RLIMIT=nofile=7", want: "ls | NOFILE=7"},
		{line: "ls", env: "FDINIT_RLIMIT=core=0,FDINIT_NOFILE=7", want: "ls | CORE=0 | NOFILE=7"},

		// An option wins over its variable.
		{line: "-g ls", env: "FDINIT_GROUP=0", want: "ls | group"},
		{line: "--keep-fds=3 ls", env: "FDINIT_KEEP_FDS=5", want: "ls | keep=3-3"},
		{line: "--nofile=100 ls", env: "FDINIT_NOFILE=200", want: "ls | NOFILE=100"},
		{line: "--nofile=100 ls", env: "FDINIT_NOFILE=keep", want: "ls | NOFILE=100"},
		{line: "--nofile=keep ls", env: "FDINIT_NOFILE=200", want: "ls | nofile=keep"},
		{line: "--nofile=auto ls", env: "FDINIT_NOFILE=200", want: "ls"},
		{line: "--nofile=auto ls", env: "FDINIT_NOFILE=keep", want: "ls"},
		{line: "--rlimit=core=0 ls", env: "FDINIT_RLIMIT=core=5 cpu=1", want: "ls | CPU=1 | CORE=0"},
		// --nofile and --rlimit=nofile= are two spellings of one setting.
		{line: "--rlimit=nofile=100 ls", env: "FDINIT_NOFILE=200", want: "ls | NOFILE=100"},
		{line: "--rlimit=nofile=100 ls", env: "FDINIT_NOFILE=keep", want: "ls | NOFILE=100"},
		{line: "--nofile=100 ls", env: "FDINIT_RLIMIT=nofile=200", want: "ls | NOFILE=100"},
		{line: "--nofile=keep ls", env: "FDINIT_RLIMIT=nofile=200", want: "ls | nofile=keep"},
		{line: "--nofile=auto ls", env: "FDINIT_RLIMIT=nofile=200 core=0", want: "ls | CORE=0"},

		// The log.
		{line: "--log=info ls", want: "ls | log=info"},
		{line: "--log debug --log-format json ls", want: "ls | log=debug | json"},
		{line: "--log=warn ls", want: "ls"},
		{line: "--log-format=text ls", want: "ls"},
		{line: "ls", env: "FDINIT_LOG=debug,FDINIT_LOG_FORMAT=json", want: "ls | log=debug | json"},
		{line: "--log=warn --log-format=text ls", env: "FDINIT_LOG=debug,FDINIT_LOG_FORMAT=json", want: "ls"},

		// A variable that is overruled may be anything.
		{line: "--keep-fds=3 ls", env: "FDINIT_KEEP_FDS=", want: "ls | keep=3-3"},
		{line: "-g ls", env: "FDINIT_GROUP=x", want: "ls | group"},

		// The environment is anybody's.
		{line: "ls", env: "FDINIT_GROUP,=,FDINIT_GROUPS=x,XFDINIT_GROUP=x,fdinit_group=x,FDINIT_=1", want: "ls"},
		{line: "ls", env: "FDINIT_GROUP=1,FDINIT_GROUP=x", want: "ls | group"}, // as getenv(3)
	} {
		args, env := words(c.line), []string(nil)
		if c.env != "" {
			env = strings.Split(c.env, ",")
		}
		config, v := parse(args, env)
		if v.Action != Run {
			t.Errorf("fdinit %s, %s: %+v", c.line, c.env, v)
			continue
		}
		if got := show(&config, args); got != c.want {
			t.Errorf("fdinit %s, %s:\n got %s\nwant %s", c.line, c.env, got, c.want)
		}
	}
}

func TestFrontDesk(t *testing.T) {
	for line, want := range map[string]Action{
		"--help":               Help,
		"-h":                   Help,
		"-gh":                  Help,
		"--help ls":            Help,
		"-g --help":            Help,
		"--version":            Version,
		"-V":                   Version,
		"--version --help":     Version,
		"--help --version":     Help,
		"-hV":                  Help,
		"-h --bogus":           Help,
		"--nofile=keep -V":     Version,
		"-p --help ls":         Refuse, // the value of -p
		"--bogus --help":       Refuse,
		"--rlimit core --help": Refuse,
	} {
		// A broken variable does not keep anyone from reading the help.
		if _, v := parse(words(line), []string{"FDINIT_NOFILE=x"}); v.Action != want {
			t.Errorf("fdinit %s: %+v", line, v)
		}
	}
}

func TestInstall(t *testing.T) {
	for line, want := range map[string][2]string{
		"--install=/mnt/fdinit":                      {"/mnt/fdinit"},
		"--install /mnt/fdinit":                      {"/mnt/fdinit"},
		"--install=/mnt/fdinit --":                   {"/mnt/fdinit"},
		"--install=/mnt --install-as=tini,dumb-init": {"/mnt", "tini,dumb-init"},
		"--install-as tini --install -x":             {"-x", "tini"},
		"--log-format=json --install=/mnt":           {"/mnt"}, // of what goes wrong
	} {
		args := words(line)
		// What is wrong in the environment does not matter: nothing is run.
		_, v := parse(args, []string{"FDINIT_NOFILE=x"})
		if v.Action != Install {
			t.Errorf("fdinit %s: %+v", line, v)
			continue
		}
		for i, text := range []Text{v.Path, v.As} {
			got := ""
			if text.Arg != 0 {
				got = args[text.Arg][text.Off:]
			}
			if got != want[i] {
				t.Errorf("fdinit %s: %q, want %q", line, got, want[i])
			}
		}
	}
}

func TestRefused(t *testing.T) {
	keep := func(p fds.Problem) uint8 { return uint8(p) }
	limit := func(p rlimit.Problem) uint8 { return uint8(p) }
	for _, c := range []struct {
		line   string
		env    string // one variable
		code   Code
		reason uint8
		value  string // what is refused
		part   string // the part of it that is wrong
	}{
		{line: "", code: NoCommand},
		{line: "--", code: NoCommand},
		{line: "-g", code: NoCommand},
		{line: "-g --", code: NoCommand},
		{line: "--nofile=5", code: NoCommand},
		{line: "--nofile 5", code: NoCommand},

		// Unknown.
		{line: "-x ls", code: UnknownOption, part: "x"},
		{line: "-gx ls", code: UnknownOption, part: "x"},
		{line: "-xg ls", code: UnknownOption, part: "x"},
		{line: "-\xff ls", code: UnknownOption, part: "\xff"},
		{line: "-g- ls", code: UnknownOption, part: "-"},
		{line: "--bogus ls", code: UnknownOption, part: "--bogus"},
		{line: "--bogus=1 ls", code: UnknownOption, part: "--bogus"},
		{line: "--nofil=1 ls", code: UnknownOption, part: "--nofil"},
		{line: "--nofilex=1 ls", code: UnknownOption, part: "--nofilex"},
		{line: "--NOFILE=1 ls", code: UnknownOption, part: "--NOFILE"},
		{line: "--=1 ls", code: UnknownOption, part: "--"},
		{line: "--- ls", code: UnknownOption, part: "---"},
		{line: "-nofile=1 ls", code: UnknownOption, part: "n"},
		{line: "-p=TERM ls", code: BadSignal, value: "=TERM", part: "=TERM"},

		// With and without a value.
		{line: "--nofile", code: MissingValue, part: "--nofile"},
		{line: "--rlimit", code: MissingValue, part: "--rlimit"},
		{line: "--keep-fds", code: MissingValue, part: "--keep-fds"},
		{line: "-p", code: MissingValue, part: "p"},
		{line: "-gp", code: MissingValue, part: "p"},
		{line: "--parent-death-signal", code: MissingValue, part: "--parent-death-signal"},
		{line: "--group=1 ls", code: UnwantedValue, part: "--group"},
		{line: "--group= ls", code: UnwantedValue, part: "--group"},
		{line: "--help=1", code: UnwantedValue, part: "--help"},
		{line: "--version=", code: UnwantedValue, part: "--version"},
		{line: "--nofile -- ls", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "--", part: "--"},

		// Repeated where single, whatever the values.
		{line: "-g -g ls", code: Repeated, part: "g"},
		{line: "-gg ls", code: Repeated, part: "g"},
		{line: "-g --group ls", code: Repeated, part: "--group"},
		{line: "-p TERM -p TERM ls", code: Repeated, part: "p"},
		{line: "-p TERM -gpx ls", code: Repeated, part: "p"},
		{line: "-pTERM --parent-death-signal=x ls", code: Repeated, part: "--parent-death-signal"},
		{line: "--keep-fds=3 --keep-fds=3 ls", code: Repeated, part: "--keep-fds"},
		{line: "--nofile=5 --nofile=5 ls", code: Repeated, part: "--nofile"},
		{line: "--nofile=auto --nofile 5 ls", code: Repeated, part: "--nofile"},

		// Empty.
		{line: "--nofile= ls", code: BadLimit, reason: limit(rlimit.ValueEmpty)},
		{line: "--nofile '' ls", code: BadLimit, reason: limit(rlimit.ValueEmpty)},
		{line: "--nofile=5: ls", code: BadLimit, reason: limit(rlimit.ValueEmpty), value: "5:"},
		{line: "--rlimit= ls", code: BadLimit, reason: limit(rlimit.NameUnknown)},
		{line: "--rlimit=core= ls", code: BadLimit, reason: limit(rlimit.ValueEmpty), value: "core="},
		{line: "--keep-fds= ls", code: BadKeep, reason: keep(fds.ListEmpty)},
		{line: "--keep-fds '' ls", code: BadKeep, reason: keep(fds.ListEmpty)},
		{line: "--keep-fds=3,,5 ls", code: BadKeep, reason: keep(fds.ElementEmpty), value: "3,,5"},
		{line: "-p '' ls", code: BadSignal},
		{line: "--parent-death-signal= ls", code: BadSignal},
		{line: "ls", env: "FDINIT_NOFILE=", code: BadLimit, reason: limit(rlimit.ValueEmpty)},
		{line: "ls", env: "FDINIT_RLIMIT=", code: BadLimit, reason: limit(rlimit.ValueEmpty)},
		{line: "ls", env: "FDINIT_RLIMIT=  ", code: BadLimit, reason: limit(rlimit.ValueEmpty), value: "  ", part: "  "},
		{line: "ls", env: "FDINIT_KEEP_FDS=", code: BadKeep, reason: keep(fds.ListEmpty)},
		{line: "ls", env: "FDINIT_GROUP=", code: BadSwitch},

		// Overflowing.
		{line: "--nofile=18446744073709551616 ls", code: BadLimit, reason: limit(rlimit.ValueTooLarge), value: "18446744073709551616", part: "18446744073709551616"},
		{line: "--rlimit=cpu=1:18446744073709551616 ls", code: BadLimit, reason: limit(rlimit.ValueTooLarge), value: "cpu=1:18446744073709551616", part: "18446744073709551616"},
		{line: "--keep-fds=3,2147483648 ls", code: BadKeep, reason: keep(fds.ElementTooLarge), value: "3,2147483648", part: "2147483648"},
		{line: "--keep-fds=18446744073709551619 ls", code: BadKeep, reason: keep(fds.ElementTooLarge), value: "18446744073709551619", part: "18446744073709551619"},
		{line: "-p 65 ls", code: BadSignal, value: "65", part: "65"},
		{line: "-p 271 ls", code: BadSignal, value: "271", part: "271"},
		{line: "--rlimit=16=1 ls", code: BadLimit, reason: limit(rlimit.NameUnknown), value: "16=1", part: "16"},

		// Contradictory.
		{line: "--nofile=5:4 ls", code: BadLimit, reason: limit(rlimit.SoftAboveHard), value: "5:4", part: "5:4"},
		{line: "--nofile=5:hard ls", code: BadLimit, reason: limit(rlimit.HardIsHard), value: "5:hard", part: "hard"},
		{line: "--keep-fds=7-5 ls", code: BadKeep, reason: keep(fds.RangeReversed), value: "7-5", part: "7-5"},
		{line: "--rlimit=core=1 --rlimit=core=1 ls", code: LimitTwice, value: "core=1", part: "core=1"},
		{line: "--rlimit=core=1 --rlimit RLIMIT_Core=2 ls", code: LimitTwice, value: "RLIMIT_Core=2", part: "RLIMIT_Core=2"},
		{line: "--rlimit=core=1 --rlimit=4=2 ls", code: LimitTwice, value: "4=2", part: "4=2"},
		{line: "--nofile=5 --rlimit=nofile=6 ls", code: LimitTwice, value: "nofile=6", part: "nofile=6"},
		{line: "--nofile=auto --rlimit=nofile=6 ls", code: LimitTwice, value: "nofile=6", part: "nofile=6"},
		{line: "--nofile=keep --rlimit=nofile=6 ls", code: LimitTwice, value: "nofile=6", part: "nofile=6"},
		{line: "--rlimit=nofile=6 --nofile=5 ls", code: LimitTwice, value: "5", part: "5"},
		{line: "--rlimit=nofile=6 --nofile=keep ls", code: LimitTwice, value: "keep", part: "keep"},
		{line: "--rlimit=nofile=6 --nofile=auto ls", code: LimitTwice, value: "auto", part: "auto"},
		{line: "ls", env: "FDINIT_RLIMIT=core=1 cpu=2 core=3", code: LimitTwice, value: "core=3", part: "core=3"},

		// The log.
		{line: "--log= ls", code: BadLevel},
		{line: "--log=INFO ls", code: BadLevel, value: "INFO", part: "INFO"},
		{line: "--log=2 ls", code: BadLevel, value: "2", part: "2"},
		{line: "--log-format=xml ls", code: BadFormat, value: "xml", part: "xml"},
		{line: "--log=info --log=info ls", code: Repeated, part: "--log"},
		{line: "--log-format=json --log-format text ls", code: Repeated, part: "--log-format"},
		{line: "ls", env: "FDINIT_LOG=error", code: BadLevel, value: "error", part: "error"},
		{line: "ls", env: "FDINIT_LOG_FORMAT=", code: BadFormat},

		// Installing.
		{line: "--install", code: MissingValue, part: "--install"},
		{line: "--install=", code: EmptyValue},
		{line: "--install ''", code: EmptyValue},
		{line: "--install=/x --install-as=", code: EmptyValue},
		{line: "--install=/x --install=/x", code: Repeated, part: "--install"},
		{line: "--install=/x ls -l", code: UnwantedCommand, value: "ls", part: "ls"},
		{line: "--install=/x -- -l", code: UnwantedCommand, value: "-l", part: "-l"},
		{line: "--install=/x --nofile=5", code: UselessOption, part: "--nofile"},
		{line: "-g --install=/x --log=info", code: UselessOption, part: "g"},
		{line: "--rlimit core=0 --install=/x ls", code: UselessOption, part: "--rlimit"},
		{line: "--install=/x -pTERM", code: UselessOption, part: "p"},
		{line: "--install=/x --keep-fds=all", code: UselessOption, part: "--keep-fds"},
		{line: "--install-as=tini", code: LoneInstallAs},
		{line: "--install-as=tini ls", code: LoneInstallAs},

		// Neither.
		{line: "--nofile=many ls", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "many", part: "many"},
		{line: "--nofile=Auto ls", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "Auto", part: "Auto"},
		{line: "--rlimit=files=5 ls", code: BadLimit, reason: limit(rlimit.NameUnknown), value: "files=5", part: "files"},
		{line: "--rlimit=core ls", code: BadLimit, reason: limit(rlimit.NoValue), value: "core", part: "core"},
		{line: "--rlimit core ls", code: BadLimit, reason: limit(rlimit.NoValue), value: "core", part: "core"},
		{line: "--rlimit=core=keep ls", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "core=keep", part: "keep"},
		{line: "--keep-fds=3,x ls", code: BadKeep, reason: keep(fds.ElementNotANumber), value: "3,x", part: "x"},
		{line: "--keep-fds=3,all ls", code: BadKeep, reason: keep(fds.ElementNotANumber), value: "3,all", part: "all"},
		{line: "-pFOO ls", code: BadSignal, value: "FOO", part: "FOO"},
		{line: "-gpFOO ls", code: BadSignal, value: "FOO", part: "FOO"},
		{line: "-gp FOO ls", code: BadSignal, value: "FOO", part: "FOO"},
		{line: "ls", env: "FDINIT_GROUP=yes", code: BadSwitch, value: "yes", part: "yes"},
		{line: "ls", env: "FDINIT_GROUP=01", code: BadSwitch, value: "01", part: "01"},
		{line: "ls", env: "FDINIT_NOFILE=x", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "x", part: "x"},
		{line: "ls", env: "FDINIT_NOFILE=1:x", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "1:x", part: "x"},
		{line: "ls", env: "FDINIT_RLIMIT=core=1 x=2", code: BadLimit, reason: limit(rlimit.NameUnknown), value: "x=2", part: "x"},
		{line: "ls", env: "FDINIT_RLIMIT=core=1 cpu=x", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "cpu=x", part: "x"},
		{line: "ls", env: "FDINIT_KEEP_FDS=3,4-x", code: BadKeep, reason: keep(fds.ElementNotANumber), value: "3,4-x", part: "4-x"},
		// What is broken is broken, also where an option overrules a part of it.
		{line: "--rlimit=core=1 ls", env: "FDINIT_RLIMIT=core=x", code: BadLimit, reason: limit(rlimit.ValueNotANumber), value: "core=x", part: "x"},
	} {
		args := words(c.line)
		env := []string{"A=1", c.env}
		_, v := parse(args, env)
		p := v.Problem
		if v.Action != Refuse || p.Code != c.code || p.Reason != c.reason {
			t.Errorf("fdinit %s, %s: %+v, want code %d, reason %d", c.line, c.env, v, c.code, c.reason)
			continue
		}
		if c.code == NoCommand || c.code == LoneInstallAs {
			continue
		}
		if fromEnv := c.env != ""; fromEnv != (p.Arg == -1) || fromEnv && p.Env != 1 {
			t.Errorf("fdinit %s, %s: %+v is the wrong place", c.line, c.env, p)
			continue
		}
		word := c.env
		if p.Arg >= 0 {
			word = args[p.Arg]
		}
		if got := word[p.From:p.To]; got != c.part {
			t.Errorf("fdinit %s, %s: the wrong part is %q, want %q", c.line, c.env, got, c.part)
		}
		if got := word[p.Value:]; p.Code >= BadKeep && got != c.value {
			t.Errorf("fdinit %s, %s: the wrong value is %q, want %q", c.line, c.env, got, c.value)
		}
	}
}

// TestVariablesContradict: FDINIT_NOFILE and FDINIT_RLIMIT are one level.
func TestVariablesContradict(t *testing.T) {
	for _, nofile := range []string{"5", "keep", "auto"} {
		_, v := parse(words("ls"), []string{"FDINIT_RLIMIT=nofile=5", "FDINIT_NOFILE=" + nofile})
		if v.Action != Refuse || v.Problem.Code != LimitTwice {
			t.Errorf("FDINIT_NOFILE=%s: %+v", nofile, v)
		}
		// With an option for it, neither counts.
		if _, v := parse(words("--nofile=7 ls"), []string{"FDINIT_RLIMIT=nofile=5", "FDINIT_NOFILE=" + nofile}); v.Action != Run {
			t.Errorf("FDINIT_NOFILE=%s and --nofile: %+v", nofile, v)
		}
	}
}

// TestNoArguments: execve(2) allowed an empty argv before Linux 5.18.
func TestNoArguments(t *testing.T) {
	if _, v := parse(nil, nil); v.Action != Refuse || v.Problem.Code != NoCommand {
		t.Errorf("%+v", v)
	}
}

func TestTooManyRanges(t *testing.T) {
	list := ""
	for i := range fds.MaxRanges + 1 {
		list += fmt.Sprintf(",%d", 10*i)
	}
	if _, v := parse(words("--keep-fds="+list[1:]+" ls"), nil); v.Action != Refuse || v.Problem.Reason != uint8(fds.TooManyRanges) {
		t.Errorf("%+v", v)
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	for _, line := range []string{
		"-gp TERM --nofile=hard:unlimited --rlimit core=0 --rlimit=RLIMIT_CPU=1:2 --keep-fds=3,5-7 -- ls -l",
		"--nofile=x ls", "-x", "", "--help", "--keep-fds=3,4,x ls",
	} {
		args := sys.VectorOf(words(line)...)
		env := sys.VectorOf("A=1", "FDINIT_GROUP=1", "FDINIT_NOFILE=keep", "FDINIT_RLIMIT=as=1 core=5", "FDINIT_KEEP_FDS=all")
		if n := testing.AllocsPerRun(100, func() {
			var c Config
			Parse(args, env, &c)
		}); n != 0 {
			t.Errorf("fdinit %s: %v allocations", line, n)
		}
	}
}

// TestEveryResource can be limited by either way.
func TestEveryResource(t *testing.T) {
	for resource := range rlimit.Count {
		name := strings.ToLower(strings.TrimPrefix(rlimit.Type(resource), "RLIMIT_"))
		option, v := parse(words("--rlimit="+name+"=3:4 ls"), nil)
		variable, w := parse(words("ls"), []string{"FDINIT_RLIMIT=" + name + "=3:4"})
		if v.Action != Run || w.Action != Run {
			t.Errorf("%s: %+v, %+v", name, v, w)
			continue
		}
		for _, c := range []*Config{&option, &variable} {
			if q := c.Limits.Of(resource); q == nil || q.Soft != 3 || q.Hard != 4 || !q.HardGiven {
				t.Errorf("%s: %+v", name, q)
			}
		}
		if resource == unix.RLIMIT_NOFILE {
			continue
		}
		if option.Limits.Asked(unix.RLIMIT_NOFILE) || option.NofileKeep {
			t.Errorf("%s changes what happens to RLIMIT_NOFILE", name)
		}
	}
}
