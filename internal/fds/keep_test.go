package fds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func ranges(s *Set) []Range {
	var all []Range
	for i := range s.Len() {
		all = append(all, s.At(i))
	}
	return all
}

// list writes a set as ParseKeep reads it.
func list(s *Set) string {
	var parts []string
	for _, r := range ranges(s) {
		parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	return strings.Join(parts, ",")
}

func TestParseKeep(t *testing.T) {
	for _, c := range []struct {
		list    string
		want    []Range
		problem Problem
		part    string
	}{
		{list: "3", want: []Range{{3, 3}}},
		{list: "3,5-7", want: []Range{{3, 3}, {5, 7}}},
		{list: "7,5,3", want: []Range{{3, 3}, {5, 5}, {7, 7}}},
		{list: "3,3,3", want: []Range{{3, 3}}},
		{list: "3,4", want: []Range{{3, 4}}},
		{list: "4,3", want: []Range{{3, 4}}},
		{list: "3-9,5-7", want: []Range{{3, 9}}},
		{list: "5-7,3-9", want: []Range{{3, 9}}},
		{list: "3,7,4-6", want: []Range{{3, 7}}},
		{list: "10-20,30-40,15-35", want: []Range{{10, 40}}},
		{list: "5-5", want: []Range{{5, 5}}},
		{list: "0", want: []Range{{0, 0}}},
		{list: "0-2", want: []Range{{0, 2}}},
		{list: "007", want: []Range{{7, 7}}},
		{list: "2147483647", want: []Range{{Max, Max}}},
		{list: "0-2147483647", want: []Range{{0, Max}}},
		{list: "all", want: []Range{{First, Max}}},

		{list: "", problem: ListEmpty},
		{list: ",", problem: ElementEmpty},
		{list: ",3", problem: ElementEmpty},
		{list: "3,", problem: ElementEmpty},
		{list: "3,,5", problem: ElementEmpty},
		{list: "x", problem: ElementNotANumber, part: "x"},
		{list: "3,x,y", problem: ElementNotANumber, part: "x"},
		{list: "3, 5", problem: ElementNotANumber, part: " 5"},
		{list: "-", problem: ElementNotANumber, part: "-"},
		{list: "-3", problem: ElementNotANumber, part: "-3"},
		{list: "3-", problem: ElementNotANumber, part: "3-"},
		{list: "3-5-7", problem: ElementNotANumber, part: "3-5-7"},
		{list: "+3", problem: ElementNotANumber, part: "+3"},
		{list: "0x3", problem: ElementNotANumber, part: "0x3"},
		{list: "3:5", problem: ElementNotANumber, part: "3:5"},
		{list: "3,all", problem: ElementNotANumber, part: "all"},
		{list: "ALL", problem: ElementNotANumber, part: "ALL"},
		{list: "3,2147483648", problem: ElementTooLarge, part: "2147483648"},
		{list: "3-2147483648", problem: ElementTooLarge, part: "3-2147483648"},
		{list: "18446744073709551619", problem: ElementTooLarge, part: "18446744073709551619"},
		{list: "7-5", problem: RangeReversed, part: "7-5"},
		{list: "3,4-3", problem: RangeReversed, part: "4-3"},
	} {
		var set Set
		problem, from, to := ParseKeep(c.list, &set)
		if problem != c.problem || c.list[from:to] != c.part {
			t.Errorf("ParseKeep(%q): %q %v, want %q %v", c.list, c.list[from:to], problem, c.part, c.problem)
		}
		if got := ranges(&set); problem == 0 && !slices.Equal(got, c.want) {
			t.Errorf("ParseKeep(%q) = %v, want %v", c.list, got, c.want)
		}
	}
}

// TestTooManyRanges fills a set up, from either end, and then fills its holes.
func TestTooManyRanges(t *testing.T) {
	var elements []string
	for i := range MaxRanges {
		elements = append(elements, strconv.Itoa(10*(i+1)))
	}
	for range 2 {
		full := strings.Join(elements, ",")
		var set Set
		if problem, _, _ := ParseKeep(full, &set); problem != 0 || set.Len() != MaxRanges {
			t.Fatalf("%d separate ranges: %v", MaxRanges, problem)
		}
		before := set
		for _, fd := range []string{"5", "15", "1000000"} {
			long := full + "," + fd + ",11"
			if problem, from, to := ParseKeep(long, &set); problem != TooManyRanges || long[from:to] != fd {
				t.Errorf("%s: %q %v", long, long[from:to], problem)
			}
			if set != before {
				t.Errorf("%s has changed the set", long)
			}
		}
		// What melts into a range needs no room.
		for _, fd := range []string{"11", "9", "10-20", "0-2147483647"} {
			set := before
			if problem, _, _ := ParseKeep(fd, &set); problem != 0 {
				t.Errorf("%s: %v", fd, problem)
			}
		}
		slices.Reverse(elements)
	}
}

func TestSetOfAll(t *testing.T) {
	for list, want := range map[string]bool{
		"all": true, "3-2147483647": true, "0-2147483647": true, "3-10,11-2147483647": true,
		"4-2147483647": false, "3-2147483646": false, "3-9,11-2147483647": false, "3": false,
	} {
		var set Set
		if problem, _, _ := ParseKeep(list, &set); problem != 0 {
			t.Fatalf("%s: %v", list, problem)
		}
		if set.All() != want {
			t.Errorf("%s is all: %v", list, set.All())
		}
	}
	var empty Set
	if empty.All() || !empty.Empty() || empty.Has(3) {
		t.Error("the empty set has something")
	}
}

// TestEveryProblemHasWords: a message without words for its reason helps nobody.
func TestEveryProblemHasWords(t *testing.T) {
	for p := ListEmpty; p <= TooManyRanges; p++ {
		if p.String() == Problem(0).String() {
			t.Errorf("problem %d has none", p)
		}
	}
	if !strings.Contains(TooManyRanges.String(), strconv.Itoa(MaxRanges)) || !strings.Contains(ElementTooLarge.String(), strconv.Itoa(Max)) {
		t.Error("a limit is another one than is said")
	}
}

func TestKeepingDoesNotAllocate(t *testing.T) {
	var full Set
	for i := range uint32(MaxRanges) {
		full.Add(Range{10 * i, 10*i + 5})
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, list := range [...]string{"all", "3,5-7,6-9", "3,x", "9-8", "", "4294967296"} {
			var set Set
			ParseKeep(list, &set)
			set.Has(6)
		}
		set := full
		set.Add(Range{15, 505})
		set.Add(Range{0, 0})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// reference is a Set made by sorting.
type reference []Range

// add puts a range in, or returns false as Set.Add does.
func (s *reference) add(r Range) bool {
	all := append(slices.Clone(*s), r)
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	merged := all[:1]
	for _, r := range all[1:] {
		last := &merged[len(merged)-1]
		if int64(r.First) <= int64(last.Last)+1 {
			last.Last = max(last.Last, r.Last)
		} else {
			merged = append(merged, r)
		}
	}
	if len(merged) > MaxRanges {
		return false
	}
	*s = slices.Clone(merged)
	return true
}

func (s reference) has(fd uint32) bool {
	return slices.ContainsFunc(s, func(r Range) bool { return r.First <= fd && fd <= r.Last })
}

// check compares a set with the reference, and its answers at every edge.
func (s reference) check(t *testing.T, set *Set) {
	t.Helper()
	if got := ranges(set); !slices.Equal(got, s) {
		t.Fatalf("%v, want %v", got, s)
	}
	for _, r := range s {
		for _, fd := range []uint32{r.First - 1, r.First, r.First + 1, r.Last - 1, r.Last, r.Last + 1} {
			if set.Has(fd) != s.has(fd) {
				t.Fatalf("%v has %d: %v", s, fd, set.Has(fd))
			}
		}
	}
	if set.Empty() != (len(s) == 0) {
		t.Fatalf("%v is empty: %v", s, set.Empty())
	}
}

func FuzzParseKeep(f *testing.F) {
	for _, s := range []string{
		"", "3", "3,5-7", "all", "0-2147483647", "2147483648", "7-5", "3,,4", ",", "-", "3-", "-3", "1-2-3", " 3", "+3",
		"3,4,5,6", "9,3-5,4-7,8", "18446744073709551619", "00000000000000000000003", "all,3", "٣",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var set Set
		problem, from, to := ParseKeep(s, &set)
		if from < 0 || from > to || to > len(s) || problem > TooManyRanges {
			t.Fatalf("ParseKeep(%q): %v at %d to %d", s, problem, from, to)
		}
		want, ok := referenceKeep(s)
		if ok != (problem == 0) {
			t.Fatalf("ParseKeep(%q): %v, the reference accepts: %v", s, problem, ok)
		}
		if !ok {
			return
		}
		want.check(t, &set)
		small := map[uint32]bool{} // what is small is counted one by one
		for _, element := range strings.Split(strings.ReplaceAll(s, "all", "3-2147483647"), ",") {
			first, last, isRange := strings.Cut(element, "-")
			from, _ := strconv.ParseUint(first, 10, 32)
			to := from
			if isRange {
				to, _ = strconv.ParseUint(last, 10, 32)
			}
			for fd := from; fd <= min(to, 300); fd++ {
				small[uint32(fd)] = true
			}
		}
		for fd := range uint32(300) {
			if set.Has(fd) != small[fd] {
				t.Fatalf("ParseKeep(%q) has %d: %v", s, fd, set.Has(fd))
			}
		}
		var again Set
		if problem, _, _ := ParseKeep(list(&set), &again); problem != 0 || !slices.Equal(ranges(&again), ranges(&set)) {
			t.Fatalf("%q became %s, which became %s, %v", s, list(&set), list(&again), problem)
		}
	})
}

func referenceKeep(s string) (set reference, ok bool) {
	if s == "all" {
		return reference{{First, Max}}, true
	}
	for _, element := range strings.Split(s, ",") {
		first, last, isRange := strings.Cut(element, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 31)
		if err != nil {
			return nil, false
		}
		to, err := strconv.ParseUint(last, 10, 31)
		if err != nil || to < from || !set.add(Range{uint32(from), uint32(to)}) {
			return nil, false
		}
	}
	return set, true
}

// FuzzAdd adds ranges of which each takes two bytes: where it begins, and how long it
// is. A zero length stands for the largest.
func FuzzAdd(f *testing.F) {
	f.Add([]byte{3, 1, 5, 3}, uint32(0))
	f.Add([]byte{0, 0}, uint32(0))
	f.Add([]byte{10, 1, 12, 1, 11, 1}, uint32(Max-20))
	f.Add([]byte{255, 1, 254, 1, 253, 0}, uint32(Max-255))
	var many []byte
	for i := range byte(100) {
		many = append(many, 2*i, 1)
	}
	f.Add(many, uint32(3))
	f.Fuzz(func(t *testing.T, data []byte, base uint32) {
		base %= Max - 1000
		var set Set
		var want reference
		for len(data) >= 2 {
			r := Range{base + uint32(data[0]), base + uint32(data[0]) + uint32(data[1]) - 1}
			if data[1] == 0 {
				r.Last = Max
			}
			data = data[2:]
			before := set
			got := set.Add(r)
			if got != want.add(r) {
				t.Fatalf("adding %v to %v: %v", r, ranges(&before), got)
			}
			if !got && set != before {
				t.Fatalf("adding %v to %v failed, but changed it", r, ranges(&before))
			}
			want.check(t, &set)
		}
	})
}
