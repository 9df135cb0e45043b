package purity

import "strings"

// A Policy says what freestanding code may use.
type Policy struct {
	// Module is the path of the module that is being judged. Its functions
	// are followed and its variables may be used, and so may those of package
	// main.
	Module string
	// Allow lists the functions of others that may be called.
	Allow []Rule
	// Vars lists the variables of others that may be read.
	Vars []Rule
	// Hints say what is wrong with a function that is not allowed. They only
	// make the message better.
	Hints []Rule
}

// A Rule is about one symbol, or about all with a prefix.
type Rule struct {
	Name   string // a trailing * matches any rest
	Follow bool   // look inside too: only then is what it calls judged
	Why    string
}

func (r Rule) matches(name string) bool {
	if prefix, ok := strings.CutSuffix(r.Name, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return r.Name == name
}

func match(rules []Rule, name string) (Rule, bool) {
	for _, r := range rules {
		if r.matches(name) {
			return r, true
		}
	}
	return Rule{}, false
}

// ours reports whether a symbol belongs to the code that is judged.
func (p *Policy) ours(symbol string) bool {
	if strings.HasPrefix(symbol, "type:") || strings.HasPrefix(symbol, "go:") {
		return false
	}
	pkg := Package(symbol)
	return pkg == "main" || pkg == p.Module || strings.HasPrefix(pkg, p.Module+"/")
}

// short makes a name of the module readable: reaper.Run instead of
// github.com/fdinit/fdinit/internal/reaper.Run.
func (p *Policy) short(symbol string) string {
	rest, ok := strings.CutPrefix(symbol, p.Module+"/")
	if !ok {
		return symbol
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "[("); i >= 0 {
		end = i
	}
	return rest[strings.LastIndexByte(rest[:end], '/')+1:]
}

// Freestanding is the policy for the code that runs in place of the Go runtime:
// what is allowed, and why it works although nothing has been set up.
func Freestanding(module string) *Policy {
	return &Policy{Module: module, Allow: allow, Vars: vars, Hints: hints}
}

var allow = []Rule{
	{Name: "_rt0_amd64_linux", Why: "the hand-over: from here on the program is hosted"},
	{Name: "_rt0_arm64_linux", Why: "the hand-over: from here on the program is hosted"},

	{Name: "math/bits.*", Follow: true, Why: "arithmetic: what a CPU without the instruction needs"},
	{Name: "type:.eq.*", Follow: true, Why: "the compiler's == for a struct or an array"},

	{Name: "runtime.memmove", Why: "assembly without state; CPU features still read as absent, so it takes the baseline path"},
	{Name: "runtime.memclrNoHeapPointers", Why: "assembly without state; CPU features still read as absent"},
	{Name: "runtime.memequal*", Why: "assembly without state; CPU features still read as absent"},
	{Name: "runtime.cmpstring", Why: "assembly without state; CPU features still read as absent"},
	{Name: "runtime.duffzero", Why: "assembly, straight line"},
	{Name: "runtime.duffcopy", Why: "assembly, straight line"},
	{Name: "internal/bytealg.IndexByte", Why: "assembly without state; CPU features still read as absent"},
	{Name: "internal/bytealg.IndexByteString", Why: "assembly without state; CPU features still read as absent"},

	{Name: "runtime.morestack", Why: "never called: stackguard0 of the zeroed g is below every stack"},
	{Name: "runtime.morestack_noctxt", Why: "never called: stackguard0 of the zeroed g is below every stack"},
	{Name: "runtime.gcWriteBarrier*", Why: "never called: runtime.writeBarrier is zero until a collection has started"},
	{Name: "runtime.wbMove", Why: "never called: as gcWriteBarrier, the compiler puts it behind a test of runtime.writeBarrier"},
	{Name: "runtime.wbZero", Why: "never called: as gcWriteBarrier, the compiler puts it behind a test of runtime.writeBarrier"},

	{Name: "runtime.panicBounds", Why: "called only for an index out of range, a bug; it faults, and so ends the process"},
	{Name: "runtime.panicIndex*", Why: "called only for an index out of range, a bug; it faults, and so ends the process"},
	{Name: "runtime.panicSlice*", Why: "called only for a slice out of range, a bug; it faults, and so ends the process"},
	{Name: "runtime.panicdivide", Why: "called only for a division by zero, a bug; it faults, and so ends the process"},
	{Name: "runtime.panicshift", Why: "called only for a negative shift, a bug; it faults, and so ends the process"},
	{Name: "runtime.panicunsafeslice*", Why: "called only when unsafe.Slice gets a bad length, a bug; it faults, and so ends the process"},
	{Name: "runtime.panicunsafestring*", Why: "called only when unsafe.String gets a bad length, a bug; it faults, and so ends the process"},
}

var vars = []Rule{
	{Name: "runtime.writeBarrier", Why: "zero means no collection is running, which is the truth"},
	{Name: "runtime.zeroVal", Why: "a block of zeros that is never written; == compares with it"},
	{Name: "runtime.x86HasPOPCNT", Why: "zero means absent: the compiler's portable code runs"},
	{Name: "runtime.x86HasSSE41", Why: "zero means absent: the compiler's portable code runs"},
	{Name: "runtime.x86HasFMA", Why: "zero means absent: the compiler's portable code runs"},
	{Name: "runtime.arm64HasATOMICS", Why: "zero means absent: load-exclusive and store-exclusive are used"},
}

var hints = []Rule{
	{Name: "runtime.newobject", Why: "allocates"},
	{Name: "runtime.mallocgc*", Why: "allocates"},
	{Name: "runtime.makeslice*", Why: "allocates (make)"},
	{Name: "runtime.growslice*", Why: "allocates (append)"},
	{Name: "runtime.concat*", Why: "allocates (joins strings)"},
	{Name: "runtime.slicebytetostring*", Why: "allocates (makes a string of bytes)"},
	{Name: "runtime.stringtoslice*", Why: "allocates (makes a slice of a string)"},
	{Name: "runtime.slicerunetostring", Why: "allocates (makes a string of runes)"},
	{Name: "runtime.intstring", Why: "allocates (makes a string of a rune)"},
	{Name: "runtime.convT*", Why: "allocates (puts a value into an interface)"},
	{Name: "runtime.map*", Why: "uses a map"},
	{Name: "runtime.makemap*", Why: "uses a map"},
	{Name: "internal/runtime/maps.*", Why: "uses a map"},
	{Name: "runtime.assertE2I*", Why: "asserts an interface type"},
	{Name: "runtime.typeAssert*", Why: "asserts an interface type"},
	{Name: "runtime.interfaceSwitch*", Why: "switches on an interface type"},
	{Name: "runtime.panicdottype*", Why: "asserts the type in an interface"},
	{Name: "runtime.strmin", Why: "min of strings: compare them"},
	{Name: "runtime.strmax", Why: "max of strings: compare them"},
	{Name: "runtime.efaceeq", Why: "compares interfaces"},
	{Name: "runtime.ifaceeq", Why: "compares interfaces"},
	{Name: "runtime.makechan*", Why: "uses a channel"},
	{Name: "runtime.chan*", Why: "uses a channel"},
	{Name: "runtime.closechan", Why: "uses a channel"},
	{Name: "runtime.select*", Why: "uses a channel"},
	{Name: "runtime.block", Why: "waits for the scheduler"},
	{Name: "runtime.newproc*", Why: "starts a goroutine"},
	{Name: "runtime.defer*", Why: "defers"},
	{Name: "runtime.gopanic", Why: "panics"},
	{Name: "runtime.gorecover", Why: "recovers"},
	{Name: "runtime.print*", Why: "prints"},
	{Name: "runtime.typedmemmove", Why: "copies pointers with the collector's help"},
	{Name: "runtime.typedslicecopy", Why: "copies pointers with the collector's help"},
	{Name: "runtime.typedmemclr", Why: "clears pointers with the collector's help"},
	{Name: "runtime.memclrHasPointers", Why: "clears pointers with the collector's help"},
	{Name: "runtime.bulkBarrier*", Why: "copies pointers with the collector's help"},
	{Name: "runtime.decoderune", Why: "ranges over the runes of a string: range over its bytes"},
	{Name: "runtime.entersyscall", Why: "tells the scheduler: use a RawSyscall"},
	{Name: "runtime.exitsyscall", Why: "tells the scheduler: use a RawSyscall"},
	{Name: "internal/stringslite.*", Why: "searching for a string needs internal/bytealg.MaxLen, which an init function sets; search for a byte"},
	{Name: "fmt.*", Why: "fmt allocates, reflects and locks"},
	{Name: "os.*", Why: "os needs its init functions and the scheduler"},
	{Name: "errors.*", Why: "errors allocates"},
	{Name: "golang.org/x/sys/unix.*", Why: "use a RawSyscall with its number"},
}
