package execfail

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLevels is how many interpreters of interpreters the kernel follows (exec_binprm in
// fs/exec.c).
const maxLevels = 5

// examine repeats what the kernel does with one file of an exec, in the kernel's order,
// and returns the first defect. subject names the file in sentences; loader says that
// it is to be the ELF loader of the file before it.
func (p *probe) examine(path, subject string, level int, loader bool) finding {
	if f := p.admit(path, subject); f.errno != 0 {
		return f
	}
	p.chain = append(p.chain, link{path: path, subject: subject, loader: loader})
	if level > maxLevels {
		return finding{errno: unix.ELOOP, cause: "its interpreters are scripts themselves, more than " + decimal(maxLevels) + " deep"}
	}

	file, err := openRegular(path)
	head := ""
	if err == nil {
		defer file.close()
		head, err = file.head()
	}
	if err != nil {
		// Execute permission without read permission is enough for exec, but not for
		// us.
		p.unread = true
		if err == unix.EIO {
			return finding{errno: unix.EIO, cause: subject + " cannot be read"}
		}
		return finding{}
	}
	switch {
	case loader:
		return p.loader(file, head, subject)
	case strings.HasPrefix(head, "#!"):
		return p.script(head, path, subject, level)
	case strings.HasPrefix(head, elfMagic):
		return p.elf(file, head, path, subject, level)
	}
	return unknownFormat(head, subject)
}

// admit looks at what the kernel wants to be true before it opens the file: that it is
// there, is a regular file, is on a file system that allows execution, and has execute
// permission.
func (p *probe) admit(path, subject string) finding {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		errno, _ := err.(syscall.Errno)
		pl := walk(path)
		if pl.errno != errno {
			// The text of the path does not explain it: the file came or went
			// meanwhile, or the kernel knows more.
			return finding{errno: errno, absent: true}
		}
		return unreachable(path, subject, pl)
	}

	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return finding{errno: unix.EACCES, cause: subject + " is a directory"}
	default:
		return finding{errno: unix.EACCES, cause: subject + " is " + kindOf(st.Mode) + ", not a regular file"}
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		p.unsure = true
	} else if uint64(fs.Flags)&unix.ST_NOEXEC != 0 {
		return onNoexec(path, subject)
	}
	switch access(path) {
	case nil:
	case unix.EACCES:
		return refused(subject, &st)
	default:
		p.unsure = true
	}
	return finding{}
}

// onNoexec words a file on a file system that allows no execution.
func onNoexec(path, subject string) finding {
	f := finding{errno: unix.EACCES, remedy: "mount it without noexec or use another directory"}
	if point := mountPoint(path); point != "" {
		f.cause = subject + " is on " + show(point) + ", which is mounted noexec"
	} else {
		f.cause = subject + " is in " + show(directoryOf(path)) + ", on a file system mounted noexec"
	}
	return f
}

// unreachable words a path that leads nowhere.
func unreachable(path, subject string, pl place) finding {
	f := finding{errno: pl.errno, absent: true}
	own := subject == "it"
	// cannot introduces an obstacle on the way to a file that is not the workload
	// itself.
	cannot := ""
	if !own {
		cannot = subject + " cannot be reached, "
	}
	relative := ""
	if !strings.HasPrefix(path, "/") {
		relative = "the working directory is " + workingDirectory()
	}
	switch pl.obstacle {
	case missing, noParent:
		switch {
		case !own:
			f.cause = subject + " is missing"
			if relative != "" {
				f.cause += ", " + relative
			}
		case pl.obstacle == noParent:
			f.cause = "the directory " + show(pl.at) + " does not exist"
			if relative != "" {
				f.cause += ", " + relative
			}
		default:
			f.cause = relative
		}
	case dangling:
		f.absent = false
		it := "it"
		if !own {
			it = subject
		}
		if !sameName(pl.link, path) {
			it = cannot + show(pl.link)
		}
		if pl.direct {
			f.cause = it + " is a symbolic link to " + show(pl.target) + ", which does not exist"
		} else {
			f.cause = it + " is a symbolic link that leads to " + show(pl.target) + ", which does not exist"
		}
	case loop:
		f.absent = false
		f.cause = cannot + "the symbolic link " + show(pl.at) + " leads back to itself"
	case manyLinks:
		f.absent = false
		f.cause = cannot + "more than " + decimal(maxLinks) + " symbolic links lead to it"
	case notDirectory:
		f.cause = cannot + show(pl.at) + " is not a directory"
	case noSearch:
		f.cause = cannot + who() + " may not search the directory " + show(pl.at)
		var st unix.Stat_t
		if unix.Stat(pl.at, &st) == nil {
			f.cause += " (" + owned(&st) + ")"
		}
		f.remedy = "give this user search permission (x) on it"
	case longName:
		f.cause = cannot + "the name " + show(pl.at) + " has " + decimal(len(pl.at)) + " bytes, more than its file system allows"
	case longPath:
		f.cause = cannot + "the path has " + decimal(len(pl.at)) + " bytes, at most " + decimal(unix.PathMax-1) + " are allowed"
	}
	return f
}

// sameName tells whether a path, as it was given, is the link that walk found under a
// name free of symbolic links.
func sameName(found, given string) bool {
	return found == given || strings.TrimPrefix(given, "./") == found
}

// refused words the lack of execute permission on an existing regular file.
func refused(subject string, st *unix.Stat_t) finding {
	f := finding{errno: unix.EACCES}
	switch {
	case st.Mode&0o111 == 0:
		f.cause = subject + " has no execute permission for anybody (" + owned(st) + ")"
		f.remedy = "make it executable with chmod +x"
	case !modeGrants(st):
		f.cause = subject + " may not be executed by " + who() + " (" + owned(st) + ")"
		f.remedy = "give this user execute permission (x)"
	default:
		f.cause = subject + " may not be executed by " + who() + " although its mode allows it (" + owned(st) +
			"), so probably an access control list or a security module" + confinement() + " refused it"
	}
	return f
}

// script looks at a file that starts with #!.
func (p *probe) script(head, path, subject string, level int) finding {
	name, bad := parseShebang(head)
	line := "its #! line"
	if subject != "it" {
		line = "the #! line of " + show(path)
	}
	switch bad {
	case shebangLong:
		return finding{
			errno: unix.ENOEXEC, cause: line + " does not end within the " + decimal(headSize) + " bytes that the kernel reads",
			remedy: "shorten the path of the interpreter",
		}
	case shebangEmpty:
		return finding{errno: unix.ENOEXEC, cause: line + " names no interpreter"}
	case shebangUnnamed:
		// The kernel goes on and opens an empty name, which is the working directory
		// (or, on some kernels, nothing).
		f := finding{errno: unix.EACCES, cause: line + " names no interpreter"}
		if p.got == unix.ENOENT || p.got == unix.ENOEXEC {
			f.errno = p.got
		}
		return f
	}

	next := "its interpreter " + show(name)
	if subject != "it" {
		next = "the interpreter " + show(name) + " of " + show(path)
	}
	f := p.examine(name, next, level+1, false)
	if f.errno == unix.ENOENT && strings.HasSuffix(name, "\r") {
		f.cause = line + " ends in a carriage return, so its interpreter would be " + show(name)
		f.remedy = "convert the file to Unix line endings, for example with dos2unix"
	}
	// However the interpreter fails, the script itself is there.
	f.absent = false
	return f
}

// elf looks at a file that starts as an ELF file does.
func (p *probe) elf(file *regular, head, path, subject string, level int) finding {
	h, broken := parseHeader(head, file.size)
	if broken != "" {
		return finding{errno: unix.ENOEXEC, cause: subject + " is " + broken}
	}
	machine := p.machine()
	switch runs(machine, h.name()) {
	case foreign:
		mismatch := subject + " is built for " + h.name() + ", this machine is " + machine
		if p.got == unix.ENOEXEC || p.got == 0 {
			return finding{errno: unix.ENOEXEC, cause: mismatch, remedy: "choose the image for this platform or install binfmt_misc emulation"}
		}
		if p.got == unix.ENOENT {
			// The kernel's own ELF loader answers ENOEXEC: this is the answer for a
			// binfmt_misc interpreter that is registered without flag F and is not in
			// this container.
			return finding{
				errno: unix.ENOENT, cause: mismatch + ", and the emulator that binfmt_misc names for it does not exist here",
				remedy: "choose the image for this platform or register the emulator with binfmt_misc's flag F",
			}
		}
		return finding{}
	case depends:
		if p.got == unix.ENOEXEC {
			return finding{
				errno: unix.ENOEXEC, cause: subject + " is built for " + h.name() + ", which this " + machine + " machine does not run",
				remedy: "choose the image for this platform",
			}
		}
	}
	name, ok, f := h.interpreter(file, file.size)
	if f.errno != 0 {
		f.cause = subject + " is " + f.cause
		return f
	}
	if !ok {
		return finding{}
	}
	next := "its ELF loader " + show(name)
	if subject != "it" {
		next = "the ELF loader " + show(name) + " of " + show(path)
	}
	if name == "" {
		f := finding{errno: unix.EACCES, cause: subject + " has an empty ELF loader name"}
		if p.got == unix.ENOENT {
			f.errno = p.got
		}
		return f
	}
	f = p.examine(name, next, level, true) // the kernel does not count loaders
	if f.errno == unix.ENOENT && f.absent {
		libc, remedy := loaderOf(name)
		if libc != "" {
			f.cause += " (the program is built for " + libc + ")"
		}
		f.remedy = remedy
	}
	f.absent = false
	return f
}

// loader looks at the header of an ELF loader: the kernel maps it beside the program,
// so it must be ELF for the same machine.
func (p *probe) loader(file *regular, head, subject string) finding {
	if file.size < int64(nativeHeaderSize) {
		return finding{errno: unix.EIO, cause: subject + " has only " + decimal(file.size) + " bytes"}
	}
	if !strings.HasPrefix(head, elfMagic) {
		return finding{errno: unix.ELIBBAD, cause: subject + " is not an ELF file"}
	}
	h, broken := parseHeader(head, file.size)
	if broken != "" {
		return finding{errno: unix.ELIBBAD, cause: subject + " is " + broken}
	}
	machine := p.machine()
	if r := runs(machine, h.name()); r == foreign || r == depends && p.got == unix.ELIBBAD {
		return finding{errno: unix.ELIBBAD, cause: subject + " is built for " + h.name() + ", this machine is " + machine}
	}
	return finding{}
}

// kindOf names a file that is neither regular nor a directory.
func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "a named pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR:
		return "a character device"
	case unix.S_IFBLK:
		return "a block device"
	}
	return "a special file"
}
