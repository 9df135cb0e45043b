package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fields reads a file of "Name: value [kB]" lines from /proc.
func fields(path string) (map[string]int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := map[string]int64{}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		name, rest, ok := strings.Cut(sc.Text(), ":")
		if !ok {
			continue
		}
		if f := strings.Fields(rest); len(f) > 0 {
			if v, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				m[name] = v
			}
		}
	}
	return m, nil
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// children lists the children of all threads of a process, zombies among them.
func children(pid int) ([]int, error) {
	files, err := filepath.Glob(procPath(pid, "task/*/children"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("process %d is gone, or the kernel lacks CONFIG_PROC_CHILDREN", pid)
	}
	var pids []int
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has just ended
		}
		for _, s := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, err
			}
			pids = append(pids, n)
		}
	}
	return pids, nil
}

// threadSum adds up a number over the threads of a process.
func threadSum(pid int, read func(dir string) (int64, error)) (int64, error) {
	dirs, err := filepath.Glob(procPath(pid, "task/*"))
	if err != nil {
		return 0, err
	}
	if len(dirs) == 0 {
		return 0, fmt.Errorf("process %d is gone", pid)
	}
	var sum int64
	for _, d := range dirs {
		v, err := read(d)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// wakeups counts how often the threads of a process have gone to sleep of
// their own will, which is how often they had been woken.
func wakeups(pid int) (int64, error) {
	return threadSum(pid, func(dir string) (int64, error) {
		m, err := fields(filepath.Join(dir, "status"))
		return m["voluntary_ctxt_switches"], err
	})
}

// cpuTime is the time that the threads of a process have run, from the
// scheduler's own nanoseconds: /proc/PID/stat counts in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	ns, err := threadSum(pid, func(dir string) (int64, error) {
		b, err := os.ReadFile(filepath.Join(dir, "schedstat"))
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(b), " ")
		return strconv.ParseInt(first, 10, 64)
	})
	return time.Duration(ns), err
}

// asleep tells whether a process has nothing to do.
func asleep(pid int) bool {
	b, err := os.ReadFile(procPath(pid, "stat"))
	return err == nil && bytes.Contains(b, []byte(") S "))
}

// comm is the kernel's name of a process.
func comm(pid int) string {
	b, err := os.ReadFile(procPath(pid, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// patience is how long anything may take on a slow machine that has other things to
// do. Only what never comes takes so long.
const patience = 5 * time.Minute

// waitFor polls until cond holds.
func waitFor(what string, cond func() bool) error {
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %v in vain for %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

// waitForCommand waits until the init has a child that has become the command.
func (in *instance) waitForCommand(name string) error {
	return waitFor(in.name+" to run "+name, func() bool {
		pids, err := children(in.pid)
		return err == nil && len(pids) == 1 && comm(pids[0]) == name
	})
}
