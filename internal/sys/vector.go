package sys

import "unsafe"

const wordSize = unsafe.Sizeof(uintptr(0))

// Vector is a NULL-terminated array of pointers to NUL-terminated strings, as argv
// and envp are. The zero Vector is empty and must not be indexed.
//
// The strings that it hands out are views of the process's own stack, so they are
// valid for the life of the process and change when the array's strings do.
type Vector struct {
	base unsafe.Pointer
	n    int
}

// StackVectors finds argv and envp on the stack as execve(2) leaves it: argc, the
// argument pointers, NULL, the environment pointers, NULL.
func StackVectors(sp unsafe.Pointer) (args, env Vector) {
	argc := *(*uintptr)(sp)
	args = Vector{unsafe.Add(sp, wordSize), int(argc)}
	env = CountedVector(unsafe.Add(args.base, (argc+1)*wordSize))
	return args, env
}

// CountedVector makes a Vector of an array whose length only its NULL tells.
func CountedVector(base unsafe.Pointer) Vector {
	v := Vector{base: base}
	for v.At(v.n) != nil {
		v.n++
	}
	return v
}

// Len is the number of strings, without the closing NULL.
func (v Vector) Len() int { return v.n }

// At is the i-th pointer; At(Len()) is the closing NULL.
func (v Vector) At(i int) *byte {
	return *(**byte)(unsafe.Add(v.base, uintptr(i)*wordSize))
}

// String is the i-th string, without a copy.
func (v Vector) String(i int) string { return String(v.At(i)) }

// Set replaces the i-th pointer. The pointer is stored as a number because the
// array lies outside the Go heap and needs no write barrier.
func (v Vector) Set(i int, p *byte) {
	*(*uintptr)(unsafe.Add(v.base, uintptr(i)*wordSize)) = uintptr(unsafe.Pointer(p))
}

// Delete removes the i-th string by moving the following pointers, the closing NULL
// among them, down by one.
func (v *Vector) Delete(i int) {
	for ; i < v.n; i++ {
		v.Set(i, v.At(i+1))
	}
	v.n--
}

// From is the vector that starts at the i-th string.
func (v Vector) From(i int) Vector {
	return Vector{unsafe.Add(v.base, uintptr(i)*wordSize), v.n - i}
}

// Lookup finds NAME=value in an environment, as getenv(3) does: the first one wins.
// index is -1 when there is none.
func (v Vector) Lookup(name string) (value string, index int) {
	for i := range v.n {
		if value, ok := cutName(v.At(i), name); ok {
			return String(value), i
		}
	}
	return "", -1
}

// cutName compares byte by byte, so that it never reads beyond p's NUL and a long
// variable costs no more than its name.
func cutName(p *byte, name string) (value *byte, ok bool) {
	for i := range len(name) {
		if *p != name[i] {
			return nil, false
		}
		p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1))
	}
	if *p != '=' {
		return nil, false
	}
	return (*byte)(unsafe.Add(unsafe.Pointer(p), 1)), true
}

// String views a NUL-terminated string without copying it. It is empty for nil.
func String(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return unsafe.String(p, n)
}
