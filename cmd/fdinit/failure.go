package main

import (
	"fmt"
	"os"

	"github.com/fdinit/fdinit/internal/execfail"
	"github.com/fdinit/fdinit/internal/reaper"
	"github.com/fdinit/fdinit/internal/rlimit"
	"golang.org/x/sys/unix"
)

// describeFailure finds words for why there is no workload, but for a failed exec.
func describeFailure(h reaper.Handover) string {
	switch h.Stage {
	case reaper.OutsideRoot:
		return "the working directory lies outside the root directory, as a leaked descriptor can make it (CVE-2024-21626): refusing to start"
	case reaper.SetLimit:
		return describeLimit(h.Limit)
	case reaper.Spawn:
		return fmt.Sprintf("starting a process: %v%s", h.Errno, spawnRemedy(h.Errno))
	case reaper.StartLog:
		return fmt.Sprintf("starting the log: %v%s", h.Errno, spawnRemedy(h.Errno))
	case reaper.DeathSignal:
		return fmt.Sprintf("asking for a parent death signal: %v", h.Errno)
	case reaper.BlockSignals:
		return fmt.Sprintf("blocking signals: %v: does a seccomp filter refuse rt_sigprocmask?", h.Errno)
	case reaper.WaitSignals:
		return fmt.Sprintf("waiting for signals: %v: does a seccomp filter refuse rt_sigtimedwait? the command was killed", h.Errno)
	case reaper.WaitChildren:
		return fmt.Sprintf("waiting for children: %v: does a seccomp filter refuse wait4? the command was killed", h.Errno)
	}
	return fmt.Sprintf("unknown failure %d: %v", h.Stage, h.Errno)
}

// attempt measures what execve(2) was given: each string with its NUL, and the pointer
// to it.
func attempt(h reaper.Handover, command []string) execfail.Attempt {
	a := execfail.Attempt{Command: command[0], Errno: h.Errno}
	if a.Path, a.PathSet = os.LookupEnv("PATH"); !a.PathSet {
		a.Path = reaper.DefaultPath
	}
	const pointer = 8
	for _, list := range [][]string{command, os.Environ()} {
		for _, s := range list {
			a.Args++
			a.ArgBytes += int64(len(s)) + 1 + pointer
		}
	}
	return a
}

func describeLimit(f rlimit.Failure) string {
	message := fmt.Sprintf("setting %s to %s (soft:hard) from %s: %v",
		rlimit.Type(f.Resource), limitText(f.Wanted.Soft, f.Wanted.Hard), limitText(f.Present.Soft, f.Present.Hard), f.Errno)
	most, known := rlimit.MaxOpen()
	switch {
	case f.Errno == unix.EPERM && f.Resource == unix.RLIMIT_NOFILE && known && f.Wanted.Hard > most:
		message += fmt.Sprintf(": it cannot be above fs.nr_open, %d", most)
	case f.Errno == unix.EPERM && f.Wanted.Hard > f.Present.Hard:
		message += ": raising a hard limit needs CAP_SYS_RESOURCE"
	case f.Errno == unix.EPERM || f.Errno == unix.ENOSYS:
		message += ": does a seccomp filter refuse prlimit64?"
	}
	return message
}

func limitText(soft, hard uint64) string {
	text := func(n uint64) string {
		if n == rlimit.Unlimited {
			return "unlimited"
		}
		return fmt.Sprint(n)
	}
	return text(soft) + ":" + text(hard)
}

func spawnRemedy(errno error) string {
	switch errno {
	case unix.EAGAIN:
		return ": the limit on processes is reached (RLIMIT_NPROC, pids.max or kernel.pid_max)"
	case unix.ENOMEM:
		return ": memory or the PID namespace is exhausted"
	case unix.EPERM, unix.ENOSYS:
		return ": does a seccomp filter refuse clone?"
	}
	return ""
}
