// Package execfail finds out why execve(2) refused a program.
//
// An errno is all the kernel gives, and it is ambiguous where it matters most: ENOENT
// means a missing file, a missing interpreter of an existing script, or a missing ELF
// loader of an existing program; EACCES has a dozen meanings. This package looks at the
// file again in the order in which the kernel does (fs/exec.c, binfmt_script.c,
// binfmt_elf.c), predicts the errno that each defect would give, and names a defect
// only when the prediction is the answer that was really received. What it cannot check
// it does not claim.
//
// It is ordinary hosted Go: it allocates, opens files and may take milliseconds. It
// must run in the process whose exec failed, or in one with the same identity, limits,
// root and working directory. It is not a test whether an exec would succeed: only
// execve itself knows, and the answer may change in between.
//
// It reads from a file only what exec itself reads (the first 256 bytes, the program
// headers, the loader's name), opens nothing but regular files, works without /proc,
// and stays bounded on hostile files.
package execfail
