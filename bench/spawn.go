package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawnOptions says how a contender is started.
type spawnOptions struct {
	pid1   bool       // in a PID namespace of its own
	traced bool       // stopped at its first instruction, for ptrace
	stdout *os.File   // nil is /dev/null
	leaked []*os.File // given from descriptor 3 up, as a careless parent does
}

var devNull = func() *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	return f
}()

// environment is what every contender gets: short, and without anything that
// changes how one of them behaves.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// prepareSpawn does all that need not be measured.
func prepareSpawn(o spawnOptions) *syscall.ProcAttr {
	stdout := o.stdout
	if stdout == nil {
		stdout = devNull
	}
	files := []uintptr{devNull.Fd(), stdout.Fd(), devNull.Fd()}
	for _, f := range o.leaked {
		files = append(files, f.Fd())
	}
	sys := &syscall.SysProcAttr{Ptrace: o.traced}
	if o.pid1 {
		sys.Cloneflags = syscall.CLONE_NEWPID
		if uid := os.Geteuid(); uid != 0 {
			// Without privilege a PID namespace comes with a user namespace.
			sys.Cloneflags |= syscall.CLONE_NEWUSER
			sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
			sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		}
	}
	return &syscall.ProcAttr{Env: environment, Files: files, Sys: sys}
}

// sample is what one run from start to exit cost.
type sample struct {
	wall   time.Duration
	cpu    time.Duration
	faults int64
}

// runOnce starts argv and waits for its end. The process's own accounting
// includes the children that it has waited for, and so the command.
func runOnce(argv []string, attr *syscall.ProcAttr) (sample, error) {
	var (
		status syscall.WaitStatus
		usage  syscall.Rusage
	)
	begin := monotonic()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return sample{}, fmt.Errorf("starting %q: %w", argv, err)
	}
	for {
		_, err = syscall.Wait4(pid, &status, 0, &usage)
		if err != syscall.EINTR {
			break
		}
	}
	end := monotonic()
	if err != nil {
		return sample{}, fmt.Errorf("waiting for %q: %w", argv, err)
	}
	if !status.Exited() || status.ExitStatus() != 0 {
		return sample{}, fmt.Errorf("%q ended with status %#x", argv, int(status))
	}
	return sample{
		wall:   end - begin,
		cpu:    time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		faults: usage.Minflt + usage.Majflt,
	}, nil
}

// monotonic reads the clock that the workloads read too.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // cannot fail with a valid clock
	}
	return time.Duration(ts.Nano())
}

// instance is an init that stays.
type instance struct {
	contender
	pid int
}

// running holds every instance, so that an interrupted benchmark leaves none.
var running = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

func killOnInterrupt() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-c
		running.Lock()
		for pid := range running.pids {
			_ = syscall.Kill(pid, unix.SIGKILL)
		}
		os.Exit(130)
	}()
}

// start starts a contender as PID 1 of its own namespace and leaves it there.
func start(c contender, cmd []string, o spawnOptions) (*instance, error) {
	o.pid1 = true
	argv := c.argv(cmd, true)
	running.Lock()
	defer running.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, prepareSpawn(o))
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", argv, err)
	}
	running.pids[pid] = true
	return &instance{contender: c, pid: pid}, nil
}

// stop kills the init, and with it everything in its namespace.
func (in *instance) stop() {
	_ = syscall.Kill(in.pid, unix.SIGKILL)
	for {
		if _, err := syscall.Wait4(in.pid, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	running.Lock()
	defer running.Unlock()
	delete(running.pids, in.pid)
}
