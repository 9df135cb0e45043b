package main

import (
	"io"

	"github.com/sirupsen/logrus"
)

// newLogger makes a logger for people.
func newLogger(out io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(out)
	log.SetFormatter(plainFormatter{})
	return log
}

// plainFormatter writes "fdinit: message", without a time, which container logs have
// anyway.
type plainFormatter struct{}

func (plainFormatter) Format(entry *logrus.Entry) ([]byte, error) {
	return []byte("fdinit: " + entry.Message + "\n"), nil
}
