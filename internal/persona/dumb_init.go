package persona

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// dumbInitOptions are those of dumb-init 1.2.5.
var dumbInitOptions = [...]config.Option{
	{ID: 'h', Short: 'h', Long: "help"},
	{ID: 'V', Short: 'V', Long: "version"},
	{ID: 'c', Short: 'c', Long: "single-child"},
	{ID: 'v', Short: 'v', Long: "verbose"},
	{ID: 'r', Short: 'r', Long: "rewrite", Value: true},
}

// dumbInit reads dumb-init's dialect.
func dumbInit(args, env sys.Vector, c *config.Config) config.Verdict {
	c.Place, c.Scope = config.InOwnSession, config.ToGroup
	c.TermAtEnd, c.SuspendSelf = true, true
	c.Log.Style = config.DumbInit
	s := config.Scanner{Args: args, Table: dumbInitOptions[:], Abbreviating: true, Next: 1}
	for f := s.Scan(); f.ID != config.EndOfOptions; f = s.Scan() {
		switch f.ID {
		case 'h':
			return config.Verdict{Action: config.Help}
		case 'V':
			return config.Verdict{Action: config.Version}
		case 'c':
			c.Place, c.Scope = config.WithInit, config.ToProcess
		case 'v':
			c.Log.Wanted = true
		case 'r':
			from, to, ok := scanRewrite(f.Value)
			if !ok {
				return config.RefuseValue(f, config.BadRewrite)
			}
			c.Rewrites.Set(from, to)
		default:
			return config.RefuseOption(f)
		}
	}
	if v := command(&s, c); v.Action != config.Run {
		return v
	}
	if value, _ := env.Lookup("DUMB_INIT_DEBUG"); value == "1" {
		c.Log.Wanted = true
		c.Log.Notes |= config.NoteDebugMode
	}
	if value, _ := env.Lookup("DUMB_INIT_SETSID"); value == "0" {
		c.Place, c.Scope = config.WithInit, config.ToProcess
		c.Log.Notes |= config.NoteNoSession
	}
	if c.Log.Wanted {
		c.Log.Level = events.Debug
	}
	if c.Place == config.InOwnSession {
		// A session of its own is an orphaned process group for the kernel, which does not
		// let the terminal's stop signals stop it. STOP always works.
		stopInstead(&c.Rewrites, unix.SIGTSTP)
		stopInstead(&c.Rewrites, unix.SIGTTIN)
		stopInstead(&c.Rewrites, unix.SIGTTOU)
	}
	return config.Verdict{}
}

func stopInstead(r *config.Rewrites, sig unix.Signal) {
	if !r.Rewritten(sys.Signal(sig)) {
		r.Set(sys.Signal(sig), sys.Signal(unix.SIGSTOP))
	}
}

// scanRewrite reads FROM:TO as scanf's "%d:%d" does, what follows being ignored.
func scanRewrite(s string) (from, to sys.Signal, ok bool) {
	const last = 31
	long, n := scanNumber(s)
	a := int32(long)
	if n == 0 || n >= len(s) || s[n] != ':' {
		return 0, 0, false
	}
	long, m := scanNumber(s[n+1:])
	b := int32(long)
	if m == 0 || a < 1 || a > last || b < 0 || b > last {
		return 0, 0, false
	}
	return sys.Signal(a), sys.Signal(b), true
}
