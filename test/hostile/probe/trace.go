package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// trace is a debugger's life. It holds a process until its standard input is closed, and
// with "hammer" sends it HUP before each of its system calls.
func trace(how string, pid int) {
	runtime.LockOSThread() // ptrace is a relation between threads
	ask := func(request int, data uintptr) error {
		if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0); errno != 0 {
			return errno
		}
		return nil
	}
	if how == "attach" {
		fail("PTRACE_ATTACH", ask(unix.PTRACE_ATTACH, 0))
	} else {
		fail("PTRACE_SEIZE", ask(unix.PTRACE_SEIZE, unix.PTRACE_O_TRACESYSGOOD))
		fail("PTRACE_INTERRUPT", ask(unix.PTRACE_INTERRUPT, 0))
	}
	stopped(pid)
	if how != "hammer" {
		io.Copy(io.Discard, os.Stdin)
		fail("PTRACE_DETACH", ask(unix.PTRACE_DETACH, 0))
		return
	}
	released := make(chan bool, 1)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		released <- true
	}()
	const most = 2000
	for after := -1; after < most; {
		select {
		case <-released:
			after = 0
		default:
		}
		if after >= 0 {
			after++
		}
		unix.Kill(pid, unix.SIGHUP)
		fail("PTRACE_SYSCALL", ask(unix.PTRACE_SYSCALL, 0))
		if !stopped(pid) {
			fmt.Println("ended after", after)
			return
		}
		if after < 0 {
			fmt.Println("begun")
		}
	}
	fmt.Println("gave up")
	fail("PTRACE_DETACH", ask(unix.PTRACE_DETACH, 0))
}

// stopped waits for a stop; false if the process has ended.
func stopped(pid int) bool {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		fail("wait4", err)
		return status.Stopped()
	}
}
