package sys

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Most calls are compared with those of package syscall or x/sys. What changes a
// process for good, such as the subreaper, is for the tests of the whole program.

func TestErrno(t *testing.T) {
	for r, want := range map[uintptr]Errno{
		0: 0, 1: 0, 1 << 47: 0, ^uintptr(0): unix.EPERM, ^uintptr(0) - 1: unix.ENOENT,
		^uintptr(4094): 4095, ^uintptr(4095): 0, ^uintptr(5000): 0,
	} {
		if got := errnoOf(r); got != want {
			t.Errorf("%#x is errno %d, want %d", r, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	if got := Getpid(); got != os.Getpid() {
		t.Errorf("Getpid() = %d, want %d", got, os.Getpid())
	}
	if got := Getpgrp(); got != syscall.Getpgrp() {
		t.Errorf("Getpgrp() = %d, want %d", got, syscall.Getpgrp())
	}
	sid, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	if got := LeadsSession(sid); !got {
		t.Errorf("LeadsSession(%d) = %v", sid, got)
	}
	if LeadsSession(-1) {
		t.Error("LeadsSession(-1)")
	}
}

func cstring(s string) *byte { return unsafe.SliceData(append([]byte(s), 0)) }

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	text := bytes.Repeat([]byte("0123456789"), 10)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, errno := OpenPath(cstring(name), unix.O_RDWR|unix.O_CLOEXEC)
	if errno != 0 || !IsOpen(fd) {
		t.Fatal(errno)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags != unix.FD_CLOEXEC {
		t.Errorf("its flags are %d, %v", flags, err)
	}
	buf := make([]byte, 64)
	for _, want := range [][]byte{text[:64], text[64:], {}} {
		if n, errno := Read(fd, buf); errno != 0 || !bytes.Equal(buf[:n], want) {
			t.Errorf("read %q, %v, want %q", buf[:n], errno, want)
		}
	}
	if errno := Rewind(fd); errno != 0 {
		t.Error(errno)
	}
	if n, errno := Read(fd, buf[:3]); errno != 0 || string(buf[:n]) != "012" {
		t.Errorf("read %q, %v after rewinding", buf[:n], errno)
	}
	if errno := Write(fd, []byte("abc")); errno != 0 {
		t.Error(errno)
	}
	if got, err := os.ReadFile(name); err != nil || string(got[:8]) != "012abc67" {
		t.Errorf("wrote %q, %v", got, err)
	}
	if IsProc(fd) {
		t.Errorf("%s is on procfs", name)
	}
	if errno := Close(fd); errno != 0 || IsOpen(fd) {
		t.Errorf("closing: %v", errno)
	}
	if errno := Close(fd); errno != unix.EBADF {
		t.Errorf("closing twice: %v", errno)
	}
	if _, errno := Read(fd, buf); errno != unix.EBADF {
		t.Errorf("reading what is closed: %v", errno)
	}
	for path, want := range map[string]Errno{dir + "/none": unix.ENOENT, name + "/x": unix.ENOTDIR, dir: unix.EISDIR} {
		if _, errno := OpenPath(cstring(path), unix.O_RDWR); errno != want {
			t.Errorf("opening %s: %v, want %v", path, errno, want)
		}
	}
	if fd, errno := Open("/dev/null\x00", unix.O_RDWR|unix.O_CLOEXEC); errno != 0 {
		t.Errorf("/dev/null: %v", errno)
	} else {
		Close(fd)
	}
}

// TestIsOpenKnowsPaths: poll(2) does not.
func TestIsOpenKnowsPaths(t *testing.T) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if !IsOpen(fd) {
		t.Error("an O_PATH descriptor counts as closed")
	}
	block := [1]PollFD{{Fd: int32(fd)}}
	if errno := PollNow(block[:]); errno != 0 || block[0].Revents != unix.POLLNVAL {
		t.Errorf("poll answers %#x, %v: is the plain loop of package fds still needed?", block[0].Revents, errno)
	}
}

func TestPollNow(t *testing.T) {
	reading, writing, errno := Pipe(1 << 16)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer Close(reading)
	defer Close(writing)
	block := []PollFD{{Fd: int32(reading), Events: unix.POLLIN}, {Fd: 1 << 30}, {Fd: int32(writing), Events: unix.POLLOUT}}
	if errno := PollNow(block); errno != 0 {
		t.Fatal(errno)
	}
	if block[0].Revents != 0 || block[1].Revents != unix.POLLNVAL || block[2].Revents != unix.POLLOUT {
		t.Errorf("%+v", block)
	}
}

func TestPipe(t *testing.T) {
	reading, writing, errno := Pipe(1 << 16)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer Close(reading)
	for _, fd := range []int{reading, writing} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%d stays open on exec: %#x, %v", fd, flags, err)
		}
	}
	if size, err := unix.FcntlInt(uintptr(writing), unix.F_GETPIPE_SZ, 0); err != nil || size < 1<<16 {
		t.Errorf("it has room for %d, %v", size, err)
	}
	record := make([]byte, 512)
	written := 0
	for ; written < 1<<26; written += len(record) {
		if errno := Write(writing, record); errno == unix.EAGAIN {
			break
		} else if errno != 0 {
			t.Fatal(errno)
		}
	}
	if size, _ := unix.FcntlInt(uintptr(writing), unix.F_GETPIPE_SZ, 0); written != size {
		t.Errorf("took %d bytes, has room for %d", written, size)
	}
	Close(writing)
	read := 0
	for {
		n, errno := Read(reading, record)
		if errno != 0 {
			t.Fatal(errno)
		}
		if n == 0 {
			break
		}
		read += n
	}
	if read != written {
		t.Errorf("%d bytes went in, %d came out", written, read)
	}
}

func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	want := []string{".", ".."}
	for i := range 300 {
		name := fmt.Sprint("file", i)
		want = append(want, name)
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, errno := OpenPath(cstring(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer Close(fd)
	slices.Sort(want)
	for range 2 {
		got := []string{}
		buf := make([]byte, 1024)
		for {
			n, errno := ReadDir(fd, buf)
			if errno != 0 {
				t.Fatal(errno)
			}
			if n == 0 {
				break
			}
			for records := buf[:n]; len(records) > 0; {
				const name = unsafe.Offsetof(unix.Dirent{}.Name)
				size := (*unix.Dirent)(unsafe.Pointer(&records[0])).Reclen
				got = append(got, strings.Clone(String(&records[name])))
				records = records[size:]
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d names, want %d", len(got), len(want))
		}
		if errno := Rewind(fd); errno != 0 {
			t.Error(errno)
		}
	}
	if _, errno := ReadDir(fd, make([]byte, 8)); errno != unix.EINVAL {
		t.Errorf("into a tiny buffer: %v", errno)
	}
}

func TestIsProc(t *testing.T) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("/proc cannot be opened here: ", err)
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		t.Fatal(err)
	}
	if got, want := IsProc(fd), int64(st.Type) == unix.PROC_SUPER_MAGIC; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if IsProc(-1) {
		t.Error("-1 is on procfs")
	}
}

// TestCloseRange closes descriptors that are this test's own, side by side.
func TestCloseRange(t *testing.T) {
	const first, many = 500, 5
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	for fd := first; fd < first+many; fd++ {
		if err := unix.Dup3(null, fd, unix.O_CLOEXEC); err != nil {
			t.Skip("no room for descriptors: ", err)
		}
		defer unix.Close(fd)
	}
	if errno := CloseRange(first+1, first+many-2); errno != 0 {
		t.Skip("Linux 5.9 and not under a filter: ", errno)
	}
	for fd := first; fd < first+many; fd++ {
		if want := fd == first || fd == first+many-1; IsOpen(fd) != want {
			t.Errorf("%d is open: %v", fd, !want)
		}
	}
	if errno := CloseRange(first+1, first); errno != unix.EINVAL {
		t.Errorf("a reversed range: %v", errno)
	}
}

func TestWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	want, err := unix.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var buf [unix.PathMax]byte
	n, errno := Getcwd(buf[:])
	if errno != 0 || string(buf[:n]) != want+"\x00" {
		t.Errorf("%q, %v, want %q", buf[:n], errno, want)
	}
	if _, errno := Getcwd(buf[:2]); errno != unix.ERANGE {
		t.Errorf("into two bytes: %v", errno)
	}
	if errno := Chdir("/\x00"); errno != 0 {
		t.Error(errno)
	}
	if n, errno := Getcwd(buf[:]); errno != 0 || string(buf[:n]) != "/\x00" {
		t.Errorf("%q, %v after changing to /", buf[:n], errno)
	}
	if errno := Chdir("/nowhere at all\x00"); errno != unix.ENOENT {
		t.Errorf("changing to nowhere: %v", errno)
	}
}

func TestRlimit(t *testing.T) {
	for resource := range 16 {
		var got Rlimit
		if errno := GetRlimit(resource, &got); errno != 0 {
			t.Errorf("%d: %v", resource, errno)
			continue
		}
		var want unix.Rlimit
		if err := unix.Prlimit(0, resource, nil, &want); err != nil {
			t.Fatal(err)
		}
		if got.Soft != want.Cur || got.Hard != want.Max {
			t.Errorf("%d: %+v, want %+v", resource, got, want)
		}
		if errno := SetRlimit(resource, &got); errno != 0 {
			t.Errorf("setting %d to what it is: %v", resource, errno)
		}
		if wrong := (Rlimit{Soft: 2, Hard: 1}); SetRlimit(resource, &wrong) != unix.EINVAL {
			t.Errorf("%d: a soft limit above the hard one is accepted", resource)
		}
	}
	if errno := GetRlimit(16, &Rlimit{}); errno != unix.EINVAL {
		t.Errorf("a 17th resource: %v", errno)
	}
	// The soft limit on core files is nobody's business here.
	var before, now Rlimit
	GetRlimit(unix.RLIMIT_CORE, &before)
	t.Cleanup(func() { SetRlimit(unix.RLIMIT_CORE, &before) })
	if errno := SetRlimit(unix.RLIMIT_CORE, &Rlimit{Soft: 0, Hard: before.Hard}); errno != 0 {
		t.Error(errno)
	}
	if GetRlimit(unix.RLIMIT_CORE, &now); now.Soft != 0 || now.Hard != before.Hard {
		t.Errorf("%+v became %+v", before, now)
	}
}

func TestAccess(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"program": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"program", "text", "none", "text/x", ""} {
		for _, mode := range []uint32{unix.F_OK, unix.X_OK} {
			want, _ := unix.Access(dir+"/"+name, mode).(unix.Errno)
			if got := Access(cstring(dir+"/"+name), mode); got != want {
				t.Errorf("%q, %d: %v, want %v", name, mode, got, want)
			}
		}
	}
}

func TestExecveThatFails(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("#!/bin/true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Errno{"": unix.ENOENT, dir + "/none": unix.ENOENT, dir: unix.EACCES, text: unix.EACCES, text + "/x": unix.ENOTDIR} {
		if got := Execve(cstring(path), VectorOf("x"), VectorOf()); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
}

func TestPidfdInode(t *testing.T) {
	inode, ok := PidfdInode(os.Getpid())
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		if ok {
			t.Errorf("there are no pidfds, but there is one with inode %d", inode)
		}
		t.Skip("pidfd_open: ", err)
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	if unique := fs.Type == unix.PID_FS_MAGIC; ok != unique || ok && inode != st.Ino {
		t.Errorf("%d, %v, want %d, %v", inode, ok, st.Ino, unique)
	}
	if again, _ := PidfdInode(os.Getpid()); again != inode {
		t.Errorf("%d the first time, %d the second", inode, again)
	}
	if _, ok := PidfdInode(1<<22 + 1); ok { // above the highest pid_max
		t.Error("a process that does not exist has one")
	}
}

func TestWaitStatus(t *testing.T) {
	for status := range WaitStatus(1 << 16) {
		w := syscall.WaitStatus(status)
		want := 0
		switch {
		case w.Exited():
			want = w.ExitStatus()
		case w.Signaled():
			want = 128 + int(w.Signal())
		default: // stopped or continued: not asked for
			continue
		}
		if got := status.ExitStatus(); got != want {
			t.Fatalf("%#x is %d, want %d", uint32(status), got, want)
		}
		if got := status.Signal(); w.Signaled() != (got != 0) || got != 0 && int(got) != int(w.Signal()) {
			t.Fatalf("%#x: signal %d", uint32(status), got)
		}
	}
}

// TestWaiting ends children in several ways. No other test of this package may have
// children at the same time.
func TestWaiting(t *testing.T) {
	if _, _, errno := Reap(); errno != unix.ECHILD {
		t.Errorf("without children: %v", errno)
	}
	shell := func(script string) int {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, nil)
		if err != nil {
			t.Skip("there is no shell: ", err)
		}
		return pid
	}
	for script, want := range map[string]int{"exit 0": 0, "exit 42": 42, "exit 255": 255, "kill -9 $$": 137, "kill -TERM $$": 143} {
		status, errno := Wait(shell(script))
		if got := status.ExitStatus(); errno != 0 || got != want {
			t.Errorf("%s: %d, %v, want %d", script, got, errno, want)
		}
	}
	// A pipe that blocks, unlike those of Pipe: a shell that is told EAGAIN ends.
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "read x; exit 7"}, &syscall.ProcAttr{Files: []uintptr{uintptr(ends[0])}})
	Close(ends[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, _, errno := Reap(); got != 0 || errno != 0 {
		t.Errorf("while it runs: %d, %v", got, errno)
	}
	if errno := Kill(pid, 0); errno != 0 {
		t.Errorf("it is there, but: %v", errno)
	}
	if got := StopOf(pid); got != 0 {
		t.Errorf("it is not stopped, but: %d", got)
	}
	// Not one of the terminal's: nothing happens where this test's process group is orphaned.
	Kill(pid, Signal(unix.SIGSTOP))
	for StopOf(pid) == 0 {
		runtime.Gosched()
	}
	if got := StopOf(pid); got != Signal(unix.SIGSTOP) {
		t.Errorf("stopped by %d", got)
	}
	Kill(pid, Signal(unix.SIGCONT))
	if got := StopOf(pid); got != 0 {
		t.Errorf("continued, but stopped by %d", got)
	}
	Close(ends[1])
	for {
		got, status, errno := Reap()
		if errno != 0 {
			t.Fatal(errno)
		}
		if got == 0 {
			runtime.Gosched()
			continue
		}
		if got != pid || status.ExitStatus() != 7 {
			t.Errorf("%d ended with %d, want %d with 7", got, status.ExitStatus(), pid)
		}
		if got := StopOf(pid); got != 0 {
			t.Errorf("it has ended, but: stopped by %d", got)
		}
		break
	}
	if errno := Kill(pid, 0); errno != unix.ESRCH {
		t.Errorf("it is gone, but: %v", errno)
	}
}

// blocked is the mask of this thread as /proc has it.
func blocked(t *testing.T, field string) SignalSet {
	t.Helper()
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return SignalSet(set)
		}
	}
	t.Fatalf("no %s in %s", field, status)
	return 0
}

// rtmin is a signal that the Go runtime has no handler for.
const rtmin Signal = 34

func TestSignals(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, errno := SetSignalMask(SetOf(rtmin) | SetOf(40))
	if errno != 0 {
		t.Fatal(errno)
	}
	defer SetSignalMask(before)
	now := blocked(t, "SigBlk")
	if now != SetOf(rtmin)|SetOf(40) || !now.Has(40) || now.Has(39) {
		t.Errorf("blocked: %#x", now)
	}

	// To this thread alone: the others do not block it, and would end the process.
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.Signal(rtmin)); err != nil {
		t.Fatal(err)
	}
	var info SignalInfo
	sig, errno := WaitSignal(SetOf(rtmin), &info)
	const fromThread = -6 // SI_TKILL
	if errno != 0 || sig != rtmin || info.Signo != int32(rtmin) || info.Code != fromThread || int(info.Pid) != os.Getpid() || int(info.Uid) != os.Getuid() {
		t.Errorf("%d, %v, %+v", sig, errno, info)
	}
	errno = unix.EINTR
	for errno == unix.EINTR { // by the Go runtime, which sends its threads signals
		sig, errno = WaitSignalFor(SetOf(rtmin), &info, 1000)
	}
	if errno != unix.EAGAIN {
		t.Errorf("without a signal: %d, %v", sig, errno)
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.Signal(rtmin)); err != nil {
		t.Fatal(err)
	}
	if sig, errno := WaitSignalFor(SetOf(rtmin), &info, 10e9); errno != 0 || sig != rtmin {
		t.Errorf("with a time limit: %d, %v", sig, errno)
	}

	old, errno := SetSignalMask(AllSignals)
	if errno != 0 || old != SetOf(rtmin)|SetOf(40) {
		t.Errorf("the mask was %#x, %v", old, errno)
	}
	all := blocked(t, "SigBlk")
	if want := AllSignals &^ (SetOf(9) | SetOf(19)); all != want {
		t.Errorf("all is %#x, want %#x", all, want)
	}
}

func TestDispositions(t *testing.T) {
	old, errno := SetDisposition(rtmin, Ignored)
	if errno != 0 {
		t.Fatal(errno)
	}
	if old != Default {
		t.Errorf("it was %d", old)
	}
	if !blocked(t, "SigIgn").Has(rtmin) {
		t.Error("it is not ignored")
	}
	if old, errno := SetDisposition(rtmin, Default); errno != 0 || old != Ignored {
		t.Errorf("it was %d, %v", old, errno)
	}
	if blocked(t, "SigIgn").Has(rtmin) {
		t.Error("it is still ignored")
	}
	if _, errno := SetDisposition(9, Ignored); errno != unix.EINVAL {
		t.Errorf("KILL: %v", errno)
	}
}

func TestSendingToNobody(t *testing.T) {
	const nobody = 1<<22 + 1 // above the highest pid_max
	if errno := Kill(nobody, 15); errno != unix.ESRCH {
		t.Errorf("%v", errno)
	}
	if errno := Kill(os.Getpid(), 65); errno != unix.EINVAL {
		t.Errorf("signal 65: %v", errno)
	}
	info := SignalInfo{Signo: 15, Code: SentByQueue}
	if errno := Queue(nobody, 15, &info); errno != unix.ESRCH {
		t.Errorf("%v", errno)
	}
	// What only the kernel may say is not believed of a process, save of oneself.
	info.Code = SentByKernel
	if errno := Queue(os.Getppid(), 0, &info); errno != unix.EPERM {
		t.Errorf("%v", errno)
	}
}

func TestTerminalCallsOnNoTerminal(t *testing.T) {
	fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, errno := ForegroundGroup(fd); errno != unix.ENOTTY {
		t.Errorf("ForegroundGroup: %v", errno)
	}
	for name, errno := range map[string]Errno{
		"SetForegroundGroup": SetForegroundGroup(fd, os.Getpid()), "ReleaseTerminal": ReleaseTerminal(fd), "TakeTerminal": TakeTerminal(fd),
	} {
		if errno != unix.ENOTTY {
			t.Errorf("%s: %v", name, errno)
		}
	}
}

func TestNow(t *testing.T) {
	var before, after unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &before); err != nil {
		t.Fatal(err)
	}
	now := Now()
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &after); err != nil {
		t.Fatal(err)
	}
	if after.Nano() < before.Nano() {
		t.Skip("the clock was set back meanwhile")
	}
	if now < before.Nano() || now > after.Nano() {
		t.Errorf("%d is not between %d and %d", now, before.Nano(), after.Nano())
	}
}

func TestCallsDoNotAllocate(t *testing.T) {
	path := cstring("/")
	var limit Rlimit
	var errno Errno
	if n := testing.AllocsPerRun(100, func() {
		var buf [256]byte
		Getcwd(buf[:])
		GetRlimit(unix.RLIMIT_NOFILE, &limit)
		block := [8]PollFD{{Fd: 0}}
		PollNow(block[:])
		Access(path, unix.X_OK)
		PidfdInode(1)
		var info SignalInfo
		_, errno = WaitSignalFor(0, &info, 0)
		Now()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if errno != unix.EAGAIN {
		t.Errorf("waiting for no signal: %v", errno)
	}
}
