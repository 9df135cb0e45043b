package execfail

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMountInfo bounds what is read of the mount table: a node with thousands of mounts
// has some hundred kB.
const maxMountInfo = 1 << 20

// readProc reads at most limit bytes of a file under /proc, nothing if it is not there.
func readProc(path string, limit int) string {
	file, err := openRegular(path)
	if err != nil {
		return ""
	}
	defer file.close()
	b := make([]byte, limit)
	n, _ := file.ReadAt(b, 0)
	return string(b[:n])
}

// softLimit is a finite soft limit of this process.
func softLimit(resource int) (uint64, bool) {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil || uint64(r.Cur) == unix.RLIM_INFINITY {
		return 0, false
	}
	return uint64(r.Cur), true
}

// openFiles reads how many files the system has open and may have.
func openFiles() (used, limit uint64, ok bool) {
	fields := strings.Split(strings.TrimSuffix(readProc("/proc/sys/fs/file-nr", 256), "\n"), "\t")
	if len(fields) < 3 {
		return 0, 0, false
	}
	used, err1 := strconv.ParseUint(fields[0], 10, 64)
	limit, err2 := strconv.ParseUint(fields[2], 10, 64)
	return used, limit, err1 == nil && err2 == nil
}

// seccompActive tells whether this process has a seccomp filter.
func seccompActive() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode != 0
}

// confinement names the profile or context under which a security module holds this
// process, as " (…)".
func confinement() string {
	if label := parseLabel(readProc("/proc/self/attr/current", 512)); label != "" {
		return " (this process runs under " + show(label) + ")"
	}
	return ""
}

// parseLabel returns a label that confines: "docker-default (enforce)" of AppArmor or a
// context of SELinux.
func parseLabel(label string) string {
	if i := strings.IndexAny(label, "\n\x00"); i >= 0 {
		label = label[:i]
	}
	if strings.HasSuffix(label, " (enforce)") || strings.Count(label, ":") >= 2 {
		return label
	}
	return ""
}

// directoryOf is the directory part of a path.
func directoryOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	switch i {
	case -1:
		return workingDirectory()
	case 0:
		return "/"
	}
	return path[:i]
}

// mountPoint names the noexec mount that a file is on, empty if that cannot be found
// out.
func mountPoint(path string) string {
	var sx unix.Statx_t
	// The mount's number is told since Linux 5.8.
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &sx) != nil || sx.Mask&unix.STATX_MNT_ID == 0 {
		return ""
	}
	return parseMountInfo(readProc("/proc/self/mountinfo", maxMountInfo), sx.Mnt_id)
}

// parseMountInfo finds the mount point of a mount that has the option noexec.
func parseMountInfo(table string, id uint64) string {
	for table != "" {
		var line string
		line, table, _ = strings.Cut(table, "\n")
		// Not strings.Fields: a name may have what only Unicode takes for blanks.
		fields := strings.Split(line, " ")
		if n, err := strconv.ParseUint(fields[0], 10, 64); err != nil || n != id || len(fields) < 6 {
			continue
		}
		if slices.Contains(strings.Split(fields[5], ","), "noexec") {
			return unescape(fields[4])
		}
		return ""
	}
	return ""
}

// unescape undoes the octal escapes of blanks and backslashes in the mount table.
func unescape(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b = append(b, byte(n))
				i += 3
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
