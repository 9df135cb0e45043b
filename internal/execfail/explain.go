package execfail

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attempt is what was tried.
type Attempt struct {
	Command string // argv[0] of the workload as given
	Path    string // what was searched: the value of PATH, or the default without one
	PathSet bool   // PATH was in the environment

	// Args counts the argument and environment strings, ArgBytes the bytes they take in
	// the new program, with their NULs and pointers. Only E2BIG needs them; zero means
	// unknown.
	Args     int64
	ArgBytes int64

	// Errno is what the kernel answered; after a search through PATH the remembered one
	// (EACCES wins over ENOENT). Zero means that the answer was lost, as under an
	// emulator that turns vfork into fork: then the file alone tells.
	Errno syscall.Errno
}

// Explanation says what failed and why, as far as it could be found out.
type Explanation struct {
	File   string // the file that was tried, found through PATH where there was a search
	Reason string // the errno in words
	Cause  string // what is behind it, empty when nothing better than the errno is known
	Remedy string // a clause of advice, or empty
}

// String is the whole explanation on one line, lower case and without a period, fit to
// follow "fdinit: ".
func (e Explanation) String() string {
	s := "exec " + show(e.File)
	for _, part := range [...]string{e.Reason, e.Cause, e.Remedy} {
		if part != "" {
			s += ": " + part
		}
	}
	return s
}

// Explain finds out why the attempt failed. It never panics and takes bounded time on
// any file.
func Explain(a Attempt) Explanation {
	p := &probe{got: a.Errno}
	file, f := a.Command, finding{}
	switch {
	case a.Command == "":
		f = finding{errno: unix.ENOENT, cause: "the command is an empty word"}
	case strings.Contains(a.Command, "/"):
		f = p.explainFile(file)
	default:
		file, f = p.explainSearch(a)
	}
	if f.errno == unix.ENOENT && f.remedy == "" {
		f.remedy = p.severalWords(a)
	}

	errno := a.Errno
	if errno == 0 {
		errno = f.errno
	}
	if f.errno != errno {
		// What was found is not what the kernel complained about: say what the errno
		// alone allows to say.
		f = p.fromErrno(a, file)
	}
	e := Explanation{File: file, Reason: errno.Error(), Cause: f.cause, Remedy: f.remedy}
	if errno == 0 {
		e.Reason = "it could not be executed"
	}
	return e
}

// finding is a defect and the errno by which the kernel reports it. No errno means no
// defect.
type finding struct {
	errno         syscall.Errno
	cause, remedy string

	// absent: the file itself is not there. The next directory of PATH may have it, and
	// there is nothing to say of this one.
	absent bool
	// shell: neither a program nor a script, so /bin/sh would have been tried.
	shell bool
}

// probe looks at the files of one attempt.
type probe struct {
	got     syscall.Errno // the kernel's answer, 0 if unknown
	chain   []link        // the files that exec opens one after another, as far as they exist
	unread  bool          // a file of the chain cannot be read, so the next is unknown
	unsure  bool          // the kernel does not tell a file's mode or mount
	native  string        // cached by machine()
	shTried bool          // /bin/sh is being looked at: no recursion
}

// link is one file of the chain, with its name in sentences: "it", "its interpreter
// /bin/sh".
type link struct {
	path, subject string
	loader        bool // an ELF loader, whose file capabilities do not count
}

// explainFile looks at one named file and returns the defect that matches the kernel's
// answer, if there is one.
func (p *probe) explainFile(path string) finding {
	p.chain, p.unread, p.unsure = p.chain[:0], false, false
	return p.match(p.examine(path, "it", 0, false))
}

// match fits a finding to the kernel's answer where more than one answer is possible
// for the same defect.
func (p *probe) match(f finding) finding {
	switch {
	case f.errno == unix.EACCES && p.got == unix.EISDIR:
		// Kernels before 5.8 knew EISDIR here for interpreters.
		f.errno = p.got
	case f.shell && !p.shTried:
		// fdinit runs a file without #! through /bin/sh, as execvp(3) does. Its answer
		// arrives as ENOEXEC or as the errno of executing /bin/sh.
		sh := &probe{shTried: true}
		s := sh.examine("/bin/sh", "/bin/sh", 0, false)
		if s.errno != 0 {
			f.cause += ", and " + s.cause
			f.remedy = "start it with #! and an interpreter that exists here"
			if p.got == s.errno {
				f.errno = p.got
			}
		}
	}
	return f
}

// severalWords advises on "ls -l" given as one word, the classic slip in an exec-form
// ENTRYPOINT.
func (p *probe) severalWords(a Attempt) string {
	i := strings.IndexAny(a.Command, " \t")
	if i <= 0 || !executableWord(a.Command[:i], a) {
		return ""
	}
	return "give the command " + show(a.Command[:i]) + " and its arguments as separate words"
}

// fromErrno says what the errno and the state of this process allow to say, after the
// file has shown no defect that would give this errno.
func (p *probe) fromErrno(a Attempt, file string) finding {
	f := finding{errno: a.Errno}
	switch a.Errno {
	case unix.E2BIG:
		f.cause = tooBig(a)
		f.remedy = "pass fewer or shorter ones"
	case unix.ETXTBSY:
		f.cause = p.busy()
		f.remedy = "start it after the writer has closed it"
	case unix.EACCES:
		switch {
		case len(p.chain) == 0 || p.unsure:
		case p.unread:
			f.cause = "its mode and mount allow it, and it cannot be read to look further"
		default:
			f.cause = "its mode and mount allow it, so probably a security module such as AppArmor or SELinux" + confinement() + " refused it"
		}
	case unix.EPERM:
		if cause, remedy := p.fileCapabilities(); cause != "" {
			f.cause, f.remedy = cause, remedy
			break
		}
		f.cause = "this is usually a security module such as AppArmor or SELinux" + confinement()
		if seccompActive() {
			f.cause += ", or the seccomp filter that is active here"
		}
	case unix.ENOSYS:
		if seccompActive() {
			f.cause = "the seccomp filter that is active here may refuse execve"
		}
	case unix.EAGAIN:
		// Since Linux 3.1 execve fails so after a change of the user id that went
		// beyond the limit.
		if n, ok := softLimit(unix.RLIMIT_NPROC); ok {
			f.cause = "this is the answer when uid " + decimal(unix.Getuid()) + " has more processes than RLIMIT_NPROC (" + decimal(n) + ") allows"
			f.remedy = "raise the limit or stop other processes of this user"
		}
	case unix.ENOMEM:
		if n, ok := softLimit(unix.RLIMIT_AS); ok {
			f.cause = "the address space limit RLIMIT_AS is " + decimal(n) + " bytes"
		}
	case unix.EMFILE:
		if n, ok := softLimit(unix.RLIMIT_NOFILE); ok {
			f.cause = "the descriptor limit RLIMIT_NOFILE is " + decimal(n)
		}
	case unix.ENFILE:
		if used, limit, ok := openFiles(); ok {
			f.cause = "the whole system has " + decimal(used) + " of at most " + decimal(limit) + " files open (fs.file-max)"
		}
	}
	return f
}

// tooBig sets the sizes against the kernel's limits (bprm_stack_limits and copy_strings
// in fs/exec.c).
func tooBig(a Attempt) string {
	const (
		minimum = 128 << 10         // ARG_MAX, granted whatever the stack limit
		maximum = (8 << 20) / 4 * 3 // three quarters of _STK_LIM, since Linux 4.13
	)
	total, why := int64(maximum), "the kernel's maximum"
	if stack, ok := softLimit(unix.RLIMIT_STACK); ok && stack/4 < maximum {
		total, why = int64(stack/4), "a quarter of RLIMIT_STACK"
		if total < minimum {
			total, why = minimum, "the kernel's minimum"
		}
	}
	single := int64(unix.Getpagesize()) * 32 // MAX_ARG_STRLEN
	limits := decimal(total) + " bytes are allowed for all arguments and environment strings (" + why + "), " + decimal(single) + " for each"
	if a.Args <= 0 || a.ArgBytes <= 0 {
		return limits
	}
	these := decimal(a.Args) + " arguments and environment strings take " + decimal(a.ArgBytes) + " bytes"
	if a.ArgBytes > total {
		return these + ", more than the " + decimal(total) + " allowed (" + why + ")"
	}
	return these + "; " + limits
}
