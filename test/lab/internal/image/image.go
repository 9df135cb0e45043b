// Package image builds initial file systems: cpio archives of the "newc" kind, which
// the kernel unpacks into memory before it starts the first process.
//
// They are not compressed. Memory is cheap in the lab, and an emulated processor is not.
package image

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// Image is an archive that is being written.
type Image struct {
	w     *cpio.Writer
	inode int64
	dirs  map[string]bool
}

// New starts an archive. Archives can be concatenated; later files replace earlier ones.
func New(w io.Writer) *Image {
	return &Image{w: cpio.NewWriter(w), dirs: map[string]bool{"": true, ".": true}}
}

// Close finishes the archive.
func (i *Image) Close() error { return i.w.Close() }

func (i *Image) header(name string, mode cpio.FileMode, size int64) *cpio.Header {
	i.inode++
	// A link count of 1 and numbers of its own: nothing is taken for a hard link.
	return &cpio.Header{Name: strings.Trim(name, "/"), Mode: mode, Size: size, Links: 1, Inode: i.inode}
}

// Dir adds a directory and those above it.
func (i *Image) Dir(name string, mode fs.FileMode) error {
	name = strings.Trim(name, "/")
	if i.dirs[name] {
		return nil
	}
	if err := i.Dir(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	i.dirs[name] = true
	return i.w.WriteHeader(i.header(name, cpio.TypeDir|cpio.FileMode(mode.Perm()), 0))
}

// File adds a file with the given content.
func (i *Image) File(name string, mode fs.FileMode, content []byte) error {
	if err := i.Dir(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := i.w.WriteHeader(i.header(name, cpio.TypeReg|permissions(mode), int64(len(content)))); err != nil {
		return err
	}
	_, err := i.w.Write(content)
	return err
}

// Copy adds a file of the machine.
func (i *Image) Copy(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return i.File(name, info.Mode(), content)
}

// Link adds a symbolic link.
func (i *Image) Link(name, target string) error {
	if err := i.Dir(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := i.w.WriteHeader(i.header(name, cpio.TypeSymlink|0o777, int64(len(target)))); err != nil {
		return err
	}
	_, err := i.w.Write([]byte(target))
	return err
}

// Tree adds everything under a directory of the machine at a place, except what skip
// names by its path relative to it.
func (i *Image) Tree(at, root string, skip func(name string) bool) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		if skip != nil && skip(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name = filepath.Join(at, name)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch d.Type() {
		case fs.ModeDir:
			return i.Dir(name, info.Mode())
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return i.Link(name, target)
		case 0:
			return i.Copy(name, path)
		}
		return fmt.Errorf("%s: neither a file nor a directory nor a link", path)
	})
}

// permissions keeps the bits that make a program run as somebody else.
func permissions(mode fs.FileMode) cpio.FileMode {
	p := cpio.FileMode(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		p |= cpio.ModeSetuid
	}
	if mode&fs.ModeSetgid != 0 {
		p |= cpio.ModeSetgid
	}
	return p
}
