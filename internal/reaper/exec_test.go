package reaper

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// tree makes files to be found: programs, texts, directories, and what stands in the
// way.
func tree(t *testing.T) string {
	root := t.TempDir()
	make := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{
		"a/tool": 0o755, "b/tool": 0o755, "denied/tool": 0o644, "b/only-b": 0o755, "denied/only-denied": 0o644, "tool": 0o755, "sub/sub/tool": 0o755,
	} {
		path := filepath.Join(root, name)
		make(os.MkdirAll(filepath.Dir(path), 0o755))
		make(os.WriteFile(path, nil, mode))
	}
	make(os.Mkdir(filepath.Join(root, "empty"), 0o755))
	make(os.Symlink("loop", filepath.Join(root, "loop")))
	make(os.Symlink("a/tool", filepath.Join(root, "link")))
	return root
}

// find0 is find without executing anything.
func find0(path *string, name string) sys.Errno {
	env := []string{"A=1"}
	if path != nil {
		env = append(env, "PATH="+*path)
	}
	return find(sys.VectorOf("fdinit", name, "argument"), sys.VectorOf(env...), tryAccess)
}

// found is the file that was asked for last.
func found() string { return sys.String(&scratch[0]) }

func TestSearch(t *testing.T) {
	root := tree(t)
	t.Chdir(root)
	for _, c := range []struct {
		path, name string
		want       sys.Errno
		file       string // that was found
	}{
		{path: "a:b", name: "tool", file: "a/tool"},
		{path: "b:a", name: "tool", file: "b/tool"},
		{path: "a:b", name: "only-b", file: "b/only-b"},
		{path: "a", name: "only-b", want: unix.ENOENT},
		{path: "a/", name: "tool", file: "a//tool"},
		{path: root + "/a", name: "tool", file: root + "/a/tool"},
		// What is not there, or is no directory, is passed over.
		{path: "none:tool:empty:a", name: "tool", file: "a/tool"},
		{path: "none", name: "tool", want: unix.ENOENT},
		// What may not be executed is remembered, but does not end the search.
		{path: "denied:a", name: "tool", file: "a/tool"},
		{path: "denied:empty", name: "tool", want: unix.EACCES},
		{path: "empty:denied:none:tool", name: "only-denied", want: unix.EACCES},
		// Anything else ends it.
		{path: "loop:a", name: "tool", want: unix.ELOOP},
		{path: "a:loop", name: "tool", file: "a/tool"},
		{path: "empty:loop:denied", name: "tool", want: unix.ELOOP},
		{path: "a:b", name: strings.Repeat("x", 300), want: unix.ENAMETOOLONG},
		// An empty element is the working directory.
		{path: "", name: "tool", file: "tool"},
		{path: ":a", name: "tool", file: "tool"},
		{path: "empty:", name: "tool", file: "tool"},
		{path: "empty::a", name: "tool", file: "tool"},
		{path: "", name: "only-b", want: unix.ENOENT},
		{path: ":::", name: "only-b", want: unix.ENOENT},
		// An element too long for any path is passed over.
		{path: strings.Repeat("x", 5000) + ":a", name: "tool", file: "a/tool"},
		{path: strings.Repeat("x", 4000) + ":a", name: "tool", want: unix.ENAMETOOLONG}, // for the kernel to say
		{path: strings.Repeat("./", 2040) + "a:b", name: "tool", file: strings.Repeat("./", 2040) + "a/tool"},
		{path: strings.Repeat("./", 2048) + "a:b", name: "tool", file: "b/tool"},
		// Nothing in it is special.
		{path: "~:$HOME:a b:a", name: "tool", file: "a/tool"},
	} {
		scratch = [len(scratch)]byte{}
		errno := find0(&c.path, c.name)
		if errno != c.want {
			t.Errorf("%s in %.50s: %v, want %v", c.name, c.path, errno, c.want)
		}
		if errno == 0 && found() != c.file {
			t.Errorf("%s in %.50s: %s, want %s", c.name, c.path, found(), c.file)
		}
	}
}

// TestSlashes: a command with a slash is not searched for.
func TestSlashes(t *testing.T) {
	root := tree(t)
	t.Chdir(root)
	path := "b:sub"
	for name, want := range map[string]sys.Errno{
		"./tool": 0, "a/tool": 0, root + "/a/tool": 0, "sub/sub/tool": 0, "./link": 0,
		"sub/tool":      unix.ENOENT, // is in b
		"/tool":         unix.ENOENT,
		"./none":        unix.ENOENT,
		"tool/":         unix.ENOTDIR,
		"tool/x":        unix.ENOTDIR,
		"./denied/tool": unix.EACCES,
		"./loop":        unix.ELOOP,
	} {
		if errno := find0(&path, name); errno != want {
			t.Errorf("%s: %v, want %v", name, errno, want)
		}
	}
}

func TestEmptyCommand(t *testing.T) {
	t.Chdir(tree(t))
	for _, path := range []string{"a", ""} {
		if errno := find0(&path, ""); errno != unix.ENOENT {
			t.Errorf("in %q: %v", path, errno)
		}
	}
}

// TestNoPath: there is a default path, without the working directory.
func TestNoPath(t *testing.T) {
	t.Chdir(tree(t))
	if errno := find0(nil, "tool"); errno != unix.ENOENT {
		t.Errorf("a tool of the working directory: %v", errno)
	}
	for _, dir := range strings.Split(DefaultPath, ":") {
		if _, err := os.Stat(dir + "/sh"); err != nil {
			continue
		}
		if errno := find0(nil, "sh"); errno != 0 {
			t.Errorf("a shell in %s: %v", dir, errno)
		}
		return
	}
	t.Skip("there is no shell in ", DefaultPath)
}

// FuzzSearch compares with exec.LookPath for paths of which that does not judge
// differently: it skips directories and whatever cannot be looked at, and does not like
// the working directory.
func FuzzSearch(f *testing.F) {
	for _, path := range []string{"", "a", "a:b", "b:a", "denied:a", "denied:empty", "none:tool:a", "a::b", ":", "sub:sub/sub", "a//b:a/../b", "\xff:b"} {
		for _, name := range []string{"tool", "only-b", "only-denied", "none", "link"} {
			f.Add(path, name)
		}
	}
	root := f.TempDir()
	for _, file := range []string{"a/tool", "b/tool", "b/only-b", "denied/tool", "denied/only-denied", "sub/sub/tool"} {
		mode := os.FileMode(0o755)
		if strings.HasPrefix(file, "denied") {
			mode = 0o644
		}
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), nil, mode); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, path, name string) {
		if strings.ContainsAny(path+name, "\x00") || name == "" || strings.Contains(name, "/") || len(name) > 255 {
			return
		}
		// Every element is made one below the tree, so that nothing of the machine counts.
		elements := strings.Split(path, ":")
		for i, element := range elements {
			elements[i] = root + "/" + strings.ReplaceAll(element, "..", "")
			if len(elements[i]) > 3000 {
				return
			}
			if st, err := os.Stat(elements[i] + "/" + name); err == nil && st.IsDir() {
				return
			}
			for part := range strings.SplitSeq(element, "/") {
				if len(part) > 255 {
					return
				}
			}
		}
		path = strings.Join(elements, ":")
		t.Setenv("PATH", path)
		want, err := exec.LookPath(name)
		errno := find0(&path, name)
		if (err == nil) != (errno == 0) {
			t.Fatalf("%q in %q: %v, LookPath says %v", name, path, errno, err)
		}
		if err == nil && filepath.Clean(found()) != filepath.Clean(want) {
			t.Fatalf("%q in %q: %q, LookPath says %q", name, path, found(), want)
		}
	})
}

func TestSearchDoesNotAllocate(t *testing.T) {
	args, env := sys.VectorOf("fdinit", "no such command"), sys.VectorOf("PATH=/usr/local/bin:/usr/bin::/bin")
	var errno sys.Errno
	if n := testing.AllocsPerRun(100, func() { errno = find(args, env, tryAccess) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if errno != unix.ENOENT {
		t.Error(errno)
	}
}

// TestIsText: a shell gets scripts, not programs.
func TestIsText(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]bool{
		"":                                   true,
		"echo hello\n":                       true,
		"echo hello":                         true,
		"\n\x00\x01":                         true, // the first line counts
		"\xc3\xa4\xff\x01\x1b\n":             true,
		strings.Repeat("x", 200) + "\x00":    true, // as much of it as counts
		"\x7fELF\x02\x01\x01\x00":            false,
		"\x00":                               false,
		"echo\x00\n":                         false,
		"MZ\x90\x00":                         false,
		strings.Repeat("x", 127) + "\x00":    false,
		strings.Repeat("x\n", 50) + "\x00\n": true,
	} {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := isText(sys.VectorOf(path).At(0)); got != want {
			t.Errorf("%.20q is text: %v", content, got)
		}
	}
	if !isText(sys.VectorOf(dir + "/none").At(0)) {
		t.Error("what cannot be read is for the shell to judge")
	}
}
