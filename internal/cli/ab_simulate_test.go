package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/abtest/simulate"
	"github.com/kappactl/kappactl/internal/job"
)

func TestSimulatePlotsTheWeightsOfABandit(t *testing.T) {
	code, out, errs := runCLI(t, "ab", "simulate", "--arm", "v1=0.1", "--arm", "v2=0.3", "--policy", "thompson-beta", "--batches", "10", "--batch", "300")
	if code != job.ExitOK || !strings.Contains(out, "v2 wins after batch") || !strings.Contains(out, "aabbb") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestSimulateCountsTheVerdictsOfManyRuns(t *testing.T) {
	code, out, errs := runCLI(t, "ab", "simulate", "--arm", "old=10", "--arm", "new=12", "--sd", "2", "--mde", "1", "--weights", "old=0.9,new=0.1",
		"--batches", "10", "--batch", "200", "--min-subjects", "100", "--runs", "5", "-o", "json")
	var s simulate.Summary
	if err := json.Unmarshal([]byte(out), &s); code != job.ExitOK || err != nil || s.Runs != 5 || s.Wins[1] != 5 || s.Mean[1] > .12 {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, errs)
	}
}

func TestSimulateRefusesWhatIsNoExperiment(t *testing.T) {
	two := []string{"--arm", "a=0.1", "--arm", "b=0.2"}
	for says, args := range map[string][]string{
		"two to eight arms":          {"--arm", "a=0.1"},
		"is given twice":             {"--arm", "a=0.1", "--arm", "a=0.2"},
		"a mean is a probability":    {"--arm", "a=0.1", "--arm", "b=1.5"},
		"write ARM=NUMBER":           {"--arm", "a", "--arm", "b=nan"},
		"add up to 0.8":              append(two, "--weights", "a=0.4,b=0.4"),
		"the weight of b is missing": append(two, "--weights", "a=1"),
		"--gamma":                    append(two, "--gamma", "0"),
		"--epsilon":                  append(two, "--epsilon", "1.5"),
		"--min-weight":               append(two, "--min-weight", "0.5"),
		"use thompson-gaussian":      append(two, "--sd", "1", "--policy", "thompson-beta"),
		"use thompson-beta":          append(two, "--policy", "thompson-gaussian"),
	} {
		if code, out, errs := runCLI(t, append([]string{"ab", "simulate"}, args...)...); code != job.ExitUsage || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
}
