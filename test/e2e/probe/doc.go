// Command probe is the workload whose behaviour has to be exact: it records
// signals, and it makes orphans.
//
// An ordinary Go program cannot do either without falsifying the result: the
// runtime installs handlers, unblocks signals, sends itself SIGURG, swallows
// SIGPROF and 32 to 34, and runs several threads, so that a signal sent to the
// process need not meet the mask which the test set up. Therefore probe is
// linked with its own entry point and the runtime never starts. It shares no
// code with fdinit, which uses the same idea: a mistake in one must not hide a
// mistake in the other.
//
//	probe signals     block every signal, print "ready", then one line for each
//	                  signal taken: "signal=10 code=0 value=0"
//	probe orphans N   make N orphans by forking twice, in bursts, print
//	                  "made N", then wait to be killed
//	probe abandon     make a child, and wait to be killed as it does
//	probe wait        wait to be killed
//	probe traced      ask the parent to trace it, send itself signals that do nothing,
//	                  exit with 7
//
// It is not an example of how to write Go. Only amd64 and arm64 are there,
// the architectures of fdinit itself.
package main
