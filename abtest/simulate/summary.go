package simulate

import "github.com/kappactl/kappactl/abtest/policy"

// Summary counts the results of several runs of one plan.
type Summary struct {
	Runs int       `json:"runs"`
	Arms []string  `json:"arms"`
	Wins []int     `json:"wins"`  // runs that each arm won; the first, the control, wins when the others do harm
	Mean []float64 `json:"share"` // of the subjects, by arm, over all runs
	// Undecided are the runs without a verdict.
	Undecided int     `json:"undecided"`
	Batches   float64 `json:"batches"` // mean until a verdict; 0 without any
	First     Run     `json:"first"`   // the first run
}

// Repeat simulates the plan as often as it is asked to.
func Repeat(p Plan, runs int) (Summary, error) {
	out := Summary{Runs: runs, Wins: make([]int, len(p.Arms)), Mean: make([]float64, len(p.Arms))}
	for _, a := range p.Arms {
		out.Arms = append(out.Arms, a.Name)
	}
	batches := 0
	for n := range runs {
		r, err := Simulate(p, n)
		if err != nil {
			return Summary{}, err
		}
		if n == 0 {
			out.First = r
		}
		for i, share := range r.Shares {
			out.Mean[i] += share / float64(runs)
		}
		if r.Verdict == policy.Undecided {
			out.Undecided++
			continue
		}
		batches += r.Batch
		for i, a := range p.Arms {
			if a.Name == r.Arm {
				out.Wins[i]++
			}
		}
	}
	if decided := runs - out.Undecided; decided > 0 {
		out.Batches = float64(batches) / float64(decided)
	}
	return out, nil
}
