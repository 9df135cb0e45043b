package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows the usage text as it is.
func TestReadmeShowsUsage(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```\n"+usage+"```\n") {
		t.Error("README.md does not contain the usage text of usage.go: copy it there")
	}
}
