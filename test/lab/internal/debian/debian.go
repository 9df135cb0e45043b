// Package debian fetches packages of another Debian suite than the machine's own and
// unpacks them, with apt's and dpkg's own programs.
//
// Nothing is installed on the machine: apt is pointed at a state of its own, which
// knows of no installed package, and no maintainer script runs, so what is unpacked is a
// tree of files and not a system. Where packages come from is derived from the
// machine's own sources when it is needed and written into that state only.
package debian

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Suite is a Debian suite.
type Suite struct {
	name string
	dir  string
}

// Open prepares a suite's state under the cache folder. It asks the network only the
// first time.
func Open(cache, name string) (*Suite, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	s := &Suite{name: name, dir: filepath.Join(cache, name)}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial", "roots"} {
		if err := os.MkdirAll(s.path(d), 0o755); err != nil {
			return nil, err
		}
	}
	line, err := sourceLine(name)
	if err != nil {
		return nil, err
	}
	old, _ := os.ReadFile(s.path("sources.list"))
	if err := errors.Join(
		os.WriteFile(s.path("status"), nil, 0o644),
		os.WriteFile(s.path("sources.list"), []byte(line), 0o644),
	); err != nil {
		return nil, err
	}
	if string(old) != line || !s.updated() {
		if _, err := s.apt("apt-get", "update"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Suite) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Suite) updated() bool {
	lists, err := filepath.Glob(s.path("state/lists/*_Packages*"))
	return err == nil && len(lists) > 0
}

// sourceLine is the machine's own source of its main component with the suite replaced.
func sourceLine(suite string) (string, error) {
	own, err := codename()
	if err != nil {
		return "", err
	}
	out, err := run("", "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) == 3 && f[1] == own && f[2] == "main" {
			signed := ""
			const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
			if _, err := os.Stat(keyring); err == nil {
				signed = "[signed-by=" + keyring + "] "
			}
			return fmt.Sprintf("deb %s%s %s main\n", signed, f[0], suite), nil
		}
	}
	return "", fmt.Errorf("no source of %s/main on this machine (is it Debian, and has apt-get update been run?)", own)
}

func codename() (string, error) {
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); found {
			return strings.Trim(name, `"`), nil
		}
	}
	return "", errors.New("/etc/os-release names no VERSION_CODENAME")
}

// apt runs one of apt's programs on the suite's own state, in its folder of archives.
func (s *Suite) apt(program string, args ...string) (string, error) {
	options := []string{
		"-o", "Dir::State=" + s.path("state"),
		"-o", "Dir::State::status=" + s.path("status"),
		"-o", "Dir::Cache=" + s.path("cache"),
		"-o", "Dir::Etc::sourcelist=" + s.path("sources.list"),
		"-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::Etc::preferencesparts=/dev/null",
		"-o", "APT::Architecture=amd64",
		"-o", "APT::Sandbox::User=root",
		"-o", "Acquire::Languages=none",
		// A mirror may be out of reach for a moment. If it stays so, that is an error and
		// not a state with some lists missing.
		"-o", "Acquire::Retries=5",
		"-o", "APT::Update::Error-Mode=any",
		"-o", "Debug::NoLocking=1",
	}
	return run(s.path("cache/archives"), program, append(options, args...)...)
}

func run(dir, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// Kernel returns the path of the suite's kernel image for virtual machines, and its
// release as uname(2) tells it.
func (s *Suite) Kernel() (image, release string, err error) {
	const meta = "linux-image-cloud-amd64"
	out, err := s.apt("apt-cache", "depends", meta)
	if err != nil {
		return "", "", err
	}
	name := regexp.MustCompile(`linux-image-(\S+-cloud-amd64)`).FindStringSubmatch(out)
	if name == nil {
		return "", "", fmt.Errorf("%s of %s depends on no kernel", meta, s.name)
	}
	root := s.path("roots/" + name[0])
	image = filepath.Join(root, "boot/vmlinuz-"+name[1])
	if _, err := os.Stat(image); err == nil {
		return image, name[1], nil
	}
	// Not its dependencies: they are for a machine that is to boot from a disk.
	if _, err := s.apt("apt-get", "download", name[0]); err != nil {
		return "", "", err
	}
	archives, err := filepath.Glob(s.path("cache/archives/" + name[0] + "_*.deb"))
	if err != nil || len(archives) == 0 {
		return "", "", fmt.Errorf("%s was not downloaded", name[0])
	}
	// Under another name first: a run that was interrupted must not leave half of a kernel.
	partial := root + ".partial"
	if err := errors.Join(os.RemoveAll(partial), unpack(archives[len(archives)-1], partial), os.RemoveAll(root)); err != nil {
		return "", "", err
	}
	return image, name[1], os.Rename(partial, root)
}

// Root returns a tree with the packages and all that they depend on.
func (s *Suite) Root(packages ...string) (string, error) {
	packages = slices.Sorted(slices.Values(packages))
	sum := sha256.Sum256([]byte(strings.Join(packages, " ")))
	root := s.path("roots/" + hex.EncodeToString(sum[:6]))
	mark := root + ".complete"
	if _, err := os.Stat(mark); err == nil {
		return root, nil
	}
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	install := append([]string{"--yes", "--no-install-recommends", "install"}, packages...)
	if _, err := s.apt("apt-get", append([]string{"--download-only"}, install...)...); err != nil {
		return "", err
	}
	// With a merged /usr, as debootstrap has it: packages of all suites can be unpacked
	// over the links.
	for _, d := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr", d), 0o755), os.Symlink("usr/"+d, filepath.Join(root, d))); err != nil {
			return "", err
		}
	}
	plan, err := s.apt("apt-get", append([]string{"--simulate"}, install...)...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(plan) {
		m := installation.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		// Colons of epochs are encoded in the names of archives.
		archives, err := filepath.Glob(s.path(fmt.Sprintf("cache/archives/%s_%s_*.deb", m[1], strings.ReplaceAll(m[2], ":", "%3a"))))
		if err != nil || len(archives) != 1 {
			return "", fmt.Errorf("%s %s was not downloaded", m[1], m[2])
		}
		if err := unpack(archives[0], root); err != nil {
			return "", err
		}
	}
	return root, os.WriteFile(mark, []byte(strings.Join(packages, "\n")), 0o644)
}

// installation is a line such as "Inst lsof (4.93.2+dfsg-1.1 Debian:11.11/oldoldstable [amd64])".
var installation = regexp.MustCompile(`^Inst (\S+) \((\S+) `)

// Version is the version of a package in the suite.
func (s *Suite) Version(name string) (string, error) {
	out, err := s.apt("apt-cache", "show", "--no-all-versions", name)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if version, found := strings.CutPrefix(line, "Version: "); found {
			return strings.TrimSpace(version), nil
		}
	}
	return "", fmt.Errorf("%s has no version", name)
}

// unpack extracts an archive without following what dpkg would do to links that stand
// where the archive has directories.
func unpack(archive, root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	data := exec.Command("dpkg-deb", "--fsys-tarfile", archive)
	extract := exec.Command("tar", "--extract", "--keep-directory-symlink", "--directory", root)
	var stderr bytes.Buffer
	data.Stderr, extract.Stderr = &stderr, &stderr
	pipe, err := data.StdoutPipe()
	if err != nil {
		return err
	}
	extract.Stdin = pipe
	if err := data.Start(); err != nil {
		return err
	}
	if err := errors.Join(extract.Run(), data.Wait()); err != nil {
		return fmt.Errorf("unpack %s: %w: %s", filepath.Base(archive), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
