package persona

import (
	"math"

	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/sys"
)

// Of is the dialect that belongs to the name that fdinit was called by. Of a path only
// the last element counts, except for the /dev/init of old Docker and Podman.
func Of(argv0 string) config.Dialect {
	switch ascii.Base(argv0) {
	case "docker-init", "tini", "tini-static":
		return config.Tini
	case "podman-init", "catatonit":
		return config.Catatonit
	case "dumb-init":
		return config.DumbInit
	}
	if argv0 == "/dev/init" {
		return config.Tini
	}
	return config.Native
}

// Parse reads the command line in the dialect that its first word says, then the
// FDINIT_* variables, which count in every dialect: docker run --init leaves no other
// way in.
func Parse(args, env sys.Vector, c *config.Config) config.Verdict {
	if args.Len() > 0 {
		c.Dialect = Of(args.String(0))
	}
	var v config.Verdict
	switch c.Dialect {
	case config.Tini:
		v = tini(args, env, c)
	case config.DumbInit:
		v = dumbInit(args, env, c)
	case config.Catatonit:
		v = catatonit(args, env, c)
	default:
		return config.Parse(args, env, c)
	}
	if v.Action != config.Run {
		return v
	}
	return config.ParseVariables(env, c)
}

// command takes the workload from what is left on the command line.
func command(s *config.Scanner, c *config.Config) config.Verdict {
	if s.Next >= s.Args.Len() {
		return config.RefuseEmpty()
	}
	c.Command = s.Next
	return config.Verdict{}
}

// scanNumber reads an optional sign and digits after optional white space, as
// strtol(3) does, and returns how many bytes that were: 0 if there is no number. One
// beyond 64 bits becomes the nearest that fits. atoi(3) and scanf's %d cut the outcome
// down to 32 bits.
func scanNumber(s string) (n int64, length int) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
		i++
	}
	most := uint64(math.MaxInt64)
	negative := i < len(s) && s[i] == '-'
	if negative {
		most++
	}
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	end := i
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if end == i {
		return 0, 0
	}
	value, _, fits := ascii.Decimal(s[i:end], most)
	if !fits {
		value = most
	}
	if negative {
		value = -value
	}
	return int64(value), end
}
