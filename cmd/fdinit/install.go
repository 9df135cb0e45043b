package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/config"
	"golang.org/x/sys/unix"
)

// This file writes through golang.org/x/sys/unix: what package os would add, the binary
// would carry into every container.

// install copies this program to where --install says, for an init container whose
// image has no cp.
func install(v config.Verdict) int {
	text := func(t config.Text) string {
		if t.Arg == 0 {
			return ""
		}
		return os.Args[t.Arg][t.Off:]
	}
	if problem := installAt(text(v.Path), text(v.As)); problem != "" {
		complain(problem)
		return config.StatusFailed
	}
	return 0
}

// installMode lets everybody execute the program, whatever the umask is, and nobody
// change it.
const installMode = 0o555

// installAt puts a copy of this program at path, or into it if it is a directory, and
// links names, separated by commas, to it. Wherever it is interrupted, there is either
// the whole program or what was there before. It returns what went wrong.
func installAt(path, names string) (problem string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		path = strings.TrimRight(path, "/") + "/fdinit"
	}
	dir := directory(path)
	links, problem := linkNames(path, names)
	if problem != "" {
		return problem
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Sprintf("installing at %s: reading this program: %v: is /proc mounted?", path, err)
	}
	if !installed(path, self) {
		if errno := replace(path, dir, self); errno != nil {
			return fmt.Sprintf("installing at %s: %v%s", path, errno, installRemedy(errno, dir))
		}
		if !installed(path, self) {
			return fmt.Sprintf("installing at %s: what was written is not what is read back", path)
		}
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Sprintf("installed at %s, but it cannot be executed from there: its filesystem is mounted noexec: use another volume", path)
	}
	for _, link := range links {
		if errno := replaceLink(ascii.Base(path), dir, link); errno != nil {
			return fmt.Sprintf("linking %s to %s: %v%s", link, path, errno, installRemedy(errno, dir))
		}
	}
	return ""
}

// directory is the part of a path that its last element is in, with a slash at its end
// unless that is the working directory.
func directory(path string) string { return path[:len(path)-len(ascii.Base(path))] }

// linkNames turns the value of --install-as into names beside the program.
func linkNames(path, names string) (links []string, problem string) {
	if names == "" {
		return nil, ""
	}
	for rest, more := names, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, ",")
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
			return nil, fmt.Sprintf("--install-as %q: %q is not a file name: use plain names such as tini,dumb-init; the links are created next to %s", names, name, path)
		}
		if name != ascii.Base(path) {
			links = append(links, name)
		}
	}
	return links, ""
}

// installed tells whether the file at path is this program, with its mode.
func installed(path string, self []byte) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode != unix.S_IFREG|installMode || st.Size != int64(len(self)) {
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && bytes.Equal(content, self)
}

// replace writes a file beside path and renames it. dir is path's directory.
func replace(path, dir string, content []byte) error {
	fd := -1
	beside, err := createBeside(dir, func(name string) (err error) {
		fd, err = unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, installMode)
		return err
	})
	if err != nil {
		return err
	}
	err = writeAll(fd, content)
	if err == nil {
		err = unix.Fchmod(fd, installMode)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	if e := unix.Close(fd); err == nil {
		err = e // a network filesystem may report a full disk only now
	}
	if err == nil {
		err = unix.Rename(beside, path)
	}
	if err != nil {
		unix.Unlink(beside)
		return err
	}
	return syncDirectory(dir)
}

// createBeside creates something in dir under the first name that is free. One that is
// taken may be in use by another container that shares the volume, where it is process
// 1 like this one, or was left by one that was killed.
func createBeside(dir string, create func(name string) error) (name string, err error) {
	for n := 0; ; n++ {
		name = fmt.Sprintf("%s.fdinit-%d", dir, n)
		if err = create(name); err != unix.EEXIST {
			return name, err
		}
	}
}

// writeAll writes in small pieces: one large write may put the file into the page
// cache in large folios, which the kernel maps whole into every init that is started
// from it.
func writeAll(fd int, content []byte) error {
	const piece = 32 << 10
	for len(content) > 0 {
		n, err := unix.Write(fd, content[:min(piece, len(content))])
		if err != nil && err != unix.EINTR {
			return err
		}
		content = content[max(n, 0):]
	}
	return nil
}

// replaceLink makes a symbolic link in dir, in place of what has its name.
func replaceLink(target, dir, name string) error {
	present := make([]byte, len(target)+1)
	if n, err := unix.Readlink(dir+name, present); err == nil && string(present[:n]) == target {
		return nil
	}
	beside, err := createBeside(dir, func(name string) error { return unix.Symlink(target, name) })
	if err != nil {
		return err
	}
	if err := unix.Rename(beside, dir+name); err != nil {
		unix.Unlink(beside)
		return err
	}
	return syncDirectory(dir)
}

// syncDirectory makes a rename last. Some filesystems cannot and say EINVAL.
func syncDirectory(dir string) error {
	if dir == "" {
		dir = "."
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && err != unix.EINVAL {
		return err
	}
	return nil
}

func installRemedy(err error, dir string) string {
	if dir == "" {
		dir = "the working directory"
	}
	switch err {
	case unix.ENOSPC, unix.EDQUOT:
		return ": the volume is full: it needs about 5 MiB"
	case unix.EROFS:
		return ": mount a volume there that can be written"
	case unix.EACCES, unix.EPERM:
		return fmt.Sprintf(": user %d may not write into %s", os.Geteuid(), dir)
	case unix.ENOENT, unix.ENOTDIR:
		return fmt.Sprintf(": there is no directory %s: mount a volume there", dir)
	}
	return ""
}
