package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
)

// Check is one check of a version's job file, with its latest answer. Its JSON is documented; fields are only added.
type Check struct {
	Name    string `json:"name"`
	When    string `json:"when"`    // before, after or both
	Stage   string `json:"stage"`   // of the last run: before, after; empty if it has not run
	Outcome string `json:"outcome"` // pass, fail, no answer; empty if it has not run
	Detail  string `json:"detail"`  // why, or what was found
	// DetailCode is the code of the detail; empty if there is none.
	DetailCode reason.Code `json:"detail_code"`
	At         *time.Time  `json:"at"` // of the last run
	Seconds    float64     `json:"seconds"`
	// Failures is the number of consecutive failures; two after the flip trigger a rollback.
	Failures int `json:"failures"`
	// Offsets are the positions whose results it checked, by topic/partition.
	Offsets map[string]int64 `json:"offsets"`
	Diff    *checks.Diff     `json:"diff"` // of a diff check
}

// checkRow is a check of a version with its latest answer, from the newest deployment that ran it.
type checkRow struct {
	Job       string
	Number    int
	Name      string
	When      string
	Stage     *string
	Outcome   *string
	Detail    *reason.Reason
	At        *time.Time
	Seconds   *float64
	Failures  *int
	Positions *string
	Diff      *string
}

// readChecks reads the checks of one job's versions, or of all versions that have not ended, in the order of their
// files.
func readChecks(ctx context.Context, db pg.DB, name string) ([]checkRow, error) {
	return pg.Structs[checkRow](ctx, db, `SELECT v.job, v.number, k.value ->> 'name' AS name,
			coalesce(nullif(k.value ->> 'when', ''), 'before') AS "when",
			r.stage, r.outcome, r.detail, r.at, r.seconds, r.failures, r.positions::text AS positions, r.diff::text AS diff
		FROM kappactl.version v
		CROSS JOIN LATERAL jsonb_array_elements(coalesce(v.spec -> 'checks', '[]')) WITH ORDINALITY AS k (value, nth)
		LEFT JOIN LATERAL (SELECT * FROM kappactl.check_result r WHERE r.job = v.job AND r.number = v.number
		AND r.name = k.value ->> 'name'
			ORDER BY r.deployment DESC, r.at DESC LIMIT 1) r ON true
		WHERE v.job = @job OR (@job::text = '' AND v.ended_at IS NULL) ORDER BY v.job, v.number, k.nth`,
		pgx.NamedArgs{"job": name})
}

func (r checkRow) status() (Check, error) {
	c := Check{Name: r.Name, When: r.When}
	if r.Outcome == nil {
		return c, nil
	}
	c.Stage, c.Outcome, c.Seconds, c.Failures = *r.Stage, *r.Outcome, *r.Seconds, *r.Failures
	if r.Detail != nil {
		c.Detail, c.DetailCode = r.Detail.Text(), r.Detail.Code
	}
	at := r.At.UTC()
	c.At = &at
	if err := json.Unmarshal([]byte(*r.Positions), &c.Offsets); err != nil {
		return c, fmt.Errorf("decode check %q: %w", r.Name, err)
	}
	if r.Diff != nil {
		if err := json.Unmarshal([]byte(*r.Diff), &c.Diff); err != nil {
			return c, fmt.Errorf("decode check %q: %w", r.Name, err)
		}
	}
	return c, nil
}

// checksOf returns those of one version.
func checksOf(all []checkRow, name string, number int) ([]Check, error) {
	out := []Check{}
	for _, r := range all {
		if r.Job != name || r.Number != number {
			continue
		}
		c, err := r.status()
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Checks returns the checks of a version's job file with their latest answers.
func (s *Store) Checks(ctx context.Context, ref job.Ref) ([]Check, error) {
	all, err := readChecks(ctx, s.pool, string(ref.Job))
	if err != nil {
		return nil, fmt.Errorf("read the checks of %s: %w", ref, err)
	}
	return checksOf(all, string(ref.Job), int(ref.Number))
}
