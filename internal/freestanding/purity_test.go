package freestanding_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fdinit/fdinit/internal/freestanding/purity"
)

const (
	module   = "github.com/fdinit/fdinit"
	fixtures = "internal/freestanding/testdata"
)

// architectures are those with a decoder; cross-compiling to them always works.
var architectures = []string{"amd64", "arm64"}

// TestFreestandingRule keeps the central promise of the design: from its entry
// point on, fdinit needs nothing that the Go runtime would have set up. When it
// fails, the chain of functions in the message says who called what; the code has
// to change, or package purity's allow-list gets an entry with a reason.
func TestFreestandingRule(t *testing.T) {
	for _, arch := range architectures {
		t.Run(arch, func(t *testing.T) {
			dir := build(t, arch, "internal/freestanding.Entry", "cmd/fdinit")
			report := walk(t, filepath.Join(dir, "fdinit"))
			for _, v := range report.Violations {
				t.Errorf("%s: %s", v.Kind, v)
			}
			if !slices.ContainsFunc(report.Functions, func(name string) bool {
				return purity.Package(name) == module+"/internal/reaper"
			}) {
				t.Error("the walk never came to the reaper, so it proved nothing")
			}
		})
	}
}

// TestFreestandingRuleFixtures judges small programs that keep the rule, or break
// one part of it each. They have an entry point like fdinit's.
func TestFreestandingRuleFixtures(t *testing.T) {
	type breach struct {
		kind   purity.Kind
		begins string // of the message
		says   string // somewhere in it
	}
	tests := []struct {
		fixture string
		want    []breach // nothing else may be found
		allowed []string // found, and not held against it; beginnings of names
		tables  int      // at least so many jump tables were read
	}{
		{
			fixture: "clean",
			allowed: []string{
				"_rt0_", "runtime.cmpstring", "runtime.gcWriteBarrier", "runtime.memclrNoHeapPointers", "runtime.memequal",
				"runtime.memmove", "runtime.morestack", "runtime.panicBounds", "runtime.panicdivide", "runtime.panicshift",
			},
			tables: 1,
		},
		{fixture: "allocates", want: []breach{
			{purity.Forbidden, "Entry -> start -> main.freestanding -> main.object -> runtime.newobject: ", "not on the allow-list: allocates"},
			{purity.Forbidden, "Entry -> start -> main.freestanding -> main.space -> runtime.makeslice: ", "not on the allow-list: allocates"},
		}},
		{fixture: "usesmap", want: []breach{
			{purity.Forbidden, "Entry -> start -> main.freestanding -> main.lookup -> runtime.mapaccess", "not on the allow-list: uses a map"},
		}},
		{fixture: "callsvariable", want: []breach{
			{purity.Unresolved, "Entry -> start -> main.freestanding -> main.run: ", "goes where only the running program knows"},
		}},
		{fixture: "passescallback", want: []breach{
			{purity.Unresolved, "Entry -> start -> main.freestanding -> main.each: ", "goes where only the running program knows"},
			{purity.Forbidden, "Entry -> start -> main.freestanding -> main.keep -> runtime.newobject: ", "allocates"},
		}},
		{fixture: "needsinit", want: []breach{
			{purity.NeedsInit, "Entry -> start -> main.freestanding -> table..inittask: ", "1 init functions of " + module + "/" + fixtures + "/needsinit/table have not run"},
		}},
		{fixture: "callsfmt", want: []breach{
			{purity.Forbidden, "Entry -> start -> main.freestanding -> runtime.convT64: ", "puts a value into an interface"},
			{purity.Forbidden, "Entry -> start -> main.freestanding -> fmt.Fprintln: ", "not on the allow-list: fmt"},
			{purity.ForeignVar, "Entry -> start -> main.freestanding -> os.Stdout: ", "whose init functions have not run"},
		}},
		{fixture: "readsforeign", want: []breach{
			{purity.ForeignVar, "Entry -> start -> main.freestanding -> main.plainly -> golang.org/x/sys/unix.SocketDisableIPv6: ", "whose init functions have not run"},
			{purity.ForeignVar, "Entry -> start -> main.freestanding -> main.hidden -> golang.org/x/sys/unix.SocketDisableIPv6: ", "whose init functions have not run"},
		}},
		{fixture: "defers", want: []breach{
			{purity.Forbidden, "Entry -> start -> main.freestanding -> main.count -> runtime.defer", "not on the allow-list: defers"},
		}},
		{fixture: "garbles", want: []breach{
			{purity.Undecodable, "Entry -> start -> main.freestanding -> main.garbled: ", "is not understood"},
			{purity.OpenEnd, "Entry -> start -> main.freestanding -> main.endless: ", "runs off its end"},
		}},
	}
	for _, arch := range architectures {
		t.Run(arch, func(t *testing.T) {
			var dirs []string
			for _, test := range tests {
				dirs = append(dirs, fixtures+"/"+test.fixture)
			}
			dir := build(t, arch, fixtures+"/entry.Entry", dirs...)
			for _, test := range tests {
				t.Run(test.fixture, func(t *testing.T) {
					report := walk(t, filepath.Join(dir, test.fixture))
					found := make([]bool, len(test.want))
				violations:
					for _, v := range report.Violations {
						message := v.String()
						for i, w := range test.want {
							if v.Kind == w.kind && strings.HasPrefix(message, w.begins) && strings.Contains(message, w.says) {
								found[i] = true
								continue violations
							}
						}
						t.Errorf("unexpected: %s: %s", v.Kind, message)
					}
					for i, w := range test.want {
						if !found[i] {
							t.Errorf("not found: %s: %s…%s", w.kind, w.begins, w.says)
						}
					}
					for _, name := range test.allowed {
						if !slices.ContainsFunc(report.Opaque, func(s string) bool { return strings.HasPrefix(s, name) }) {
							t.Errorf("%s was not reached: the fixture tests less than it means to", name)
						}
					}
					if report.Tables < test.tables {
						t.Errorf("%d jump tables, want %d: the fixture tests less than it means to", report.Tables, test.tables)
					}
				})
			}
		})
	}
}

// build links packages of the module the way the Makefile does, but with symbols,
// and returns the directory of the executables.
func build(t *testing.T, arch, entry string, packages ...string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Skip("needs the source of the module, to link it anew: ", err)
	}
	// The go command caches the result of a test until a file that it looked at
	// changes; it does not know what a child reads. So look at the sources.
	for _, tree := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir() + string(filepath.Separator)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-buildid= -E=" + module + "/" + entry, "-o", dir}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	// Like a release: package purity does not decode what later levels of GOAMD64 add.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return dir
}

func walk(t *testing.T, path string) *purity.Report {
	t.Helper()
	binary, err := purity.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	report := purity.Walk(binary, purity.Freestanding(module))
	t.Logf("%s: %d functions of %d packages with %d bytes of text and %d jump tables; calls, but does not look into, %d: %s",
		filepath.Base(path), len(report.Functions), len(report.Packages), report.TextBytes, report.Tables, len(report.Opaque), strings.Join(report.Opaque, " "))
	return report
}
