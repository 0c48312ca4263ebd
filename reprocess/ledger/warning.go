package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// MovedKeys is that of the event about keys in more than one partition.
type MovedKeys struct {
	Moved int64  `json:"moved_keys"`
	Exact bool   `json:"exact"`
	By    string `json:"by"` // what decides which record of a key is the newest
}

// ReadMovedKeys reads what the history of a version has of keys in more than one partition, nil when nothing, and how
// many times partitions were added.
func ReadMovedKeys(ctx context.Context, db pg.DB, st *State) (seen *MovedKeys, added int, err error) {
	err = db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE kind = 'partition'),
			(array_agg(detail ORDER BY id DESC) FILTER (WHERE kind = 'warning' AND detail ->> 'moved_keys' IS NOT NULL))[1]
		FROM kappactl.event WHERE job = @job AND number = @number AND kind IN ('partition', 'warning')`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number}).Scan(&added, &seen)
	return seen, added, Wrap(err, "read the moved keys of %s", st.Ref())
}

// RetentionDetail is that of an event about retention.
type RetentionDetail struct {
	Code reason.Code `json:"code"`
}

// RetentionWarned reports whether the last event of a deployment about retention is a warning.
func RetentionWarned(ctx context.Context, db pg.DB, st *State) (on bool, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT detail ->> 'code' <> @over FROM kappactl.event
		WHERE deployment = @id AND kind = @kind ORDER BY id DESC LIMIT 1), false)`,
		pgx.NamedArgs{"id": st.ID, "kind": string(EventRetention), "over": string(reason.CodeRetentionOver)}).Scan(&on)
	return on, Wrap(err, "read the warnings of deployment %d", st.ID)
}

// Pace is a cause that slows or stops the work on a version on one agent.
type Pace struct {
	Agent          string
	Brake          string
	BrokerThrottle float64
	Trouble        reason.Reason // work that fails and is tried again; zero: none
}

// ReadPaces reads what slowed versions down or kept them from going on, on each agent within age.
func ReadPaces(ctx context.Context, db pg.DB, of []job.Ref, age time.Duration) (map[job.Ref][]Pace, error) {
	jobs, numbers := make([]string, len(of)), make([]int, len(of))
	for i, ref := range of {
		jobs[i], numbers[i] = string(ref.Job), int(ref.Number)
	}
	type row struct {
		Job    string
		Number int
		Pace
	}
	rows, err := pg.Structs[row](ctx, db, `SELECT job, number, agent, brake, broker_throttle, trouble FROM kappactl.pace
		WHERE (job, number) IN (SELECT * FROM unnest(@jobs::text[], @numbers::integer[]))
		  AND at > clock_timestamp() - @age::interval AND (brake <> '' OR broker_throttle > 0.01 OR trouble <> '{}')
		ORDER BY job, number, agent`, pgx.NamedArgs{"jobs": jobs, "numbers": numbers, "age": pg.Interval(age)})
	if err != nil {
		return nil, fmt.Errorf("read what slows %d versions down: %w", len(of), err)
	}
	out := map[job.Ref][]Pace{}
	for _, r := range rows {
		ref := job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}
		out[ref] = append(out[ref], r.Pace)
	}
	return out, nil
}

// SlowedBy is a cause that slows a version down.
func SlowedBy(paces []Pace) []reason.Reason {
	var out []reason.Reason
	for _, p := range paces {
		if p.Brake != "" {
			out = append(out, reason.ReplaySlowed(p.Agent, p.Brake))
		}
		if p.BrokerThrottle > 0.01 {
			out = append(out, reason.BrokerThrottled(p.Agent, min(1, p.BrokerThrottle)))
		}
	}
	return out
}

// SetWarnings replaces the warnings of a version, fenced by the deployment's claim.
func SetWarnings(ctx context.Context, db pg.DB, st *State, warnings []reason.Reason) error {
	if warnings == nil {
		warnings = []reason.Reason{} // [] and not null
	}
	text, err := json.Marshal(warnings)
	if err != nil {
		return fmt.Errorf("encode the warnings of %s: %w", st.Ref(), err)
	}
	_, err = db.Exec(ctx, `UPDATE kappactl.version v SET warnings = @warnings::jsonb FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND d.id = @id AND d.claim = @claim AND v.warnings <> @warnings::jsonb`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "id": st.ID, "claim": st.Claim, "warnings": string(text)})
	return Wrap(err, "note the warnings of %s", st.Ref())
}
