package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/fdinit/fdinit/internal/config"
	"github.com/fdinit/fdinit/internal/events"
	"github.com/fdinit/fdinit/internal/fds"
	"github.com/fdinit/fdinit/internal/freestanding"
	"github.com/fdinit/fdinit/internal/rlimit"
	"github.com/fdinit/fdinit/internal/signals"
	"github.com/fdinit/fdinit/internal/sys"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// writeLog is the life of the event log's process: it writes what the init reports
// until the init has ended.
func writeLog(o freestanding.Outcome) int {
	// "kill -TERM -1" in the container is not meant for the log, which has to say so. Of
	// the real-time signals the runtime leaves the first one with its default.
	for sig := sys.Signal(1); sig <= signals.RTMin; sig++ {
		switch unix.Signal(sig) {
		case unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGABRT, unix.SIGCHLD:
		default:
			sys.SetDisposition(sig, sys.Ignored)
		}
	}
	command := ""
	if o.Command < len(os.Args) {
		command = os.Args[o.Command]
	}
	unix.SetNonblock(o.Handover.LogInput, false) // no use for the runtime's poller
	input := os.NewFile(uintptr(o.Handover.LogInput), "events")
	err := logEvents(input, os.Stderr, o.Log, o.Handover.Init, command)
	if err != nil {
		complain("writing the log: " + err.Error())
		return config.StatusFailed
	}
	return 0
}

// writeOnce writes a single event, a warning, in the dialect's words.
func writeOnce(o freestanding.Outcome) int {
	log := newLogger(os.Stderr)
	if o.Log.Style == config.Tini {
		log.SetFormatter(plainFormatter{})
		for _, line := range (&tiniLog{how: o.Log, init: o.Handover.Init}).lines(o.Handover.Event) {
			log.Warn(line)
		}
		return 0
	}
	if o.Log.JSON {
		log.SetFormatter(jsonFormatter())
	}
	writeEvent(log, o.Handover.Event, "")
	return 0
}

func jsonFormatter() logrus.Formatter {
	return &logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano}
}

// logEvents writes events from in to out until they end. init is the init's pid, and
// command the workload's first word.
func logEvents(in io.Reader, out io.Writer, how config.Log, init int, command string) error {
	log := newLogger(out)
	var peer peerLog
	switch how.Style {
	case config.Tini:
		peer = &tiniLog{how: how, init: init, command: command}
	case config.DumbInit:
		peer = &dumbInitLog{how: how, init: init}
	case config.Catatonit:
		peer = &catatonitLog{init: init, command: command}
	}
	// Another init's log is lines of text, each with its own beginning. What such an
	// init has no words for is said in fdinit's.
	peers := newLogger(out)
	peers.SetFormatter(plainFormatter{})
	if how.JSON && peer == nil {
		log.SetFormatter(jsonFormatter())
	}
	reader := events.Reader{In: in}
	for {
		e, err := reader.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if e.Dropped > 0 {
			log.WithTime(time.Unix(0, e.Time)).WithFields(logrus.Fields{"event": "dropped", "dropped": e.Dropped}).
				Warnf("%d events were dropped because the log was not read fast enough", e.Dropped)
		}
		switch {
		case peer == nil && events.LevelOf(e.Kind) <= how.Level:
			writeEvent(log, e, command)
		case peer != nil:
			for _, line := range peer.lines(e) {
				peers.Info(line)
			}
		}
	}
}

// writeEvent writes an event in fdinit's own words, if it has any for it.
func writeEvent(log *logrus.Logger, e events.Event, command string) {
	fields := logrus.Fields{"event": e.Kind.String()}
	message := describeEvent(e, command, fields)
	if message == "" {
		return
	}
	entry := log.WithFields(fields)
	if e.Time != 0 {
		entry = entry.WithTime(time.Unix(0, e.Time))
	}
	level := logrus.DebugLevel
	switch events.LevelOf(e.Kind) {
	case events.Warn:
		level = logrus.WarnLevel
	case events.Info:
		level = logrus.InfoLevel
	}
	entry.Log(level, message)
}

// describeEvent finds words for an event, none if there is nothing to say, and adds the
// same to fields for programs.
func describeEvent(e events.Event, command string, fields logrus.Fields) string {
	switch e.Kind {
	case events.Subreaper:
		if e.Errno != 0 {
			return describeError("cannot adopt orphans", e, fields)
		}
	case events.Swept:
		return describeSweep(e, fields)
	case events.LimitChanged:
		resource := rlimit.Type(int(e.Code))
		before, after := limitText(e.Values[0], e.Values[1]), limitText(e.Values[2], e.Values[3])
		fields["resource"], fields["before"], fields["after"] = resource, before, after
		return fmt.Sprintf("changed %s from %s to %s (soft:hard)", resource, before, after)
	case events.Started:
		fields["pid"], fields["command"] = e.Pid, command
		if quoted := strconv.Quote(command); quoted != `"`+command+`"` {
			command = quoted // a line for each event, whatever the name is
		}
		return fmt.Sprintf("started %s as process %d", command, e.Pid)
	case events.Received:
		return describeReceived(e, fields)
	case events.Translated, events.Ignored, events.Forwarded, events.ForwardFailed, events.SentLast, events.Suspending:
		return describeSignal(e, fields)
	case events.Reaped:
		return "reaped " + describeEnd(e, fields)
	case events.WorkloadEnded:
		return "the workload ended: " + describeEnd(e, fields)
	case events.ForegroundFailed:
		if e.Errno != 0 && unix.Errno(e.Errno) != unix.ENOTTY {
			return describeError("cannot put the workload into the terminal's foreground", e, fields)
		}
	}
	return ""
}

// describeError words what failed for the reason that an event gives.
func describeError(what string, e events.Event, fields logrus.Fields) string {
	fields["error"] = errnoText(e)
	return what + ": " + errnoText(e)
}

// describeSweep words how descriptors were closed.
func describeSweep(e events.Event, fields logrus.Fields) string {
	strategy, closed := fds.Strategy(e.Strategy), int64(e.Values[0])
	if strategy == fds.None {
		return "kept all inherited descriptors"
	}
	fields["strategy"] = strategy.String()
	if closed == fds.Uncounted {
		return fmt.Sprintf("closed inherited descriptors with %v", strategy)
	}
	fields["closed"] = closed
	return fmt.Sprintf("closed %d inherited descriptors with %v", closed, strategy)
}

// describeReceived words where a signal came from.
func describeReceived(e events.Event, fields logrus.Fields) string {
	if e.Signal == sys.Signal(unix.SIGCHLD) {
		return "" // its effect is what counts
	}
	signal := signalName(e.Signal)
	fields["signal"], fields["code"] = signal, e.Code
	if e.Code > 0 {
		return fmt.Sprintf("received %s from the kernel", signal)
	}
	fields["sender"], fields["uid"] = e.Pid, e.Uid
	if e.Pid == 0 {
		return fmt.Sprintf("received %s from outside the container (user %d)", signal, e.Uid)
	}
	return fmt.Sprintf("received %s from process %d (user %d)", signal, e.Pid, e.Uid)
}

// describeSignal words what became of a signal.
func describeSignal(e events.Event, fields logrus.Fields) string {
	signal := signalName(e.Signal)
	fields["signal"] = signal
	switch e.Kind {
	case events.Translated:
		if e.Other == 0 {
			return fmt.Sprintf("not forwarding %s, as asked", signal)
		}
		fields["as"] = signalName(e.Other)
		return fmt.Sprintf("forwarding %s as %s, as asked", signal, signalName(e.Other))
	case events.Ignored:
		return fmt.Sprintf("not forwarding %s, which the kernel sent because the terminal was released", signal)
	case events.Suspending:
		return fmt.Sprintf("suspending with the workload because of %s", signal)
	}
	fields["pid"] = e.Pid
	switch e.Kind {
	case events.SentLast:
		return fmt.Sprintf("sent %s to %s, whose leader has ended", signal, target(e.Pid))
	case events.ForwardFailed:
		message := describeError(fmt.Sprintf("forwarding %s to %s", signal, target(e.Pid)), e, fields)
		if unix.Errno(e.Errno) == unix.EPERM {
			message += ": it runs as another user, and fdinit lacks CAP_KILL"
		}
		return message
	}
	return fmt.Sprintf("forwarded %s to %s", signal, target(e.Pid))
}

// describeEnd words how a process ended.
func describeEnd(e events.Event, fields logrus.Fields) string {
	fields["pid"] = e.Pid
	status := e.Status()
	if sig := status.Signal(); sig != 0 {
		fields["signal"] = signalName(sig)
		return fmt.Sprintf("process %d, ended by %s", e.Pid, signalName(sig))
	}
	fields["status"] = status.ExitStatus()
	return fmt.Sprintf("process %d with status %d", e.Pid, status.ExitStatus())
}

func errnoText(e events.Event) string { return unix.Errno(e.Errno).Error() }

// target names whom a signal was for.
func target(pid int32) string {
	if pid < 0 {
		return fmt.Sprintf("process group %d", -pid)
	}
	return fmt.Sprintf("process %d", pid)
}

// signalName is a signal's name with SIG, "SIGRTMIN+3" for real-time ones and "signal 32"
// for a number without one.
func signalName(sig sys.Signal) string {
	switch name := signals.Standard(sig); {
	case name != "":
		return "SIG" + name
	case sig == signals.RTMin:
		return "SIGRTMIN"
	case sig == signals.RTMax:
		return "SIGRTMAX"
	case sig > signals.RTMin && sig < signals.RTMax:
		return fmt.Sprintf("SIGRTMIN+%d", sig-signals.RTMin)
	}
	return fmt.Sprintf("signal %d", sig)
}
