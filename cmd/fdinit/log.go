package main

import (
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// complaintsInJSON is set by main if the log is asked for in JSON: whoever parses it
// wants to parse what went wrong, too.
var complaintsInJSON bool

// complain writes a message to stderr.
func complain(message string) {
	log := newLogger(os.Stderr)
	if complaintsInJSON {
		log.SetFormatter(jsonFormatter())
	}
	log.Error(message)
}

// newLogger makes a logger for people, at every level.
func newLogger(out io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(out)
	log.SetLevel(logrus.TraceLevel)
	log.SetFormatter(plainFormatter{prefix: "fdinit: "})
	return log
}

// plainFormatter writes messages without a time, which container logs have anyway, and
// without fields, which the message has in words.
type plainFormatter struct{ prefix string }

func (f plainFormatter) Format(entry *logrus.Entry) ([]byte, error) {
	return []byte(f.prefix + entry.Message + "\n"), nil
}
