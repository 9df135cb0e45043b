package events

import (
	"io"
	"unsafe"
)

// Reader reads events, for hosted code. It reads many at once, to keep up with PID 1.
type Reader struct {
	In io.Reader

	buffer [256]Event
	unread int   // events in buffer that Next has not returned yet begin here
	read   int   // bytes of buffer that are filled
	failed error // what In answered last
}

// Next returns the next event; io.EOF after the last one, io.ErrUnexpectedEOF if that
// is cut short.
func (r *Reader) Next() (Event, error) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&r.buffer)), int(unsafe.Sizeof(r.buffer)))
	for r.read-r.unread*Size < Size {
		if r.failed != nil {
			if r.failed == io.EOF && r.read > r.unread*Size {
				return Event{}, io.ErrUnexpectedEOF
			}
			return Event{}, r.failed
		}
		r.read = copy(bytes, bytes[r.unread*Size:r.read])
		r.unread = 0
		var n int
		n, r.failed = r.In.Read(bytes[r.read:])
		r.read += n
	}
	r.unread++
	return r.buffer[r.unread-1], nil
}
