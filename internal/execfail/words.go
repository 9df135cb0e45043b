package execfail

import (
	"strconv"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxShown bounds the names in a message. A PATH is rarely longer, a hostile name can
// have megabytes.
const maxShown = 300

// show makes a name fit for a message of one line: as it is where that is unambiguous,
// quoted where it is not.
func show(name string) string {
	cut := ""
	if len(name) > maxShown {
		name, cut = withoutPartialRune(name[:maxShown]), "..."
	}
	if name == "" {
		return `""`
	}
	for _, r := range name {
		if r == utf8.RuneError || r == '"' || r == '\\' || r == ' ' || !strconv.IsPrint(r) {
			return strconv.Quote(name) + cut
		}
	}
	return name + cut
}

// decimal writes a number.
func decimal[N int | int64 | uint64](n N) string { return digits(uint64(n)) }

// digits is not inlined because it is called some forty times, and the binary is to
// stay small.
//
//go:noinline
func digits(n uint64) string { return strconv.FormatUint(n, 10) }

// workingDirectory names the working directory.
func workingDirectory() string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Getcwd(buf)
	if err != nil || n < 1 {
		return "(which cannot be found)"
	}
	return show(unix.ByteSliceToString(buf[:n]))
}

// who names the identity by which the kernel judged. That root needs a capability to
// pass over the mode is what people do not expect who drop all of them.
func who() string {
	uid := unix.Geteuid()
	s := "uid " + decimal(uid) + ", gid " + decimal(unix.Getegid())
	if c, ok := ownCapabilities(); ok && uid == 0 && c.effective&(1<<unix.CAP_DAC_OVERRIDE) == 0 {
		s += " without cap_dac_override"
	}
	return s
}

// owned describes who owns a file and what its mode is.
func owned(st *unix.Stat_t) string {
	mode := strconv.FormatUint(uint64(st.Mode&0o7777), 8)
	for len(mode) < 4 {
		mode = "0" + mode
	}
	return "mode " + mode + ", owner " + decimal(uint64(st.Uid)) + ":" + decimal(uint64(st.Gid))
}

// modeGrants tells whether the mode bits alone give this process the execute or search
// permission. Capabilities, access control lists and security modules may say
// otherwise: only faccessat knows the whole answer.
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

// access asks the kernel for the execute permission, with the effective identity as
// exec uses it. (Before Linux 5.8 and under a seccomp filter that does not know
// faccessat2, x/sys answers from the mode bits.)
func access(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}
