package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// work reports what fdinit made of its surroundings, line by line: leaked descriptors,
// whether an orphan is reaped, and each signal. USR2 ends it with status 7.
func work(args []string) {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTERM)
	fmt.Println("args", len(args), "env", len(os.Environ()))
	leaked := []string{}
	for fd := 3; fd < 64; fd++ {
		if name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); name == "/etc/passwd" {
			leaked = append(leaked, fmt.Sprint(fd))
		}
	}
	fmt.Println("leaked", strings.Join(leaked, ","))
	fmt.Println("activation", os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID") == fmt.Sprint(os.Getpid()))
	pid := orphan(0, 0)
	fmt.Println("orphan", pid)
	if !gone(pid) {
		fmt.Println("never reaped")
		os.Exit(98)
	}
	fmt.Println("reaped")
	for sig := range signals {
		if sig == unix.SIGUSR2 {
			os.Exit(7)
		}
		fmt.Println("signal", int(sig.(unix.Signal)))
	}
}

// gone waits until a process has been reaped.
func gone(pid int) bool {
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if unix.Kill(pid, 0) == unix.ESRCH {
			return true
		}
	}
	return false
}

// orphan makes a process whose parent has ended, and returns its number. After pause
// microseconds it ends with a status below 256, or by signal end-256.
func orphan(end int, pause int64) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ends [2]int
	fail("pipe", unix.Pipe2(ends[:], unix.O_CLOEXEC))
	var pid int32
	length := unix.Timespec{Nsec: pause * 1000}
	child := fork2(uintptr(ends[1]), &pid, &length, uintptr(end))
	if child < 0 {
		fail("fork", unix.Errno(-child))
	}
	unix.Close(ends[1])
	n, err := unix.Read(ends[0], unsafe.Slice((*byte)(unsafe.Pointer(&pid)), 4))
	fail("read", err)
	if n != 4 {
		fail("orphan", unix.EAGAIN)
	}
	unix.Close(ends[0])
	wait(child)
	return int(pid)
}

func wait(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			fail("wait", err)
			return
		}
	}
}

// fork2 forks a process that forks another, writes its number and exits. In the copies
// the runtime is dead: they may make system calls and nothing else.
//
//go:nosplit
//go:norace
func fork2(out uintptr, pid *int32, pause *unix.Timespec, end uintptr) int {
	r, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -int(errno)
	}
	if r != 0 {
		return int(r)
	}
	r, _, _ = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if r != 0 {
		*pid = int32(r)
		unix.RawSyscall(unix.SYS_WRITE, out, uintptr(unsafe.Pointer(pid)), 4)
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	if pause.Nsec > 0 {
		unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(pause)), 0, 0)
	}
	if end >= 256 {
		var action [4]uintptr // the runtime has a handler
		sig := end - 256
		none := uint64(0)
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
		unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
		self, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		unix.RawSyscall(unix.SYS_KILL, self, sig, 0)
	}
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, end, 0, 0)
	}
}

// orphans makes n orphans, many at a time, and says when all have been made.
func orphans(n int) {
	runtime.LockOSThread()
	out, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	fail("open", err)
	var pid int32
	var pause unix.Timespec
	const burst = 100
	for made := 0; made < n; {
		var children [burst]int
		size := min(burst, n-made)
		for i := range size {
			// EAGAIN: more zombies than there may be processes; they are being reaped.
			for children[i] = -1; children[i] < 0; {
				if children[i] = fork2(uintptr(out), &pid, &pause, 0); children[i] < 0 && children[i] != -int(unix.EAGAIN) {
					fail("fork", unix.Errno(-children[i]))
				}
			}
		}
		for _, child := range children[:size] {
			wait(child)
		}
		made += size
	}
	fmt.Println("made", n)
	waitForEnd()
}

// waitForEnd ends the workload with the status that standard input names.
func waitForEnd() {
	var status int
	_, err := fmt.Scan(&status)
	fail("standard input", err)
	os.Exit(status)
}

// signalReader reads signals that are blocked in every thread, because they were
// inherited so, with what their senders attached. It yields zeros for "no more now".
func signalReader() *os.File {
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	fd, err := unix.Signalfd(-1, &all, unix.SFD_CLOEXEC)
	fail("signalfd", err)
	return os.NewFile(uintptr(fd), "signals")
}

func readSignal(in *os.File, info *unix.SignalfdSiginfo) {
	_, err := in.Read(unsafe.Slice((*byte)(unsafe.Pointer(info)), int(unsafe.Sizeof(*info))))
	fail("signalfd", err)
}

// count checks that real-time signals come one by one, with the values 1, 2, 3 …, and
// says after every thousand how many there were. USR2 makes it say how many signals
// of each other kind came, too.
func count() {
	in := signalReader()
	fmt.Println("ready")
	go waitForEnd()
	var next int32 = 1
	others := 0
	for {
		var info unix.SignalfdSiginfo
		readSignal(in, &info)
		switch {
		case info.Signo == 40:
			if info.Int != next {
				fail("count", fmt.Errorf("value %d instead of %d", info.Int, next))
			}
			if next%1000 == 0 {
				fmt.Println("counted", next)
			}
			next++
		case info.Signo == uint32(unix.SIGUSR2):
			fmt.Println("others", others)
		case info.Signo != uint32(unix.SIGCHLD):
			others++
		}
	}
}

// storm ends with status 7 on USR2 while processes outside send PID 1 signals without a
// pause.
func storm() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR2)
	signal.Ignore(unix.SIGHUP)
	fmt.Println("ready")
	<-signals
	os.Exit(7)
}

// chaos makes orphans as it is told on standard input, "orphan END MICROSECONDS", tells
// their numbers, and every signal that it receives, until it is told to end.
func chaos() {
	var made atomic.Int64
	signals := signalReader()
	lines := make(chan string, 1000)
	go func() {
		for {
			var info unix.SignalfdSiginfo
			readSignal(signals, &info)
			lines <- fmt.Sprintf("signal %d %d %d", info.Signo, info.Code, info.Int)
		}
	}()
	go func() {
		commands := bufio.NewScanner(os.Stdin)
		for commands.Scan() {
			var end int
			var pause int64
			if n, _ := fmt.Sscanf(commands.Text(), "orphan %d %d", &end, &pause); n == 2 {
				pid := orphan(end, pause)
				made.Add(1)
				lines <- fmt.Sprintf("orphan %d %d", pid, end)
			} else if n, _ := fmt.Sscanf(commands.Text(), "exit %d", &end); n == 1 {
				os.Exit(end)
			} else if n, _ := fmt.Sscanf(commands.Text(), "die %d", &end); n == 1 {
				die(end)
			}
		}
	}()
	fmt.Println("ready")
	out := bufio.NewWriter(os.Stdout)
	for line := range lines {
		fmt.Fprintln(out, line)
		if len(lines) == 0 {
			out.Flush()
		}
	}
}

// die ends the process by a signal, which the runtime may have a handler for.
func die(sig int) {
	runtime.LockOSThread()
	var action [4]uintptr
	none := uint64(0)
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
	unix.Tgkill(os.Getpid(), unix.Gettid(), unix.Signal(sig))
	select {}
}
