package main

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallInfo is the head of the kernel's struct ptrace_syscall_info.
type syscallInfo struct {
	op uint8
	_  [87]byte
}

const syscallInfoEntry = 1 // PTRACE_SYSCALL_INFO_ENTRY

// countSyscalls runs argv to its end and counts the system calls of it and of
// all its descendants, from the first instruction after the first execve.
// It needs PTRACE_GET_SYSCALL_INFO, Linux 5.3.
func countSyscalls(argv []string, pid1 bool) (int, error) {
	// All ptrace requests must come from the thread that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	root, err := syscall.ForkExec(argv[0], argv, prepareSpawn(spawnOptions{pid1: pid1, traced: true}))
	if err != nil {
		return 0, fmt.Errorf("starting %q: %w", argv, err)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEEXEC |
		unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE
	count, configured := 0, false
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("waiting for the traced processes: %w", err)
		}
		if !status.Stopped() {
			if pid == root {
				if !status.Exited() || status.ExitStatus() != 0 {
					return 0, fmt.Errorf("%q ended with status %#x", argv, uint32(status))
				}
				return count, nil
			}
			continue
		}
		if !configured {
			if err := unix.PtraceSetOptions(pid, options); err != nil {
				return 0, fmt.Errorf("PTRACE_SETOPTIONS: %w", err)
			}
			configured = true
		}
		deliver := 0
		switch sig := status.StopSignal(); sig {
		case unix.SIGTRAP | 0x80:
			var info syscallInfo
			_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid),
				unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
			if e != 0 && e != unix.ESRCH {
				return 0, fmt.Errorf("PTRACE_GET_SYSCALL_INFO: %w", e)
			}
			if info.op == syscallInfoEntry {
				count++
			}
		case unix.SIGTRAP, unix.SIGSTOP: // an event, or the start of a new child
		default:
			deliver = int(sig)
		}
		if err := unix.PtraceSyscall(pid, deliver); err != nil && err != unix.ESRCH {
			return 0, fmt.Errorf("PTRACE_SYSCALL: %w", err)
		}
	}
}
