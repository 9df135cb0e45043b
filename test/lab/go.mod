module github.com/fdinit/fdinit/test/lab

go 1.26.0

require golang.org/x/sys v0.50.0

require github.com/cavaliergopher/cpio v1.0.1
