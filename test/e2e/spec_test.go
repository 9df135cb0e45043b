package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A spec is the exact state in which a command is to be executed. It travels from
// the test to the stage, the process that becomes the command, as JSON.
type spec struct {
	Path string
	Argv []string
	Env  []string
	Dir  string

	NotPID1       bool
	UserNamespace bool

	Block, Ignore, Pending []int
	BeforeWorkload         []int `json:"-"`
	Hold                   bool

	Leaks   []leak
	Closed  []int
	Limits  []limit
	Seccomp []refusal

	NoProc, NoDev, ReadOnlyRoot bool
	Noexec, OutsideRoot         string
	DeletedCwd, DeepCwd         bool

	UID                int
	NoCaps, NoNewPrivs bool
	NoCap              []int
	Umask              int

	Argc0   bool
	BigArgs int

	Stdin string `json:"-"`
	TTY   bool   `json:"-"`
	Exits string `json:"-"`
}

type leak struct {
	Kind string
	FDs  []int
}

type limit struct {
	Resource   int
	Soft, Hard uint64
	HasHard    bool
}

type refusal struct{ Call, Errno int }

// resources are spelt as in docker's --ulimit and in /proc/PID/limits.
var resources = map[string]struct {
	number int
	title  string
}{
	"cpu":        {unix.RLIMIT_CPU, "Max cpu time"},
	"fsize":      {unix.RLIMIT_FSIZE, "Max file size"},
	"data":       {unix.RLIMIT_DATA, "Max data size"},
	"stack":      {unix.RLIMIT_STACK, "Max stack size"},
	"core":       {unix.RLIMIT_CORE, "Max core file size"},
	"rss":        {unix.RLIMIT_RSS, "Max resident set"},
	"nproc":      {unix.RLIMIT_NPROC, "Max processes"},
	"nofile":     {unix.RLIMIT_NOFILE, "Max open files"},
	"memlock":    {unix.RLIMIT_MEMLOCK, "Max locked memory"},
	"as":         {unix.RLIMIT_AS, "Max address space"},
	"locks":      {unix.RLIMIT_LOCKS, "Max file locks"},
	"sigpending": {unix.RLIMIT_SIGPENDING, "Max pending signals"},
	"msgqueue":   {unix.RLIMIT_MSGQUEUE, "Max msgqueue size"},
	"nice":       {unix.RLIMIT_NICE, "Max nice priority"},
	"rtprio":     {unix.RLIMIT_RTPRIO, "Max realtime priority"},
	"rttime":     {unix.RLIMIT_RTTIME, "Max realtime timeout"},
}

var calls = map[string]int{
	"close_range": unix.SYS_CLOSE_RANGE,
	"setpgid":     unix.SYS_SETPGID,
	"prctl":       unix.SYS_PRCTL,
	"prlimit64":   unix.SYS_PRLIMIT64,
	"getdents64":  unix.SYS_GETDENTS64,
	"ppoll":       unix.SYS_PPOLL,
	"ioctl":       unix.SYS_IOCTL,
	"chdir":       unix.SYS_CHDIR,
}

var capabilities = map[string]int{
	"kill": unix.CAP_KILL,
}

func parseAmount(s string) (uint64, error) {
	if s == "unlimited" {
		return unix.RLIM_INFINITY, nil
	}
	return strconv.ParseUint(s, 10, 64)
}

func parseLimit(s string) (limit, error) {
	name, value, ok := strings.Cut(s, "=")
	resource, known := resources[name]
	if !ok || !known {
		return limit{}, fmt.Errorf("no limit %q", s)
	}
	soft, hard, hasHard := strings.Cut(value, ":")
	l := limit{Resource: resource.number, HasHard: hasHard}
	var err error
	if l.Soft, err = parseAmount(soft); err != nil {
		return limit{}, err
	}
	if hasHard {
		l.Hard, err = parseAmount(hard)
	}
	return l, err
}

func parseRefusal(s string) (refusal, error) {
	name, errno, _ := strings.Cut(s, "=")
	call, known := calls[name]
	if !known {
		return refusal{}, fmt.Errorf("no system call %q", name)
	}
	for n := 1; n < 134; n++ {
		if unix.ErrnoName(unix.Errno(n)) == errno {
			return refusal{call, n}, nil
		}
	}
	return refusal{}, fmt.Errorf("no errno %q", errno)
}

// setEnv sets NAME=VALUE in env, or takes NAME out if there is no value.
func setEnv(env []string, entry string) []string {
	name, _, has := strings.Cut(entry, "=")
	env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	if has {
		env = append(env, entry)
	}
	return env
}

// parseSpec reads flags up to the first word that is none; the rest is the command.
func parseSpec(args []string) (s *spec, err error) {
	s = &spec{UID: -1, Umask: 0o022, Env: []string{"PATH=" + scriptPath, "HOME=/", "LC_ALL=C"}}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		args = args[1:]
		value := func() string {
			if len(args) == 0 {
				err = fmt.Errorf("%s needs a value", flag)
				return ""
			}
			v := args[0]
			args = args[1:]
			return v
		}
		switch flag {
		case "-not-pid1":
			s.NotPID1 = true
		case "-user-namespace":
			s.UserNamespace = true
		case "-block":
			s.Block, err = parseSignals(value())
		case "-ignore":
			s.Ignore, err = parseSignals(value())
		case "-pending":
			s.Pending, err = parseSignals(value())
		case "-before-workload":
			s.BeforeWorkload, err = parseSignals(value())
			s.Hold = true
		case "-leak":
			kind, list, has := strings.Cut(value(), "=")
			if !has {
				kind, list = "file", kind
			}
			l := leak{Kind: kind}
			l.FDs, err = parseNumbers(list)
			s.Leaks = append(s.Leaks, l)
		case "-closed":
			s.Closed, err = parseNumbers(value())
		case "-rlimit", "-soft":
			v := value()
			if flag == "-soft" {
				v = "nofile=" + v
			}
			var l limit
			l, err = parseLimit(v)
			s.Limits = append(s.Limits, l)
		case "-seccomp":
			var r refusal
			r, err = parseRefusal(value())
			s.Seccomp = append(s.Seccomp, r)
		case "-no-proc":
			s.NoProc = true
		case "-no-dev":
			s.NoDev = true
		case "-read-only-root":
			s.ReadOnlyRoot = true
		case "-noexec":
			s.Noexec = value()
		case "-in":
			s.Dir = value()
		case "-deleted-cwd":
			s.DeletedCwd = true
		case "-outside-root":
			s.OutsideRoot = value()
		case "-deep-cwd":
			s.DeepCwd = true
		case "-uid":
			s.UID, err = strconv.Atoi(value())
		case "-no-caps":
			s.NoCaps = true
		case "-no-cap":
			number, known := capabilities[value()]
			if !known {
				err = fmt.Errorf("no such capability")
			}
			s.NoCap = append(s.NoCap, number)
		case "-no-new-privs":
			s.NoNewPrivs = true
		case "-umask":
			var n uint64
			n, err = strconv.ParseUint(value(), 8, 9)
			s.Umask = int(n)
		case "-env":
			s.Env = setEnv(s.Env, value())
		case "-no-env":
			s.Env = setEnv(s.Env, value())
		case "-empty-env":
			s.Env = []string{}
		case "-argv0":
			s.Argv = []string{value()}
		case "-argc0":
			s.Argc0 = true
		case "-big-args":
			s.BigArgs, err = strconv.Atoi(value())
		case "-stdin":
			s.Stdin = value()
		case "-tty":
			s.TTY = true
		case "-exits":
			s.Exits = value()
		default:
			return nil, fmt.Errorf("no flag %s", flag)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if len(args) == 0 && !s.Argc0 {
		return nil, fmt.Errorf("no command")
	}
	if len(s.Argv) == 0 {
		s.Argv = args
	} else {
		s.Argv = append(s.Argv, args[1:]...)
	}
	s.Path = args[0]
	return s, nil
}

// leaked are all descriptors that the spec leaks, sorted.
func (s *spec) leaked() []int {
	var all []int
	for _, l := range s.Leaks {
		all = append(all, l.FDs...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
