// Command probe is the workload of the engine tests: it tells what it sees from
// inside a container, even where there is no /proc.
//
//	probe state            who and where it is, as JSON
//	probe signals N...     print "ready", then "signal N" for each one that arrives
//	probe accept           answer one connection on a socket passed by LISTEN_FDS
//	probe loop N           ask each descriptor below N whether it is open, as
//	                       programs do which close everything; print how long it took
//	probe orphans N        leave N children behind, dying now, and tell when the init
//	                       has reaped them all
//
// It is an ordinary Go program: its runtime raises the soft limit on open files, so
// limits are asked of the shell. It would keep two files of the cgroup open, too;
// that can be turned off.
//
//go:debug containermaxprocs=0
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// State is what "probe state" prints.
type State struct {
	PID, PPID, UID, GID int
	Group, Session      int
	// Foreground is the process group that owns the terminal on stdin, 0 without one.
	Foreground int
	NoNewPrivs bool
	// Descriptors are the open ones with what they refer to, DEVICE:INODE.
	Descriptors map[int]string
	Environment []string
	Directory   string
}

func main() {
	// Before anything here opens a descriptor.
	open := descriptors()
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"state"}
	}
	var err error
	switch args[0] {
	case "state":
		err = state(open)
	case "signals":
		err = signals(args[1:])
	case "accept":
		err = accept()
	case "loop":
		err = loop(args[1])
	case "orphans":
		err = orphans(args[1])
	case "exit":
	default:
		err = fmt.Errorf("unknown request")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "probe %s: %v\n", args[0], err)
		os.Exit(99)
	}
}

func descriptors() map[int]string {
	open := map[int]string{}
	for fd := range 4096 {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) == nil {
			open[fd] = fmt.Sprintf("%d:%d", st.Dev, st.Ino)
		}
	}
	return open
}

func state(open map[int]string) error {
	s := State{
		PID: os.Getpid(), PPID: os.Getppid(), UID: os.Getuid(), GID: os.Getgid(),
		Group: syscall.Getpgrp(), Descriptors: open, Environment: os.Environ(),
	}
	s.Directory, _ = os.Getwd()
	if sid, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0); errno == 0 {
		s.Session = int(sid)
	}
	var group int32
	if _, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, 0, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group))); errno == 0 {
		s.Foreground = int(group)
	}
	const getNoNewPrivs = 39 // PR_GET_NO_NEW_PRIVS
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, getNoNewPrivs, 0, 0, 0, 0, 0)
	s.NoNewPrivs = errno == 0 && n == 1
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", text)
	return err
}

func signals(numbers []string) error {
	arrived := make(chan os.Signal, 64)
	for _, text := range numbers {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		signal.Notify(arrived, syscall.Signal(n))
	}
	fmt.Println("ready")
	for s := range arrived {
		fmt.Printf("signal %d\n", s.(syscall.Signal))
	}
	return nil
}

func accept() error {
	l, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		return err
	}
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	// The init lets go of the socket when this program has started, which may be now.
	var held []string
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		fds, err := os.ReadDir("/proc/1/fd")
		if err != nil {
			return err
		}
		held = nil
		for _, fd := range fds {
			held = append(held, fd.Name())
		}
		if len(held) <= 3 || time.Now().After(deadline) {
			break
		}
	}
	return json.NewEncoder(conn).Encode(map[string]any{
		"PID": os.Getpid(), "LISTEN_PID": os.Getenv("LISTEN_PID"), "LISTEN_FDS": os.Getenv("LISTEN_FDS"), "Init": held,
	})
}

func loop(limit string) error {
	n, err := strconv.Atoi(limit)
	if err != nil {
		return err
	}
	start := time.Now()
	for fd := 3; fd < n; fd++ {
		syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	}
	fmt.Printf("%d milliseconds\n", time.Since(start).Milliseconds())
	return nil
}

// orphans starts shells that start something and end before it.
func orphans(count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	orphans := make([]int, n)
	for i := range n {
		text, err := exec.Command("/bin/sh", "-c", "sleep 0.2 >/dev/null & echo $!").Output()
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(string(text), &orphans[i]); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left := 0
		for _, pid := range orphans {
			// A zombie still exists.
			if syscall.Kill(pid, 0) == nil {
				left++
			}
		}
		if left == 0 {
			fmt.Println("reaped", n)
			return nil
		}
	}
	return fmt.Errorf("zombies are left")
}
