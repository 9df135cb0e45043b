package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fdinit/fdinit/test/lab/internal/plan"
	"github.com/fdinit/fdinit/test/lab/internal/programs"
)

// programSuites are those whose programs are tried, on their own kernels.
var programSuites = []string{"bookworm", "bullseye"}

// programs runs real programs with and without fdinit. The short form only wants lsof.
func (l *lab) programs() error {
	for _, k := range kernels {
		if !l.wantsKernel(k.name) || !slices.Contains(programSuites, k.suite) {
			continue
		}
		root, versions, err := l.programTree(k.suite, programs.Packages(k.suite))
		if l.short {
			root, versions, err = l.programTree(k.suite, []string{"lsof", "busybox-static"})
		}
		if err != nil {
			return err
		}
		if err := l.run(boot{
			scenario: "programs", kernel: k.name, root: root,
			plan:   plan.Plan{Scenarios: []string{"programs"}, Suite: k.suite, Versions: versions},
			memory: 6144, bound: time.Hour,
		}); err != nil {
			return err
		}
	}
	return nil
}

// programTree unpacks packages and does what their maintainer scripts would have done,
// as far as it matters here.
func (l *lab) programTree(suite string, packages []string) (root string, versions map[string]string, err error) {
	s, err := l.suite(suite)
	if err != nil {
		return "", nil, err
	}
	if root, err = s.Root(packages...); err != nil {
		return "", nil, err
	}
	versions = map[string]string{}
	for _, name := range packages {
		if versions[name], err = s.Version(name); err != nil {
			return "", nil, err
		}
	}
	if err := finish(root); err != nil {
		return "", nil, err
	}
	if slices.Contains(packages, "rpm") {
		if _, err := os.Stat(filepath.Join(root, "srv/lab.rpm")); err != nil {
			err = programs.Build(root, func(argv ...string) error { return inTree(root, argv...) })
			if err != nil {
				return "", nil, err
			}
		}
	}
	return root, versions, nil
}

// finish adds a shell and accounts.
func finish(root string) error {
	for _, d := range []string{"dev", "proc", "sys", "tmp", "run", "srv", "etc", "root", "var/log", "var/spool/squid"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "bin/sh")); os.IsNotExist(err) {
		shell := "dash"
		if _, err := os.Stat(filepath.Join(root, "bin/dash")); err != nil {
			shell = "busybox"
		}
		if err := os.Symlink(shell, filepath.Join(root, "bin/sh")); err != nil {
			return err
		}
	}
	for name, content := range accountFiles {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var accountFiles = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nproxy:x:13:13:proxy:/bin:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n",
	"etc/group":  "root:x:0:\nproxy:x:13:\nnogroup:x:65534:\n",
	"etc/hosts":  "127.0.0.1 localhost lab\n",
}

// inTree runs a command of a tree of packages.
func inTree(root string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Path = argv[0]
	cmd.Err = nil
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s's tree: %w\n%s", argv[0], filepath.Base(root), err, out)
	}
	return nil
}
