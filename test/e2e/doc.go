// Package e2e holds the behaviour of fdinit as scripts that read as documentation,
// testdata/*.txtar, and the harness which runs them against the built binary.
//
//	cd test/e2e && go test -count=1 ./...
//
// needs Go and Linux, no container engine and no network. (-count=1 because go test
// does not know that the result depends on the binary and would show a cached one.)
// FDINIT_BINARY names a binary to be tested instead of one that is built first. As
// root everything runs; without privileges user namespaces stand in, and what then
// cannot be set up is skipped with the reason.
//
// # Words of the scripts
//
// A "container" is one command started in exactly the state that the flags ask
// for: as process 1 of a PID namespace with its own /proc, as unshare -pf
// --mount-proc does it, unless -not-pid1 is given. The same flags with the bare
// command in the place of fdinit are the control: they show that the leak, the
// mask or the limit really is there.
//
//	launch FLAGS COMMAND...    run to the end; it must succeed ("! launch": fail);
//	                           stdout and stderr hold what it printed
//	exits STATUS               how the last one ended: a number, or a signal's name
//	start FLAGS COMMAND...     run in the background, one at a time
//	ended                      wait until it ends of its own accord
//	end                        kill it
//	refused VALUE FLAGS CMD... run; demand 125, VALUE quoted on stderr, and no file "did-run"
//	swept FLAGS                start the bare command and see every leaked descriptor, start
//	                           fdinit and see only 0 to 2, in the workload and in process 1
//
// The next ones look at a running container from outside, through /proc. WHO is
// init (what was started), workload (its first child), child (the workload's),
// grandchild, or logger (the process that writes fdinit's event log).
//
//	fds WHO LIST               exactly these descriptors are open
//	fd WHO NUMBER REGEXP       what a descriptor refers to
//	status WHO FIELD REGEXP    a field of /proc/PID/status
//	limit WHO NAME SOFT:HARD   a resource limit
//	variable WHO NAME REGEXP   an environment variable ("! variable WHO NAME": not set)
//	cwd WHO REGEXP             the working directory
//	state WHO                  everything a program inherits, on stdout
//	idle WHO SECONDS           it is not scheduled once in that time
//	children WHO N             it comes to have N children
//	zombies WHO N              it comes to have N dead children that nobody waited for
//	parent WHO WHO             the first one's parent comes to be the second one
//	gone WHO                   it comes to be gone, not even a zombie
//	stopped WHO                it comes to be stopped, "running WHO": to go on
//	group WHO WHO              both are in one process group ("! group": they are not)
//	names-workload             LISTEN_PID, LISTEN_PIDFDID and WATCHDOG_PID, as far as they are set
//	await REGEXP               its output comes to match
//	logged REGEXP              its errors come to match, after the last match
//
// Signals are sent from outside too. The workload that records them is "probe
// signals", see probe.
//
//	signal WHO LIST            send each of these; -value N with a value, as sigqueue(3)
//	received LIST              exactly these were recorded since the last time, once each
//	relay LIST                 send one to init, await its record, then the next
//	burst N LIST               send N in turn, none is lost for good; real-time ones not even once
//
// Files to be executed can be made broken:
//
//	executable FILE machine N    a program for another machine, by its ELF number
//	executable FILE loader PATH  one that asks for a loader
//	busy FILE                    keep it open for writing
//
// With -tty the container gets a pseudo-terminal.
//
//	type TEXT                  type on it: \r, \x03 and so on as in Go
//	screen REGEXP              what appears comes to match, after the last match
//	foreground WHO|COMMAND     its foreground process group comes to be led by that one, which is
//	                           not stopped; if the leader has ended, the oldest member counts
//	hangup                     hang up
//
// # Flags
//
//	-not-pid1                  an ordinary process in no namespace of its own
//	-block LIST  -ignore LIST  signals; -pending LIST: blocked ones that already wait
//	-before-workload LIST      stop the process as soon as it blocked signals, send these, go on
//	-leak [KIND=]LIST          descriptors: file (the default), directory, opath, socket,
//	                           listener, pipe, epoll, memfd, deleted
//	-closed LIST               of 0, 1 and 2
//	-rlimit NAME=SOFT[:HARD]   a limit, -soft N for that of descriptors
//	-seccomp CALL=ERRNO        a filter that makes a system call fail
//	-no-proc  -no-dev          nothing mounted there, an empty directory
//	-read-only-root            and -noexec DIR, a directory mounted so
//	-in DIR  -deleted-cwd  -outside-root DIR  -deep-cwd (a name longer than any path)
//	-uid N  -no-caps  -no-cap NAME  -no-new-privs  -user-namespace  -umask N
//	-env NAME=VALUE            {pid} is process 1's own number, {pidfdid} its pidfd's inode
//	-no-env NAME  -empty-env
//	-argv0 NAME  -argc0        -big-args BYTES: so many more bytes of arguments
//	-stdin FILE  -tty
//	-each LIST  -exits STATUS  of launch only: once for each, put in the place of {}
//
// Lists are such as 3,5-7; signals go by name or number.
package e2e
