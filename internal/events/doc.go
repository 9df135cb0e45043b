// Package events carries what the init does to whoever wants to read it: fixed-size
// records that freestanding code writes into a pipe, without blocking, and that
// another process reads on the Go runtime.
//
// A record is written whole or not at all (pipe(7): a write of at most PIPE_BUF bytes
// is atomic). When the pipe is full the record is dropped and counted, and the next
// one that fits says how many were lost: PID 1 waits for no reader. It is not a
// format for files or for other programs: both ends are the same binary.
package events
