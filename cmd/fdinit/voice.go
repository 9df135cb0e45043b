package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/execfail"
	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/fdinit/fdinit/internal/reaper"
)

// voice is how a dialect answers. Each method returns the exit status.
type voice interface {
	help() int
	version() int
	license() int
	refuse(p config.Problem) int
	execFailed(h reaper.Handover, command []string) int
}

func voiceOf(o freestanding.Outcome) voice {
	argv0 := "fdinit"
	if len(os.Args) > 0 {
		argv0 = os.Args[0]
	}
	switch o.Dialect {
	case config.Tini:
		return tiniVoice{argv0}
	case config.DumbInit:
		return dumbInitVoice{argv0}
	case config.Catatonit:
		return catatonitVoice{argv0}
	}
	return nativeVoice{}
}

type nativeVoice struct{}

func (nativeVoice) help() int {
	fmt.Print(usage)
	return 0
}

func (nativeVoice) version() int {
	fmt.Println("fdinit version " + version + commitSuffix())
	return 0
}

func (nativeVoice) license() int { return printLicense() }

func (nativeVoice) refuse(p config.Problem) int {
	complain(describeProblem(p, os.Args, environment()))
	return config.StatusFailed
}

func (nativeVoice) execFailed(h reaper.Handover, command []string) int {
	complain(execfail.Explain(attempt(h, command)).String())
	return h.Status
}

// printLicense says under what terms fdinit may be used, for the dialects that have an
// option for it.
func printLicense() int {
	fmt.Println("fdinit is licensed under the Apache License, Version 2.0:")
	fmt.Println("you may use, change and pass it on under the terms of the file LICENSE that comes with its source.")
	return 0
}

// explainMore says in fdinit's own words why a file that is there could not be executed,
// after the message that a dialect prescribes. That a file is not there needs no more
// words.
func explainMore(h reaper.Handover, command []string) {
	e := execfail.Explain(attempt(h, command))
	if _, err := os.Stat(e.File); err == nil && e.Cause != "" {
		complain(e.String())
	}
}

// getoptComplaint is what getopt_long(3) says about an option, on stderr.
func getoptComplaint(argv0 string, p config.Problem, table []string) string {
	word := os.Args[p.Arg]
	name := word[p.From:p.To]
	long := strings.HasPrefix(name, "--")
	switch p.Code {
	case config.MissingValue:
		if long {
			return fmt.Sprintf("%s: option '%s' requires an argument", argv0, fullName(name, table))
		}
		return fmt.Sprintf("%s: option requires an argument -- '%s'", argv0, name)
	case config.UnwantedValue:
		return fmt.Sprintf("%s: option '%s' doesn't allow an argument", argv0, fullName(name, table))
	case config.AmbiguousOption:
		return fmt.Sprintf("%s: option '%s' is ambiguous; possibilities:%s", argv0, word, possibilities(name, table))
	}
	if long {
		return fmt.Sprintf("%s: unrecognized option '%s'", argv0, word)
	}
	return fmt.Sprintf("%s: invalid option -- '%s'", argv0, name)
}

// fullName is the option that an abbreviation stands for.
func fullName(abbreviation string, table []string) string {
	for _, name := range table {
		if strings.HasPrefix(name, abbreviation) {
			return name
		}
	}
	return abbreviation
}

func possibilities(abbreviation string, table []string) string {
	var list strings.Builder
	for _, name := range table {
		if strings.HasPrefix(name, abbreviation) {
			fmt.Fprintf(&list, " '%s'", name)
		}
	}
	return list.String()
}

// isOptionProblem tells whether getopt_long(3) itself would have complained.
func isOptionProblem(p config.Problem) bool {
	switch p.Code {
	case config.UnknownOption, config.AmbiguousOption, config.MissingValue, config.UnwantedValue:
		return p.Arg > 0
	}
	return false
}

// problemValue is the text that a problem is about.
func problemValue(p config.Problem) string { return os.Args[p.Arg][p.Value:] }

// isVariableProblem tells whether a FDINIT_* variable is wrong, about which fdinit
// speaks with its own voice under every name.
func isVariableProblem(p config.Problem) bool {
	return p.Arg < 0 && p.Code != config.ReservedVariable
}

// sentence is an errno's message with a capital letter, as strerror(3) has it.
func sentence(message string) string {
	if message == "" {
		return message
	}
	return strings.ToUpper(message[:1]) + message[1:]
}
