package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The names that the measurements refer to.
const (
	bareName      = "bare"
	subjectName   = "fdinit"
	referenceName = "tini-static"
)

// contender is one init, or the bare command, which has no path.
type contender struct {
	name    string
	path    string
	version string
	dynamic bool

	// asPID1 and asChild are the arguments between the init and the command,
	// by whether it is PID 1 of its namespace.
	asPID1, asChild []string
	// oneWord inits take the whole command as one argument.
	oneWord bool
}

// argv is the command line that runs cmd under the init.
func (c contender) argv(cmd []string, pid1 bool) []string {
	if c.path == "" {
		return cmd
	}
	args := c.asChild
	if pid1 {
		args = c.asPID1
	}
	line := append([]string{c.path}, args...)
	if c.oneWord {
		return append(line, strings.Join(cmd, " "))
	}
	return append(line, cmd...)
}

// private copies the file into a directory of its own. Pages are counted as
// shared when anybody else on the machine runs the same file, and a rebuild in
// the middle of a run would mix two binaries; neither happens to a copy.
func private(dir, name, path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "inits")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	// The name matters: fdinit answers in the dialect that it is called by.
	to = filepath.Join(to, name)
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// In pieces of 32 KiB, as io.Copy and so the engines unpack a layer. From
	// Linux 6.18 on a fault maps all of a large folio of the page cache, and
	// the folios are as large as the writes that made them: after one write of
	// the whole file RSS would be most of the file, whatever the init touches.
	for chunk := range slices.Chunk(b, 32<<10) {
		if _, err := f.Write(chunk); err != nil {
			return "", err
		}
	}
	// Until the file is on the disk, every page of it counts as dirty memory
	// of whoever has it mapped.
	return to, f.Sync()
}

// findContenders returns the bare command, the subject and every peer that is
// installed, and the names of those that are not.
func findContenders(dir, fdinit, goinit, pabloruth string) (found []contender, missing []string, err error) {
	dashes := []string{"--"}
	all := []contender{
		{name: bareName},
		{name: subjectName, path: fdinit, asPID1: dashes, asChild: dashes},
		// -s: away from PID 1 tini wants to be told to be a subreaper, and
		// warns otherwise; the warning would be measured too.
		{name: "tini-static", path: "tini-static", asPID1: dashes, asChild: []string{"-s", "--"}},
		{name: "tini", path: "tini", asPID1: dashes, asChild: []string{"-s", "--"}},
		{name: "catatonit", path: "catatonit", asPID1: dashes, asChild: dashes},
		{name: "dumb-init", path: "dumb-init", asPID1: dashes, asChild: dashes},
		{name: "go-init", path: pabloruth, asPID1: []string{"-main"}, asChild: []string{"-main"}, oneWord: true},
		{name: "plain-go", path: goinit},
	}
	for _, c := range all {
		if c.name == bareName {
			found = append(found, c)
			continue
		}
		path, err := exec.LookPath(c.path)
		if err != nil {
			if c.name == subjectName || c.name == referenceName {
				return nil, nil, fmt.Errorf("%s is needed: %w", c.name, err)
			}
			missing = append(missing, c.name)
			continue
		}
		if c.path, err = private(dir, c.name, path); err != nil {
			return nil, nil, err
		}
		if c.dynamic, err = isDynamic(c.path); err != nil {
			return nil, nil, err
		}
		c.version = version(c)
		found = append(found, c)
	}
	return found, missing, nil
}

// version asks the init for the first line it has to say about itself.
func version(c contender) string {
	if c.name == "plain-go" || c.name == "go-init" {
		return "" // neither of them knows
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, c.path, "--version").CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// isDynamic reports whether the kernel would load an interpreter for the file.
func isDynamic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return false, nil
}

// buildGoInit compiles the ordinary Go init beside this program, stripped as
// fdinit is.
func buildGoInit(dir string) (string, error) {
	if _, err := os.Stat("goinit/main.go"); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("run this in the directory bench: %w", err)
	}
	path := filepath.Join(dir, "goinit")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path, "./goinit")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building goinit: %w\n%s", err, out)
	}
	return path, nil
}
