package hostile

import (
	"debug/elf"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	long  = flag.Bool("long", os.Getenv("FDINIT_LONG") != "", "use the full counts instead of short ones")
	chaos = flag.Duration("chaos", 10*time.Second, "how long the random test runs (also FDINIT_CHAOS)")
	seed  = flag.Int64("seed", 0, "repeat this round of the random test instead")
)

// patience is how long a condition may take to come true on the slowest machine. Only
// a broken init makes anything wait so long.
const patience = 5 * time.Minute

var (
	fdinit string // the binary under test
	probe  string // stage and workloads
	tiny   string // the smallest workload
	below  uint64 // every instruction of fdinit lies below this address, none of probe's
)

// probeAddress is where probe's instructions begin.
const probeAddress = "0x40001000"

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "fdinit-hostile-")
	if err == nil {
		err = build(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	if text := os.Getenv("FDINIT_CHAOS"); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("FDINIT_CHAOS: %w", err)
		}
		*chaos = length
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for other users
		return err
	}
	probe = filepath.Join(dir, "probe")
	if err := goBuild(".", probe, "./probe", "-T="+probeAddress); err != nil {
		return err
	}
	tiny = filepath.Join(dir, "tiny")
	if err := goBuild(".", tiny, "./tiny", "-s -w -E=main.Entry"); err != nil {
		return err
	}
	if given := os.Getenv("FDINIT_BINARY"); given != "" {
		content, err := os.ReadFile(given)
		if err != nil {
			return err
		}
		fdinit = filepath.Join(dir, "fdinit") // where every user may execute it
		if err := os.WriteFile(fdinit, content, 0o755); err != nil {
			return err
		}
	} else {
		fdinit = filepath.Join(dir, "fdinit")
		const entry = "-E=github.com/fdinit/fdinit/internal/freestanding.Entry"
		if err := goBuild("../..", fdinit, "./cmd/fdinit", "-s -w -buildid= "+entry); err != nil {
			return err
		}
	}
	program, err := elf.Open(fdinit)
	if err != nil {
		return err
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			below = max(below, p.Vaddr+p.Memsz)
		}
	}
	return nil
}

func goBuild(dir, out, pkg, ldflags string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags="+ldflags, "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return nil
}
