// Command goinit is the container init that a Go programmer would write in an
// afternoon: correct enough, and on top of the ordinary Go runtime. It exists
// only so that the benchmark can show what that runtime costs in PID 1. Do not
// use it in a container.
package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	// A channel of their own, because ends of children come in any number, and what
	// does not fit into a channel is lost.
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	signals := make(chan os.Signal, 128)
	signal.Notify(signals)

	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		if errors.Is(err, os.ErrPermission) {
			os.Exit(126)
		}
		os.Exit(127)
	}

	go func() {
		for range children {
			reap(cmd.Process.Pid)
		}
	}()
	for sig := range signals {
		switch sig {
		case syscall.SIGCHLD, syscall.SIGURG: // the runtime sends the latter to itself
		default:
			_ = syscall.Kill(cmd.Process.Pid, sig.(syscall.Signal))
		}
	}
}

func reap(workload int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
		if pid == workload && status.Signaled() {
			os.Exit(128 + int(status.Signal()))
		}
		if pid == workload {
			os.Exit(status.ExitStatus())
		}
	}
}
