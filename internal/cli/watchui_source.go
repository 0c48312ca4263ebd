package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/tui"
	"github.com/kappactl/kappactl/reprocess"
)

// watchedEvents is how many events the page shows.
const watchedEvents = 500

// watchSource is where `watch` reads from and acts through: the same calls as those of the other commands.
type watchSource struct {
	app    *app
	client *client
}

var _ tui.Source = (*watchSource)(nil)

// Jobs is every job.
func (s *watchSource) Jobs(ctx context.Context) (tui.Overview, error) {
	jobs, err := s.client.store.Jobs(ctx)
	if err != nil {
		return tui.Overview{}, err
	}
	agents, err := s.client.agents(ctx)
	return tui.Overview{Jobs: jobs, Agents: agents}, err
}

// Job is one job with its newest deployment.
func (s *watchSource) Job(ctx context.Context, name job.Name) (tui.Detail, error) {
	status, err := s.client.store.Status(ctx, name)
	if err != nil {
		return tui.Detail{}, err
	}
	d := tui.Detail{Status: status}
	if d.Agents, err = s.client.agents(ctx); err != nil {
		return tui.Detail{}, err
	}
	if d.Deployment, err = s.newest(ctx, name); err != nil {
		return tui.Detail{}, err
	}
	d.Facts, err = s.facts(ctx, name)
	return d, err
}

func (s *watchSource) newest(ctx context.Context, name job.Name) (*reprocess.Deployment, error) {
	var id int64
	err := s.client.pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM kappactl.deployment WHERE job = @job`,
		pgx.NamedArgs{"job": string(name)}).Scan(&id)
	if err != nil {
		return nil, fmt.Errorf("read the newest deployment of %s: %w", name, err)
	}
	if id == 0 {
		return nil, nil
	}
	d, err := s.client.store.Deployment(ctx, id)
	return &d, err
}

// Events is the history of a job, newest first.
func (s *watchSource) Events(ctx context.Context, name job.Name) ([]tui.Event, error) {
	rows, err := s.client.pool.Query(ctx, `SELECT id, at, CASE WHEN number IS NULL THEN '' ELSE 'v' || number END AS version, kind, message, by
		FROM kappactl.event WHERE job = @job ORDER BY id DESC LIMIT @limit`, pgx.NamedArgs{"job": string(name), "limit": watchedEvents})
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", name, err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByName[tui.Event])
	if err != nil {
		return nil, fmt.Errorf("read events of %s: %w", name, err)
	}
	return events, nil
}

// factRow is a version with what its page shows beside its status.
type factRow struct {
	Number   int
	Ready    string
	Checks   string
	Starts   string
	Segments int
	Done     int
	Deadline *time.Time
	Results  string
}

// facts reads, per version that has not ended and the newest that has, its limits, its checks with what each said last,
// the offsets it covers and how far its segments are.
func (s *watchSource) facts(ctx context.Context, name job.Name) (map[string]tui.Facts, error) {
	rows, err := s.client.pool.Query(ctx, `SELECT v.number, coalesce(v.spec -> 'ready', '{}')::text AS ready,
			coalesce(v.spec -> 'checks', '[]')::text AS checks,
			coalesce((SELECT jsonb_object_agg(p.topic || '/' || p.partition, p.covers_from) FROM kappactl.position p
				WHERE p.job = v.job AND p.number = v.number), '{}')::text AS starts,
			coalesce(g.segments, 0)::integer AS segments, coalesce(g.done, 0)::integer AS done, g.deadline,
			coalesce((SELECT jsonb_agg(jsonb_build_object('at', e.at, 'checks', e.detail -> 'checks') ORDER BY e.id) FROM (
				SELECT id, at, detail FROM kappactl.event
				WHERE job = v.job AND number = v.number AND kind IN ('checks passed', 'checks failed') ORDER BY id DESC LIMIT 20) e), '[]')::text AS results
		FROM kappactl.version v
		LEFT JOIN LATERAL (SELECT count(*) AS segments, count(*) FILTER (WHERE state = 'done') AS done,
				min(deadline) FILTER (WHERE state <> 'done') AS deadline
			FROM kappactl.segment g WHERE g.job = v.job AND g.number = v.number) g ON true
		WHERE v.job = @job AND (v.ended_at IS NULL OR v.number = (SELECT max(number) FROM kappactl.version WHERE job = @job))`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[factRow])
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", name, err)
	}
	out := make(map[string]tui.Facts, len(found))
	for _, r := range found {
		f, err := r.facts()
		if err != nil {
			return nil, fmt.Errorf("read facts of %s/v%d: %w", name, r.Number, err)
		}
		out[job.Number(r.Number).String()] = f
	}
	return out, nil
}

func (r factRow) facts() (tui.Facts, error) {
	f := tui.Facts{Segments: r.Segments, Done: r.Done, Deadline: r.Deadline}
	var declared []job.Check
	var runs []struct {
		At     time.Time               `json:"at"`
		Checks []reprocess.CheckResult `json:"checks"`
	}
	for text, into := range map[string]any{r.Ready: &f.Ready, r.Checks: &declared, r.Starts: &f.Starts, r.Results: &runs} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return f, err
		}
	}
	for _, k := range declared {
		check := tui.Check{Name: k.Name, When: k.When}
		for i := range runs { // the oldest first: the last result stays
			for _, result := range runs[i].Checks {
				if result.Name == k.Name {
					check.Outcome, check.Detail, check.At = string(result.Outcome), result.Detail, &runs[i].At
				}
			}
		}
		f.Checks = append(f.Checks, check)
	}
	return f, nil
}

// Resolve finds the version that a verb is about.
func (s *watchSource) Resolve(ctx context.Context, name job.Name, verb reprocess.Verb) (job.Ref, error) {
	return s.client.store.Resolve(ctx, name, verb)
}

// Do runs the act as its command does.
func (s *watchSource) Do(ctx context.Context, a tui.Act) (reprocess.Answer, error) {
	limit, err := time.ParseDuration(flipTimeout)
	if err != nil {
		return reprocess.Answer{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	if err := s.client.needAgent(ctx, 0); err != nil {
		return reprocess.Answer{}, err
	}
	answer, err := act{app: s.app, verb: a.Verb, target: target{Job: a.Ref.Job, Number: &a.Ref.Number}}.ask(ctx, s.client, a.Ref)
	if err != nil {
		return reprocess.Answer{}, err
	}
	return *answer, nil
}
