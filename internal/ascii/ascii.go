// Package ascii has the few text functions that freestanding parsers share. They
// neither allocate nor know Unicode; hosted code has package strings and strconv.
package ascii

// EqualFold compares without regard to case. upper must be in upper case.
func EqualFold(s, upper string) bool {
	if len(s) != len(upper) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

// Index is the place of the first c in s, len(s) if there is none.
func Index(s string, c byte) int {
	i := 0
	for i < len(s) && s[i] != c {
		i++
	}
	return i
}

// Base is a path's last element, which is empty after a slash at the end.
func Base(path string) string {
	start := 0
	for i := range len(path) {
		if path[i] == '/' {
			start = i + 1
		}
	}
	return path[start:]
}

// Decimal reads a number that is nothing but digits: no sign, no space. digits is
// false if s is empty or has anything else; fits is false if the number is above most.
func Decimal(s string, most uint64) (n uint64, digits, fits bool) {
	fits = true
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false, false
		}
		digit := uint64(s[i] - '0')
		fits = fits && digit <= most && n <= (most-digit)/10
		n = n*10 + digit
	}
	return n, s != "", fits
}
