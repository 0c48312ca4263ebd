package hooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// The states of a delivery.
const (
	stateDone    = "done"
	stateGivenUp = "given up"
)

// delivery is an event for one hook that this agent has claimed for one try.
type delivery struct {
	ID    int64
	Event int64
	Hook  string
	Told  job.HookEvent
	Tries int // including this one
	Owner string
}

// hookEventOf maps event e of the history to the event name of hooks; NULL if hooks do not report it. d is its
// deployment.
const hookEventOf = `CASE
		WHEN e.kind = 'deploy' AND NOT d.flip_only THEN 'stage'
		WHEN e.kind = 'phase' AND e.detail ->> 'to' = 'caught_up' AND NOT EXISTS (SELECT FROM kappactl.event f
			WHERE f.job = e.job AND f.number = e.number AND f.kind = 'phase' AND f.detail ->> 'to' = 'caught_up' AND f.id < e.id) THEN 'caught_up'
		WHEN e.kind = 'before_promote' THEN 'before_promote'
		WHEN e.kind = 'promoted' THEN 'after_promote'
		WHEN e.kind = 'rolled_back' THEN 'rollback'
		WHEN e.kind = 'retire' THEN 'retire'
		WHEN e.kind IN ('batch_failed', 'schedule_failed') THEN 'batch_failed'
		WHEN e.kind IN ('batch_late', 'archive_late', 'archive_stopped') THEN e.kind
	END`

// register records that these hooks are in an agent's settings. A new or forgotten hook receives events from now on.
func register(ctx context.Context, db pg.DB, hooks []Hook) error {
	_, err := db.Exec(ctx, `INSERT INTO kappactl.hook (name, since)
		SELECT name, (SELECT coalesce(max(id), 0) FROM kappactl.event) FROM unnest(@hooks::text[]) AS name ORDER BY name
		ON CONFLICT (name) DO UPDATE SET seen_at = clock_timestamp()`, pgx.NamedArgs{"hooks": namesOf(hooks)})
	if err != nil {
		return fmt.Errorf("note hooks: %w", err)
	}
	return nil
}

// forget deletes the hooks that no agent has had in its settings for a while, with their open deliveries. It keeps the
// given hooks, which this agent has.
func forget(ctx context.Context, db pg.DB, hooks []Hook, after time.Duration) error {
	_, err := db.Exec(ctx, `WITH gone AS (DELETE FROM kappactl.hook
			WHERE seen_at < clock_timestamp() - @after::interval AND name <> ALL (@hooks::text[]) RETURNING name)
		UPDATE kappactl.delivery SET state = @state, answered_at = clock_timestamp(), answer =
		'the hook is in no agent''s settings any more'
		WHERE state = 'due' AND hook IN (SELECT name FROM gone)`,
		pgx.NamedArgs{"hooks": namesOf(hooks), "after": pg.Interval(after), "state": stateGivenUp})
	if err != nil {
		return fmt.Errorf("forget hooks: %w", err)
	}
	return nil
}

// enqueue creates a delivery for each new event that concerns the hook.
func enqueue(ctx context.Context, db pg.DB, h Hook) error {
	on := []string{}
	for _, e := range job.HookEvents() {
		if !h.mayRefuse(e) && (len(h.On) == 0 || slices.Contains(h.On, e)) {
			on = append(on, string(e))
		}
	}
	jobs := append([]string{}, h.Jobs...)
	_, err := db.Exec(ctx, `INSERT INTO kappactl.delivery (event, hook, told)
		SELECT t.id, @name, t.told FROM (
			SELECT e.id, `+hookEventOf+` AS told FROM kappactl.event e LEFT JOIN kappactl.deployment d ON d.id = e.deployment
			WHERE e.id > (SELECT since FROM kappactl.hook WHERE name = @name)
			  AND e.kind IN ('deploy', 'phase', 'before_promote', 'promoted', 'rolled_back', 'retire', 'batch_failed', 'schedule_failed', 'batch_late',
				'archive_late', 'archive_stopped')
			  AND (cardinality(@jobs::text[]) = 0 OR e.job = ANY (@jobs::text[]))) t
		WHERE t.told = ANY (@on::text[]) ORDER BY t.id
		ON CONFLICT (event, hook) DO NOTHING`, pgx.NamedArgs{"name": h.Name, "jobs": jobs, "on": on})
	if err != nil {
		return fmt.Errorf("read events for hook %s: %w", h.Name, err)
	}
	return nil
}

// claim claims the hook's delivery that has been due longest. It becomes due again after the hook's timeout plus
// claimMargin.
func claim(ctx context.Context, db pg.DB, owner string, h Hook) (delivery, bool, error) {
	rows, err := db.Query(ctx,
		`UPDATE kappactl.delivery SET tries = tries + 1, owner = @owner, due_at = clock_timestamp() + @lease::interval
		WHERE id = (SELECT id FROM kappactl.delivery WHERE state = 'due' AND due_at <= clock_timestamp() AND hook = @hook
			ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		RETURNING id, event, hook, told, tries, owner`,
		pgx.NamedArgs{"owner": owner, "hook": h.Name, "lease": pg.Interval(h.Timeout + claimMargin)})
	if err != nil {
		return delivery{}, false, fmt.Errorf("claim a delivery: %w", err)
	}
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[delivery])
	if errors.Is(err, pgx.ErrNoRows) {
		return delivery{}, false, nil
	}
	if err != nil {
		return delivery{}, false, fmt.Errorf("claim a delivery: %w", err)
	}
	return d, true, nil
}

func namesOf(hooks []Hook) []string {
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = h.Name
	}
	return names
}

// claimMargin is the time allowed for recording the outcome.
const claimMargin = 10 * time.Second

// factsRow is a row of an event's facts, with its message as a reason.
type factsRow struct {
	job.HookFacts
	Why reason.Reason
}

// factsOf reads the facts of an event.
func factsOf(ctx context.Context, db pg.DB, id int64, told job.HookEvent) (job.HookFacts, error) {
	rows, err := db.Query(ctx,
		`SELECT 1 AS schema, e.id, @told::text AS event, e.at, e.job, coalesce('v' || e.number, '') AS version,
			CASE WHEN e.kind IN ('promoted', 'rolled_back') THEN 'v' || (e.detail ->> 'from')
				WHEN e.kind = 'before_promote' THEN e.detail ->> 'previous' ELSE 'v' || d.previous END AS previous, e.deployment,
			coalesce(j.view_schema || '.' || j.view_name, '') AS view, '' AS message, e.message AS why, e.by,
			coalesce(v.git_revision, '') AS git_revision
		FROM kappactl.event e LEFT JOIN kappactl.deployment d ON d.id = e.deployment
		LEFT JOIN kappactl.job j ON j.name = e.job LEFT JOIN kappactl.version v ON v.job = e.job AND v.number = e.number
		WHERE e.id = @id`, pgx.NamedArgs{"id": id, "told": string(told)})
	if err != nil {
		return job.HookFacts{}, fmt.Errorf("read event %d: %w", id, err)
	}
	f, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[factsRow])
	if err != nil {
		return job.HookFacts{}, fmt.Errorf("read event %d: %w", id, err)
	}
	f.At, f.Message = f.At.UTC(), f.Why.Text()
	return f.HookFacts, nil
}

// finish ends a delivery that this agent still holds.
func finish(ctx context.Context, db pg.DB, d delivery, state, answer string) error {
	return settle(ctx, db, d, `state = @state, answered_at = clock_timestamp(), answer = @answer`, pgx.NamedArgs{
		"state": state, "answer": answer,
	})
}

// postpone makes a delivery due again after a pause.
func postpone(ctx context.Context, db pg.DB, d delivery, pause time.Duration, answer string) error {
	return settle(ctx, db, d,
		`due_at = clock_timestamp() + @pause::interval, answered_at = clock_timestamp(), answer = @answer`,
		pgx.NamedArgs{"pause": pg.Interval(pause), "answer": answer})
}

// release returns a delivery whose try was interrupted.
func release(ctx context.Context, db pg.DB, d delivery) error {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return settle(limited, db, d, `due_at = clock_timestamp()`, pgx.NamedArgs{})
}

func settle(ctx context.Context, db pg.DB, d delivery, set string, args pgx.NamedArgs) error {
	args["id"], args["owner"], args["tries"] = d.ID, d.Owner, d.Tries
	if _, err := db.Exec(ctx, `UPDATE kappactl.delivery SET `+set+
		` WHERE id = @id AND owner = @owner AND tries = @tries AND state = 'due'`, args); err != nil {
		return fmt.Errorf("write delivery %d: %w", d.ID, err)
	}
	return nil
}

// tidy moves the hooks' read position past events that no open transaction can add to, and deletes old deliveries.
func tidy(ctx context.Context, db pg.DB, hooks []Hook) error {
	if _, err := db.Exec(ctx, `UPDATE kappactl.hook h SET since = s.id
		FROM (SELECT max(id) AS id FROM kappactl.event WHERE at < clock_timestamp() - interval '1 hour') s
		WHERE s.id > h.since AND h.name = ANY (@hooks::text[])`, pgx.NamedArgs{"hooks": namesOf(hooks)}); err != nil {
		return fmt.Errorf("advance hooks: %w", err)
	}
	if _, err := db.Exec(ctx,
		`DELETE FROM kappactl.delivery d WHERE d.state <> 'due' AND d.answered_at < clock_timestamp() - interval '30 days'
		AND d.event <= coalesce((SELECT since FROM kappactl.hook h WHERE h.name = d.hook), d.event)`); err != nil {
		return fmt.Errorf("forget deliveries: %w", err)
	}
	return nil
}
