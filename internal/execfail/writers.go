package execfail

import (
	"strconv"
	"strings"
	"time"

	"github.com/fdinit/fdinit/internal/ascii"
	"golang.org/x/sys/unix"
)

// Bounds of the search for those who have a file open. It is a courtesy: the message is
// right without.
const (
	maxProcesses   = 4096
	maxDescriptors = 50000
	maxNamed       = 3
	searchTime     = 250 * time.Millisecond
)

// busy words "text file busy": which file of the chain, and who has it open for
// writing.
func (p *probe) busy() string {
	deadline := time.Now().Add(searchTime)
	for _, l := range p.chain {
		if list := writers(l.path, deadline); list != "" {
			return l.subject + " is open for writing in " + list
		}
	}
	switch len(p.chain) {
	case 0:
		return ""
	case 1:
		return "it is open for writing"
	}
	last := p.chain[len(p.chain)-1]
	return "it or " + last.subject + " is open for writing"
}

// writers looks through /proc for processes that have a file open for writing. The
// names of the descriptors are compared first: they cost no access to the file systems
// behind them, which may hang.
func writers(path string, deadline time.Time) string {
	var want unix.Stat_t
	if unix.Stat(path, &want) != nil {
		return ""
	}
	name := ascii.Base(path)
	if pl := walk(path); pl.obstacle == reached {
		name = ascii.Base(pl.at)
	}
	list := ""
	found, descriptors := 0, 0
	buf := make([]byte, unix.PathMax)
	eachName("/proc", maxProcesses, func(pid string) bool {
		if _, err := strconv.ParseUint(pid, 10, 32); err != nil {
			return true
		}
		dir := "/proc/" + pid + "/fd"
		eachName(dir, maxDescriptors-descriptors, func(fd string) bool {
			descriptors++
			full := dir + "/" + fd
			var here, there unix.Stat_t
			n, err := unix.Readlink(full, buf)
			if err != nil || strings.TrimSuffix(ascii.Base(string(buf[:n])), " (deleted)") != name {
				return time.Now().Before(deadline)
			}
			// The permission bits of the link itself tell how the file was opened.
			if unix.Lstat(full, &here) != nil || here.Mode&0o200 == 0 {
				return true
			}
			if unix.Stat(full, &there) != nil || there.Dev != want.Dev || there.Ino != want.Ino {
				return true
			}
			found++
			if list != "" {
				list += ", "
			}
			list += describe(pid)
			return false
		})
		return found < maxNamed && time.Now().Before(deadline)
	})
	return list
}

// describe names a process.
func describe(pid string) string {
	comm := strings.TrimSuffix(readProc("/proc/"+pid+"/comm", 64), "\n")
	if comm == "" {
		return "process " + pid
	}
	return "process " + pid + " (" + show(comm) + ")"
}

// eachName calls do for at most limit names of a directory, until it returns false.
func eachName(dir string, limit int, do func(string) bool) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	buf := make([]byte, 8192)
	for limit > 0 {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return
		}
		_, _, names := unix.ParseDirent(buf[:n], limit, nil)
		for _, name := range names {
			if !do(name) {
				return
			}
		}
		limit -= len(names)
	}
}
