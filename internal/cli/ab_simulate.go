package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/abtest/simulate"
	"github.com/kappactl/kappactl/internal/render"
)

// fixedWeights is the policy of an A/B test: none.
const fixedWeights = "fixed"

type abSimulateOptions struct {
	*app
	arms    []string
	weights []string
	policy  choice
	plan    simulate.Plan
	epsilon float64
	runs    int
}

func newABSimulate(a *app, run func(context.Context, abSimulateOptions) error) *cobra.Command {
	o := abSimulateOptions{app: a, policy: choice{value: fixedWeights, of: []string{fixedWeights}}}
	for _, k := range policy.Kinds() {
		o.policy.of = append(o.policy.of, string(k))
	}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Run an experiment on synthetic rewards",
		Long: `Run an experiment on synthetic rewards, with the assignment, the policies and the statistics of kappactl: how
long a test takes, how a bandit moves its weights, how often either is wrong. Each --arm is a version with its true
mean reward, the control first. It asks no server.

With --policy fixed it is an A/B test, which may be looked at after every batch. Other policies move the weights; they
bound what is lost by a wrong choice, not how often it is wrong.`,
		Example: `  kappactl ab simulate --arm v1=0.10 --arm v2=0.115
  kappactl ab simulate --arm v1=0.10 --arm v2=0.115 --policy thompson-beta --min-weight 0.05
  kappactl ab simulate --arm v1=0.10 --arm v2=0.10 --runs 200   # how often equal arms are told apart`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.read(cmd); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
		Annotations: map[string]string{timeoutKey: noTimeout},
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *abSimulateOptions) flags(f *pflag.FlagSet) {
	p := &o.plan
	f.StringArrayVar(&o.arms, "arm", nil, "an arm and its true mean, `ARM=MEAN`; the control first; two to eight")
	f.StringSliceVar(&o.weights, "weights", nil, "`ARM=SHARE` of each arm at the beginning (default equal)")
	f.Float64Var(&p.SD, "sd", 0,
		"standard deviation of a reward; 0: a reward is 1 with the probability of the mean, else 0")
	f.Var(&o.policy, "policy", "how weights follow rewards; fixed: they stay")
	f.IntVar(&p.Batches, "batches", 40, "batches of subjects")
	f.IntVar(&p.Batch, "batch", 500, "subjects in a batch")
	f.BoolVar(&p.Down, "down", false, "lower rewards are better")
	f.Float64Var(&p.MinWeight, "min-weight", 0.05, "least weight of an arm; not with fixed")
	f.Float64Var(&p.MaxStep, "max-step", 0.10, "how far a weight moves after a batch; not with fixed")
	f.Float64Var(&p.Gamma, "gamma", 1, "the share of older rewards that each batch remembers; not with fixed")
	f.Float64Var(&p.ExploreMin, "explore-min", 100, "subjects of each arm before weights move; not with fixed")
	f.Float64Var(&o.epsilon, "epsilon", 0.1, "share of epsilon-greedy that is spread evenly")
	f.Float64Var(&p.Sequential.Alpha, "alpha", 0.05, "probability of a false verdict, over all looks; only fixed")
	f.Float64Var(&p.Sequential.MDE, "mde", 0.02, "the difference that matters; only fixed")
	f.Float64Var(&p.Confident.LossMax, "loss-max", 0.0005,
		"expected loss of mean reward up to which a bandit chooses an arm; not with fixed")
	f.Float64Var(&p.MinSubjects, "min-subjects", 400, "subjects of each arm before a verdict")
	f.IntVar(&o.runs, "runs", 1, "simulate it so often, with other rewards each time")
	f.Uint64Var(&p.Seed, "seed", 1, "the same seed gives the same rewards")
}

// read makes the plan of the flags.
func (o *abSimulateOptions) read(cmd *cobra.Command) error {
	p := &o.plan
	for _, text := range o.arms {
		name, mean, err := armNumber(text)
		if err != nil {
			return usage(cmd, "--arm: %s", err)
		}
		for _, other := range p.Arms {
			if other.Name == name {
				return usage(cmd, "--arm: %s is given twice", name)
			}
		}
		p.Arms = append(p.Arms, simulate.Arm{Name: name, Mean: mean})
	}
	p.Sequential.Down = p.Down
	p.Confident.P, p.InARow = 0.99, 3
	p.Weights = policy.Equal(len(p.Arms))
	if len(o.weights) > 0 {
		if err := o.readWeights(); err != nil {
			return usage(cmd, "--weights: %s", err)
		}
	}
	if o.policy.value != fixedWeights {
		p.Policy = &policy.Rules{
			Kind: policy.Kind(o.policy.value), Epsilon: o.epsilon, Batch: p.Batch, Down: p.Down,
			Lo: o.lowest(), Hi: o.highest(),
		}
	}
	return o.check(cmd)
}

// armNumber reads ARM=NUMBER.
func armNumber(text string) (string, float64, error) {
	name, number, found := strings.Cut(text, "=")
	v, err := strconv.ParseFloat(number, 64)
	if !found || name == "" || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return "", 0, fmt.Errorf("%q: write ARM=NUMBER, such as v1=0.10", text)
	}
	return name, v, nil
}

func (o *abSimulateOptions) readWeights() error {
	given := map[string]float64{}
	for _, text := range o.weights {
		name, w, err := armNumber(text)
		if err != nil {
			return err
		}
		given[name] = w
	}
	for i, arm := range o.plan.Arms {
		w, found := given[arm.Name]
		if !found {
			return fmt.Errorf("the weight of %s is missing", arm.Name)
		}
		o.plan.Weights[i] = w
	}
	if len(given) > len(o.plan.Arms) {
		return fmt.Errorf("%d weights for %d arms", len(given), len(o.plan.Arms))
	}
	return policy.CheckWeights(o.plan.Weights)
}

// lowest and highest are the span of rewards that ucb1 scales: [0, 1] of rates, four standard deviations around the
// means else.
func (o *abSimulateOptions) lowest() float64 {
	if o.plan.SD == 0 {
		return 0
	}
	low := math.Inf(1)
	for _, a := range o.plan.Arms {
		low = min(low, a.Mean)
	}
	return low - 4*o.plan.SD
}

func (o *abSimulateOptions) highest() float64 {
	if o.plan.SD == 0 {
		return 1
	}
	high := math.Inf(-1)
	for _, a := range o.plan.Arms {
		high = max(high, a.Mean)
	}
	return high + 4*o.plan.SD
}

// check refuses what cannot be simulated.
func (o *abSimulateOptions) check(cmd *cobra.Command) error {
	p := o.plan
	for _, a := range p.Arms {
		if p.SD == 0 && (a.Mean < 0 || a.Mean > 1) {
			return usage(cmd, "--arm: the mean of %s is %v: without --sd a mean is a probability, from 0 to 1", a.Name, a.Mean)
		}
	}
	for _, f := range []struct {
		wrong bool
		says  string
	}{
		{len(p.Arms) < 2 || len(p.Arms) > 8, "--arm: give two to eight arms"},
		{!(p.SD >= 0) || math.IsInf(p.SD, 0), "--sd: write a number from 0"},
		{
			p.SD > 0 && o.policy.value == string(policy.ThompsonBeta),
			"--policy thompson-beta: rewards with --sd are no rates; use thompson-gaussian",
		},
		{
			p.SD == 0 && o.policy.value == string(policy.ThompsonGaussian),
			"--policy thompson-gaussian: rewards of 0 and 1 are rates; use thompson-beta, or give --sd",
		},
		{p.Batches < 1 || p.Batches > 10_000, "--batches: write 1 to 10000"},
		{p.Batch < 1 || p.Batch > 1_000_000, "--batch: write 1 to 1000000"},
		{o.runs < 1 || o.runs > 100_000, "--runs: write 1 to 100000"},
		{
			!(p.MinWeight >= 0 && p.MinWeight*float64(len(p.Arms)) < 1),
			"--min-weight: all arms together must leave something to share",
		},
		{!(p.MaxStep > 0 && p.MaxStep <= 1), "--max-step: write a number above 0, up to 1"},
		{!(p.Gamma > 0 && p.Gamma <= 1), "--gamma: write a number above 0, up to 1"},
		{!(o.epsilon >= 0 && o.epsilon <= 1), "--epsilon: write a number from 0 to 1"},
		{!(p.ExploreMin >= 0) || !(p.MinSubjects >= 0), "--explore-min and --min-subjects: write a number from 0"},
		{!(p.Sequential.Alpha > 0 && p.Sequential.Alpha < 1), "--alpha: write a number between 0 and 1"},
		{!(p.Sequential.MDE > 0) || math.IsInf(p.Sequential.MDE, 0), "--mde: write a number above 0"},
		{!(p.Confident.LossMax > 0) || math.IsInf(p.Confident.LossMax, 0), "--loss-max: write a number above 0"},
	} {
		if f.wrong {
			return usage(cmd, "%s", f.says)
		}
	}
	return nil
}

func runABSimulate(_ context.Context, o abSimulateOptions) error {
	s, err := simulate.Repeat(o.plan, o.runs)
	if err != nil {
		return err
	}
	return o.result(s, func(w io.Writer) error { return o.print(w, s) })
}

func (o abSimulateOptions) print(w io.Writer, s simulate.Summary) error {
	if s.Runs == 1 {
		return printRun(w, o.style(), s)
	}
	t := render.NewTable("arm", ">mean", ">wins", ">share of runs", ">share of subjects")
	for i, a := range o.plan.Arms {
		t.Add(render.Text(a.Name), render.Text(figure(a.Mean)), render.Text(strconv.Itoa(s.Wins[i])),
			render.Text(percent(float64(s.Wins[i])/float64(s.Runs))), render.Text(percent(s.Mean[i])))
	}
	if err := t.Write(w, o.style()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d runs, %d without a verdict%s\n", s.Runs, s.Undecided, afterBatches(s.Batches))
	return err
}

func afterBatches(mean float64) string {
	if mean == 0 {
		return ""
	}
	return fmt.Sprintf("; the others took %.1f batches", mean)
}

// plotLines is how many batches are drawn at most.
const plotLines = 20

// printRun draws the weights of one run over its batches.
func printRun(w io.Writer, style render.Style, s simulate.Summary) error {
	titles := []string{">batch", "weights"}
	for _, arm := range s.Arms {
		titles = append(titles, ">"+arm, ">mean of "+arm)
	}
	t := render.NewTable(titles...)
	steps := s.First.Steps
	every := (len(steps) + plotLines - 1) / plotLines
	for i, step := range steps {
		if i%every != 0 && i != len(steps)-1 {
			continue
		}
		row := []render.Cell{render.Text(strconv.Itoa(step.Batch)), render.Text(split(step.Weights))}
		for arm := range s.Arms {
			row = append(row, render.Text(percent(step.Weights[arm])), render.Text(figure(step.Means[arm])))
		}
		t.Add(row...)
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, verdictOf(s.First))
	return err
}

func verdictOf(r simulate.Run) string {
	switch r.Verdict {
	case policy.Win:
		return fmt.Sprintf("%s wins after batch %d", r.Arm, r.Batch)
	case policy.Harm:
		return fmt.Sprintf("%s, the control, is better: known after batch %d", r.Arm, r.Batch)
	case policy.Undecided:
	}
	return "no verdict"
}

// split draws weights as one bar, each arm with its own letter.
func split(weights []float64) string {
	const width = 40
	var out strings.Builder
	sum := 0.0
	for i, w := range weights {
		from := int(math.Round(sum * width))
		sum += w
		out.WriteString(strings.Repeat(string(rune('a'+i)), int(math.Round(sum*width))-from))
	}
	return out.String()
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + "%" }

func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
