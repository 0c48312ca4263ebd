package policy

import (
	"fmt"
	"math"
	"slices"
)

// weightSlack is how far the sum of written weights may be from 1.
const weightSlack = 1e-9

// CheckWeights refuses weights that are no split: a negative or undefined one, or a sum that is not 1.
func CheckWeights(weights []float64) error {
	sum := 0.0
	for _, w := range weights {
		if math.IsNaN(w) || math.IsInf(w, 0) || w < 0 {
			return fmt.Errorf("weight %v: a weight is a number from 0 to 1", w)
		}
		sum += w
	}
	if math.Abs(sum-1) > weightSlack {
		return fmt.Errorf("the weights add up to %v, not to 1", math.Round(sum*1e9)/1e9)
	}
	return nil
}

// Equal is the split that gives each of n arms the same.
func Equal(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1 / float64(n)
	}
	return out
}

// PPM rounds weights to parts per million by the largest remainder; of equal remainders the earlier arm gets the part.
func PPM(weights []float64) []int {
	type remainder struct {
		arm  int
		left float64
	}
	out, left, sum := make([]int, len(weights)), make([]remainder, len(weights)), 0
	for i, w := range weights {
		exact := w * Million
		// A binary fraction that is a hair below a whole number is that number.
		whole := math.Floor(exact + 1e-6)
		out[i] = int(whole)
		left[i] = remainder{arm: i, left: math.Round((exact-whole)*1e6) / 1e6}
		sum += out[i]
	}
	slices.SortStableFunc(left, func(a, b remainder) int {
		switch {
		case a.left > b.left:
			return -1
		case a.left < b.left:
			return 1
		}
		return 0
	})
	for i := 0; sum < Million && i < len(left); i++ {
		out[left[i].arm]++
		sum++
	}
	return out
}

// Shares turns parts per million back into weights.
func Shares(ppm []int) []float64 {
	out := make([]float64, len(ppm))
	for i, w := range ppm {
		out[i] = float64(w) / Million
	}
	return out
}

// WithFloor lifts every weight to at least floor and keeps the sum: f + (1 - k f) w.
func WithFloor(weights []float64, floor float64) []float64 {
	out := make([]float64, len(weights))
	for i, w := range weights {
		out[i] = floor + (1-float64(len(weights))*floor)*w
	}
	return out
}

// Step moves weights towards a target, no weight by more than most. The sum and a floor that both keep are kept.
func Step(from, to []float64, most float64) []float64 {
	far := 0.0
	for i := range from {
		far = max(far, math.Abs(to[i]-from[i]))
	}
	share := 1.0
	if far > most {
		share = most / far
	}
	out := make([]float64, len(from))
	for i := range from {
		out[i] = from[i] + share*(to[i]-from[i])
	}
	return out
}
