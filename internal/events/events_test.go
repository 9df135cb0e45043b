package events

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"testing"
	"testing/iotest"
	"time"
	"unsafe"

	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// pipe is a pipe as the init makes it, with a Writer at its end.
func pipe(t *testing.T, size int) (*os.File, *Writer) {
	t.Helper()
	reading, writing, errno := sys.Pipe(size)
	if errno != 0 {
		t.Fatal(errno)
	}
	w := &Writer{}
	w.Open(writing)
	in := os.NewFile(uintptr(reading), "events")
	t.Cleanup(func() {
		w.Close()
		in.Close()
	})
	return in, w
}

// event is an event with something in every field.
func event(i int) Event {
	return Event{
		Kind: Kind(i%int(NoTerminalDevice) + 1), Signal: sys.Signal(i % 65), Other: sys.Signal(i % 33), Strategy: uint8(i % 4),
		Pid: int32(-i), Uid: uint32(math.MaxUint32 - i), Code: int32(i << 16), Errno: int16(i % 134),
		Values: [4]uint64{uint64(i), math.MaxUint64 - uint64(i), uint64(i) << 40, 1},
	}
}

// sameBut compares all but what the Writer fills.
func sameBut(got, want Event) bool {
	got.Time, got.Dropped = want.Time, want.Dropped
	return got == want
}

// readAll takes every event until the Reader fails, and returns how.
func readAll(in io.Reader) (all []Event, err error) {
	r := Reader{In: in}
	for {
		e, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

// TestSize: what is atomic, and what fills a page without a gap, is a matter of size.
func TestSize(t *testing.T) {
	const pipeBuf = 4096
	if Size != 64 || pipeBuf%Size != 0 {
		t.Errorf("an event has %d bytes", Size)
	}
	var e Event
	sum := unsafe.Sizeof(e.Time) + unsafe.Sizeof(e.Dropped) + unsafe.Sizeof(e.Kind) + unsafe.Sizeof(e.Signal) + unsafe.Sizeof(e.Other) +
		unsafe.Sizeof(e.Strategy) + unsafe.Sizeof(e.Pid) + unsafe.Sizeof(e.Uid) + unsafe.Sizeof(e.Code) + 2*unsafe.Sizeof(e.Errno) + unsafe.Sizeof(e.Values)
	if int(sum) != Size {
		t.Errorf("%d bytes of an event are padding, which would carry what was on the stack", Size-int(sum))
	}
}

func TestRoundTrip(t *testing.T) {
	in, w := pipe(t, 1<<20)
	before := time.Now().UnixNano()
	var want []Event
	for i := range 1000 {
		want = append(want, event(i))
		if !w.Write(want[i]) {
			t.Fatalf("event %d was not written", i)
		}
	}
	after := time.Now().UnixNano()
	w.Close()
	if w.Enabled() {
		t.Error("enabled after it was closed")
	}
	got, err := readAll(in)
	if err != io.EOF {
		t.Errorf("ended with %v", err)
	}
	if !slices.EqualFunc(got, want, sameBut) {
		t.Errorf("%d events came back of %d, or others", len(got), len(want))
	}
	for i, e := range got {
		if e.Dropped != 0 || e.Time < before || e.Time > after {
			t.Fatalf("event %d: %d dropped, at %d, written between %d and %d", i, e.Dropped, e.Time, before, after)
		}
		before = e.Time // none is older than the one before
	}
}

// TestShortReads has a pipe's contents come in pieces that end anywhere.
func TestShortReads(t *testing.T) {
	var stream bytes.Buffer
	var want []Event
	for i := range 600 { // more than the Reader's buffer holds
		e := event(i)
		want = append(want, e)
		stream.Write(unsafe.Slice((*byte)(unsafe.Pointer(&e)), Size))
	}
	for name, in := range map[string]io.Reader{
		"all at once":           bytes.NewReader(stream.Bytes()),
		"a byte each":           iotest.OneByteReader(bytes.NewReader(stream.Bytes())),
		"half of it":            iotest.HalfReader(bytes.NewReader(stream.Bytes())),
		"the end with the last": iotest.DataErrReader(bytes.NewReader(stream.Bytes())),
		"pieces of a prime":     &pieces{stream.Bytes(), 61},
		"pieces of a record":    &pieces{stream.Bytes(), Size},
		"a little more":         &pieces{stream.Bytes(), Size + 1},
	} {
		got, err := readAll(in)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%s: %d events came back of %d, or others; then %v", name, len(got), len(want), err)
		}
	}
}

// pieces hands out at most so many bytes at a time.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(buf []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(buf, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// TestCut has a record whose writer came to an end in the middle of it, which a pipe
// does not let happen.
func TestCut(t *testing.T) {
	e := event(7)
	record := unsafe.Slice((*byte)(unsafe.Pointer(&e)), Size)
	two := slices.Concat(record, record)
	for n := range len(two) + 1 {
		got, err := readAll(&pieces{two[:n], 5})
		want := io.ErrUnexpectedEOF
		if n%Size == 0 {
			want = io.EOF
		}
		if len(got) != n/Size || err != want {
			t.Errorf("%d bytes: %d events, then %v; want %v", n, len(got), err, want)
		}
		for _, g := range got {
			if g != e {
				t.Errorf("%d bytes: %+v", n, g)
			}
		}
	}
	// What went wrong is told again and again, and what had arrived before it first.
	wrong := errors.New("wrong")
	r := Reader{In: io.MultiReader(bytes.NewReader(two[:Size+9]), iotest.ErrReader(wrong))}
	if got, err := r.Next(); got != e || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for range 3 {
		if _, err := r.Next(); err != wrong {
			t.Errorf("%v, want %v", err, wrong)
		}
	}
}

// TestFullPipe: what does not fit is dropped and counted, and the next event that fits
// tells how many those were.
func TestFullPipe(t *testing.T) {
	in, w := pipe(t, 4096)
	size, err := unix.FcntlInt(uintptr(w.Descriptor()), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	fit := size / Size
	fill := func() (written, dropped int) {
		for i := range 3 * fit {
			if w.Write(event(i)) {
				if dropped > 0 {
					t.Fatal("an event fit after one that did not")
				}
				written++
			} else {
				dropped++
			}
		}
		return written, dropped
	}
	told := uint32(0)
	for round := range 3 {
		written, dropped := fill()
		if written != fit || dropped != 2*fit {
			t.Fatalf("round %d: %d events fit into %d bytes, %d were dropped", round, written, size, dropped)
		}
		events := make([]Event, fit)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(events))), size)
		if _, err := io.ReadFull(in, bytes); err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			want := uint32(0)
			if i == 0 {
				want = told
			}
			if e.Dropped != want || !sameBut(e, event(i)) {
				t.Fatalf("round %d, event %d: %+v, want %d dropped", round, i, e, want)
			}
		}
		told = uint32(dropped)
	}
	if !w.Write(event(0)) || !w.Write(event(1)) {
		t.Fatal("an event does not fit into an empty pipe")
	}
	w.Close()
	got, err := readAll(in)
	if err != io.EOF || len(got) != 2 || got[0].Dropped != told || got[1].Dropped != 0 {
		t.Errorf("%+v, %v; want %d dropped before the first", got, err, told)
	}
}

// TestClosed: without a reader that was asked for, nothing is written and nothing is
// counted, whatever descriptor 0 is.
func TestClosed(t *testing.T) {
	var w Writer
	if w.Enabled() || w.Write(event(1)) || w.dropped != 0 {
		t.Errorf("the zero Writer: %+v", w)
	}
	w.Close()
	_, open := pipe(t, 4096)
	fd := open.Descriptor()
	open.Close()
	open.Close() // closes nothing a second time
	if sys.IsOpen(fd) || open.Enabled() || open.Write(event(1)) || open.dropped != 0 {
		t.Errorf("a closed Writer: %+v", open)
	}
	// Descriptor 0 is one like any other.
	w.Open(0)
	if !w.Enabled() || w.Descriptor() != 0 {
		t.Errorf("at descriptor 0: %+v", w)
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	in, w := pipe(t, 4096)
	go io.Copy(io.Discard, in)
	if n := testing.AllocsPerRun(1000, func() { w.Write(event(3)) }); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
}

// TestKinds: each has a name of its own, in the form of the others, and a level.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for k := range NoTerminalDevice + 1 {
		name := k.String()
		if name == "" || seen[name] || bytes.ContainsFunc([]byte(name), func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[name] = true
		if level := LevelOf(k); level > Debug {
			t.Errorf("%v is of level %d", k, level)
		}
	}
	for k := int(NoTerminalDevice) + 1; k <= math.MaxUint8; k++ {
		if name := Kind(k).String(); name == "" || seen[name] {
			t.Errorf("kind %d, which does not exist, is called %q", k, name)
		}
		if LevelOf(Kind(k)) != Debug {
			t.Errorf("kind %d, which does not exist, is of level %d", k, LevelOf(Kind(k)))
		}
	}
}

// FuzzReader reads any bytes, in pieces of any size, and must return them as they are.
func FuzzReader(f *testing.F) {
	f.Add([]byte{}, uint16(1))
	f.Add(bytes.Repeat([]byte("0123456789abcdef"), 9), uint16(5))
	f.Add(bytes.Repeat([]byte{0xff}, 3*Size), uint16(Size))
	f.Add(bytes.Repeat([]byte{1, 0, 0}, 300*Size), uint16(4096))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		got, err := readAll(&pieces{stream, int(size) + 1})
		if len(got) != len(stream)/Size {
			t.Fatalf("%d events of %d bytes", len(got), len(stream))
		}
		back := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(got))), len(got)*Size)
		if !bytes.Equal(back, stream[:len(back)]) {
			t.Fatal("they changed on the way")
		}
		want := io.EOF
		if len(stream)%Size != 0 {
			want = io.ErrUnexpectedEOF
		}
		if err != want {
			t.Fatalf("%v, want %v", err, want)
		}
		for _, e := range got {
			_, _, _ = e.Kind.String(), LevelOf(e.Kind), e.Status().ExitStatus()
		}
	})
}
