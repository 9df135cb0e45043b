package config

import (
	"github.com/fdinit/fdinit/internal/ascii"
	"github.com/fdinit/fdinit/internal/sys"
)

// Option is one entry of a dialect's option table.
type Option struct {
	ID    uint8  // at least 1
	Short byte   // 0: there is no short form
	Long  string // "": there is no long form
	Value bool   // takes a value
}

// What Scan returns when it is not an Option's ID. They are high so that tables can
// count from 1.
const (
	EndOfOptions uint8 = 255 - iota
	Unknown
	NoValue   // the value is missing
	HasValue  // a value was given to an option that takes none
	Ambiguous // an abbreviation of several long options
)

// Scanner reads options as getopt_long(3) does with a leading '+': short ones may be
// clustered and have their value attached or in the next word, long ones have it
// after '=' or in the next word, and the first word that is not an option ends them.
type Scanner struct {
	Args         sys.Vector
	Table        []Option
	Abbreviating bool // long options may be abbreviated while that is unambiguous
	ShortOnly    bool // there are no long options: --x is the short option '-' and more

	// Next is the index of the next word; after EndOfOptions, of the first word that
	// is not an option.
	Next int

	cluster int // where in word Next the next clustered short option is, 0: nowhere
}

// Found is one option as it was found.
type Found struct {
	ID    uint8
	Arg   int    // the word that the option stands in
	From  int    // the option's name is bytes From to To of it: "p" of "-gp", "--x" of "--x=1"
	To    int    //
	Value string // its value, if it takes one
	At    int    // the word that the value stands in
	Off   int    // where in that word it begins
}

// Scan returns the next option. s.Next must start at 1.
func (s *Scanner) Scan() Found {
	if s.cluster == 0 {
		if s.Next >= s.Args.Len() {
			return Found{ID: EndOfOptions}
		}
		word := s.Args.String(s.Next)
		switch {
		case word == "--":
			s.Next++
			return Found{ID: EndOfOptions}
		case len(word) < 2 || word[0] != '-':
			return Found{ID: EndOfOptions}
		case word[1] == '-' && !s.ShortOnly:
			return s.long(word)
		}
		s.cluster = 1
	}
	return s.short(s.Args.String(s.Next))
}

func (s *Scanner) short(word string) (f Found) {
	f = Found{ID: Unknown, Arg: s.Next, From: s.cluster, To: s.cluster + 1}
	takesValue := false
	for i := range s.Table {
		if s.Table[i].Short == word[s.cluster] {
			f.ID, takesValue = s.Table[i].ID, s.Table[i].Value
			break
		}
	}
	s.cluster++
	if s.cluster < len(word) && !takesValue {
		return f
	}
	if takesValue && s.cluster < len(word) {
		f.Value, f.At, f.Off = word[s.cluster:], s.Next, s.cluster
		takesValue = false
	}
	s.cluster = 0
	s.Next++
	if takesValue {
		s.valueFromNextWord(&f)
	}
	return f
}

func (s *Scanner) long(word string) (f Found) {
	equals := ascii.Index(word, '=')
	f = Found{ID: Unknown, Arg: s.Next, From: 0, To: equals}
	s.Next++
	name, takesValue := word[2:equals], false
	for i := range s.Table {
		o := &s.Table[i]
		if o.Long == name && name != "" {
			f.ID, takesValue = o.ID, o.Value
			break
		}
		if s.Abbreviating && len(name) < len(o.Long) && name == o.Long[:len(name)] {
			if f.ID != Unknown && f.ID != o.ID {
				f.ID = Ambiguous
			} else {
				f.ID, takesValue = o.ID, o.Value
			}
		}
	}
	switch {
	case f.ID == Unknown || f.ID == Ambiguous:
	case equals < len(word) && !takesValue:
		f.ID = HasValue
	case equals < len(word):
		f.Value, f.At, f.Off = word[equals+1:], f.Arg, equals+1
	case takesValue:
		s.valueFromNextWord(&f)
	}
	return f
}

func (s *Scanner) valueFromNextWord(f *Found) {
	if s.Next >= s.Args.Len() {
		f.ID = NoValue
		return
	}
	f.Value, f.At, f.Off = s.Args.String(s.Next), s.Next, 0
	s.Next++
}
