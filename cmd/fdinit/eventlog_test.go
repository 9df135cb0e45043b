package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"golang.org/x/sys/unix"
)

// stream is what a Writer would have written.
func stream(list ...events.Event) io.Reader {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*events.Size)
	return bytes.NewReader(b)
}

// logged is what is written about events.
func logged(t *testing.T, how config.Log, list ...events.Event) string {
	t.Helper()
	var out strings.Builder
	if err := logEvents(stream(list...), &out, how, 1, "server"); err != nil {
		t.Errorf("%+v: %v", how, err)
	}
	return out.String()
}

// variants are events of a kind with one thing or another in each field.
func variants(kind events.Kind) (list []events.Event) {
	for _, signal := range []sys.Signal{0, 15, 17, 33, 34, 64, 255} {
		for _, errno := range []int16{0, int16(unix.ESRCH), -1} {
			for _, n := range []int64{0, 1, 15, 0x8b, 0xff00, fds.Uncounted, math.MaxInt64} {
				list = append(list, events.Event{
					Time: 1e18 + n&0xffff, Kind: kind, Signal: signal, Other: signal / 2, Strategy: uint8(signal), Errno: errno,
					Pid: int32(n), Uid: uint32(n), Code: int32(uint64(n) % rlimit.Count), Values: [4]uint64{uint64(n), uint64(n), math.MaxUint64, 1},
				})
			}
		}
	}
	return list
}

var levels = []events.Level{events.Warn, events.Info, events.Debug}

// TestEveryEvent: whatever the init may send, and more, becomes whole lines in the
// form that was asked for.
func TestEveryEvent(t *testing.T) {
	forms := map[config.Dialect]*regexp.Regexp{
		config.Native:    regexp.MustCompile(`^fdinit: [^ ].*[^. ]$`),
		config.Tini:      regexp.MustCompile(`^\[(WARN |INFO |DEBUG|TRACE) tini \(1\)\] [A-Z].*$`),
		config.DumbInit:  regexp.MustCompile(`^\[dumb-init\] [A-Zs].*\.$`),
		config.Catatonit: regexp.MustCompile(`^(WARN|INFO|DEBUG) \(catatonit:-?\d+\): [a-z].*$`),
	}
	for kind := range events.NoTerminalDevice + 4 { // some of which do not exist
		if kind == events.NoTerminalDevice+3 {
			kind = math.MaxUint8
		}
		list := variants(kind)
		for style, form := range forms {
			for _, level := range levels {
				for _, notes := range []config.Notes{0, config.NoteQuiet, math.MaxUint8} {
					how := config.Log{Wanted: true, Style: style, Level: level, Notes: notes}
					text := logged(t, how, list...)
					how.JSON = true
					if style != config.Native {
						// Another init has only one form.
						if got := logged(t, how, list...); got != text {
							t.Errorf("kind %d, %+v: %s\ninstead of\n%s", kind, how, got, text)
						}
					} else {
						checkJSON(t, how, logged(t, how, list...), strings.Count(text, "\n"))
					}
					for line := range strings.Lines(text) {
						if !form.MatchString(strings.TrimSuffix(line, "\n")) || !strings.HasSuffix(line, "\n") {
							t.Fatalf("kind %d, %+v: %q", kind, how, line)
						}
					}
				}
			}
		}
	}
}

// checkJSON sees to it that there are so many lines, each an object with what programs
// look for first.
func checkJSON(t *testing.T, how config.Log, text string, lines int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n != lines {
		t.Errorf("%+v: %d lines of JSON, %d of text", how, n, lines)
	}
	for line := range strings.Lines(text) {
		o := map[string]any{}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, key := range []string{"level", "msg", "event", "time"} {
			if s, ok := o[key].(string); !ok || s == "" {
				t.Fatalf("no %s in %s", key, line)
			}
		}
		if _, err := time.Parse(time.RFC3339Nano, o["time"].(string)); err != nil {
			t.Errorf("%v", err)
		}
		at := slices.Index([]string{"warning", "info", "debug"}, o["level"].(string))
		if at < 0 || at > int(how.Level) {
			t.Errorf("at level %d: %s", how.Level, line)
		}
	}
}

// TestNativeWords has fdinit's own words, and the same as fields.
func TestNativeWords(t *testing.T) {
	status := func(kind events.Kind, pid int32, status uint64) events.Event {
		return events.Event{Kind: kind, Pid: pid, Values: [4]uint64{status}}
	}
	const sigterm, sigint, chld = sys.Signal(unix.SIGTERM), sys.Signal(unix.SIGINT), sys.Signal(unix.SIGCHLD)
	for _, c := range []struct {
		event  events.Event
		level  string
		words  string // none: nothing is said
		fields map[string]any
	}{
		{
			events.Event{Kind: events.Swept, Strategy: uint8(fds.ByRange), Values: [4]uint64{7}},
			"info",
			"closed 7 inherited descriptors with close_range",
			map[string]any{"event": "swept", "strategy": "close_range", "closed": 7.0},
		},
		{
			events.Event{Kind: events.Swept, Strategy: uint8(fds.ByRange), Values: [4]uint64{math.MaxUint64}},
			"info",
			"closed inherited descriptors with close_range",
			map[string]any{"event": "swept", "strategy": "close_range"},
		},
		{events.Event{Kind: events.Swept}, "info", "kept all inherited descriptors", map[string]any{"event": "swept"}},
		{
			events.Event{Kind: events.LimitChanged, Code: unix.RLIMIT_NOFILE, Pid: 7, Values: [4]uint64{1 << 30, math.MaxUint64, 65536, 1 << 20}},
			"info",
			"changed RLIMIT_NOFILE from 1073741824:unlimited to 65536:1048576 (soft:hard)",
			map[string]any{"event": "limit-changed", "resource": "RLIMIT_NOFILE", "before": "1073741824:unlimited", "after": "65536:1048576"},
		},
		{events.Event{Kind: events.Started, Pid: 7}, "info", "started server as process 7", map[string]any{"event": "started", "pid": 7.0, "command": "server"}},
		{
			events.Event{Kind: events.Received, Signal: sigterm, Pid: 9, Uid: 1000},
			"info", "received SIGTERM from process 9 (user 1000)",
			map[string]any{"event": "received", "signal": "SIGTERM", "code": 0.0, "sender": 9.0, "uid": 1000.0},
		},
		{
			events.Event{Kind: events.Received, Signal: sigterm},
			"info", "received SIGTERM from outside the container (user 0)",
			map[string]any{"event": "received", "signal": "SIGTERM", "code": 0.0, "sender": 0.0, "uid": 0.0},
		},
		{
			events.Event{Kind: events.Received, Signal: sigint, Code: sys.SentByKernel, Pid: 3},
			"info", "received SIGINT from the kernel",
			map[string]any{"event": "received", "signal": "SIGINT", "code": 128.0},
		},
		{event: events.Event{Kind: events.Received, Signal: chld, Pid: 9}},
		{
			events.Event{Kind: events.Translated, Signal: sigterm, Other: sigint},
			"info", "forwarding SIGTERM as SIGINT, as asked",
			map[string]any{"event": "translated", "signal": "SIGTERM", "as": "SIGINT"},
		},
		{
			events.Event{Kind: events.Translated, Signal: sigterm},
			"info", "not forwarding SIGTERM, as asked",
			map[string]any{"event": "translated", "signal": "SIGTERM"},
		},
		{
			events.Event{Kind: events.Forwarded, Signal: 37, Pid: 7},
			"info", "forwarded SIGRTMIN+3 to process 7",
			map[string]any{"event": "forwarded", "signal": "SIGRTMIN+3", "pid": 7.0},
		},
		{
			events.Event{Kind: events.Forwarded, Signal: sigterm, Pid: -7},
			"info", "forwarded SIGTERM to process group 7",
			map[string]any{"event": "forwarded", "signal": "SIGTERM", "pid": -7.0},
		},
		{
			events.Event{Kind: events.ForwardFailed, Signal: sigterm, Pid: 7, Errno: int16(unix.ESRCH)},
			"warning",
			"forwarding SIGTERM to process 7: no such process",
			map[string]any{"event": "forward-failed", "signal": "SIGTERM", "pid": 7.0, "error": "no such process"},
		},
		{
			events.Event{Kind: events.ForwardFailed, Signal: sigterm, Pid: -7, Errno: int16(unix.EPERM)},
			"warning",
			"forwarding SIGTERM to process group 7: operation not permitted: it runs as another user, and fdinit lacks CAP_KILL",
			map[string]any{"event": "forward-failed", "signal": "SIGTERM", "pid": -7.0, "error": "operation not permitted"},
		},
		{
			events.Event{Kind: events.SentLast, Signal: sigterm, Pid: -7},
			"debug", "sent SIGTERM to process group 7, whose leader has ended",
			map[string]any{"event": "sent-last", "signal": "SIGTERM", "pid": -7.0},
		},
		{
			events.Event{Kind: events.Ignored, Signal: sys.Signal(unix.SIGHUP)},
			"debug", "not forwarding SIGHUP, which the kernel sent because the terminal was released",
			map[string]any{"event": "ignored", "signal": "SIGHUP"},
		},
		{
			events.Event{Kind: events.Suspending, Signal: sys.Signal(unix.SIGTSTP)},
			"debug", "suspending with the workload because of SIGTSTP",
			map[string]any{"event": "suspending", "signal": "SIGTSTP"},
		},
		{status(events.Reaped, 8, 3<<8), "debug", "reaped process 8 with status 3", map[string]any{"event": "reaped", "pid": 8.0, "status": 3.0}},
		{status(events.Reaped, 8, 9), "debug", "reaped process 8, ended by SIGKILL", map[string]any{"event": "reaped", "pid": 8.0, "signal": "SIGKILL"}},
		{
			status(events.WorkloadEnded, 7, 0), "info", "the workload ended: process 7 with status 0",
			map[string]any{"event": "workload-ended", "pid": 7.0, "status": 0.0},
		},
		{
			status(events.WorkloadEnded, 7, 11|0x80), "info", "the workload ended: process 7, ended by SIGSEGV",
			map[string]any{"event": "workload-ended", "pid": 7.0, "signal": "SIGSEGV"},
		},
		{
			events.Event{Kind: events.Subreaper, Errno: int16(unix.EINVAL)},
			"debug", "cannot adopt orphans: invalid argument",
			map[string]any{"event": "subreaper", "error": "invalid argument"},
		},
		{event: events.Event{Kind: events.Subreaper}},
		{
			events.Event{Kind: events.ForegroundFailed, Errno: int16(unix.EIO)},
			"debug",
			"cannot put the workload into the terminal's foreground: input/output error",
			map[string]any{"event": "foreground-failed", "error": "input/output error"},
		},
		{event: events.Event{Kind: events.ForegroundFailed, Errno: int16(unix.ENOTTY)}}, // there just is no terminal
		{event: events.Event{Kind: events.NothingToReap}},
		{event: events.Event{Kind: events.NoChildren}},
		{event: events.Event{Kind: events.Ending, Code: 3}},
	} {
		c.event.Time = time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC).UnixNano()
		want := ""
		if c.words != "" {
			want = "fdinit: " + c.words + "\n"
		}
		if got := logged(t, config.Log{Level: events.Debug}, c.event); got != want {
			t.Errorf("%v:\n got %s\nwant %s", c.event.Kind, got, want)
		}
		got := map[string]any{}
		text := logged(t, config.Log{Level: events.Debug, JSON: true}, c.event)
		if c.words == "" {
			if text != "" {
				t.Errorf("%v: %s", c.event.Kind, text)
			}
			continue
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%v: %v: %s", c.event.Kind, err, text)
			continue
		}
		when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got["time"]))
		if err != nil || when.UnixNano() != c.event.Time {
			t.Errorf("%v: %v, %v instead of the event's own time", c.event.Kind, err, when)
		}
		delete(got, "time")
		c.fields["level"], c.fields["msg"] = c.level, c.words
		if !maps.Equal(got, c.fields) {
			t.Errorf("%v:\n got %v\nwant %v", c.event.Kind, got, c.fields)
		}
	}
}

// TestDroppedAreTold in every form, at every level, and before the event that tells.
func TestDroppedAreTold(t *testing.T) {
	e := events.Event{Time: 1e18, Kind: events.Started, Pid: 7, Dropped: 41}
	const words = "41 events were dropped because the log was not read fast enough"
	for _, style := range []config.Dialect{config.Native, config.Tini, config.DumbInit, config.Catatonit} {
		for _, level := range levels {
			how := config.Log{Style: style, Level: level}
			got := logged(t, how, events.Event{Time: 1e18, Kind: events.None}, e)
			if !strings.HasPrefix(got, "fdinit: "+words+"\n") || strings.Count(got, "dropped") != 1 {
				t.Errorf("%+v: %s", how, got)
			}
			if level == events.Debug && !strings.Contains(strings.TrimPrefix(got, "fdinit: "+words), "7") {
				t.Errorf("%+v: the event itself is missing: %s", how, got)
			}
		}
	}
	got := logged(t, config.Log{JSON: true}, e)
	checkJSON(t, config.Log{}, got, 1)
	o := map[string]any{}
	if err := json.Unmarshal([]byte(got), &o); err != nil || o["dropped"] != 41.0 || o["event"] != "dropped" || o["level"] != "warning" || o["msg"] != words {
		t.Errorf("%v: %s", err, got)
	}
}

// TestCutLog: what arrived is written, and then it is an error.
func TestCutLog(t *testing.T) {
	e := events.Event{Kind: events.Started, Pid: 7}
	whole, err := io.ReadAll(stream(e, e))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = logEvents(bytes.NewReader(whole[:len(whole)-1]), &out, config.Log{Level: events.Info}, 1, "server")
	if !errors.Is(err, io.ErrUnexpectedEOF) || out.String() != "fdinit: started server as process 7\n" {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestSignalName(t *testing.T) {
	for sig, want := range map[sys.Signal]string{
		1: "SIGHUP", 6: "SIGABRT", 15: "SIGTERM", 29: "SIGIO", 31: "SIGSYS",
		34: "SIGRTMIN", 35: "SIGRTMIN+1", 63: "SIGRTMIN+29", 64: "SIGRTMAX",
		0: "signal 0", 32: "signal 32", 33: "signal 33", 65: "signal 65", 255: "signal 255",
	} {
		if got := signalName(sig); got != want {
			t.Errorf("%d: %q, want %q", sig, got, want)
		}
	}
}

// TestSignalNamesAreUnderstood where a signal is given: in several spellings, and by
// number.
func TestSignalNamesAreUnderstood(t *testing.T) {
	for n := sys.Signal(1); n <= signals.RTMax; n++ {
		spellings := []string{fmt.Sprint(n)}
		if name := signalName(n); strings.HasPrefix(name, "SIG") {
			spellings = append(spellings, name, strings.ToLower(name), name[3:], strings.ToLower(name[3:]))
		} else if n != 32 && n != 33 {
			t.Errorf("signal %d has no name", n)
		}
		for _, s := range spellings {
			if sig, ok := signals.Parse(s); !ok || sig != n {
				t.Errorf("Parse(%q) = %d, %v, want %d", s, sig, ok, n)
			}
		}
	}
}

// TestSignalNames compares with strsignal(3) and strerror(3) of glibc, whose words the
// C inits print.
func TestSignalNames(t *testing.T) {
	for sig, want := range map[sys.Signal]string{
		1: "Hangup", 2: "Interrupt", 5: "Trace/breakpoint trap", 6: "Aborted", 9: "Killed", 10: "User defined signal 1", 11: "Segmentation fault",
		14: "Alarm clock", 15: "Terminated", 16: "Stack fault", 24: "CPU time limit exceeded", 28: "Window changed", 29: "I/O possible", 30: "Power failure",
		34: "Real-time signal 0", 37: "Real-time signal 3", 64: "Real-time signal 30",
	} {
		if got := strsignal(sig); got != want {
			t.Errorf("%d: %q, want %q", sig, got, want)
		}
	}
	for errno, want := range map[unix.Errno]string{
		unix.EPERM: "Operation not permitted", unix.ESRCH: "No such process", unix.ENOTTY: "Inappropriate ioctl for device", unix.ENXIO: "No such device or address",
	} {
		if got := strerror(events.Event{Errno: int16(errno)}); got != want {
			t.Errorf("%d: %q, want %q", errno, got, want)
		}
	}
}
