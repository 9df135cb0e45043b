package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The workloads are ELF files of some 200 bytes, written out here as machine
// code. A workload with a C library or a Go runtime would add its own page
// faults, its own signal handling and its own noise to what is measured, and
// no compiler can be assumed where this runs. The code for each architecture
// stands in tiny_ARCH.go.

// workloads names the programs that the measurements run.
type workloads struct {
	staticTrue  string // exits 0 at once
	dynamicTrue string // the machine's own, linked with its C library
	sleep       string
	storm       string // makes a number of orphans, writes a byte, pauses
	stamp       string // writes CLOCK_MONOTONIC at the start and at every SIGUSR1
	stampStorm  string // the same, beside a child that makes orphans without end
	orphan      string // waits for SIGUSR1, makes an orphan, writes a byte, pauses
}

// endless is the count of a storm that outlives every measurement.
const endless = 1<<31 - 1

// orphanName is what the kernel calls the workload of the idle inits.
const orphanName = "orphan"

func buildWorkloads(dir string, orphans int) (workloads, error) {
	if len(codeTrue) == 0 {
		return workloads{}, fmt.Errorf("there is no machine code of the workloads for this architecture")
	}
	w := workloads{dynamicTrue: "/bin/true", sleep: "/bin/sleep"}
	for _, p := range []struct {
		path *string
		name string
		code []byte
	}{
		{&w.staticTrue, "true", codeTrue},
		{&w.storm, "storm", codeStorm(orphans)},
		{&w.stamp, "stamp", codeStamp()},
		{&w.stampStorm, "stamp-storm", append(codeFork(codeStorm(endless)), codeStamp()...)},
		{&w.orphan, orphanName, slices.Concat(codeBlock, codeAwait, codeStorm(1))},
	} {
		*p.path = filepath.Join(dir, p.name)
		if err := os.WriteFile(*p.path, executable(p.code), 0o755); err != nil {
			return w, err
		}
	}
	return w, nil
}

// codeStamp waits for SIGUSR1 with rt_sigtimedwait rather than with a handler:
// the way to the waking up is the same, and no return trampoline is needed.
func codeStamp() []byte {
	again := slices.Concat(codeTell, codeAwait)
	return slices.Concat(codeBlock, again, codeBack(len(again)))
}

// executable wraps position-independent code into the smallest executable that every
// kernel takes: a header and one loadable segment, not writable.
func executable(code []byte) []byte {
	const (
		headers = 64 + 56
		base    = 0x400000
	)
	size := uint64(headers + len(code))
	b := make([]byte, 0, size)
	le := binary.LittleEndian
	b = append(b, 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint16(b, 2) // ET_EXEC
	b = le.AppendUint16(b, elfMachine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+headers) // entry
	b = le.AppendUint64(b, 64)           // program headers
	b = le.AppendUint64(b, 0)            // no sections
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1)    // PT_LOAD
	b = le.AppendUint32(b, 4|1)  // read and execute
	b = le.AppendUint64(b, 0)    // offset
	b = le.AppendUint64(b, base) // virtual address
	b = le.AppendUint64(b, base)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, 0x1000)
	return append(b, code...)
}
