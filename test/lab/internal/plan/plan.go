// Package plan is what the lab tells a machine that it boots, and where things are in it.
package plan

// Where things are inside the machine.
const (
	Dir     = "/lab"
	Init    = Dir + "/fdinit"
	Guest   = Dir + "/guest"
	Busybox = Dir + "/busybox"
	File    = Dir + "/plan.json"
	E2E     = Dir + "/e2e"      // the behaviour suite
	Sweeps  = Dir + "/fds.test" // the benchmark of internal/fds
)

// Done is the exit status of a guest that ran its plan to the end, whatever the tests
// said: it must reach the kernel through fdinit.
const Done = 42

// The limits that containers are known to start with: systemd's and the kernel's idea of
// no limit. DefaultNrOpen is the kernel's default for fs.nr_open.
const (
	Infinity      = 1073741816
	KernelMax     = 2147483584
	DefaultNrOpen = 1048576
)

// What fdinit makes of a limit above DefaultNrOpen when it is not told anything.
const (
	AutoSoft = 65536
	AutoHard = 1048576
)

// Strategies are those that the benchmark of internal/fds knows.
var Strategies = []string{"range", "proc", "poll", "loop", "probe", "cloexec", "exact"}

// Plan is what a machine is to do.
type Plan struct {
	Scenarios []string
	// Suite is the Debian suite whose packages are in the machine, Versions theirs.
	Suite    string
	Versions map[string]string
	// Short leaves out what takes long.
	Short bool
	// Match is a regular expression of the names of the tests to run.
	Match string
}
