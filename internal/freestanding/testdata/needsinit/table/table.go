// Package table has a variable that the compiler cannot lay out by itself.
package table

var digits = "65536"

// Limit is zero until the init function of this package has run.
var Limit = parse(digits)

func parse(s string) (n uintptr) {
	for i := range len(s) {
		n = n*10 + uintptr(s[i]-'0')
	}
	return n
}
