package tap

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestWhatIsWrittenIsRead sends everything through a line that, as serial ports do, adds
// carriage returns, with a kernel's message in between.
func TestWhatIsWrittenIsRead(t *testing.T) {
	var line bytes.Buffer
	w := NewWriter(&line)
	w.Test("works", nil)
	line.WriteString("[    1.0] a message\n")
	w.Test("fails", errors.New("one\ntwo"))
	w.Skip("cannot", "no device")
	fact := Fact{Table: "t", Row: "a \"row\"", Column: "c", Text: "< 1 ms", Value: 0.5, Unit: "s"}
	w.Fact(fact)
	w.End()
	log, err := Read(strings.NewReader(strings.ReplaceAll(line.String(), "\n", "\r\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Log{
		Tests: []Test{
			{Name: "works", OK: true},
			{Name: "fails", Problem: "one\ntwo"},
			{Name: "cannot", OK: true, Skipped: "no device"},
		},
		Facts:    []Fact{fact},
		Complete: true,
	}
	if !reflect.DeepEqual(log, want) {
		t.Errorf("%+v\ninstead of\n%+v", log, want)
	}
}

func TestBrokenOffLogIsIncomplete(t *testing.T) {
	for _, text := range []string{
		"TAP version 14\nok 1 - a\n",
		"TAP version 14\nok 1 - a\n1..2\n# end\n", // a test was lost
		"",
	} {
		log, err := Read(strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if log.Complete {
			t.Errorf("%q is taken for complete", text)
		}
	}
}

func TestGarbledFactIsAnError(t *testing.T) {
	if _, err := Read(strings.NewReader(factPrefix+`{"table":`), nil); err == nil {
		t.Error("no error")
	}
}
