package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/fdinit/fdinit/internal/rlimit"
)

// environment is what a Problem's Env counts in.
func environment() []string {
	if environ := freestanding.Environ(); environ != nil {
		return environ
	}
	return os.Environ()
}

// describeProblem finds words for a problem with the command line or the environment.
func describeProblem(p config.Problem, args, environ []string) string {
	switch p.Code {
	case config.NoCommand:
		return "no command to run: see fdinit --help"
	case config.LoneInstallAs:
		return "option --install-as needs --install, which says where"
	}
	word := ""
	if p.Arg >= 0 {
		word = args[p.Arg]
	} else {
		word = environ[p.Env]
	}
	part := word[p.From:p.To]
	switch p.Code {
	case config.UnknownOption:
		return fmt.Sprintf("unknown option %q: see fdinit --help, and put -- before a command that begins with a dash", dashed(part))
	case config.MissingValue:
		return fmt.Sprintf("option %s needs a value: %s", dashed(part), expected(dashed(part)))
	case config.UnwantedValue:
		return fmt.Sprintf("option %s takes no value: %q", dashed(part), word)
	case config.UnwantedCommand:
		return fmt.Sprintf("--install takes no command, but there is %q", word)
	case config.UselessOption:
		return fmt.Sprintf("--install runs no command, so option %s has no effect: remove it", dashed(part))
	case config.Repeated:
		return fmt.Sprintf("option %s is given more than once", dashed(part))
	}
	name := settingName(p, word, args)
	value := word[p.Value:]
	if p.Arg < 0 {
		value = word[len(name)+len("="):] // the problem may begin at a later one of several limits
	}
	subject := fmt.Sprintf("%s %q", name, value)
	if part != value {
		subject += fmt.Sprintf(": %q", part)
	}
	switch p.Code {
	case config.BadKeep:
		return fmt.Sprintf("%s %v: %s", subject, fds.Problem(p.Reason), expected(name))
	case config.BadLimit:
		return fmt.Sprintf("%s %v: %s", subject, rlimit.Problem(p.Reason), expected(name))
	case config.LimitTwice:
		return fmt.Sprintf("%s sets a limit that is already set: give each resource once", subject)
	case config.BadSignal:
		return fmt.Sprintf("%s is not a signal: %s", subject, expected(name))
	case config.BadSwitch:
		return fmt.Sprintf("%s must be 0 or 1", subject)
	case config.BadLevel:
		return fmt.Sprintf("%s is not a log level: %s", subject, expected(name))
	case config.BadFormat:
		return fmt.Sprintf("%s is not a log format: %s", subject, expected(name))
	case config.EmptyValue:
		return fmt.Sprintf("%s is empty, but needs a value: %s", subject, expected(name))
	}
	return fmt.Sprintf("%s is not understood", subject)
}

// dashed is an option's name as it is written: a clustered short option is given by
// its letter alone.
func dashed(name string) string {
	if strings.HasPrefix(name, "-") {
		return name
	}
	return "-" + name
}

// settingName is the option or variable that a value belongs to. It stands before the
// value in the same word, or in the word before.
func settingName(p config.Problem, word string, args []string) string {
	if p.Arg < 0 {
		name, _, _ := strings.Cut(word, "=")
		return name
	}
	if p.Value == 0 {
		word = args[p.Arg-1]
	} else {
		word = word[:p.Value]
	}
	if strings.HasPrefix(word, "--") {
		return strings.TrimSuffix(word, "=")
	}
	return "-" + word[len(word)-1:]
}

// expected says what values a setting takes, to follow a colon.
func expected(name string) string {
	const limit = `each is a number or "unlimited", SOFT may also be "hard"`
	switch name {
	case "--nofile", "FDINIT_NOFILE":
		return "use auto, keep or SOFT[:HARD]; " + limit
	case "--rlimit", "FDINIT_RLIMIT":
		return "use NAME=SOFT[:HARD]; " + limit + "; NAME is one of " + strings.Join(resourceNames(), ", ")
	case "--keep-fds", "FDINIT_KEEP_FDS":
		return "use descriptors and ranges such as 3,5-7, or all"
	case "--log", "FDINIT_LOG":
		return "use warn, info or debug"
	case "--log-format", "FDINIT_LOG_FORMAT":
		return "use text or json"
	case "--install":
		return "the path to copy fdinit to, such as /mnt/fdinit"
	case "--install-as":
		return "names to link to fdinit, such as tini,dumb-init"
	case "-p", "--parent-death-signal":
		return "use a name such as TERM or SIGRTMIN+3, or a number from 1 to 64"
	}
	return "see fdinit --help"
}

func resourceNames() []string {
	names := make([]string, rlimit.Count)
	for i := range names {
		names[i] = strings.ToLower(strings.TrimPrefix(rlimit.Type(i), "RLIMIT_"))
	}
	return names
}
