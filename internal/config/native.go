package config

import (
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// setting is a set of the settings that an option and a variable can make.
type setting uint8

const (
	setNofile setting = 1 << iota
	setKeep
	setGroup
	setDeathSignal
)

const (
	optHelp = iota + 1
	optVersion
	optGroup
	optDeathSignal
	optNofile
	optRlimit
	optKeep
)

// options is fdinit's own dialect. The usage text in cmd/fdinit describes it.
var options = [...]Option{
	{ID: optHelp, Short: 'h', Long: "help"},
	{ID: optVersion, Short: 'V', Long: "version"},
	{ID: optGroup, Short: 'g', Long: "group"},
	{ID: optDeathSignal, Short: 'p', Long: "parent-death-signal", Value: true},
	{ID: optNofile, Long: "nofile", Value: true},
	{ID: optRlimit, Long: "rlimit", Value: true},
	{ID: optKeep, Long: "keep-fds", Value: true},
}

// Parse reads fdinit's own dialect: options from argv, then the FDINIT_* variables.
func Parse(args, env sys.Vector, c *Config) Verdict {
	s := Scanner{Args: args, Table: options[:], Next: 1}
	var asked level
	for {
		f := s.Scan()
		at := place{arg: f.At, off: f.Off}
		var v Verdict
		switch f.ID {
		case EndOfOptions:
			if s.Next >= args.Len() {
				return place{}.refuse(NoCommand, 0, 0, 0)
			}
			c.Command = s.Next
			c.Limits = asked.limits
			return ParseVariables(env, c)
		case optHelp:
			return Verdict{Action: Help}
		case optVersion:
			return Verdict{Action: Version}
		case optGroup:
			v = c.once(setGroup, f)
			c.Group = true
		case optDeathSignal:
			if v = c.once(setDeathSignal, f); v.Action == Run {
				v = c.parseDeathSignal(f.Value, at)
			}
		case optNofile:
			if v = c.once(setNofile, f); v.Action == Run {
				v = c.parseNofile(f.Value, at, &asked)
			}
		case optRlimit:
			v = asked.parseRlimit(f.Value, at)
		case optKeep:
			if v = c.once(setKeep, f); v.Action == Run {
				v = c.parseKeep(f.Value, at)
			}
		default:
			v = place{arg: f.Arg}.refuse(refusal(f.ID), 0, f.From, f.To)
		}
		if v.Action != Run {
			return v
		}
	}
}

// refusal is the code for what a Scanner could not read.
func refusal(id uint8) Code {
	switch id {
	case NoValue:
		return MissingValue
	case HasValue:
		return UnwantedValue
	}
	return UnknownOption
}

// once marks a setting as made by an option and refuses it the second time.
func (c *Config) once(s setting, f Found) Verdict {
	if c.given&s != 0 {
		return place{arg: f.Arg}.refuse(Repeated, 0, f.From, f.To)
	}
	c.given |= s
	return Verdict{}
}

// ParseVariables reads the FDINIT_* variables into what no option has set.
func ParseVariables(env sys.Vector, c *Config) Verdict {
	if value, at, ok := c.variable(env, "FDINIT_GROUP", setGroup); ok {
		if value != "0" && value != "1" {
			return at.refuse(BadSwitch, 0, 0, len(value))
		}
		c.Group = value == "1"
	}
	if value, at, ok := c.variable(env, "FDINIT_KEEP_FDS", setKeep); ok {
		if v := c.parseKeep(value, at); v.Action != Run {
			return v
		}
	}
	return c.parseLimitVariables(env)
}

// variable finds a variable that counts: one that is set where no option is.
func (c *Config) variable(env sys.Vector, name string, s setting) (value string, at place, ok bool) {
	if c.given&s != 0 {
		return "", place{}, false
	}
	value, i := env.Lookup(name)
	return value, place{arg: -1, env: i, off: len(name) + 1}, i >= 0
}

// parseLimitVariables reads FDINIT_NOFILE and FDINIT_RLIMIT. They may not contradict
// each other, and both lose to an option for the same resource.
func (c *Config) parseLimitVariables(env sys.Vector) Verdict {
	var asked level
	nofileByOption := c.given&setNofile != 0 || c.Limits.Asked(unix.RLIMIT_NOFILE)
	if value, at, ok := c.variable(env, "FDINIT_NOFILE", setNofile); ok && !nofileByOption {
		if v := c.parseNofile(value, at, &asked); v.Action != Run {
			return v
		}
	}
	if value, at, ok := c.variable(env, "FDINIT_RLIMIT", 0); ok {
		empty := true
		for from := 0; from < len(value); {
			to := from
			for to < len(value) && value[to] != ' ' {
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

func (c *Config) parseDeathSignal(value string, at place) Verdict {
	sig, ok := signals.Parse(value)
	if !ok {
		return at.refuse(BadSignal, 0, 0, len(value))
	}
	c.ParentDeathSignal = sig
	return Verdict{}
}
