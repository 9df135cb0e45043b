package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The subject of this run is the reference under fdinit's name, for it takes
// the same command line: what is tested is the benchmark.
func TestReport(t *testing.T) {
	subject, err := exec.LookPath(referenceName)
	if err != nil {
		t.Skipf("ratios need the reference: %v", err)
	}
	w := programs(t, 1)
	if _, err := runOnce([]string{w.staticTrue}, prepareSpawn(spawnOptions{pid1: true})); err != nil {
		t.Skipf("no PID namespace can be made here: %v", err)
	}
	name := ownHostname(t)
	out := t.TempDir()
	var r Report
	var x StartupRow
	// Three runs of the bare command may all have been disturbed, and so have taken longer
	// than the fastest with an init in front. Of many that is not so.
	for runs := 3; runs <= 300 && x.Wall.Min <= 0; runs *= 10 {
		if err := run([]string{"-fdinit", subject, fmt.Sprintf("-runs=%d", runs), "-quick", "-only=startup,size", "-out", out}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(out, "bench.json"))
		if err != nil {
			t.Fatal(err)
		}
		r = Report{}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("make bench BENCHFLAGS='-only=startup,size -quick -runs=%d'", runs); r.Command != want {
			t.Errorf("the command is %q, want %q", r.Command, want)
		}
		i := slices.IndexFunc(r.Startup, func(x StartupRow) bool { return x.Init == subjectName })
		if i < 0 {
			t.Fatal("the subject has no row")
		}
		x = r.Startup[i]
	}
	// Whatever the machine's mood, a second program cannot come for nothing.
	if x.Faults.Median <= 0 || x.Syscalls == nil || *x.Syscalls <= 0 || x.Wall.Min <= 0 {
		t.Errorf("an init costs nothing: %+v", x)
	}
	for _, file := range []string{"README.md", "bench.json", "startup.svg", "faults.svg"} {
		b, err := os.ReadFile(filepath.Join(out, file))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, private := range []string{subject, out, os.TempDir() + "/", name} {
			if private != "" && strings.Contains(string(b), private) {
				t.Errorf("%s tells of %s", file, private)
			}
		}
	}
	if !strings.Contains(r.markdown(true), quickly) {
		t.Error("a quick run does not say that it is one")
	}
	if i := slices.IndexFunc(r.FileSize, func(x SizeRow) bool { return x.Init == subjectName }); i < 0 || *r.FileSize[i].ImageBytes <= r.FileSize[i].Bytes {
		t.Errorf("an image is no larger than its file: %+v", r.FileSize)
	}
}

// ownHostname gives the test's thread a host's name that no report has by chance, as it
// may have the machine's own. It is empty where that takes a privilege that is not there.
func ownHostname(t *testing.T) string {
	t.Helper()
	const name = "unmistakable-host"
	runtime.LockOSThread() // for good: the thread ends with the test
	if unix.Unshare(unix.CLONE_NEWUTS) != nil || unix.Sethostname([]byte(name)) != nil {
		return ""
	}
	if host, err := os.Hostname(); err != nil || host != name {
		t.Fatalf("the host's name is %q: %v", host, err)
	}
	return name
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		{"-only=idel"},
		{"-only=" + documents[0] + ",idle"},
		{"-runs=-1"},
		{"stray"},
		{"-fdinit=/nonexistent"},
	} {
		if err := run(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-fdinit ../bin/fdinit -out x", "make bench"},
		{"-fdinit ../bin/fdinit -out x -quick", "make bench BENCHFLAGS=-quick"},
		{"-quick=false -runs 5", "make bench BENCHFLAGS=-runs=5"},
		{"-only=sweep -out x", "make bench-sweep"},
		{"-only=jvm -quick -runs=5", "make bench-jvm BENCHFLAGS='-quick -runs=5'"},
	} {
		o, err := parseOptions(strings.Fields(tc.args))
		if err != nil {
			t.Fatal(err)
		}
		target := "bench"
		if isDocument(o.wanted[0]) {
			target += "-" + o.wanted[0]
		}
		if got := newHeader(target, o.flags, o.quick).Command; got != tc.want {
			t.Errorf("%s is %q, want %q", tc.args, got, tc.want)
		}
	}
	if o, err := parseOptions([]string{"-only=idle"}); err != nil || o.out != "" {
		t.Errorf("a part would replace the whole: %+v, %v", o, err)
	}
}

func TestArgv(t *testing.T) {
	c := contender{path: "i", asPID1: []string{"--"}, asChild: []string{"-s", "--"}}
	for _, tc := range []struct {
		c    contender
		pid1 bool
		want string
	}{
		{c, true, "i|--|a|b"},
		{c, false, "i|-s|--|a|b"},
		{contender{}, true, "a|b"},
		{contender{path: "i", asPID1: []string{"-main"}, oneWord: true}, true, "i|-main|a b"},
	} {
		if got := strings.Join(tc.c.argv([]string{"a", "b"}, tc.pid1), "|"); got != tc.want {
			t.Errorf("argv is %q, want %q", got, tc.want)
		}
	}
}
