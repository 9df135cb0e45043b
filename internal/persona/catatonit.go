package persona

import (
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/sys"
)

// catatonitOptions are those of catatonit 0.2.1.
var catatonitOptions = [...]config.Option{
	{ID: 'h', Short: 'h'},
	{ID: 'g', Short: 'g'},
	{ID: 'L', Short: 'L'},
	{ID: 'P', Short: 'P'},
	{ID: 'V', Short: 'V', Long: "version"},
}

// catatonit reads catatonit's dialect. podman run --preserve-fds passes descriptors
// without a variable that says so, so everything is kept for the workload.
func catatonit(args, env sys.Vector, c *config.Config) config.Verdict {
	if _, i := env.Lookup("CATATONIT_LOG"); i >= 0 {
		return config.RefuseVariable(i, config.ReservedVariable)
	}
	c.Keep.Add(fds.Range{First: fds.First, Last: fds.Max})
	c.TerminalDevice = true
	c.Log.Style = config.Catatonit
	s := config.Scanner{Args: args, Table: catatonitOptions[:], Abbreviating: true, Next: 1}
	for f := s.Scan(); f.ID != config.EndOfOptions; f = s.Scan() {
		switch f.ID {
		case 'h':
			return config.Verdict{Action: config.Help}
		case 'L':
			return config.Verdict{Action: config.License}
		case 'V':
			return config.Verdict{Action: config.Version}
		case 'g':
			c.Scope = config.ToGroup
		case 'P':
			c.Pause = true
		default:
			return config.RefuseOption(f)
		}
	}
	if _, i := env.Lookup("CATATONIT_DEBUG"); i >= 0 {
		c.Log.Wanted = true
		c.Log.Level = events.Debug
	}
	if c.Pause {
		return config.Verdict{}
	}
	return command(&s, c)
}
