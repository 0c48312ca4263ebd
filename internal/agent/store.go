package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// forgetAfter is how old the row of an agent that died may become.
const forgetAfter = "1 hour"

// Alive counts the agents whose heartbeat is younger than within and that are not about to stop.
func Alive(ctx context.Context, db pg.DB, within time.Duration) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT count(*) FROM kappactl.agent WHERE NOT draining AND heartbeat_at > clock_timestamp() - @within::interval`,
		pgx.NamedArgs{"within": pg.Interval(within)}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count agents: %w", err)
	}
	return n, nil
}

// Living is an agent that is alive and not about to stop.
type Living struct {
	ID    string
	Hooks map[string]string // digests of its hooks by name; nil: its release does not say
}

// Roster lists the agents that Alive counts, by id.
func Roster(ctx context.Context, db pg.DB, within time.Duration) ([]Living, error) {
	rows, err := db.Query(ctx, `SELECT id, hooks FROM kappactl.agent WHERE NOT draining AND heartbeat_at > clock_timestamp() - @within::interval ORDER BY id`,
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

func writeHeartbeat(ctx context.Context, db pg.DB, c Config, draining bool) error {
	var hooks *string // null: not said
	if c.Hooks != nil {
		text, err := json.Marshal(c.Hooks)
		if err != nil {
			return fmt.Errorf("write heartbeat: %w", err)
		}
		said := string(text)
		hooks = &said
	}
	_, err := db.Exec(ctx, `WITH old AS (DELETE FROM kappactl.agent WHERE heartbeat_at < clock_timestamp() - @forget::interval AND id <> @id)
		INSERT INTO kappactl.agent (id, host, pid, release, http, capacity, dialects, draining, hooks)
		VALUES (@id, @host, @pid, @release, @http, @capacity, ARRAY[@dialect::integer], @draining, @hooks::jsonb)
		ON CONFLICT (id) DO UPDATE SET heartbeat_at = clock_timestamp(), draining = excluded.draining`,
		pgx.NamedArgs{
			"id": c.ID, "host": c.Host, "pid": c.PID, "release": c.Release, "http": c.HTTP, "capacity": c.Capacity,
			"dialect": c.Dialect, "draining": draining, "forget": forgetAfter, "hooks": hooks,
		})
	if err != nil {
		return fmt.Errorf("write heartbeat: %w", err)
	}
	return nil
}

// silentAgents are the agents, but for the given one, without a heartbeat within.
func silentAgents(ctx context.Context, db pg.DB, but string, within time.Duration) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT id FROM kappactl.agent WHERE heartbeat_at < clock_timestamp() - @within::interval AND id <> @id`,
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

// readVersions lists the versions that have work for a runner of this dialect; replays in the order in which they
// share the budget. A version that is being built keeps its runner, which then follows live without a start.
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

// asked are the newest deployment and request that there are.
type asked struct {
	Deployment int64
	Request    int64
}

func readAsked(ctx context.Context, db pg.DB) (asked, error) {
	var a asked
	err := db.QueryRow(ctx, `SELECT (SELECT coalesce(max(id), 0) FROM kappactl.deployment), (SELECT coalesce(max(id), 0) FROM kappactl.request)`).
		Scan(&a.Deployment, &a.Request)
	return a, err
}

// claimed is a row under a claim of ours.
type claimed struct {
	ID    int64
	Claim int64
}

func deploymentLease() pg.Leased {
	return pg.Leased{Table: "kappactl.deployment", Key: "id", Order: "r.id", Columns: "r.id, r.claim"}
}

func requestLease() pg.Leased {
	return pg.Leased{Table: "kappactl.request", Key: "id", Order: "r.id", Columns: "r.id, r.claim"}
}

// claimDeployments takes the deployments that govern a version that has not ended.
func claimDeployments(ctx context.Context, db pg.DB, owner string, ttl time.Duration, limit int, but []int64) ([]claimed, error) {
	return pg.Claim[claimed](ctx, db, deploymentLease(), owner, ttl, limit, `r.id <> ALL(@but)
		AND EXISTS (SELECT 1 FROM kappactl.version v WHERE v.job = r.job AND v.number = r.number AND v.ended_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM kappactl.deployment n WHERE n.job = r.job AND n.number = r.number AND n.id > r.id)`,
		pgx.NamedArgs{"but": but})
}

func claimRequests(ctx context.Context, db pg.DB, owner string, ttl time.Duration, limit int, but []int64) ([]claimed, error) {
	return pg.Claim[claimed](ctx, db, requestLease(), owner, ttl, limit, `r.id <> ALL(@but) AND r.answered_at IS NULL`, pgx.NamedArgs{"but": but})
}

// renewAll prolongs every lease of owner and returns the ids that it still holds.
func renewAll(ctx context.Context, db pg.DB, owner string, ttl time.Duration) (deployments, requests []int64, err error) {
	d, err := pg.Renew[claimed](ctx, db, deploymentLease(), owner, ttl, `true`, nil)
	if err != nil {
		return nil, nil, err
	}
	r, err := pg.Renew[claimed](ctx, db, requestLease(), owner, ttl, `r.answered_at IS NULL`, nil)
	if err != nil {
		return nil, nil, err
	}
	return ids(d), ids(r), nil
}

func ids(rows []claimed) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.ID
	}
	return out
}

func releaseDeployment(ctx context.Context, db pg.DB, owner string, id int64) error {
	return pg.Release(ctx, db, deploymentLease(), owner, `r.id = @id`, pgx.NamedArgs{"id": id})
}

func releaseRequest(ctx context.Context, db pg.DB, owner string, id int64) error {
	return pg.Release(ctx, db, requestLease(), owner, `r.id = @id`, pgx.NamedArgs{"id": id})
}

func releaseAll(ctx context.Context, db pg.DB, owner string) error {
	if err := pg.Release(ctx, db, deploymentLease(), owner, `true`, nil); err != nil {
		return err
	}
	return pg.Release(ctx, db, requestLease(), owner, `true`, nil)
}
