package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// checksOf are the checks of the version that a deployment is about; none when they cannot be read.
func checksOf(ctx context.Context, c *client, d ledger.Deployment) []status.Check {
	found, err := c.store.Checks(ctx, d.Ref())
	if err != nil {
		return nil
	}
	return found
}

// printChecks is a table of what the checks of versions that have not ended said last, set off by an empty line.
func printChecks(w io.Writer, s render.Style, jobs []status.Job) error {
	t := render.NewTable("version", "check", "when", "outcome", "at", ">took", "detail")
	for _, j := range jobs {
		for _, v := range j.Versions {
			if v.Phase.Ended() || (v.Phase == job.Standby && v.RolledBackAt == nil) {
				continue
			}
			for _, c := range v.Checks {
				at, took := render.None, render.None
				if c.At != nil {
					at, took = render.Time(c.At), fmt.Sprintf("%.3gs", c.Seconds)
					if s.People {
						took = render.Seconds(&c.Seconds)
					}
				}
				t.Add(render.Text(v.Version), render.Text(c.Name), render.Text(cmp.Or(c.Stage, c.When)), outcomeCell(c),
					render.Text(at), render.Text(took), render.Text(render.Or(c.Detail)))
			}
		}
	}
	if t.Len() == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, s)
}

func outcomeCell(c status.Check) render.Cell {
	switch checks.Outcome(c.Outcome) {
	case checks.Pass:
		return render.Toned(render.Good, c.Outcome)
	case checks.Fail:
		return render.Toned(render.Bad, c.Outcome)
	case checks.NoAnswer:
		return render.Toned(render.Warn, c.Outcome)
	}
	return render.Toned(render.Dim, "not run yet")
}

// planCheck is one check that deploy will run.
type planCheck struct {
	Name    string  `json:"name"`
	When    string  `json:"when"`  // before, after or both
	Every   *string `json:"every"` // after the flip; null: only before
	Timeout string  `json:"timeout"`
	What    string  `json:"what"` // sql, or what may differ
	Against *string `json:"against"`
}

// planChecks are the checks of the file and when they run. live is nil for a job's first version.
func planChecks(spec *job.Spec, live *string) []planCheck {
	out := []planCheck{}
	for _, k := range spec.Checks {
		c := planCheck{
			Name: k.Name, When: cmp.Or(k.When, job.CheckBefore), Timeout: job.FormatDuration(k.Timeout),
			What: "sql",
		}
		if k.Runs(job.CheckAfter) {
			every := job.FormatDuration(k.Every)
			c.Every = &every
		}
		if k.Diff != nil {
			c.What, c.Against = limitWords(*k.Diff), live
		}
		out = append(out, c)
	}
	return out
}

func limitWords(l job.DiffLimit) string {
	parts := []string{fmt.Sprintf("at most %.3g%% of the keys differ", 100*l.MaxChanged)}
	if l.MaxMissing != nil {
		parts = append(parts, fmt.Sprintf("%.3g%% are missing", 100**l.MaxMissing))
	}
	if l.MaxExtra != nil {
		parts = append(parts, fmt.Sprintf("%.3g%% are extra", 100**l.MaxExtra))
	}
	return strings.Join(parts, ", ")
}

// words say when a check runs, and what it compares.
func (c planCheck) words() string {
	when := map[string]string{
		job.CheckBefore: "before the flip", job.CheckAfter: "after the flip", job.CheckBoth: "before and after the flip",
	}[c.When]
	if c.Every != nil {
		when += ", every " + *c.Every
	}
	switch {
	case c.What == "sql":
		return fmt.Sprintf("%s: %s", c.Name, when)
	case c.Against == nil:
		return fmt.Sprintf("%s: %s: %s; no version is live yet to compare with", c.Name, when, c.What)
	}
	return fmt.Sprintf("%s: %s: %s against %s", c.Name, when, c.What, *c.Against)
}
