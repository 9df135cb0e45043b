// Package hostile has only tests: fdinit where something that an init takes for granted
// is missing, refused or exhausted. docs/reliability.md has one row for each of them.
//
// Run them with "go test ./..."; they build fdinit themselves unless FDINIT_BINARY names
// one. They need root on Linux and control groups of version 1 (which a tmpfs over
// /sys/fs/cgroup does not hide). The flag -chaos, or the variable FDINIT_CHAOS, says how
// long the random test runs, and -long asks for the counts that the table names. They
// are not for behaviour in sane surroundings, which test/e2e describes.
package hostile
