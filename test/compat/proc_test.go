package compat

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// A process as /proc shows it. The observer stands outside of the PID namespace, so it sees every process of it
// without taking part, and all ids are those of the outside.
type process struct {
	pid, ppid, pgrp, sid, tty, fg int
	inner                         int
	comm                          string
	state                         byte
	blocked, ignored, caught      uint64
	pending                       uint64
	switches                      int // how often it has left its processor
	umask, nnp                    string
}

func readProcess(pid int) (process, bool) {
	p := process{pid: pid}
	dir := "/proc/" + strconv.Itoa(pid)
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return p, false
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < 0 {
		return p, false
	}
	p.comm = string(b[open+1 : end])
	f := strings.Fields(string(b[end+1:]))
	p.state = f[0][0]
	for i, to := range []*int{&p.ppid, &p.pgrp, &p.sid, &p.tty, &p.fg} {
		*to, _ = strconv.Atoi(f[i+1])
	}
	b, err = os.ReadFile(dir + "/status")
	if err != nil {
		return p, false
	}
	for line := range strings.Lines(string(b)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		v = strings.TrimSpace(v)
		switch key {
		case "SigBlk":
			p.blocked, _ = strconv.ParseUint(v, 16, 64)
		case "SigIgn":
			p.ignored, _ = strconv.ParseUint(v, 16, 64)
		case "SigCgt":
			p.caught, _ = strconv.ParseUint(v, 16, 64)
		case "ShdPnd":
			p.pending, _ = strconv.ParseUint(v, 16, 64)
		case "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches":
			n, _ := strconv.Atoi(v)
			p.switches += n
		case "Umask":
			p.umask = v
		case "NoNewPrivs":
			p.nnp = v
		case "NSpid":
			ids := strings.Fields(v)
			p.inner, _ = strconv.Atoi(ids[len(ids)-1])
		}
	}
	return p, p.state != 'X'
}

// rests tells whether a process is dead, or is stopped or asleep and has left its processor. The state alone does not
// say so: waitpid(2) is called S while it looks for children, even with WNOHANG, and a process that stops is called T
// before it has told its parent. Linux writes "running" for one that is on a processor or waits for one.
func (p process) rests() bool {
	switch p.state {
	case 'Z':
		return true
	case 'S', 'T':
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/syscall")
		return err != nil || !bytes.HasPrefix(b, []byte("running"))
	}
	return false
}

// hasChildrenFile: CONFIG_PROC_CHILDREN. Without it every process has to be looked at.
var hasChildrenFile = func() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	return err == nil
}()

// children lists the children of a process. The kernel's list may lack one while another leaves, so it counts when it
// says the same twice.
func children(pid int) []int {
	last := readChildren(pid)
	for range 100 {
		now := readChildren(pid)
		if slices.Equal(last, now) {
			break
		}
		last = now
	}
	return last
}

func readChildren(pid int) []int {
	var kids []int
	if hasChildrenFile {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			for _, w := range strings.Fields(string(b)) {
				n, _ := strconv.Atoi(w)
				kids = append(kids, n)
			}
		}
		return kids
	}
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		n, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		b, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
		if end := bytes.LastIndexByte(b, ')'); end > 0 {
			if f := strings.Fields(string(b[end+1:])); len(f) > 1 && f[1] == strconv.Itoa(pid) {
				kids = append(kids, n)
			}
		}
	}
	return kids
}

// descendants lists every live or zombie process below pid.
func descendants(pid int) []process {
	var all []process
	for _, k := range children(pid) {
		if p, ok := readProcess(k); ok {
			all = append(all, p)
		}
		all = append(all, descendants(k)...)
	}
	return all
}

func signalList(mask uint64) string {
	var out []string
	for s := 1; s <= 64; s++ {
		if mask&(1<<(s-1)) == 0 {
			continue
		}
		end := s
		for end < 64 && mask&(1<<end) != 0 {
			end++
		}
		if end > s+1 {
			out = append(out, fmt.Sprintf("%d-%d", s, end))
		} else {
			for ; s <= end; s++ {
				out = append(out, strconv.Itoa(s))
			}
		}
		s = end
	}
	return strings.Join(out, " ")
}

// openFiles is "0 stdin, 1 stdout, …" with what each descriptor points at put in words.
func openFiles(pid int, name func(target string) string) string {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	ents, err := os.ReadDir(dir)
	if err != nil {
		return "unreadable"
	}
	type fd struct {
		n int
		s string
	}
	var fds []fd
	for _, e := range ents {
		n, _ := strconv.Atoi(e.Name())
		t, err := os.Readlink(dir + "/" + e.Name())
		if err != nil {
			continue
		}
		if s := name(t); s != "" {
			fds = append(fds, fd{n, s})
		}
	}
	sort.Slice(fds, func(i, j int) bool { return fds[i].n < fds[j].n })
	var out []string
	for _, f := range fds {
		out = append(out, fmt.Sprintf("%d %s", f.n, f.s))
	}
	return strings.Join(out, ", ")
}
