package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// baseTree makes a root file system of busybox and the probe, without fdinit.
func baseTree(t *testing.T, root string) {
	t.Helper()
	busybox := need(t, "busybox", "busybox-static")
	installed(t, busybox, filepath.Join(root, "bin/busybox"))
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(root, "bin", applet)); err != nil {
			t.Fatal(err)
		}
	}
	installed(t, probe, filepath.Join(root, "bin/probe"))
	writeFile(t, filepath.Join(root, "etc/passwd"), "root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532:nonroot:/:/bin/sh\n")
	writeFile(t, filepath.Join(root, "etc/group"), "root:x:0:\nnonroot:x:65532:\n")
	for _, dir := range []string{"proc", "dev", "sys", "run", "tmp", "usr/bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
}

// baseArchive is that tree as a file which engines import as an image.
func baseArchive(t *testing.T, s *sandbox) string {
	t.Helper()
	baseTree(t, s.path("base"))
	s.must(t, "tar", "-C", s.path("base"), "-cf", s.path("base.tar"), ".")
	return s.path("base.tar")
}
