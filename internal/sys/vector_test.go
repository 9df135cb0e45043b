package sys

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func strs(v Vector) []string {
	all := []string{}
	for i := range v.Len() {
		all = append(all, v.String(i))
	}
	return all
}

func TestVectorOf(t *testing.T) {
	for _, want := range [][]string{{}, {""}, {"a"}, {"a", "", "b=c", strings.Repeat("x", 1<<17)}} {
		v := VectorOf(want...)
		if got := strs(v); !slices.Equal(got, want) {
			t.Errorf("%q became %q", want, got)
		}
		if v.At(v.Len()) != nil {
			t.Errorf("%q is not closed by NULL", want)
		}
		if again := CountedVector(v.base); again != v {
			t.Errorf("%q counts %d", want, again.Len())
		}
	}
}

// stack lays argc, argv and envp out as execve(2) does. The array does not keep the
// strings alive, strings does.
func stack(args, env []string) (words []uintptr, strings []*byte) {
	words = []uintptr{uintptr(len(args))}
	for _, list := range [][]string{args, env} {
		for _, s := range list {
			p := unsafe.SliceData(append([]byte(s), 0))
			strings = append(strings, p)
			words = append(words, uintptr(unsafe.Pointer(p)))
		}
		words = append(words, 0)
	}
	return append(words, 1), strings // what follows is not ours
}

func TestStackVectors(t *testing.T) {
	for _, c := range []struct{ args, env []string }{
		{[]string{}, []string{}}, // argc may be 0 before Linux 5.18
		{[]string{}, []string{"A=1"}},
		{[]string{"fdinit"}, []string{}},
		{[]string{"fdinit", "", "ls"}, []string{"A=1", "", "=", "B", "A=2"}},
	} {
		words, alive := stack(c.args, c.env)
		args, env := StackVectors(unsafe.Pointer(unsafe.SliceData(words)))
		if got := strs(args); !slices.Equal(got, c.args) {
			t.Errorf("argv %q became %q", c.args, got)
		}
		if got := strs(env); !slices.Equal(got, c.env) {
			t.Errorf("envp %q became %q", c.env, got)
		}
		runtime.KeepAlive(alive)
	}
}

func TestFrom(t *testing.T) {
	v := VectorOf("a", "b", "c")
	for i, want := range [][]string{{"a", "b", "c"}, {"b", "c"}, {"c"}, {}} {
		if got := strs(v.From(i)); !slices.Equal(got, want) {
			t.Errorf("from %d on it is %q, want %q", i, got, want)
		}
	}
}

// other is no part of the heap, which Set knows nothing of.
var other = [...]byte{'O', '=', '1', 0}

func TestSetAndDelete(t *testing.T) {
	for _, c := range []struct {
		change func(*Vector)
		want   []string
	}{
		{func(v *Vector) { v.Set(0, &other[0]) }, []string{"O=1", "b", "c"}},
		{func(v *Vector) { v.Set(2, &other[0]) }, []string{"a", "b", "O=1"}},
		{func(v *Vector) { v.Delete(0) }, []string{"b", "c"}},
		{func(v *Vector) { v.Delete(1) }, []string{"a", "c"}},
		{func(v *Vector) { v.Delete(2) }, []string{"a", "b"}},
		{func(v *Vector) { v.Delete(2); v.Delete(0); v.Delete(0) }, []string{}},
	} {
		v := VectorOf("a", "b", "c")
		alive := []*byte{v.At(0), v.At(1), v.At(2)} // while pointers to them move as numbers
		c.change(&v)
		if got := strs(v); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
		if counted := CountedVector(v.base); counted.Len() != v.Len() {
			t.Errorf("%q is closed by NULL after %d", c.want, counted.Len())
		}
		runtime.KeepAlive(alive)
	}
}

func TestLookup(t *testing.T) {
	env := []string{
		"", "=", "==", "=x", "PATH", "PATHS=wrong", "PAT=wrong", "path=wrong", " PATH=wrong", "PATH=/bin:/usr/bin",
		"PATH=second", "EMPTY=", "EQUALS=a=b=", "HOME", "HOME=/root", "LAST=\xff\n",
	}
	for name, want := range map[string]struct {
		value string
		index int
	}{
		"PATH":                       {"/bin:/usr/bin", 9},
		"PATHS":                      {"wrong", 5},
		"EMPTY":                      {"", 11},
		"EQUALS":                     {"a=b=", 12},
		"HOME":                       {"/root", 14}, // the one without a value is none
		"LAST":                       {"\xff\n", 15},
		"LAS":                        {"", -1},
		"LASTS":                      {"", -1},
		"NONE":                       {"", -1},
		strings.Repeat("LAST", 1000): {"", -1},
	} {
		value, index := VectorOf(env...).Lookup(name)
		if value != want.value || index != want.index {
			t.Errorf("%s: %q, %d, want %q, %d", name, value, index, want.value, want.index)
		}
	}
	if _, index := VectorOf().Lookup("PATH"); index != -1 {
		t.Errorf("found in nothing: %d", index)
	}
}

func FuzzLookup(f *testing.F) {
	f.Add("A=1\x00B=2\x00", "B")
	f.Add("A\x00=\x00A=\x00", "A")
	f.Add("AB=1\x00A=2\x00", "A")
	f.Add("", "A")
	f.Add("A=1=2\x00", "A=1")
	f.Fuzz(func(t *testing.T, environ, name string) {
		if strings.Contains(name, "\x00") {
			return
		}
		env := strings.Split(environ, "\x00")
		env = env[:len(env)-1]
		want, wantIndex := "", -1
		for i, s := range env {
			if rest, ok := strings.CutPrefix(s, name+"="); ok {
				want, wantIndex = rest, i
				break
			}
		}
		v := VectorOf(env...)
		if value, index := v.Lookup(name); value != want || index != wantIndex {
			t.Fatalf("%q in %q: %q, %d, want %q, %d", name, env, value, index, want, wantIndex)
		}
		if got := strs(v); !slices.Equal(got, append([]string{}, env...)) {
			t.Fatalf("%q became %q", env, got)
		}
	})
}

func TestString(t *testing.T) {
	if s := String(nil); s != "" {
		t.Errorf("nil is %q", s)
	}
	raw := []byte("abc\x00def\x00")
	s := String(&raw[0])
	if s != "abc" || String(&raw[3]) != "" || String(&raw[4]) != "def" {
		t.Errorf("%q is read as %q", raw, s)
	}
	if raw[1] = 'X'; s != "aXc" {
		t.Errorf("%q is a copy", s)
	}
}

func TestVectorsDoNotAllocate(t *testing.T) {
	words, alive := stack([]string{"fdinit", "ls"}, []string{"A=1", "B=2"})
	defer runtime.KeepAlive(alive)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		args, env := StackVectors(unsafe.Pointer(unsafe.SliceData(words)))
		value, index := env.Lookup("B")
		sum += len(value) + index + len(args.From(1).String(0))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if sum == 0 {
		t.Error("nothing was found")
	}
}
