package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	master = os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// TestTerminalComesBack has a script go on after fdinit, which was not process 1 and gave
// the terminal to the workload: it must be able to read from it again.
func TestTerminalComesBack(t *testing.T) {
	for _, command := range []string{"true", "sh -c 'kill -9 $$'", missing} {
		t.Run(filepath.Base(strings.Fields(command)[0]), func(t *testing.T) {
			master, slave := openTerminal(t)
			cmd := exec.Command(shell, "-c", fdinit+" "+command+"; read x; echo got $x")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			slave.Close()
			defer cmd.Wait()
			defer cmd.Process.Kill()
			if _, err := master.WriteString("hello\n"); err != nil {
				t.Fatal(err)
			}
			master.SetReadDeadline(time.Now().Add(patience))
			var screen strings.Builder
			buf := make([]byte, 1000)
			for !strings.Contains(screen.String(), "got hello") {
				n, err := master.Read(buf)
				screen.Write(buf[:n])
				if err != nil {
					t.Fatalf("the script cannot read from its terminal: %v\n%s", err, screen.String())
				}
			}
		})
	}
}
