package config

import (
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

const (
	optHelp = iota + 1
	optVersion
	optGroup
	optDeathSignal
	optNofile
	optRlimit
	optKeep
	optLog
	optLogFormat
	optInstall
	optInstallAs
)

// given is a set of options.
type given uint16

func (g given) has(option uint8) bool { return g>>option&1 != 0 }

// options is fdinit's own dialect. The usage text in cmd/fdinit describes it.
var options = [...]Option{
	{ID: optHelp, Short: 'h', Long: "help"},
	{ID: optVersion, Short: 'V', Long: "version"},
	{ID: optGroup, Short: 'g', Long: "group"},
	{ID: optDeathSignal, Short: 'p', Long: "parent-death-signal", Value: true},
	{ID: optNofile, Long: "nofile", Value: true},
	{ID: optRlimit, Long: "rlimit", Value: true},
	{ID: optKeep, Long: "keep-fds", Value: true},
	{ID: optLog, Long: "log", Value: true},
	{ID: optLogFormat, Long: "log-format", Value: true},
	{ID: optInstall, Long: "install", Value: true},
	{ID: optInstallAs, Long: "install-as", Value: true},
}

// Parse reads fdinit's own dialect: options from argv, then the FDINIT_* variables.
func Parse(args, env sys.Vector, c *Config) Verdict {
	v := c.parse(args, env)
	if v.Action != Run {
		c.readLogFormat(args, env)
	}
	return v
}

func (c *Config) parse(args, env sys.Vector) Verdict {
	s := Scanner{Args: args, Table: options[:], Next: 1}
	var asked level
	var install, useless Verdict
	for {
		f := s.Scan()
		if f.ID == EndOfOptions {
			break
		}
		if useless.Action == Run && ofRunning(f.ID) {
			useless = place{arg: f.Arg}.refuse(UselessOption, 0, f.From, f.To)
		}
		if v := c.option(f, &asked, &install); v.Action != Run {
			return v
		}
	}
	c.Limits = asked.limits
	switch {
	case install.Action == Install && useless.Action == Refuse:
		return useless
	case install.Action == Install:
		if s.Next < args.Len() {
			return place{arg: s.Next}.refuse(UnwantedCommand, 0, 0, len(args.String(s.Next)))
		}
		return install
	case install.As.Arg != 0:
		return place{}.refuse(LoneInstallAs, 0, 0, 0)
	case s.Next >= args.Len():
		return RefuseEmpty()
	}
	c.Command = s.Next
	return ParseVariables(env, c)
}

// readLogFormat looks for the log's format wherever it stands, since what is wrong
// anywhere else is written in it.
func (c *Config) readLogFormat(args, env sys.Vector) {
	format, _ := env.Lookup("FDINIT_LOG_FORMAT")
	s := Scanner{Args: args, Table: options[:], Next: 1}
	for f := s.Scan(); f.ID != EndOfOptions; f = s.Scan() {
		if f.ID == optLogFormat {
			format = f.Value
		}
	}
	c.Log.JSON = format == "json"
}

// ofRunning is whether an option says how to run a command, so that it has no use where
// there is none. --log-format also says how errors are written.
func ofRunning(id uint8) bool {
	switch id {
	case optGroup, optDeathSignal, optNofile, optRlimit, optKeep, optLog:
		return true
	}
	return false
}

// option acts on one option.
func (c *Config) option(f Found, asked *level, install *Verdict) Verdict {
	at := place{arg: f.At, off: f.Off}
	switch f.ID {
	case optHelp:
		return Verdict{Action: Help}
	case optVersion:
		return Verdict{Action: Version}
	case optRlimit: // the only one that may be repeated
		return asked.parseRlimit(f.Value, at)
	case NoValue, HasValue, Unknown:
		return RefuseOption(f)
	}
	if c.given.has(f.ID) {
		return place{arg: f.Arg}.refuse(Repeated, 0, f.From, f.To)
	}
	c.given |= 1 << f.ID
	switch f.ID {
	case optGroup:
		c.Scope = ToGroup
	case optDeathSignal:
		sig, ok := signals.Parse(f.Value)
		if !ok {
			return at.refuse(BadSignal, 0, 0, len(f.Value))
		}
		c.ParentDeathSignal = sig
	case optNofile:
		return c.parseNofile(f.Value, at, asked)
	case optKeep:
		return c.parseKeep(f.Value, at)
	case optLog:
		return c.parseLog(f.Value, at)
	case optLogFormat:
		return c.parseLogFormat(f.Value, at)
	case optInstall, optInstallAs:
		if f.Value == "" {
			return at.refuse(EmptyValue, 0, 0, 0)
		}
		if text := (Text{f.At, f.Off}); f.ID == optInstall {
			install.Action, install.Path = Install, text
		} else {
			install.As = text
		}
	}
	return Verdict{}
}

// ParseVariables reads the FDINIT_* variables into what no option has set.
func ParseVariables(env sys.Vector, c *Config) Verdict {
	if value, at, ok := c.variable(env, "FDINIT_LOG_FORMAT", optLogFormat); ok {
		if v := c.parseLogFormat(value, at); v.Action != Run {
			return v
		}
	}
	if value, at, ok := c.variable(env, "FDINIT_GROUP", optGroup); ok {
		if value != "0" && value != "1" {
			return at.refuse(BadSwitch, 0, 0, len(value))
		}
		c.Scope = ToProcess
		if value == "1" {
			c.Scope = ToGroup
		}
	}
	if value, at, ok := c.variable(env, "FDINIT_KEEP_FDS", optKeep); ok {
		c.Keep = fds.Set{} // of a dialect that keeps everything
		if v := c.parseKeep(value, at); v.Action != Run {
			return v
		}
	}
	if value, at, ok := c.variable(env, "FDINIT_LOG", optLog); ok {
		if v := c.parseLog(value, at); v.Action != Run {
			return v
		}
	}
	return c.parseLimitVariables(env)
}

// variable finds a variable that counts: one that is set where no option is.
func (c *Config) variable(env sys.Vector, name string, option uint8) (value string, at place, ok bool) {
	if c.given.has(option) {
		return "", place{}, false
	}
	value, i := env.Lookup(name)
	return value, place{arg: -1, env: i, off: len(name) + 1}, i >= 0
}

// parseLimitVariables reads FDINIT_NOFILE and FDINIT_RLIMIT. They may not contradict
// each other, and both lose to an option for the same resource.
func (c *Config) parseLimitVariables(env sys.Vector) Verdict {
	var asked level
	nofileByOption := c.given.has(optNofile) || c.Limits.Asked(unix.RLIMIT_NOFILE)
	if value, at, ok := c.variable(env, "FDINIT_NOFILE", optNofile); ok && !nofileByOption {
		if v := c.parseNofile(value, at, &asked); v.Action != Run {
			return v
		}
	}
	if value, at, ok := c.variable(env, "FDINIT_RLIMIT", optRlimit); ok {
		empty := true
		for from := 0; from < len(value); {
			to := from
			for to < len(value) && !isSpace(value[to]) {
				to++
			}
			if to > from {
				empty = false
				word := place{arg: -1, env: at.env, off: at.off + from}
				if v := asked.parseRlimit(value[from:to], word); v.Action != Run {
					return v
				}
			}
			from = to + 1
		}
		if empty {
			return at.refuse(BadLimit, uint8(rlimit.ValueEmpty), 0, len(value))
		}
	}
	for resource := range rlimit.Count {
		overruled := c.Limits.Asked(resource) || resource == unix.RLIMIT_NOFILE && nofileByOption
		if q := asked.limits.Of(resource); q != nil && !overruled {
			c.Limits.Ask(resource, *q)
		}
	}
	return Verdict{}
}

// level is what is asked about limits in one place: on the command line, or in the
// environment. At one level a resource may be named once only.
type level struct {
	limits rlimit.Requests
	nofile bool // auto, keep or a limit was asked for with the setting made for it
}

// parseNofile reads auto, keep or SOFT[:HARD].
func (c *Config) parseNofile(value string, at place, l *level) Verdict {
	if value != "auto" && value != "keep" {
		q, problem, from, to := rlimit.ParseLimit(value)
		if problem != 0 {
			return at.refuse(BadLimit, uint8(problem), from, to)
		}
		if v := l.ask(unix.RLIMIT_NOFILE, q, at, len(value)); v.Action != Run {
			return v
		}
	} else if l.limits.Asked(unix.RLIMIT_NOFILE) {
		return at.refuse(LimitTwice, 0, 0, len(value))
	}
	l.nofile = true
	c.NofileKeep = value == "keep"
	return Verdict{}
}

// parseRlimit reads NAME=SOFT[:HARD].
func (l *level) parseRlimit(value string, at place) Verdict {
	resource, q, problem, from, to := rlimit.ParseNamed(value)
	if problem != 0 {
		return at.refuse(BadLimit, uint8(problem), from, to)
	}
	if resource == unix.RLIMIT_NOFILE && l.nofile {
		return at.refuse(LimitTwice, 0, 0, len(value))
	}
	return l.ask(resource, q, at, len(value))
}

func (l *level) ask(resource int, q rlimit.Request, at place, length int) Verdict {
	if l.limits.Asked(resource) {
		return at.refuse(LimitTwice, 0, 0, length)
	}
	l.limits.Ask(resource, q)
	return Verdict{}
}

func (c *Config) parseKeep(value string, at place) Verdict {
	if problem, from, to := fds.ParseKeep(value, &c.Keep); problem != 0 {
		return at.refuse(BadKeep, uint8(problem), from, to)
	}
	return Verdict{}
}

// parseLog reads a log level. At the default one nothing is written while supervising
// unless something is wrong, so there is no process to write it.
func (c *Config) parseLog(value string, at place) Verdict {
	switch value {
	case "warn":
		c.Log.Level = events.Warn
	case "info":
		c.Log.Level = events.Info
	case "debug":
		c.Log.Level = events.Debug
	default:
		return at.refuse(BadLevel, 0, 0, len(value))
	}
	c.Log.Wanted = c.Log.Level > events.Warn
	c.Log.Style = Native
	return Verdict{}
}

func (c *Config) parseLogFormat(value string, at place) Verdict {
	if value != "text" && value != "json" {
		return at.refuse(BadFormat, 0, 0, len(value))
	}
	c.Log.JSON = value == "json"
	return Verdict{}
}

// isSpace tells whether c separates words: a variable from a YAML block may end with a
// newline.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }
