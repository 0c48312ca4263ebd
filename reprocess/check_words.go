package reprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
)

// judgeDiff compares what differs with what may, and says both.
func judgeDiff(d Diff, limit job.DiffLimit) (CheckOutcome, string) {
	all := d.All()
	if all == 0 {
		return CheckPass, "no keys on either side"
	}
	together := []string{plural(d.Changed, "key changed", "keys changed")}
	counted := d.Changed
	var alone []string
	outcome := CheckPass
	for _, k := range []struct {
		n     int64
		words string
		most  *float64
	}{{d.OnlyA, "only in " + d.A, limit.MaxMissing}, {d.OnlyB, "only in " + d.B, limit.MaxExtra}} {
		if k.most == nil {
			together = append(together, grouped(k.n)+" "+k.words)
			counted += k.n
			continue
		}
		alone = append(alone, fmt.Sprintf("%s %s (%s, allowed %s)", grouped(k.n), k.words, percent(share(k.n, all)), percent(*k.most)))
		if share(k.n, all) > *k.most {
			outcome = CheckFail
		}
	}
	if share(counted, all) > limit.MaxChanged {
		outcome = CheckFail
	}
	text := fmt.Sprintf("%s (%s of %s, allowed %s)", strings.Join(together, ", "), percent(share(counted, all)), grouped(all), percent(limit.MaxChanged))
	return outcome, strings.Join(append([]string{text}, alone...), "; ")
}

// percent writes a share with as many digits as tell it from its neighbours: 3.01%, 0.004%.
func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// passedWords is the message of checks that passed.
func passedWords(results []CheckResult) string {
	if len(results) == 1 {
		return "1 check"
	}
	return fmt.Sprintf("%d checks", len(results))
}

// checkWords is one line a check.
func checkWords(results []CheckResult) string {
	out := make([]string, len(results))
	for i, r := range results {
		out[i] = fmt.Sprintf("check %q: %s", r.Name, r.Outcome)
		if r.Detail != "" {
			out[i] += ": " + r.Detail
		}
	}
	return strings.Join(out, "\n")
}

// report is checkWords with the examples of diff checks below them.
func report(results []CheckResult) string {
	out := make([]string, 0, len(results))
	for _, r := range results {
		out = append(out, checkWords([]CheckResult{r}))
		if r.Diff != nil {
			for _, e := range r.Diff.Examples {
				out = append(out, "  "+e.Words(r.Diff.A, r.Diff.B))
			}
		}
	}
	return strings.Join(out, "\n")
}

// Words is an example in one line: the key, and what is on both sides, named a and b.
func (e DiffExample) Words(a, b string) string {
	switch e.Kind {
	case OnlyA:
		return fmt.Sprintf("%s only in %s: %s", e.Key, a, e.A)
	case OnlyB:
		return fmt.Sprintf("%s only in %s: %s", e.Key, b, e.B)
	case Changed:
	}
	var was, is map[string]json.RawMessage
	if json.Unmarshal(e.A, &was) != nil || json.Unmarshal(e.B, &is) != nil {
		return fmt.Sprintf("%s %s: %s, %s: %s", e.Key, a, e.A, b, e.B)
	}
	values := make([]string, len(e.Columns))
	for i, name := range e.Columns {
		values[i] = fmt.Sprintf("%s %s → %s", name, was[name], is[name])
	}
	return fmt.Sprintf("%s %s", e.Key, strings.Join(values, ", "))
}

// checksAnswer is the answer to who wants a flip that checks stop.
func checksAnswer(ref job.Ref, bad []CheckResult) Answer {
	a := Answer{
		Code: job.ExitChecks, Text: fmt.Sprintf("%s is not promoted:\n%s", ref, report(bad)),
		Next: fmt.Sprintf("correct the check in the job file, then kappactl deploy FILE (nothing is replayed); or correct the cause, then kappactl promote %s %s; or kappactl abort %s %s",
			ref.Job, ref.Number, ref.Job, ref.Number),
	}
	for _, r := range bad {
		if strings.Contains(r.Detail, liveIsDown) {
			a.Next = fmt.Sprintf("repair %s, or kappactl promote %s %s --live-is-down, which goes without that comparison", ref.Job, ref.Job, ref.Number)
		}
		if r.Diff != nil {
			a.Next = fmt.Sprintf("kappactl diff %s %s %s shows what differs; correct the cause, then kappactl promote %s %s, or kappactl abort %s %s",
				ref.Job, r.Diff.A, r.Diff.B, ref.Job, ref.Number, ref.Job, ref.Number)
		}
	}
	return a
}

// plainPG is an error of PostgreSQL in its own words.
func plainPG(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err.Error()
	}
	text := server.Message
	if server.Hint != "" {
		text += " (" + server.Hint + ")"
	}
	return text
}
