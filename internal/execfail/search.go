package execfail

import (
	"strings"

	"golang.org/x/sys/unix"
)

// maxElements bounds the directories of PATH that are looked at: a longer one is
// hostile.
const maxElements = 1024

// explainSearch repeats the search through PATH by the rules of execvp(3) and picks the
// file that is to blame: the first one whose defect gives the kernel's answer. When no
// file is, the command itself is returned, with the PATH.
func (p *probe) explainSearch(a Attempt) (string, finding) {
	type candidate struct {
		file string
		f    finding
		p    probe
		rank int
	}
	var best candidate
	for _, dir := range elements(a.Path) {
		c := candidate{file: inside(dir, a.Command)}
		c.p = probe{got: p.got}
		c.f = c.p.explainFile(c.file)
		c.rank = p.rank(c.f)
		if c.rank > best.rank {
			best = c
		}
		if best.rank == decisive {
			break
		}
	}
	if best.rank == unsearchable && best.f.errno == unix.EACCES {
		best.f.cause += ", and " + show(a.Command) + " is nowhere else in PATH"
	}
	if best.rank > 0 {
		p.chain, p.unread, p.unsure = best.p.chain, best.p.unread, best.p.unsure
		return best.file, best.f
	}

	f := finding{errno: unix.ENOENT, absent: true}
	if p.got == unix.ENOTDIR {
		f.errno = p.got
	}
	switch {
	case !a.PathSet:
		f.cause = "not found in " + show(a.Path) + ", which is searched because PATH is not set"
	case a.Path == "":
		f.cause = "PATH is empty, so only the working directory " + workingDirectory() + " was searched"
	default:
		f.cause = "not found in PATH (" + show(a.Path) + ")"
	}
	if executable("./" + a.Command) {
		f.remedy = "write ./" + show(a.Command) + " to run the one in the working directory"
	}
	return a.Command, f
}

// elements are the directories of a PATH.
func elements(list string) []string {
	var dirs []string
	for more := true; more && len(dirs) < maxElements; {
		var dir string
		dir, list, more = strings.Cut(list, ":")
		dirs = append(dirs, dir)
	}
	return dirs
}

// executable tells whether there is a regular file with execute permission, without
// looking into it: for advice about files that exec did not touch.
func executable(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && access(path) == nil
}

// executableWord tells whether a word alone would be a command.
func executableWord(word string, a Attempt) bool {
	if strings.Contains(word, "/") {
		return executable(word)
	}
	for _, dir := range elements(a.Path) {
		if executable(inside(dir, word)) {
			return true
		}
	}
	return false
}

// How well a finding explains the outcome of a search.
const (
	irrelevant   = iota
	unsearchable // the directory may not be searched, or the name is no name there
	possible     // the search would have gone on from here
	remembered   // likewise, with the errno that wins in the end
	decisive     // this is what the search ended with
)

// rank tells how well a finding about a file in a directory of PATH explains the
// outcome of the search.
func (p *probe) rank(f finding) int {
	skipped := f.errno == unix.ENOENT || f.errno == unix.ENOTDIR
	switch {
	case f.absent && skipped:
		return irrelevant
	case p.got == 0 && f.absent:
		return unsearchable
	case p.got == 0 && skipped:
		return possible
	case p.got == 0 && f.errno == unix.EACCES:
		return remembered
	case p.got == 0:
		return decisive
	case f.absent && f.errno == p.got && (p.got == unix.ENAMETOOLONG || p.got == unix.ELOOP):
		return decisive
	case f.absent && f.errno == p.got:
		return unsearchable
	case f.errno == p.got:
		return decisive
	case f.errno == 0:
		return possible
	}
	return irrelevant
}
