package main

import (
	"math"
	"testing"
)

func TestQuantile(t *testing.T) {
	for _, tc := range []struct {
		xs   []float64
		q    float64
		want float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{7}, 0.99, 7},
		{[]float64{0, 10}, 0.25, 2.5},
		{[]float64{5, 1}, 1, 5},
	} {
		if got := quantile(tc.xs, tc.q); got != tc.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", tc.xs, tc.q, got, tc.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestCompareIsAboveTheBareCommand(t *testing.T) {
	var x, ref, bare []float64
	for i := range 200 {
		noise := float64(i%7) / 10 // the same for all in a round
		bare = append(bare, 100+noise)
		x = append(x, 120+noise)
		ref = append(ref, 150+noise)
	}
	r := compare(x, ref, bare)
	if r == nil {
		t.Fatal("no ratio")
	}
	for name, v := range map[string]float64{"median": r.Median, "low": r.Low, "high": r.High, "min": r.Min} {
		if math.Abs(v-0.4) > 1e-9 {
			t.Errorf("%s is %v, want (120-100)/(150-100)", name, v)
		}
	}
	if r := compare(x, bare, bare); r != nil {
		t.Errorf("a ratio to nothing: %+v", r)
	}
}

func TestCompareIntervalHoldsTheMedian(t *testing.T) {
	var x, ref, bare []float64
	for i := range 300 {
		bare = append(bare, 100+float64(i*7919%101)/10)
		x = append(x, 130+float64(i*104729%211)/10)
		ref = append(ref, 160+float64(i*1299709%307)/10)
	}
	r := compare(x, ref, bare)
	if r == nil || !(r.Low < r.Median && r.Median < r.High) {
		t.Errorf("the median lies outside its interval: %+v", r)
	}
}
