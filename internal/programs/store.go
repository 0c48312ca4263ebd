package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	sqlAddInstances = `
INSERT INTO kappactl.program (job, number, instance)
SELECT v.job, v.number, i FROM kappactl.version v, generate_series(0, (v.spec #>> '{program,instances}')::integer - 1) AS i
 WHERE v.job = @job AND v.number = @number
ON CONFLICT DO NOTHING`
	sqlRemoveInstances = `DELETE FROM kappactl.program WHERE job = @job AND number = @number`

	// wanted is the condition that an instance is to run.
	wanted = `EXISTS (SELECT FROM kappactl.version v WHERE v.job = r.job AND v.number = r.number AND v.paused_at IS NULL AND v.ended_at IS NULL
		AND v.phase IN ('replaying', 'building', 'catching_up', 'caught_up', 'verified', 'live', 'standby')
		AND r.instance < (v.spec #>> '{program,instances}')::integer)`

	// partitions are those of the version whose number leaves share when divided by of.
	sqlLook = `
SELECT r.job, r.number, r.instance, r.claim, coalesce(r.owner, '') AS owner, v.phase, v.spec::text AS spec, ` + wanted + ` AS wanted,
       j.view_schema AS schema
  FROM kappactl.program r JOIN kappactl.version v ON v.job = r.job AND v.number = r.number JOIN kappactl.job j ON j.name = r.job
 WHERE r.id = @id`
	sqlShare = `
SELECT count(*) AS partitions, coalesce(sum(frozen_end), 0)::bigint AS ends, coalesce(bool_and(next >= frozen_end), true) AS read,
       coalesce(bool_or(fault NOT IN ('', 'program')), false) AS faulty, coalesce(bool_or(fault = 'program'), false) AS looping
  FROM kappactl.position WHERE job = @job AND number = @number AND partition % @of = @share`
	sqlStarted = `UPDATE kappactl.program SET started_at = clock_timestamp() WHERE id = @id AND claim = @claim`
	sqlEnded   = `
UPDATE kappactl.program SET started_at = NULL, last_end = @how, last_words = @words,
       ends = ARRAY(SELECT e FROM unnest(ends || clock_timestamp()) AS e WHERE e > clock_timestamp() - @within::interval)
 WHERE id = @id AND claim = @claim RETURNING cardinality(ends)`
	sqlStopped = `UPDATE kappactl.program SET started_at = NULL WHERE id = @id AND claim = @claim`
	sqlForget  = `UPDATE kappactl.program SET ends = '{}' WHERE id = @id AND claim = @claim`
)

func addInstances(ctx context.Context, db pg.DB, ref job.Ref) error {
	if _, err := db.Exec(ctx, sqlAddInstances, refArgs(ref)); err != nil {
		return fmt.Errorf("write the instances of %s: %w", ref, err)
	}
	return nil
}

func removeInstances(ctx context.Context, db pg.DB, ref job.Ref) error {
	if _, err := db.Exec(ctx, sqlRemoveInstances, refArgs(ref)); err != nil {
		return fmt.Errorf("remove the instances of %s: %w", ref, err)
	}
	return nil
}

// item is an instance as its row, the version's and its positions say.
type item struct {
	ref      job.Ref
	instance int
	claim    int64
	owner    string
	phase    job.Phase
	spec     *job.Spec
	wanted   bool
	schema   string

	Partitions int
	Ends       int64 // sum of the frozen ends
	Read       bool  // up to the frozen ends
	Faulty     bool  // a partition is stopped by a fault other than job.FaultProgram
	Looping    bool  // job.FaultProgram is noted
}

// group reports whether the program commits to its consumer group.
func (i *item) group() bool { return i.spec.Program.Commit == job.CommitGroup }

// share is which positions belong to the instance: all of them to the first one when the program commits to its group.
func (i *item) share() (share, of int) {
	if i.group() {
		return i.instance, 1 // no partition leaves another remainder than 0
	}
	return i.instance, i.spec.Program.Instances
}

// reads is which positions the process reads.
func (i *item) reads() (share, of int) {
	if i.group() {
		return 0, 1 // the group gives it any
	}
	return i.share()
}

func (i *item) replaying() bool { return i.phase == job.Replaying || i.phase == job.Building }

func look(ctx context.Context, db pg.DB, id int64) (*item, error) {
	var out item
	var spec string
	err := db.QueryRow(ctx, sqlLook, pgx.NamedArgs{"id": id}).Scan((*string)(&out.ref.Job), (*int)(&out.ref.Number),
		&out.instance, &out.claim,
		&out.owner, (*string)(&out.phase), &spec, &out.wanted, &out.schema)
	if err != nil {
		return nil, fmt.Errorf("read instance %d: %w", id, err)
	}
	if err := json.Unmarshal([]byte(spec), &out.spec); err != nil {
		return nil, fmt.Errorf("decode the spec of %s: %w", out.ref, err)
	}
	if out.spec.Program == nil {
		return nil, fmt.Errorf("%s has no program", out.ref)
	}
	args := refArgs(out.ref)
	args["share"], args["of"] = out.reads()
	err = db.QueryRow(ctx, sqlShare, args).Scan(&out.Partitions, &out.Ends, &out.Read, &out.Faulty, &out.Looping)
	if err != nil {
		return nil, fmt.Errorf("read the positions of %s: %w", out.ref, err)
	}
	return &out, nil
}

// noteEnd notes how a process ended and returns how often that happened within the given time.
func noteEnd(ctx context.Context, db pg.DB, id, claim int64, how, words string, within time.Duration) (n int,
	err error,
) {
	args := pgx.NamedArgs{"id": id, "claim": claim, "how": how, "words": words, "within": pg.Interval(within)}
	if err := db.QueryRow(ctx, sqlEnded, args).Scan(&n); err != nil {
		return 0, fmt.Errorf("note how instance %d ended: %w", id, err)
	}
	return n, nil
}

func note(ctx context.Context, db pg.DB, sql string, id, claim int64) error {
	if _, err := db.Exec(ctx, sql, pgx.NamedArgs{"id": id, "claim": claim}); err != nil {
		return fmt.Errorf("note the state of instance %d: %w", id, err)
	}
	return nil
}

func refArgs(ref job.Ref) pgx.NamedArgs {
	return pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}
}
