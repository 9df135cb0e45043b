// Package sys is the one door to the kernel for freestanding code: small typed
// functions over raw system calls, and views of the argv and envp arrays that the
// kernel laid on the stack.
//
// Nothing here allocates, grows a stack, touches a package variable of
// golang.org/x/sys/unix or tells the Go scheduler about the call, so all of it may
// run before (and instead of) the Go runtime. Hosted code may use what neither blocks
// nor takes signals or children: a call that blocks here blocks the whole thread, and
// WaitSignal or Wait would take signals and children away from os/signal and os/exec.
//
// Every function returns the kernel's errno as it is, 0 for success. Retrying after
// EINTR is left out on purpose: PID 1 runs with every signal blocked and no handler
// installed, so only WaitSignal can be interrupted, by a debugger or a freezer.
package sys
