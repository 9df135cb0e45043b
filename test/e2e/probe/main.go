package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

//lint:ignore U1000 used by Entry
var zeroG [1024]byte

//lint:ignore U1000 used by Entry
var threadLocal [2]uintptr

// Entry is the program's entry point, in assembly.
func Entry()

// main is what an ordinary link would start. There is nothing useful to do.
func main() {
	println("probe: link with -ldflags=-E=main.Entry")
}

// siginfo is as much of siginfo_t as is printed: the value of sigqueue(3) lies
// behind pid and uid, at offset 24, on every 64-bit architecture.
type siginfo struct {
	signo, errno, code, _ int32
	pid, uid              int32
	value                 int32
	_                     [100]byte
}

// run is called once, on the kernel's own stack, and ends the process.
//
//lint:ignore U1000 called by Entry
func run(sp *uintptr) {
	argc := *sp
	arg := func(i uintptr) string {
		if i >= argc {
			return ""
		}
		p := *(**byte)(unsafe.Add(unsafe.Pointer(sp), (1+i)*unsafe.Sizeof(uintptr(0))))
		n := 0
		for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
			n++
		}
		return unsafe.String(p, n)
	}
	switch arg(1) {
	case "signals":
		signals()
	case "orphans":
		orphans(number(arg(2)))
	case "abandon":
		abandon()
	case "wait":
		pause()
	case "traced":
		traced()
	}
	exit(2)
}

func signals() {
	blockAll()
	say("ready\n")
	var line [96]byte
	for {
		var info siginfo
		all := ^uint64(0)
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&info)), 0, 8, 0, 0)
		if errno != 0 {
			continue
		}
		b := add(line[:0], "signal=")
		b = addNumber(b, info.signo)
		b = add(b, " code=")
		b = addNumber(b, info.code)
		b = add(b, " value=")
		b = addNumber(b, info.value)
		b = add(b, "\n")
		write(b)
	}
}

// burst is how many children are made before any of them is waited for.
const burst = 100

// orphans waits for its own children only, not for what it leaves behind: that is
// process 1's task, even where it is process 1 itself.
func orphans(n int) {
	for made := 0; made < n; {
		var children [burst]int
		for i := 0; i < burst && made < n; i++ {
			child := fork()
			if child == 0 {
				// The grandchild ends at once: sometimes before its parent, sometimes after.
				fork()
				exit(0)
			}
			if child > 0 {
				children[i] = child
				made++
			}
		}
		for _, child := range children {
			if child > 0 {
				unix.RawSyscall6(unix.SYS_WAIT4, uintptr(child), 0, 0, 0, 0, 0)
			}
		}
	}
	blockAll()
	var line [32]byte
	b := add(line[:0], "made ")
	b = addNumber(b, int32(n))
	write(add(b, "\n"))
	pause()
}

// abandon leaves a child behind that waits to be killed, and waits itself.
func abandon() {
	blockAll()
	if fork() == 0 {
		say("child\n")
		pause()
	}
	say("parent\n")
	pause()
}

// traced stops at every signal, even at those that are ignored.
func traced() {
	unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0, 0, 0)
	self, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	for _, sig := range [...]unix.Signal{unix.SIGURG, unix.SIGWINCH, unix.SIGCHLD} {
		unix.RawSyscall(unix.SYS_KILL, self, uintptr(sig), 0)
	}
	exit(7)
}

func pause() {
	for {
		var none uint64
		unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&none)), 0, 0, 8, 0, 0)
	}
}

func fork() int {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -1
	}
	return int(pid)
}

func blockAll() {
	all := ^uint64(0)
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&all)), 0, 8, 0, 0)
}

func exit(code uintptr) {
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}

func say(s string) {
	unix.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(len(s)))
}

func write(b []byte) {
	unix.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
}

// add appends without append, which could call the allocator.
func add(b []byte, s string) []byte {
	for i := 0; i < len(s) && len(b) < cap(b); i++ {
		b = b[:len(b)+1]
		b[len(b)-1] = s[i]
	}
	return b
}

func addNumber(b []byte, n int32) []byte {
	var digits [12]byte
	i := len(digits)
	u := uint32(n)
	if n < 0 {
		u = -u
	}
	for {
		i--
		digits[i] = byte('0' + u%10)
		u /= 10
		if u == 0 {
			break
		}
	}
	if n < 0 {
		i--
		digits[i] = '-'
	}
	return add(b, unsafe.String(&digits[i], len(digits)-i))
}

func number(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
