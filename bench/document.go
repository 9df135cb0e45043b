package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Header says how, when and on what a report was made.
type Header struct {
	Command string  `json:"command"`
	Quick   bool    `json:"quick,omitempty"`
	Date    string  `json:"date"`
	Machine Machine `json:"machine"`
}

// newHeader is for a report that the Makefile's target makes with these flags.
func newHeader(target string, flags []string, quick bool) Header {
	return Header{
		Command: makeCommand(target, flags),
		Quick:   quick,
		Date:    time.Now().UTC().Format(time.DateOnly),
		Machine: thisMachine(),
	}
}

// makeCommand is what one types to make a report.
func makeCommand(target string, flags []string) string {
	command := "make " + target
	switch len(flags) {
	case 0:
		return command
	case 1:
		return command + " BENCHFLAGS=" + flags[0]
	}
	return command + " BENCHFLAGS='" + strings.Join(flags, " ") + "'"
}

// document is a report in all its forms.
type document interface {
	// names of the two files that can be read.
	names() (data, text string)
	markdown(withCharts bool) string
	charts(dir string) error
}

// deliver writes a report into a directory, or prints it when there is none.
func deliver(d document, dir string) error {
	if dir == "" {
		fmt.Print(d.markdown(false))
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	js, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	data, text := d.names()
	if err := os.WriteFile(filepath.Join(dir, data), append(js, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, text), []byte(d.markdown(true)), 0o644); err != nil {
		return err
	}
	return d.charts(dir)
}
