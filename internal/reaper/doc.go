// Package reaper is the init's life: it prepares the process, sweeps descriptors,
// starts the workload, reaps, forwards signals, and ends with the workload's status.
// The files follow the order of events: prepare, spawn (with exec), supervise, and
// handover to the Go runtime (with log and explain).
//
// It runs freestanding, as the only thread of the process, and is the only one to
// wait for children. It is not a library for programs that are not an init: it waits
// for every child (wait4(2) with -1), which steals the status of os/exec's.
package reaper
