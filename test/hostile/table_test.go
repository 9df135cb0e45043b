package hostile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable holds the table in docs/reliability.md to the tests there are: each row
// names one, and each is in a row.
func TestTable(t *testing.T) {
	table, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for row := range strings.Lines(string(table)) {
		if name := regexp.MustCompile("`(Test\\w+)`").FindStringSubmatch(row); name != nil {
			named[name[1]] = true
		} else if strings.HasPrefix(row, "| ") && !strings.HasPrefix(row, "| Condition") {
			t.Errorf("this row names no test: %s", row)
		}
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	for name := range tests {
		if !named[name] && name != "TestTable" {
			t.Errorf("docs/reliability.md has no row for %s", name)
		}
	}
	for name := range named {
		if !tests[name] {
			t.Errorf("docs/reliability.md names %s, which does not exist", name)
		}
	}
}
