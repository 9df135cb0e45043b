package events

import (
	"unsafe"

	"github.com/fdinit/fdinit/internal/sys"
)

// Writer writes events into a pipe. The zero Writer is closed and drops them all
// without counting.
type Writer struct {
	fd      int // the pipe's writing end plus 1, so that the zero Writer is closed
	dropped uint32
}

// Open makes the Writer write to a pipe's end, which must be non-blocking.
func (w *Writer) Open(fd int) { w.fd = fd + 1 }

// Enabled tells whether anybody reads.
func (w *Writer) Enabled() bool { return w.fd != 0 }

// Descriptor is the pipe's end that an enabled Writer writes to.
func (w *Writer) Descriptor() int { return w.fd - 1 }

// Close ends the stream for the reader.
func (w *Writer) Close() {
	if w.Enabled() {
		sys.Close(w.Descriptor())
		w.fd = 0
	}
}

// Write stamps and writes an event. If the pipe is full, the event is dropped and
// counted, and written is false; so it is when nobody reads.
func (w *Writer) Write(e Event) (written bool) {
	if !w.Enabled() {
		return false
	}
	e.Time = sys.Now()
	e.Dropped = w.dropped
	if sys.Write(w.Descriptor(), unsafe.Slice((*byte)(unsafe.Pointer(&e)), Size)) != 0 {
		w.dropped++
		return false
	}
	w.dropped = 0
	return true
}
