// Package vm boots a kernel with an initial file system in an emulated machine and
// brings back what it said: the console on the first serial port, TAP on the second.
//
// Emulation needs nothing from the host but memory, and it is slow. The machine's clock
// therefore counts instructions, one a nanosecond, and jumps over the time in which there
// is nothing to do: what is measured by it repeats to the millisecond, however busy the
// host is, and no time-out in the machine comes too early. It knows neither caches nor
// waits for memory, so the times compare with each other, not with real hardware's.
package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/tap"
)

// Emulator is the program that this package needs.
const Emulator = "qemu-system-x86_64"

// Machine is what to boot.
type Machine struct {
	Kernel string
	Initrd string
	// Init is the first process and Args are its arguments.
	Init string
	Args []string
	// MiB of memory.
	Memory int
	// Accelerator as the emulator's -accel option takes it.
	Accelerator string
	// Bound ends the machine.
	Bound time.Duration
	// Observe is shown each line of TAP as it comes; may be nil.
	Observe func(line string)
}

// Result is what came back.
type Result struct {
	Log *tap.Log
	// Status is the exit status of the first process: the kernel panics when it ends,
	// and names it. -1 if it did not.
	Status  int
	Console string
	Wall    time.Duration
}

var panicStatus = regexp.MustCompile(`Attempted to kill init! exitcode=0x([0-9a-f]{8})`)

// Boot runs the machine until it goes down.
func Boot(m Machine) (*Result, error) {
	dir, err := os.MkdirTemp("", "fdinit-vm-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	console := filepath.Join(dir, "console")
	ctx, cancel := context.WithTimeout(context.Background(), m.Bound)
	defer cancel()
	// Mitigations cost an emulated processor much and protect it from nothing.
	line := "console=ttyS0 quiet panic=-1 mitigations=off rdinit=" + m.Init
	if len(m.Args) > 0 {
		line += " -- " + strings.Join(m.Args, " ")
	}
	args := []string{
		"-accel", m.Accelerator, "-smp", "1", "-m", strconv.Itoa(m.Memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", m.Kernel, "-initrd", m.Initrd, "-append", line,
		"-serial", "file:" + console, "-serial", "stdio",
	}
	if strings.HasPrefix(m.Accelerator, "tcg") {
		args = append(args, "-icount", "shift=0,sleep=off")
	}
	cmd := exec.CommandContext(ctx, Emulator, args...)
	// What the machine said has still to be read when it is down.
	cmd.WaitDelay = time.Minute
	// It must not outlive a lab that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	reader, writer := io.Pipe()
	cmd.Stdout = writer
	start := time.Now()
	// The signal comes when the thread ends that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		writer.Close()
		ended <- err
	}()
	log, err := tap.Read(reader, m.Observe)
	if err != nil {
		// The machine must not block on a line that nobody reads.
		go io.Copy(io.Discard, reader)
	}
	if waited := <-ended; ctx.Err() != nil {
		err = errors.Join(err, fmt.Errorf("the machine was still up after %v", m.Bound))
	} else if waited != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", Emulator, waited, strings.TrimSpace(stderr.String())))
	}
	r := &Result{Log: log, Status: -1, Wall: time.Since(start)}
	b, readErr := os.ReadFile(console)
	r.Console = string(b)
	if found := panicStatus.FindStringSubmatch(r.Console); found != nil {
		// As wait(2) encodes it: the status in the second byte, a signal in the lowest.
		code, _ := strconv.ParseUint(found[1], 16, 32)
		r.Status = int(code >> 8 & 0xff)
		if signal := int(code & 0x7f); signal != 0 {
			r.Status = 128 + signal
		}
	}
	return r, errors.Join(err, readErr)
}
