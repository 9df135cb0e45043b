package container

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reportFD is where a stage finds the pipe for its report.
const reportFD = 3

// RunStage does the work of a stage, and does not return, if this process is one.
func RunStage() {
	if len(os.Args) != 2 || os.Args[0] != StageName {
		return
	}
	runtime.LockOSThread()
	var spec Spec
	err := json.Unmarshal([]byte(os.Args[1]), &spec)
	if err == nil {
		// The report, and whatever the lab itself was started with.
		for fd := reportFD; fd < 1024; fd++ {
			unix.CloseOnExec(fd)
		}
		err = Exec(&spec, func(r []byte) { unix.Write(reportFD, r) })
	}
	failed, _ := json.Marshal(report{Err: err.Error()})
	unix.Write(reportFD, failed)
	os.Exit(1)
}

// Exec takes a container's conditions on the calling process and executes the program.
// It returns only if that fails.
func Exec(spec *Spec, tell func([]byte)) error {
	if !spec.InPlace {
		if err := isolate(spec); err != nil {
			return err
		}
	}
	if spec.Dir != "" {
		if err := unix.Chdir(spec.Dir); err != nil {
			return fmt.Errorf("chdir %s: %w", spec.Dir, err)
		}
	}
	if err := setLimit(spec.Limit); err != nil {
		return err
	}
	if err := open(spec); err != nil {
		return err
	}
	if err := setLimit(spec.Lower); err != nil {
		return err
	}
	if spec.NrOpen != 0 {
		if err := SetNrOpen(spec.NrOpen); err != nil {
			return err
		}
	}
	if spec.NoProc {
		if err := unix.Unmount("/proc", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("umount /proc: %w", err)
		}
	}
	if spec.DropResource {
		if err := dropCapability(unix.CAP_SYS_RESOURCE); err != nil {
			return err
		}
	}
	if len(spec.Refuse) > 0 {
		if err := refuse(spec.Refuse, spec.Errno); err != nil {
			return err
		}
	}
	if tell != nil {
		var used unix.Rusage
		unix.Getrusage(unix.RUSAGE_SELF, &used)
		r, err := json.Marshal(report{At: Now(), CPU: used.Utime.Nano() + used.Stime.Nano()})
		if err != nil {
			return err
		}
		tell(r)
	}
	// Not by a raw system call: while it lasts the kernel refuses new threads (EAGAIN), the
	// runtime may be about to make one, and would take it for the end. This keeps it from that.
	return fmt.Errorf("exec %s: %w", spec.Argv[0], syscall.Exec(spec.Argv[0], spec.Argv, spec.Env))
}

// isolate makes the mounts and the network of the container's namespaces usable.
func isolate(spec *Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	if spec.Root != "" {
		if err := unix.Mount("/dev", spec.Root+"/dev", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount /dev: %w", err)
		}
		if err := unix.Chroot(spec.Root); err != nil {
			return fmt.Errorf("chroot %s: %w", spec.Root, err)
		}
		if err := unix.Chdir("/"); err != nil {
			return err
		}
	}
	// Of the container's own PID namespace; the old one, if any, is hidden below.
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if spec.NoProc {
		// The one below goes first: Exec takes away the upper one only.
		unix.Unmount("/proc", unix.MNT_DETACH)
		unix.Unmount("/proc", unix.MNT_DETACH)
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
	}
	return nil
}

// loopbackUp switches the loopback interface of a fresh network namespace on.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(s)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

// setLimit is a raw system call, so that the Go runtime knows nothing of it.
func setLimit(l *Limit) error {
	if l == nil {
		return nil
	}
	// Not by a raw system call, or the limit that the Go runtime found would be put back at exec.
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}); err != nil {
		return fmt.Errorf("set the limit on open files to %v: %w", *l, err)
	}
	return nil
}

// open opens what the program is to inherit. Descriptors that the Go runtime may hold
// are marked to be closed on execution, whatever their numbers.
func open(spec *Spec) error {
	if spec.Open == 0 && len(spec.OpenAt) == 0 {
		return nil
	}
	// O_PATH in the lower ones would be another matter: see package fds.
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/null: %w", err)
	}
	for i := 0; i < spec.Open; {
		fd, _, errno := unix.RawSyscall(unix.SYS_DUP, uintptr(null), 0, 0)
		if errno != 0 {
			return fmt.Errorf("open descriptor %d of %d: %w", i, spec.Open, errno)
		}
		if fd >= 3 {
			i++
		}
	}
	for _, at := range spec.OpenAt {
		if _, _, errno := unix.RawSyscall(unix.SYS_DUP3, uintptr(null), uintptr(at), 0); errno != 0 {
			return fmt.Errorf("open descriptor %d: %w", at, errno)
		}
	}
	return nil
}

func dropCapability(capability uint) error {
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil {
		return fmt.Errorf("drop capability %d: %w", capability, err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	mask := ^uint32(1 << (capability % 32))
	set := &sets[capability/32]
	set.Effective &= mask
	set.Permitted &= mask
	set.Inheritable &= mask
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// refuse installs a filter that answers some system calls of this architecture with an
// errno. It stays for every descendant.
func refuse(calls []uint32, errno unix.Errno) error {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // seccomp_data.nr
	for i, nr := range calls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jt: uint8(len(calls) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}
