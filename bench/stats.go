package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

func median(xs []float64) float64 { return quantile(xs, 0.5) }

// quantile interpolates between the two neighbours; xs stays as it is.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 >= len(s) {
		return s[low]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

// Ratio compares what a contender adds to the bare command with what the
// reference adds to it.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low95"`
	High   float64 `json:"high95"`
	Min    float64 `json:"min"`
}

// resamples of the bootstrap: the interval's ends move by less than the last
// printed digit beyond this.
const resamples = 1000

// compare computes the ratio (x - bare) / (ref - bare) by medians and by
// minima, and the 95 % percentile bootstrap interval of the former. The three
// samples have one value per round, and whole rounds are drawn, since what
// disturbs a round disturbs its neighbours in it.
func compare(x, ref, bare []float64) *Ratio {
	ratio := func(x, ref, bare float64) float64 { return (x - bare) / (ref - bare) }
	r := &Ratio{
		Median: ratio(median(x), median(ref), median(bare)),
		Min:    ratio(slices.Min(x), slices.Min(ref), slices.Min(bare)),
	}
	n := len(x)
	rng := rand.New(rand.NewPCG(1, 2)) // the same report from the same samples
	var boot []float64
	bx, bref, bbare := make([]float64, n), make([]float64, n), make([]float64, n)
	for range resamples {
		for i := range n {
			j := rng.IntN(n)
			bx[i], bref[i], bbare[i] = x[j], ref[j], bare[j]
		}
		v := ratio(median(bx), median(bref), median(bbare))
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			boot = append(boot, v)
		}
	}
	r.Low, r.High = quantile(boot, 0.025), quantile(boot, 0.975)
	for _, v := range []float64{r.Median, r.Low, r.High, r.Min} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil // the reference adds nothing: there is no ratio
		}
	}
	return r
}

// over divides, and has no answer when there is nothing to divide by.
func over(x, ref float64) *float64 {
	if ref == 0 || math.IsNaN(x) || math.IsNaN(ref) {
		return nil
	}
	r := x / ref
	return &r
}
