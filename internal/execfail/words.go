package execfail

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// maxShown bounds the names in a message. A PATH is rarely longer, a hostile name can have megabytes.
const maxShown = 300

// show makes a name fit for a message of one line: as it is where that is unambiguous, quoted where it is not.
func show(name string) string {
	cut := ""
	if len(name) > maxShown {
		name, cut = strings.ToValidUTF8(name[:maxShown], ""), "..."
	}
	if name == "" {
		return `""`
	}
	plain := true
	for _, r := range name {
		if r == unicode.ReplacementChar || r == '"' || r == '\\' || unicode.IsSpace(r) || !strconv.IsPrint(r) {
			plain = false
			break
		}
	}
	if plain {
		return name + cut
	}
	return strconv.Quote(name) + cut
}

// workingDirectory names the working directory.
func workingDirectory() string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Getcwd(buf)
	if err != nil || n < 1 {
		return "(which cannot be found)"
	}
	return show(string(bytes.TrimRight(buf[:n], "\x00")))
}

// who names the identity by which the kernel judged. That root needs a capability to pass over the mode is what people
// do not expect who drop all of them.
func who() string {
	uid := unix.Geteuid()
	s := fmt.Sprintf("uid %d, gid %d", uid, unix.Getegid())
	if c, ok := ownCapabilities(); ok && uid == 0 && c.effective&(1<<unix.CAP_DAC_OVERRIDE) == 0 {
		s += " without cap_dac_override"
	}
	return s
}

// owned describes who owns a file and what its mode is.
func owned(st *unix.Stat_t) string {
	return fmt.Sprintf("mode %#04o, owner %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
}

// modeGrants tells whether the mode bits alone give this process the execute or search permission. Capabilities,
// access control lists and security modules may say otherwise: only faccessat knows the whole answer.
func modeGrants(st *unix.Stat_t) bool {
	if st.Uid == uint32(unix.Geteuid()) {
		return st.Mode&0o100 != 0
	}
	member := st.Gid == uint32(unix.Getegid())
	if !member {
		groups, _ := unix.Getgroups()
		for _, g := range groups {
			member = member || uint32(g) == st.Gid
		}
	}
	if member {
		return st.Mode&0o010 != 0
	}
	return st.Mode&0o001 != 0
}

// access asks the kernel for the execute permission, with the effective identity as exec uses it. (Before Linux 5.8
// and under a seccomp filter that does not know faccessat2, x/sys answers from the mode bits.)
func access(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}
