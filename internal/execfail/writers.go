package execfail

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the search for those who have a file open. It is a courtesy: the message is right without.
const (
	maxProcesses   = 4096
	maxDescriptors = 50000
	maxNamed       = 3
	searchTime     = 250 * time.Millisecond
)

// busy words "text file busy": which file of the chain, and who has it open for writing.
func (p *probe) busy() string {
	deadline := time.Now().Add(searchTime)
	for _, l := range p.chain {
		if pids := writers(l.path, deadline); len(pids) > 0 {
			return l.subject + " is open for writing in " + strings.Join(pids, ", ")
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

// writers looks through /proc for processes that have a file open for writing. The names of the descriptors are
// compared first: they cost no access to the file systems behind them, which may hang.
func writers(path string, deadline time.Time) []string {
	var want unix.Stat_t
	if unix.Stat(path, &want) != nil {
		return nil
	}
	name := base(path)
	if pl := walk(path); pl.obstacle == reached {
		name = base(pl.at)
	}
	var found []string
	descriptors := 0
	eachName("/proc", maxProcesses, func(pid string) bool {
		if _, err := strconv.ParseUint(pid, 10, 31); err != nil {
			return true
		}
		dir := "/proc/" + pid + "/fd"
		eachName(dir, maxDescriptors-descriptors, func(fd string) bool {
			descriptors++
			full := dir + "/" + fd
			var here, there unix.Stat_t
			target, err := os.Readlink(full)
			if err != nil || base(target) != name && base(target) != name+" (deleted)" {
				return time.Now().Before(deadline)
			}
			// The permission bits of the link itself tell how the file was opened.
			if unix.Lstat(full, &here) != nil || here.Mode&0o200 == 0 {
				return true
			}
			if unix.Stat(full, &there) != nil || there.Dev != want.Dev || there.Ino != want.Ino {
				return true
			}
			found = append(found, describe(pid))
			return false
		})
		return len(found) < maxNamed && time.Now().Before(deadline)
	})
	return found
}

// describe names a process.
func describe(pid string) string {
	comm := strings.TrimRight(string(readProc("/proc/"+pid+"/comm", 64)), "\n")
	if comm == "" {
		return "process " + pid
	}
	return fmt.Sprintf("process %s (%s)", pid, show(comm))
}

// eachName calls do for at most limit names of a directory, until it returns false.
func eachName(dir string, limit int, do func(string) bool) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer d.Close()
	for limit > 0 {
		names, err := d.Readdirnames(min(limit, 256))
		for _, name := range names {
			if !do(name) {
				return
			}
		}
		limit -= len(names)
		if err == io.EOF || err != nil || len(names) == 0 {
			return
		}
	}
}
