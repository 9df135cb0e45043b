package e2e

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// parseSignal reads a name, with or without SIG, or a number.
func parseSignal(s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > 64 {
			return 0, fmt.Errorf("no signal %d", n)
		}
		return n, nil
	}
	name := strings.ToUpper(strings.TrimPrefix(strings.ToUpper(s), "SIG"))
	if rest, ok := strings.CutPrefix(name, "RTMIN"); ok {
		offset := 0
		if rest != "" {
			var err error
			if offset, err = strconv.Atoi(rest); err != nil {
				return 0, fmt.Errorf("no signal %q", s)
			}
		}
		return 34 + offset, nil
	}
	if n := unix.SignalNum("SIG" + name); n != 0 {
		return int(n), nil
	}
	return 0, fmt.Errorf("no signal %q", s)
}

func signalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(n)
}

func signalNames(list []int) string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = signalName(n)
	}
	return strings.Join(names, " ")
}

// parseSignals reads "TERM,34-64", or "all" for 1 to 64.
func parseSignals(list string) ([]int, error) {
	if list == "all" {
		list = "1-64"
	}
	return parseList(list, parseSignal)
}

// parseNumbers reads "3,5-7".
func parseNumbers(list string) ([]int, error) {
	return parseList(list, strconv.Atoi)
}

func parseList(list string, element func(string) (int, error)) ([]int, error) {
	var result []int
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := element(low)
		if err != nil {
			return nil, err
		}
		to := from
		if isRange {
			if to, err = element(high); err != nil {
				return nil, err
			}
		}
		for n := from; n <= to; n++ {
			result = append(result, n)
		}
	}
	return result, nil
}

// formatNumbers is the inverse of parseNumbers for a sorted list.
func formatNumbers(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// mask is a kernel signal set: bit n-1 stands for signal n.
func mask(signals []int) uint64 {
	var set uint64
	for _, n := range signals {
		set |= 1 << (n - 1)
	}
	return set
}
