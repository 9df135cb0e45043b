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
	at       string // the component concerned, free of symbolic links; for reached, the file itself
	link     string // for dangling: the first link that led there
	target   string // for dangling: what does not exist
	direct   bool   // for dangling: target is the text of the link itself
}

// walk resolves a path component by component, as the kernel does, to find the one that stops it: the kernel tells only
// that something did.
func walk(path string) place {
	if len(path) >= unix.PathMax {
		return place{obstacle: longPath, errno: unix.ENAMETOOLONG, at: path}
	}
	var (
		cur   string // the directory reached so far, free of symbolic links; empty for the working directory
		rest  = path
		links int
		seen  = map[string]bool{}
		outer struct { // the outermost link whose text is being followed
			path, text string
			left       int // length of what follows the text
			direct     bool
		}
	)
	if strings.HasPrefix(rest, "/") {
		cur = "/"
	}
	for range maxSteps {
		rest = strings.TrimLeft(rest, "/")
		if outer.path != "" && len(rest) <= outer.left {
			outer.path = ""
		}
		if rest == "" {
			if cur == "" {
				cur = "."
			}
			return place{obstacle: reached, at: cur}
		}
		name, after := rest, ""
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			name, after = rest[:i], rest[i:]
		}
		switch name {
		case ".":
			rest = after
			continue
		case "..":
			cur, rest = parent(cur), after
			continue
		}
		full := inside(cur, name)
		var st unix.Stat_t
		switch err := unix.Lstat(full, &st); err {
		case nil:
		case unix.ENOENT:
			switch {
			case outer.path != "":
				pl := place{obstacle: dangling, errno: unix.ENOENT, at: full, link: outer.path, target: full}
				if outer.direct {
					pl.target, pl.direct = outer.text, true
				}
				return pl
			case strings.TrimLeft(after, "/") != "":
				return place{obstacle: noParent, errno: unix.ENOENT, at: full}
			}
			return place{obstacle: missing, errno: unix.ENOENT, at: full}
		case unix.EACCES:
			if cur == "" {
				cur = "."
			}
			return place{obstacle: noSearch, errno: unix.EACCES, at: cur}
		case unix.ENAMETOOLONG:
			return place{obstacle: longName, errno: unix.ENAMETOOLONG, at: name}
		default:
			return place{obstacle: undecided, at: full}
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			links++
			if links > maxLinks {
				if seen[full] {
					return place{obstacle: loop, errno: unix.ELOOP, at: full}
				}
				return place{obstacle: manyLinks, errno: unix.ELOOP, at: full}
			}
			seen[full] = true
			text, ok := readLink(cur, full)
			if !ok {
				return place{obstacle: undecided, at: full}
			}
			if outer.path == "" {
				outer.path, outer.text, outer.left, outer.direct = full, text, len(after), true
			} else {
				outer.direct = false
			}
			if strings.HasPrefix(text, "/") {
				cur = "/"
			}
			rest = text + after
		case unix.S_IFDIR:
			cur, rest = full, after
		default:
			if after != "" {
				return place{obstacle: notDirectory, errno: unix.ENOTDIR, at: full}
			}
			return place{obstacle: reached, at: full}
		}
	}
	return place{obstacle: undecided, at: cur}
}

// readLink reads the text of a symbolic link, unless the text is not what the kernel follows: /proc/PID/exe and the like.
func readLink(dir, path string) (string, bool) {
	if dir == "" {
		dir = "."
	}
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

// parent is the directory above one that is free of symbolic links, where cutting off the last component is right.
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
