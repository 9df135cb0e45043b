// Command tiny is a workload that fits where neither the Go runtime nor a C library
// does: it makes three orphans, one after the other, and exits with status 3. More would
// not fit either: each process takes some 100 KiB in the kernel, which frees them late.
package main

// Entry is the program's entry point, in assembly; link with -E=main.Entry.
func Entry()

func main() { Entry() }
