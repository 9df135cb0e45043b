package persona

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// tiniOptions are those of tini 0.19.0.
var tiniOptions = [...]config.Option{
	{ID: 'h', Short: 'h'},
	{ID: 'v', Short: 'v'},
	{ID: 'w', Short: 'w'},
	{ID: 'g', Short: 'g'},
	{ID: 'l', Short: 'l'},
	{ID: 's', Short: 's'},
	{ID: 'e', Short: 'e', Value: true},
	{ID: 'p', Short: 'p', Value: true},
}

// tini reads tini's dialect. Its only long option is --version, and that only when it
// stands alone: "tini -- --version" runs a command.
func tini(args, env sys.Vector, c *config.Config) config.Verdict {
	if args.Len() == 2 && args.String(1) == "--version" {
		return config.Verdict{Action: config.Version}
	}
	verbosity := 1
	s := config.Scanner{Args: args, Table: tiniOptions[:], ShortOnly: true, Next: 1}
	for f := s.Scan(); f.ID != config.EndOfOptions; f = s.Scan() {
		switch f.ID {
		case 'h':
			return config.Verdict{Action: config.Help}
		case 'l':
			return config.Verdict{Action: config.License}
		case 'v':
			verbosity++
		case 'w':
			c.Log.Notes |= config.NoteReaped
		case 'g':
			c.Scope = config.ToGroup
		case 's': // automatic
			c.Log.Notes |= config.NoteSubreaper
		case 'e':
			status, length := scanNumber(f.Value)
			if length != len(f.Value) || status < 0 || status > 255 {
				return config.RefuseValue(f, config.BadStatus)
			}
			c.Zero.Add(int(status))
		case 'p':
			if c.ParentDeathSignal = tiniSignal(f.Value); c.ParentDeathSignal == 0 {
				return config.RefuseValue(f, config.BadSignal)
			}
		default:
			return config.RefuseOption(f)
		}
	}
	if v := command(&s, c); v.Action != config.Run {
		return v
	}
	if _, i := env.Lookup("TINI_SUBREAPER"); i >= 0 {
		c.Log.Notes |= config.NoteSubreaper
	}
	if _, i := env.Lookup("TINI_KILL_PROCESS_GROUP"); i >= 0 {
		c.Scope = config.ToGroup
	}
	if value, i := env.Lookup("TINI_VERBOSITY"); i >= 0 {
		n, _ := scanNumber(value)
		verbosity = int(int32(n))
		if verbosity < 0 {
			verbosity = maxTiniVerbosity // tini compares without a sign
		}
	}
	tiniLog(verbosity, &c.Log)
	return config.Verdict{}
}

// tiniSignal reads a signal as tini does: the name in capitals with SIG, of those that
// POSIX has. It is 0 for anything else.
func tiniSignal(s string) sys.Signal {
	sig, ok := signals.Parse(s)
	if !ok || len(s) < 3 || s[:3] != "SIG" || s[3:] != signals.Standard(sig) {
		return 0
	}
	switch unix.Signal(sig) {
	case unix.SIGSTKFLT, unix.SIGIO, unix.SIGPWR:
		return 0
	}
	return sig
}

const maxTiniVerbosity = 4

// tiniLog turns tini's verbosity into what is logged: 1 are warnings, 2 information, 3
// debugging, 4 tracing.
func tiniLog(verbosity int, log *config.Log) {
	log.Style = config.Tini
	switch {
	case verbosity >= maxTiniVerbosity:
		log.Notes |= config.NoteTrace
		log.Level = events.Debug
	case verbosity == 3:
		log.Level = events.Debug
	case verbosity == 2:
		log.Level = events.Info
	case verbosity < 1:
		log.Notes &^= config.NoteReaped
		log.Notes |= config.NoteQuiet
	}
	log.Wanted = log.Level > events.Warn || log.Notes&config.NoteReaped != 0
}
