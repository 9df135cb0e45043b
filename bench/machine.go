package main

import (
	"bufio"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine says on what a report was made, without saying whose it is.
type Machine struct {
	CPU          string `json:"cpu"`
	Cores        int    `json:"cores"`
	Kernel       string `json:"kernel"`
	Arch         string `json:"arch"`
	Distribution string `json:"distribution"`
	Go           string `json:"go"`
}

func thisMachine() Machine {
	m := Machine{
		CPU:          firstValue("/proc/cpuinfo", "model name", ":"),
		Cores:        runtime.NumCPU(),
		Arch:         runtime.GOARCH,
		Distribution: firstValue("/etc/os-release", "PRETTY_NAME", "="),
		Go:           runtime.Version(),
	}
	if m.CPU == "" {
		m.CPU = "unnamed " + runtime.GOARCH // arm64 kernels print no model name
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// firstValue finds the first "key separator value" line of a file.
func firstValue(path, key, separator string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		k, v, ok := strings.Cut(sc.Text(), separator)
		if ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}
