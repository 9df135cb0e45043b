package reaper

import (
	"unsafe"

	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// scratch is for paths. A package variable costs no memory until it is touched, and
// unlike one on the stack it need not be cleared first.
var scratch [unix.PathMax]byte

// try is what find does with a file that the command may mean.
type try uint8

const (
	tryExec   try = iota // execute it
	tryAccess            // ask whether it may be executed
)

// find goes by execvp(3)'s rules through the files that the command at args[1] may
// mean. It returns the errno if none of them could be executed, 0 if one may be.
// args[0] is the word before the command; its slot in the array is made use of.
func find(args, env sys.Vector, what try) sys.Errno {
	name := args.String(1)
	if name == "" {
		return unix.ENOENT
	}
	if ascii.Index(name, '/') < len(name) {
		return what.do(args.At(1), args, env)
	}
	path, i := env.Lookup("PATH")
	if i < 0 {
		path = DefaultPath
	}
	return search(path, name, args, env, what)
}

// DefaultPath is where commands are looked for without PATH, as in glibc's execvp.
const DefaultPath = "/bin:/usr/bin"

// search tries name in each directory of path. An empty element means the working
// directory. A file that may not be executed does not end the search but is what is
// reported in the end, else it is why the last file was missing; other errors end it.
func search(path, name string, args, env sys.Vector, what try) sys.Errno {
	last, denied := sys.Errno(unix.ENOENT), false
	for from := 0; from <= len(path); {
		to := from + ascii.Index(path[from:], ':')
		if file := join(path[from:to], name); file != nil {
			switch errno := what.do(file, args, env); errno {
			case unix.EACCES:
				denied = true
			case unix.ENOENT, unix.ENOTDIR, unix.ESTALE, unix.ENODEV, unix.ETIMEDOUT:
				last = errno
			default:
				return errno
			}
		}
		from = to + 1
	}
	if denied {
		return unix.EACCES
	}
	return last
}

// join makes dir/name a C string in scratch, nil if the kernel would not take so long
// a path.
func join(dir, name string) *byte {
	if len(dir)+1+len(name)+1 > len(scratch) {
		return nil
	}
	n := appendScratch(0, dir)
	if n > 0 {
		n = appendScratch(n, "/")
	}
	n = appendScratch(n, name)
	scratch[n] = 0
	return &scratch[0]
}

// appendScratch copies byte by byte because memmove lies in a part of the binary that
// the init needs for nothing else and would have resident for life.
func appendScratch(n int, s string) int {
	for i := range len(s) {
		scratch[n+i] = s[i]
	}
	return n + len(s)
}

func (what try) do(file *byte, args, env sys.Vector) sys.Errno {
	if what == tryAccess {
		return sys.Access(file, unix.X_OK)
	}
	return execute(file, args, env)
}

// execute executes one file. A file in no format that the kernel knows is taken for a
// script of /bin/sh, as execvp(3) does: images have scripts without a shebang. Unlike
// execvp it does not feed a shell what is no text, such as a program for another
// machine, which the shell would answer with a riddle.
func execute(file *byte, args, env sys.Vector) sys.Errno {
	errno := sys.Execve(file, args.From(1), env)
	if errno != unix.ENOEXEC || !isText(file) {
		return errno
	}
	// The words before the file make room for the shell: args becomes /bin/sh FILE ARG...
	before, command := args.At(0), args.At(1)
	shell := unsafe.StringData("/bin/sh\x00")
	args.Set(0, shell)
	args.Set(1, file)
	shellErrno := sys.Execve(shell, args, env)
	args.Set(0, before)
	args.Set(1, command)
	if shellErrno == unix.ENOENT {
		return errno // what cannot be run is the file; that there is no shell is a detail
	}
	return shellErrno
}

// isText tells whether a file's first line, or as much of it as counts, has no NUL. A
// file that may be executed but not read is left for the shell to judge.
func isText(file *byte) bool {
	fd, errno := sys.OpenPath(file, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK)
	if errno != 0 {
		return true
	}
	var head [128]byte
	n, errno := sys.Read(fd, head[:])
	sys.Close(fd)
	if errno != 0 {
		return true
	}
	for i := range n {
		switch head[i] {
		case 0:
			return false
		case '\n':
			return true
		}
	}
	return true
}
