// Package freestanding is where the kernel enters fdinit, in place of the Go
// runtime's own entry point: link with -E=github.com/fdinit/fdinit/internal/freestanding.Entry.
//
// "Freestanding" and "hosted" are the C standard's words for code without and with
// its language runtime. The init is freestanding for life, because the runtime costs
// threads and memory and, for an init, misbehaves: it raises RLIMIT_NOFILE before
// main, replaces ignored signals by handlers, unblocks blocked ones, swallows
// SIGPROF, sends itself SIGURG and keeps descriptors of its own. Only a process that
// is not, or no longer, the init goes on to the runtime and package main, which finds
// in Result why.
//
// Ordinary Go functions run here, since a zeroed g passes every stack check, but under
// rules: no allocation, map, channel, goroutine, defer, panic, interface or function
// value, and no package variable that needs an init function. purity_test.go holds
// the linked binary to them. This package is not for anything that can wait until
// main.
package freestanding
