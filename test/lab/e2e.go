package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/image"
	"github.com/fdinit/fdinit/test/lab/internal/plan"
)

// e2ePackages are the userland that the behaviour suite's scripts use.
var e2ePackages = []string{"bash", "dash", "coreutils", "util-linux", "sed", "grep", "busybox-static"}

// e2e runs the behaviour suite, test/e2e, inside of the machines.
//
// There is no Go in them. The suite builds what it tests with "go build" when it starts,
// so it is started here once, without any test, with a "go" that keeps a copy of all
// that is built, and in the machine with a "go" that brings out the copies.
func (l *lab) e2e() error {
	test := filepath.Join(l.dir, "e2e.test")
	source := filepath.Join(l.root, "test/e2e")
	if err := goTestBuild(source, test, "."); err != nil {
		return err
	}
	built, err := l.recordBuilds(test, source)
	if err != nil {
		return err
	}
	for _, k := range kernels {
		if !l.wantsKernel(k.name) {
			continue
		}
		root, _, err := l.programTree(k.suite, e2ePackages)
		if err != nil {
			return err
		}
		if err := l.run(boot{
			scenario: "e2e", kernel: k.name, root: root,
			extra: func(i *image.Image) error {
				if err := i.Tree(plan.E2E+"/test/e2e/testdata", filepath.Join(source, "testdata"), nil); err != nil {
					return err
				}
				if err := i.Tree(plan.E2E+"/built", built, nil); err != nil {
					return err
				}
				if err := i.Copy(plan.E2E+"/e2e.test", test); err != nil {
					return err
				}
				return i.File(plan.E2E+"/go/go", 0o755, []byte(goInMachine))
			},
			plan:   plan.Plan{Scenarios: []string{"e2e"}},
			memory: 4096, bound: time.Hour,
		}); err != nil {
			return err
		}
	}
	return nil
}

const (
	goThatKeeps = `#!/bin/sh
"$LAB_GO" "$@" || exit
while [ $# -gt 1 ]; do
	[ "$1" != -o ] || cp "$2" "$LAB_KEEP/"
	shift
done
`
	goInMachine = `#!/bin/sh
while [ $# -gt 1 ]; do
	[ "$1" != -o ] || exec cp ` + plan.E2E + `/built/"${2##*/}" "$2"
	shift
done
echo "there is no Go in this machine" >&2
exit 1
`
)

// recordBuilds returns a folder with all that the suite builds.
func (l *lab) recordBuilds(test, source string) (string, error) {
	built, bin := filepath.Join(l.dir, "e2e-built"), filepath.Join(l.dir, "e2e-go")
	for _, d := range []string{built, bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(goThatKeeps), 0o755); err != nil {
		return "", err
	}
	real, err := exec.LookPath("go")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(test, "-test.run=^$")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LAB_GO="+real, "LAB_KEEP="+built, "FDINIT_BINARY="+l.fdinit)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building for the behaviour suite: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return built, nil
}
