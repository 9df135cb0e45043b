package main

import (
	"fmt"
	"math"
)

// breakEven is where two lines of costs cross.
type breakEven struct {
	at float64
	// never: the first is dearer everywhere; always: cheaper as far as measured.
	never, always bool
}

func (b breakEven) String() string {
	switch {
	case b.never:
		return "never"
	case b.always:
		return fmt.Sprintf("above %.0f", b.at)
	case b.at < 100:
		return fmt.Sprintf("about %.0f", b.at)
	}
	digits := math.Pow(10, math.Floor(math.Log10(b.at))-1)
	return fmt.Sprintf("about %.0f", math.Round(b.at/digits)*digits)
}

// point is the costs of two strategies at the same place.
type point struct{ at, first, second float64 }

// crossing finds up to where the first is the cheaper one, going up a line.
// Between two points costs are straight lines; below the first the rise goes on
// downwards, as far as floor.
func crossing(ps []point, rise, floor float64) breakEven {
	for i, p := range ps {
		d := p.first - p.second
		if d < 0 {
			continue
		}
		if i == 0 {
			if rise <= 0 || p.at-d/rise < floor {
				return breakEven{never: true}
			}
			return breakEven{at: p.at - d/rise}
		}
		before := ps[i-1]
		e := before.second - before.first
		return breakEven{at: before.at + (p.at-before.at)*e/(e+d)}
	}
	return breakEven{at: ps[len(ps)-1].at, always: true}
}

func even(b breakEven, ok bool) string {
	if !ok {
		return "–"
	}
	return b.String()
}
