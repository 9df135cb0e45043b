// Package engines holds no code but tests: it runs fdinit the way its users do,
// under real container engines, with the files in deploy/.
//
//	cd test/engines && go test ./...
//
// needs root and, from Debian, the packages docker.io, docker-compose, podman,
// buildah, runc, runsc and busybox-static. What is missing is named in the reason
// of the test that is skipped; with FDINIT_NO_SKIP=1 it fails instead. FDINIT_BINARY
// names a binary to test instead of one that is built first.
//
// # How a machine stays as it was
//
// Every engine runs in a sandbox: a mount and a PID namespace of its own, kept by
// this test binary in another role, in which /run, /dev/shm, /etc/containers and so
// on are empty and /usr/local is a copy-on-write view with fdinit installed in it.
// No image is pulled: there is no network, images are made of Debian's static
// busybox, the program in probe, and fdinit. Engines are stopped in an orderly way;
// should a test die before that, its end of a pipe closes, the sandbox's process 1
// ends, and the kernel kills what is left and forgets the mounts.
//
// # What it is not for
//
// Behaviour that needs no engine has its tests in test/e2e and test/compat, which
// are faster and more exact. A test belongs here when an engine's view of the init,
// or the init's view of an engine, is the point.
package engines
