package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// forgetAfter is the age at which the row of a dead agent is deleted.
const forgetAfter = "1 hour"

// Alive returns the number of agents with a heartbeat younger than within that are not stopping.
func Alive(ctx context.Context, db pg.DB, within time.Duration) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT count(*) FROM kappactl.agent WHERE NOT draining
		AND heartbeat_at > clock_timestamp() - @within::interval`,
		pgx.NamedArgs{"within": pg.Interval(within)}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count agents: %w", err)
	}
	return n, nil
}

// Role returns the PostgreSQL role of the control schema's agents; empty if unknown.
func Role(ctx context.Context, db pg.DB) string {
	var role string
	if err := db.QueryRow(ctx,
		`SELECT role FROM kappactl.agent ORDER BY draining, heartbeat_at DESC LIMIT 1`).Scan(&role); err != nil {
		return "" // no control schema, or no right to read it
	}
	return role
}

// Beats returns an error unless the agent with that id has written a heartbeat within the given time and is not
// stopping.
func Beats(ctx context.Context, db pg.DB, id string, within time.Duration) error {
	var late, draining bool
	err := db.QueryRow(ctx, `SELECT heartbeat_at < clock_timestamp() - @within::interval, draining FROM kappactl.agent
		WHERE id = @id`,
		pgx.NamedArgs{"id": id, "within": pg.Interval(within)}).Scan(&late, &draining)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errors.New("the agent has written no heartbeat yet")
	case err != nil:
		return fmt.Errorf("read the agent's heartbeat: %w", err)
	case draining:
		return errors.New("the agent is about to stop")
	case late:
		return fmt.Errorf("the agent has written no heartbeat for %s", within)
	}
	return nil
}

// Living is an agent that is alive and not stopping.
type Living struct {
	ID       string
	Hooks    map[string]string // digests of its hooks by name; nil: its release does not report them
	Programs []string          // patterns of the programs of jobs that it runs
}

// Roster returns the agents that Alive counts, by id.
func Roster(ctx context.Context, db pg.DB, within time.Duration) ([]Living, error) {
	rows, err := db.Query(ctx,
		`SELECT id, hooks, programs FROM kappactl.agent WHERE NOT draining AND heartbeat_at > clock_timestamp() - @within::interval
			ORDER BY id`,
		pgx.NamedArgs{"within": pg.Interval(within)})
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[Living])
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return out, nil
}

// IDs returns the ids of the agents that Alive counts.
func IDs(ctx context.Context, db pg.DB, within time.Duration) ([]string, error) {
	roster, err := Roster(ctx, db, within)
	ids := make([]string, len(roster))
	for i, a := range roster {
		ids[i] = a.ID
	}
	return ids, err
}

func writeHeartbeat(ctx context.Context, db pg.DB, c Config, draining bool) error {
	var hooks *string // null: not reported
	if c.Hooks != nil {
		text, err := json.Marshal(c.Hooks)
		if err != nil {
			return fmt.Errorf("write heartbeat: %w", err)
		}
		said := string(text)
		hooks = &said
	}
	_, err := db.Exec(ctx, `WITH old AS (DELETE FROM kappactl.agent
		WHERE heartbeat_at < clock_timestamp() - @forget::interval AND id <> @id)
		INSERT INTO kappactl.agent (id, host, pid, release, http, capacity, dialects, draining, hooks, programs)
		VALUES (@id, @host, @pid, @release, @http, @capacity, ARRAY[@dialect::integer], @draining, @hooks::jsonb, coalesce(@programs::text[], '{}'))
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = clock_timestamp(), draining = excluded.draining`,
		pgx.NamedArgs{
			"id": c.ID, "host": c.Host, "pid": c.PID, "release": c.Release, "http": c.HTTP, "capacity": c.Capacity,
			"dialect": c.Dialect, "draining": draining, "forget": forgetAfter, "hooks": hooks,
			"programs": c.Programs,
		})
	if err != nil {
		return fmt.Errorf("write heartbeat: %w", err)
	}
	return nil
}

// silentAgents returns the agents, except the given one, without a heartbeat within the given time.
func silentAgents(ctx context.Context, db pg.DB, but string, within time.Duration) ([]string, error) {
	rows, err := db.Query(ctx,
		`SELECT id FROM kappactl.agent WHERE heartbeat_at < clock_timestamp() - @within::interval AND id <> @id`,
		pgx.NamedArgs{"within": pg.Interval(within), "id": but})
	if err != nil {
		return nil, fmt.Errorf("look for agents without a heartbeat: %w", err)
	}
	silent, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for agents without a heartbeat: %w", err)
	}
	return silent, nil
}

func deleteAgent(ctx context.Context, db pg.DB, id string) error {
	_, err := db.Exec(ctx, `DELETE FROM kappactl.agent WHERE id = @id`, pgx.NamedArgs{"id": id})
	return err
}

// versionRow is a version that has work.
type versionRow struct {
	Job    string
	Number int
	Phase  job.Phase
}

func (v versionRow) ref() job.Ref { return job.Ref{Job: job.Name(v.Job), Number: job.Number(v.Number)} }

// readVersions returns the versions that have work for a runner of this dialect, replays in the order in which they
// share the budget. A version that is being built keeps its runner, which later follows live without a restart.
func readVersions(ctx context.Context, db pg.DB, dialect int) ([]versionRow, error) {
	phases := []string{string(job.Replaying), string(job.Building)}
	for _, p := range job.Phases() {
		if p.Consumes() {
			phases = append(phases, string(p))
		}
	}
	rows, err := db.Query(ctx, `SELECT job, number, phase FROM kappactl.version
		WHERE phase = ANY(@phases) AND paused_at IS NULL AND ended_at IS NULL AND dialect = @dialect
		ORDER BY frozen_at, job, number`, pgx.NamedArgs{"phases": phases, "dialect": dialect})
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[versionRow])
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	return out, nil
}

// readNewest reads the highest id of each kind of work.
func readNewest(ctx context.Context, db pg.DB, works []Work) ([]int64, error) {
	highest := make([]string, len(works))
	for i, w := range works {
		highest[i] = "coalesce((SELECT max(id) FROM " + w.Table + "), 0)"
	}
	var ids []int64
	err := db.QueryRow(ctx, "SELECT ARRAY["+strings.Join(highest, ", ")+"]::bigint[]").Scan(&ids)
	return ids, err
}

// item is a row claimed by this agent.
type item struct {
	ID    int64
	Claim int64
}

// claim claims up to limit open items that no agent holds, except those in but.
func claim(ctx context.Context, db pg.DB, w Work, owner string, ttl time.Duration, limit int, but []int64) ([]item,
	error,
) {
	return pg.Claim[item](ctx, db, w.lease(), owner, ttl, limit, notIn("but")+" AND ("+w.Open+")",
		pgx.NamedArgs{"but": but})
}

// readOpen reports, for each kind of work, whether it has an item to claim besides those in but. One statement asks for
// all kinds: an idle agent claims nothing.
func readOpen(ctx context.Context, db pg.DB, works []Work, but map[string][]int64) ([]bool, error) {
	if len(works) == 0 {
		return nil, nil
	}
	open, args := make([]string, len(works)), pgx.NamedArgs{}
	for i, w := range works {
		name := "but_" + strconv.Itoa(i)
		args[name] = but[w.Name]
		open[i] = pg.Claimable(w.lease(), notIn(name)+" AND ("+w.Open+")")
	}
	var out []bool
	if err := db.QueryRow(ctx, "SELECT ARRAY["+strings.Join(open, ", ")+"]", args).Scan(&out); err != nil {
		return nil, fmt.Errorf("look for open work: %w", err)
	}
	return out, nil
}

// notIn is the condition that an item is none of those in an argument.
func notIn(arg string) string { return "r.id <> ALL(@" + arg + "::bigint[])" }

// renewAll renews the leases of the items that owner works on, and returns those that it still holds. An item that
// owner claimed without knowing, because the answer was lost, is not renewed: it becomes free when its lease ends.
func renewAll(ctx context.Context, db pg.DB, works []Work, tasks map[string][]int64, owner string, ttl time.Duration) (
	map[key]bool, error,
) {
	held := map[key]bool{}
	for _, w := range works {
		if len(tasks[w.Name]) == 0 {
			continue
		}
		items, err := pg.Renew[item](ctx, db, w.lease(), owner, ttl, "r.id = ANY(@ids) AND ("+cmp.Or(w.Held, "true")+")",
			pgx.NamedArgs{"ids": tasks[w.Name]})
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			held[key{kind: w.Name, id: i.ID}] = true
		}
	}
	return held, nil
}

// release releases one item of owner.
func release(ctx context.Context, db pg.DB, w Work, owner string, id int64) error {
	return pg.Release(ctx, db, w.lease(), owner, "r.id = @id", pgx.NamedArgs{"id": id})
}

// releaseAll releases every item of owner.
func releaseAll(ctx context.Context, db pg.DB, works []Work, owner string) error {
	var errs []error
	for _, w := range works {
		errs = append(errs, pg.Release(ctx, db, w.lease(), owner, "true", nil))
	}
	return errors.Join(errs...)
}
