module github.com/fdinit/fdinit

go 1.26.0

require (
	github.com/opencontainers/runtime-spec v1.3.0
	github.com/sirupsen/logrus v1.10.2
	golang.org/x/sys v0.50.0
)

// Only the freestanding rule test needs this: it disassembles the linked binary.
require golang.org/x/arch v0.33.0
