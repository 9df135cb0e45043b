package sys

import "unsafe"

// VectorOf lays strings out as the kernel does. It allocates, so it is for hosted code
// and tests only.
func VectorOf(strings ...string) Vector {
	pointers := make([]*byte, len(strings)+1)
	for i, s := range strings {
		pointers[i] = unsafe.SliceData(append([]byte(s), 0))
	}
	return Vector{unsafe.Pointer(unsafe.SliceData(pointers)), len(strings)}
}
