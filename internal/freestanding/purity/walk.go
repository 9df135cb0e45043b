package purity

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind says which part of the rule a Violation breaks.
type Kind string

const (
	Forbidden   Kind = "forbidden function"
	Unresolved  Kind = "indirect call or jump"
	Undecodable Kind = "undecodable instruction"
	NeedsInit   Kind = "package with init functions"
	ForeignVar  Kind = "variable of another module"
	OpenEnd     Kind = "function without an end"
	Stray       Kind = "stray jump"
)

// A Violation is one way to leave what the Policy allows.
type Violation struct {
	Kind     Kind
	Chain    []string // functions, from the entry to the one that breaks the rule
	Offender string   // what it must not use; may be empty
	Reason   string
}

func (v Violation) String() string {
	chain := v.Chain
	if v.Offender != "" {
		chain = append(slices.Clip(chain), v.Offender)
	}
	return strings.Join(chain, " -> ") + ": " + v.Reason
}

// A Report is what a walk found.
type Report struct {
	Functions  []string // followed, in the order they were reached
	TextBytes  uint64   // in these functions
	Tables     int      // jump tables that were read in them
	Opaque     []string // allowed, but not followed, sorted
	Packages   []string // of the module, sorted
	Violations []Violation
}

// Walk follows everything that is reachable from the entry point. It goes
// breadth first, so that the chain in a Violation is a shortest one.
func Walk(b *Binary, p *Policy) *Report {
	w := &walker{
		bin: b, policy: p,
		from:     map[uint64]*node{},
		opaque:   map[string]bool{},
		packages: map[string]*node{},
		scanned:  map[uint64]bool{},
		reported: map[string]bool{},
	}
	w.follow(b.Entry(), nil)
	for len(w.queue) > 0 {
		n := w.queue[0]
		w.queue = w.queue[1:]
		w.visit(n)
	}
	for _, pkg := range slices.Sorted(maps.Keys(w.packages)) {
		c, err := b.InitFuncs(pkg)
		if c == 0 && err == nil {
			continue
		}
		reason := fmt.Sprintf("%d init functions of %s have not run: its variables are still zero", c, pkg)
		if err != nil {
			reason = err.Error()
		}
		w.violation(NeedsInit, w.packages[pkg], p.short(pkg)+"..inittask", reason)
	}
	w.report.Opaque = slices.Sorted(maps.Keys(w.opaque))
	w.report.Packages = slices.Sorted(maps.Keys(w.packages))
	return &w.report
}

type walker struct {
	bin      *Binary
	policy   *Policy
	queue    []*node
	from     map[uint64]*node // by address of the function
	opaque   map[string]bool
	packages map[string]*node // and who was the first to touch it
	scanned  map[uint64]bool  // variables, by address
	reported map[string]bool
	report   Report
}

// A node is a function that was reached.
type node struct {
	sym  Symbol
	prev *node
}

func (w *walker) follow(sym Symbol, prev *node) {
	if w.from[sym.Addr] != nil {
		return
	}
	n := &node{sym: sym, prev: prev}
	w.from[sym.Addr] = n
	w.queue = append(w.queue, n)
}

// visit judges the body of a function.
func (w *walker) visit(n *node) {
	w.report.Functions = append(w.report.Functions, n.sym.Name)
	w.report.TextBytes += n.sym.Size
	if w.policy.ours(n.sym.Name) {
		w.touch(n.sym.Name, n)
	}
	code := w.bin.read(n.sym.Addr, n.sym.Size)
	if code == nil {
		w.violation(Undecodable, n, "", "its code is not in the file")
		return
	}
	insts := w.bin.arch.Decode(code, n.sym.Addr)
	starts := make(map[uint64]bool, len(insts))
	for _, in := range insts {
		starts[in.Addr] = true
	}
	for _, in := range insts {
		switch in.Flow {
		case Branch, Jump, Call:
			w.transfer(n, in.Target, starts)
		case Switch:
			w.table(n, in, starts)
		case Indirect:
			w.violation(Unresolved, n, "", fmt.Sprintf(
				"%s at +%#x goes where only the running program knows: no function values, interface methods or "+
					"callbacks here; if it is a switch, write it so that the compiler needs no jump table, or a plain one", in.Text, in.Addr-n.sym.Addr))
		case Unknown:
			w.violation(Undecodable, n, "", fmt.Sprintf("%s at +%#x is not understood", in.Text, in.Addr-n.sym.Addr))
		}
		for _, ref := range in.Refs {
			w.mention(n, ref)
		}
	}
	w.end(n, insts)
}

// transfer judges a call or jump from n to addr.
func (w *walker) transfer(n *node, addr uint64, starts map[uint64]bool) {
	if n.sym.contains(addr) {
		if !starts[addr] {
			w.violation(Stray, n, "", fmt.Sprintf("jumps into the middle of an instruction, at +%#x", addr-n.sym.Addr))
		}
		return
	}
	callee, ok := w.bin.Func(addr)
	if !ok {
		w.violation(Stray, n, "", fmt.Sprintf("jumps to %#x, where no function is", addr))
		return
	}
	if w.use(n, callee, "") && callee.Addr != addr {
		w.violation(Stray, n, w.policy.short(callee.Name), "jumps into the middle of a function")
	}
}

// use judges that n calls, or takes the address of, callee, and reports
// whether callee is followed.
func (w *walker) use(n *node, callee Symbol, mark string) bool {
	if w.policy.ours(callee.Name) {
		w.follow(callee, n)
		return true
	}
	rule, ok := match(w.policy.Allow, callee.Name)
	switch {
	case !ok:
		reason := "not on the allow-list"
		if hint, ok := match(w.policy.Hints, callee.Name); ok {
			reason += ": " + hint.Why
		}
		w.violation(Forbidden, n, mark+w.policy.short(callee.Name), reason)
		return false
	case !rule.Follow:
		w.opaque[callee.Name] = true
		return false
	}
	w.follow(callee, n)
	return true
}

// table judges the jump table of a switch: it must lead back into the function.
func (w *walker) table(n *node, in Inst, starts map[uint64]bool) {
	for i := range in.Table.Len {
		slot := in.Table.Addr + uint64(i)*w.bin.ptrSize
		to, ok := w.bin.pointer(slot)
		if s := w.bin.section(slot); !ok || s.writable() || !n.sym.contains(to) || !starts[to] {
			w.violation(Unresolved, n, "", fmt.Sprintf(
				"entry %d of the jump table at %#x, used at +%#x, does not lead to an instruction of this function",
				i, in.Table.Addr, in.Addr-n.sym.Addr))
			return
		}
	}
	w.report.Tables++
}

// mention judges an address in an instruction of n.
func (w *walker) mention(n *node, addr uint64) {
	s := w.bin.section(addr)
	switch {
	case s == nil: // a number that happens to look like one
	case s.executable():
		if f, ok := w.bin.Func(addr); ok && !n.sym.contains(addr) {
			w.use(n, f, "&")
		}
	case !s.writable():
		// Constants. One of them may be a function value, which is a pointer to
		// the address of the code; neither has a symbol.
		if to, ok := w.bin.pointer(addr); ok && addr%w.bin.ptrSize == 0 {
			if f, ok := w.bin.Func(to); ok && f.Addr == to {
				w.use(n, f, "&")
			}
		}
	default:
		w.variable(n, addr)
	}
}

func (w *walker) variable(n *node, addr uint64) {
	obj, ok := w.bin.Object(addr)
	if !ok {
		w.violation(ForeignVar, n, fmt.Sprintf("%#x", addr), "a variable without a name, nobody knows whether it needs an init function")
		return
	}
	if w.policy.ours(obj.Name) {
		w.touch(obj.Name, n)
		w.scan(n, obj)
		return
	}
	if _, ok := match(w.policy.Vars, obj.Name); !ok {
		w.violation(ForeignVar, n, obj.Name, "a variable of another module, whose init functions have not run")
	}
}

// scan judges what the initial value of a variable points to.
func (w *walker) scan(n *node, obj Symbol) {
	if w.scanned[obj.Addr] {
		return
	}
	w.scanned[obj.Addr] = true
	size := w.bin.ptrSize
	for addr := (obj.Addr + size - 1) / size * size; addr+size <= obj.Addr+obj.Size; addr += size {
		if to, ok := w.bin.pointer(addr); ok {
			w.mention(n, to)
		}
	}
}

// touch notes that n depends on the package of symbol, a function or variable
// of the module.
func (w *walker) touch(symbol string, n *node) {
	if pkg := Package(symbol); w.packages[pkg] == nil {
		w.packages[pkg] = n
	}
}

// end judges how the body of n ends. A call as the last instruction is one that
// does not return; only functions that are not followed are believed to do that.
func (w *walker) end(n *node, insts []Inst) {
	for _, in := range slices.Backward(insts) {
		if in.Pad && (in.Flow == Next || in.Flow == Trap) {
			continue
		}
		if in.Flow == Call {
			if f, ok := w.bin.Func(in.Target); ok && w.opaque[f.Name] {
				return
			}
		}
		if in.fallsThrough() {
			w.violation(OpenEnd, n, "", "runs off its end: let it return, jump, or execute an undefined instruction")
		}
		return
	}
	w.violation(OpenEnd, n, "", "has no instructions")
}

// violation notes one, unless the same function did the same before.
func (w *walker) violation(kind Kind, n *node, offender, reason string) {
	v := Violation{Kind: kind, Offender: offender, Reason: reason}
	entryPkg := Package(w.bin.Entry().Name) + "."
	for ; n != nil; n = n.prev {
		name := n.sym.Name
		if strings.HasPrefix(name, entryPkg) { // these names are known to the reader
			name = strings.TrimPrefix(name, entryPkg)
		} else {
			name = w.policy.short(name)
		}
		if len(v.Chain) == 0 || v.Chain[len(v.Chain)-1] != name { // not twice for an ABI wrapper
			v.Chain = append(v.Chain, name)
		}
	}
	slices.Reverse(v.Chain)
	if key := v.String(); !w.reported[key] {
		w.reported[key] = true
		w.report.Violations = append(w.report.Violations, v)
	}
}
