package image

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cavaliergopher/cpio"
)

func TestTree(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "a/b"), 0o755),
		os.MkdirAll(filepath.Join(dir, "skipped/c"), 0o755),
		os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("content"), 0o600),
		os.Chmod(filepath.Join(dir, "a/b/file"), 0o711|os.ModeSetuid),
		os.Symlink("b/file", filepath.Join(dir, "a/link")),
	); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	i := New(&archive)
	if err := errors.Join(
		i.Tree("/at", dir, func(name string) bool { return name == "skipped" }),
		i.File("/at/a/own", 0o644, nil),
		i.Close(),
	); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	inodes := map[int64]string{}
	r := cpio.NewReader(&archive)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Linkname != "" {
			content = []byte(h.Linkname)
		}
		if _, twice := got[h.Name]; twice {
			t.Errorf("%s comes twice", h.Name)
		}
		got[h.Name] = h.Mode.String() + " " + string(content)
		// The kernel takes equal ones for hard links.
		if other := inodes[h.Inode]; other != "" {
			t.Errorf("%s and %s have the same inode number", h.Name, other)
		}
		inodes[h.Inode] = h.Name
	}
	want := map[string]string{
		"at":          "040755 ",
		"at/a":        "040755 ",
		"at/a/b":      "040755 ",
		"at/a/b/file": "0104711 content",
		"at/a/link":   "0120777 b/file",
		"at/a/own":    "0100644 ",
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %q instead of %q", name, got[name], w)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s should not be there", name)
	}
}
