package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// CheckStatus is one check of a version's job file, with what it said last. Its JSON is documented and only ever grows.
type CheckStatus struct {
	Name    string     `json:"name"`
	When    string     `json:"when"`    // before, after or both
	Stage   string     `json:"stage"`   // in which it ran last: before, after; empty while it has not run
	Outcome string     `json:"outcome"` // pass, fail, no answer; empty while it has not run
	Detail  string     `json:"detail"`  // why, or what was found
	At      *time.Time `json:"at"`      // of the last run
	Seconds float64    `json:"seconds"`
	// Failures are in a row; two after the flip roll back.
	Failures int `json:"failures"`
	// Offsets are the positions at which it saw results, by topic/partition.
	Offsets map[string]int64 `json:"offsets"`
	Diff    *Diff            `json:"diff"` // of a diff check
}

// checkRow is a declared check of a version with what it said last in its newest deployment that ran it.
type checkRow struct {
	Job       string
	Number    int
	Name      string
	When      string
	Stage     *string
	Outcome   *string
	Detail    *string
	At        *time.Time
	Seconds   *float64
	Failures  *int
	Positions *string
	Diff      *string
}

// readCheckStatuses are the checks of one job's versions, or of all versions that have not ended, in the order of their files.
func readCheckStatuses(ctx context.Context, db pg.DB, name string) ([]checkRow, error) {
	return collect[checkRow](ctx, db, `SELECT v.job, v.number, k.value ->> 'name' AS name, coalesce(nullif(k.value ->> 'when', ''), 'before') AS "when",
			r.stage, r.outcome, r.detail, r.at, r.seconds, r.failures, r.positions::text AS positions, r.diff::text AS diff
		FROM kappactl.version v
		CROSS JOIN LATERAL jsonb_array_elements(coalesce(v.spec -> 'checks', '[]')) WITH ORDINALITY AS k (value, nth)
		LEFT JOIN LATERAL (SELECT * FROM kappactl.check_result r WHERE r.job = v.job AND r.number = v.number AND r.name = k.value ->> 'name'
			ORDER BY r.deployment DESC, r.at DESC LIMIT 1) r ON true
		WHERE v.job = @job OR (@job::text = '' AND v.ended_at IS NULL) ORDER BY v.job, v.number, k.nth`, pgx.NamedArgs{"job": name})
}

func (r checkRow) status() (CheckStatus, error) {
	c := CheckStatus{Name: r.Name, When: r.When}
	if r.Outcome == nil {
		return c, nil
	}
	c.Stage, c.Outcome, c.Detail, c.Seconds, c.Failures = *r.Stage, *r.Outcome, *r.Detail, *r.Seconds, *r.Failures
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

// checksOf are those of one version.
func checksOf(all []checkRow, name string, number int) ([]CheckStatus, error) {
	out := []CheckStatus{}
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

// Checks are the checks of a version's job file with what each said last.
func (s *Store) Checks(ctx context.Context, ref job.Ref) ([]CheckStatus, error) {
	all, err := readCheckStatuses(ctx, s.pool, string(ref.Job))
	if err != nil {
		return nil, fmt.Errorf("read the checks of %s: %w", ref, err)
	}
	return checksOf(all, string(ref.Job), int(ref.Number))
}
