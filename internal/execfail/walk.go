package execfail

import (
	"strings"
	"syscall"

	"github.com/fdinit/fdinit/internal/ascii"
	"golang.org/x/sys/unix"
)

const (
	maxLinks = 40   // MAXSYMLINKS, beyond which the kernel answers ELOOP
	maxSteps = 2048 // components looked at in all, for paths made to be slow
)

// obstacle is the kind of thing that ends the resolution of a path.
type obstacle int

const (
	reached      obstacle = iota // nothing: the path leads to a file
	undecided                    // the text of the path does not tell
	missing                      // the last component does not exist
	noParent                     // a component before the last does not exist
	dangling                     // a symbolic link leads to something that does not exist
	loop                         // symbolic links that lead to themselves
	manyLinks                    // too many of them, although no loop was seen
	notDirectory                 // a component that is no directory, with more to follow
	noSearch                     // a directory without search permission
	longName                     // a component that is too long for the file system
	longPath                     // the whole path is too long
)

// place is where the resolution of a path ended.
type place struct {
	obstacle obstacle
	errno    syscall.Errno
	at       string // the component, free of symbolic links; for reached, the file itself
	link     string // for dangling: the first link that led there
	target   string // for dangling: what does not exist
	direct   bool   // for dangling: target is the text of the link itself
}

// walk resolves a path component by component, as the kernel does, to find the one that
// stops it: the kernel tells only that something did.
func walk(path string) place {
	if len(path) >= unix.PathMax {
		return place{obstacle: longPath, errno: unix.ENAMETOOLONG, at: path}
	}
	w := walker{rest: path, seen: map[string]bool{}}
	if strings.HasPrefix(path, "/") {
		w.cur = "/"
	}
	for range maxSteps {
		if end, ended := w.step(); ended {
			return end
		}
	}
	return place{obstacle: undecided, at: w.cur}
}

// walker is on its way along a path.
type walker struct {
	// cur is the directory reached so far, free of symbolic links; empty for the working
	// directory.
	cur   string
	rest  string // what is to be followed from there
	links int
	seen  map[string]bool
	outer struct { // the outermost link whose text is being followed
		path, text string
		left       int // length of what follows the text
		direct     bool
	}
}

// step follows the next component. ended is true if there is no further one, or no way
// to it.
func (w *walker) step() (end place, ended bool) {
	w.rest = strings.TrimLeft(w.rest, "/")
	if w.outer.path != "" && len(w.rest) <= w.outer.left {
		w.outer.path = ""
	}
	if w.rest == "" {
		return place{obstacle: reached, at: w.directory()}, true
	}
	name, after := w.rest, ""
	if i := strings.IndexByte(w.rest, '/'); i >= 0 {
		name, after = w.rest[:i], w.rest[i:]
	}
	switch name {
	case ".":
		w.rest = after
		return place{}, false
	case "..":
		w.cur, w.rest = parent(w.cur), after
		return place{}, false
	}
	full := inside(w.cur, name)
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		return w.stopped(err, full, after), true
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return w.follow(full, after)
	case unix.S_IFDIR:
		w.cur, w.rest = full, after
		return place{}, false
	}
	if after != "" {
		return place{obstacle: notDirectory, errno: unix.ENOTDIR, at: full}, true
	}
	return place{obstacle: reached, at: full}, true
}

// directory names the directory reached so far.
func (w *walker) directory() string {
	if w.cur == "" {
		return "."
	}
	return w.cur
}

// stopped tells what it means for the path that lstat fails for a component of it.
// after is what follows the component.
func (w *walker) stopped(err error, full, after string) place {
	switch err {
	case unix.ENOENT:
		switch {
		case w.outer.path != "" && w.outer.direct:
			return place{obstacle: dangling, errno: unix.ENOENT, at: full, link: w.outer.path, target: w.outer.text, direct: true}
		case w.outer.path != "":
			return place{obstacle: dangling, errno: unix.ENOENT, at: full, link: w.outer.path, target: full}
		case strings.TrimLeft(after, "/") != "":
			return place{obstacle: noParent, errno: unix.ENOENT, at: full}
		}
		return place{obstacle: missing, errno: unix.ENOENT, at: full}
	case unix.EACCES:
		return place{obstacle: noSearch, errno: unix.EACCES, at: w.directory()}
	case unix.ENAMETOOLONG:
		return place{obstacle: longName, errno: unix.ENAMETOOLONG, at: ascii.Base(full)}
	}
	return place{obstacle: undecided, at: full}
}

// follow goes on with the text of a symbolic link, then with what follows the link.
func (w *walker) follow(full, after string) (end place, ended bool) {
	w.links++
	if w.links > maxLinks {
		if w.seen[full] {
			return place{obstacle: loop, errno: unix.ELOOP, at: full}, true
		}
		return place{obstacle: manyLinks, errno: unix.ELOOP, at: full}, true
	}
	w.seen[full] = true
	text, ok := readLink(w.directory(), full)
	if !ok {
		return place{obstacle: undecided, at: full}, true
	}
	if w.outer.path == "" {
		w.outer.path, w.outer.text, w.outer.left, w.outer.direct = full, text, len(after), true
	} else {
		w.outer.direct = false
	}
	if strings.HasPrefix(text, "/") {
		w.cur = "/"
	}
	w.rest = text + after
	return place{}, false
}

// readLink reads the text of a symbolic link, unless the text is not what the kernel
// follows: /proc/PID/exe and the like.
func readLink(dir, path string) (string, bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && uint32(fs.Type) == unix.PROC_SUPER_MAGIC {
		switch ascii.Base(path) {
		case "self", "thread-self", "mounts", "net":
		default:
			return "", false
		}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(path, buf)
	if err != nil || n <= 0 || n >= len(buf) {
		return "", false
	}
	return string(buf[:n]), true
}

// inside joins a directory and a name. The empty directory is the working directory, as
// it is in PATH.
func inside(dir, name string) string {
	if dir == "" || strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// parent is the directory above one that is free of symbolic links, where cutting off
// the last component is right.
func parent(dir string) string {
	switch {
	case dir == "/":
		return "/"
	case dir == "":
		return ".."
	case ascii.Base(dir) == "..":
		return dir + "/.."
	}
	i := strings.LastIndexByte(dir, '/')
	switch i {
	case -1:
		return ""
	case 0:
		return "/"
	}
	return dir[:i]
}
