// Command probe is both ends of a hostile test: the stage, which brings about what a
// setup describes and executes fdinit, and the workloads, which fdinit then runs.
//
// It is linked to lie at another address than fdinit, so that a seccomp filter can tell
// the two by the instruction pointer: what is refused to fdinit is not refused to the
// workload, which has to report what came of it.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	if text := os.Getenv(stageVariable); text != "" {
		fail("stage", stage(text))
	}
	arg := func(i int) int {
		n, err := strconv.Atoi(os.Args[i])
		fail("argument", err)
		return n
	}
	switch os.Args[1] {
	case "work":
		work(os.Args[2:])
	case "count":
		count()
	case "orphans":
		orphans(arg(2))
	case "storm":
		storm()
	case "trace":
		trace(os.Args[2], arg(3))
	case "chaos":
		chaos()
	default:
		fail("workload", fmt.Errorf("there is no %q", os.Args[1]))
	}
}

// fail ends the probe if there is an error. No test wants this status.
func fail(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "probe: %s: %v\n", what, err)
		os.Exit(99)
	}
}
