package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const uniqueViolation = "23505"

// Store is what commands use of this package. It is safe for concurrent use.
type Store struct {
	pool *pg.Pool
	old  time.Duration // a transaction that status warns of is open for this long
	dead int64         // a table that status warns of has this many dead rows
}

// NewStore makes a Store on a migrated control schema.
func NewStore(pool *pg.Pool) *Store { return &Store{pool: pool, old: oldTransaction, dead: manyDead} }

// jobRow is a row of kappactl.job.
type jobRow struct {
	Name       string
	ClusterID  string
	ViewSchema string
	ViewName   string
	Live       *int
	Contract   *string
	DroppingAt *time.Time
}

func (j jobRow) view() job.ViewName { return job.ViewName{Schema: j.ViewSchema, Name: j.ViewName} }

func (j jobRow) contract() json.RawMessage {
	if j.Contract == nil {
		return nil
	}
	return json.RawMessage(*j.Contract)
}

const jobColumns = `name, cluster_id, view_schema, view_name, live, contract::text AS contract, dropping_at`

func lockJob(ctx context.Context, tx *pg.Tx, name job.Name) (jobRow, error) {
	rows, err := tx.Query(ctx, `SELECT `+jobColumns+` FROM kappactl.job WHERE name = @job FOR UPDATE`, pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return jobRow{}, fmt.Errorf("lock job %s: %w", name, err)
	}
	j, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[jobRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return jobRow{}, unknownJob(ctx, tx, name)
	}
	if err != nil {
		return jobRow{}, fmt.Errorf("lock job %s: %w", name, err)
	}
	return j, nil
}

// jobNames are the names of all jobs.
func jobNames(ctx context.Context, db pg.DB) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT name FROM kappactl.job ORDER BY name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// insertJob makes the job's row unless it is there, and notes the cluster when none was noted.
func insertJob(ctx context.Context, tx *pg.Tx, in Staging) error {
	_, err := tx.Exec(ctx, `INSERT INTO kappactl.job (name, team, cluster_id, view_schema, view_name, next_number)
		VALUES (@job, @team, @cluster, @schema, @view, coalesce((SELECT next_number FROM kappactl.dropped_job WHERE name = @job), 1))
		ON CONFLICT (name) DO UPDATE SET team = excluded.team,
			cluster_id = CASE kappactl.job.cluster_id WHEN '' THEN excluded.cluster_id ELSE kappactl.job.cluster_id END`,
		pgx.NamedArgs{
			"job": string(in.Spec.Job), "team": in.Spec.Team, "cluster": in.ClusterID,
			"schema": in.Spec.Serve.View.Schema, "view": in.Spec.Serve.View.Name,
		})
	if err != nil {
		return fmt.Errorf("write job: %w", err)
	}
	return nil
}

func viewOwner(ctx context.Context, db pg.DB, v job.ViewName) (string, error) {
	var owner string
	err := db.QueryRow(ctx, `SELECT coalesce(max(name), '') FROM kappactl.job WHERE view_schema = @schema AND view_name = @view`,
		pgx.NamedArgs{"schema": v.Schema, "view": v.Name}).Scan(&owner)
	if err != nil {
		return "", fmt.Errorf("look up view %s: %w", v, err)
	}
	return owner, nil
}

func nextNumber(ctx context.Context, tx *pg.Tx, name string) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `UPDATE kappactl.job SET next_number = next_number + 1 WHERE name = @job RETURNING next_number - 1`,
		pgx.NamedArgs{"job": name}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("take a version number: %w", err)
	}
	return n, nil
}

// versionKey is what stage wants to know of the versions that carry the same hash.
type versionKey struct {
	Number       int
	Phase        job.Phase
	RolledBackAt *time.Time
}

// sameVersions are the versions of a job with one hash, newest first.
type sameVersions []versionKey

func sameHash(ctx context.Context, tx *pg.Tx, name, hash string) (sameVersions, error) {
	rows, err := tx.Query(ctx, `SELECT number, phase, rolled_back_at FROM kappactl.version
		WHERE job = @job AND hash = @hash ORDER BY number DESC`, pgx.NamedArgs{"job": name, "hash": hash})
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[versionKey])
	if err != nil {
		return nil, fmt.Errorf("read versions: %w", err)
	}
	return out, nil
}

func (vs sameVersions) live(j jobRow) (versionKey, bool) {
	for _, v := range vs {
		if j.Live != nil && v.Number == *j.Live {
			return v, true
		}
	}
	return versionKey{}, false
}

func (vs sameVersions) standby() (versionKey, bool) {
	for _, v := range vs {
		if v.Phase == job.Standby {
			return v, true
		}
	}
	return versionKey{}, false
}

func (vs sameVersions) has(number int) bool {
	for _, v := range vs {
		if v.Number == number {
			return true
		}
	}
	return false
}

// rolledBack says that the newest version with this hash that was ever live was rolled back.
func (vs sameVersions) rolledBack() bool { return vs.rolledBackNumber() != "" }

func (vs sameVersions) rolledBackNumber() string {
	for _, v := range vs {
		if v.RolledBackAt != nil {
			return job.Number(v.Number).String()
		}
		if v.Phase == job.Standby || v.Phase == job.Retired || v.Phase == job.Retiring {
			return "" // live after that and replaced in the ordinary way
		}
	}
	return ""
}

func insertVersion(ctx context.Context, tx *pg.Tx, in Staging, number int) error {
	spec, layout, err := marshalSpec(in)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO kappactl.version
			(job, number, hash, spec, layout, lanes, file, dialect, engine, phase, verdict, reason, git_revision, created_by)
		VALUES (@job, @number, @hash, @spec::jsonb, @layout::jsonb, @lanes, @file, @dialect, @engine, @phase, @verdict, @reason, @git, @by)`,
		pgx.NamedArgs{
			"job": string(in.Spec.Job), "number": number, "hash": in.Hash, "spec": spec, "layout": layout, "lanes": in.Spec.Live.LaneCount(), "file": in.File,
			"dialect": in.Dialect, "engine": in.Engine, "phase": string(job.Staged), "verdict": string(job.Starting),
			"reason": "waiting for an agent", "git": in.GitRevision, "by": in.By,
		})
	if err != nil {
		return fmt.Errorf("write version: %w", err)
	}
	return nil
}

func marshalSpec(in Staging) (spec, layout string, err error) {
	s, err := json.Marshal(in.Spec)
	if err != nil {
		return "", "", fmt.Errorf("encode spec: %w", err)
	}
	l, err := json.Marshal(in.Layout)
	if err != nil {
		return "", "", fmt.Errorf("encode layout: %w", err)
	}
	return string(s), string(l), nil
}

// entry is a row of kappactl.event. Detail is marshalled when it is not nil.
type entry struct {
	Job        string
	Number     int
	Whole      bool // about the job and not one of its versions
	Deployment int64
	Kind       string
	Message    string
	Detail     any
	By         string
}

func addEvent(ctx context.Context, db pg.DB, e entry) error {
	_, _, err := insertEvent(ctx, db, e)
	return err
}

func insertEvent(ctx context.Context, db pg.DB, e entry) (id int64, at time.Time, err error) {
	detail := "{}"
	if e.Detail != nil {
		b, err := json.Marshal(e.Detail)
		if err != nil {
			return 0, at, fmt.Errorf("encode event: %w", err)
		}
		detail = string(b)
	}
	err = db.QueryRow(ctx, `INSERT INTO kappactl.event (job, number, deployment, kind, message, detail, by)
		VALUES (@job, CASE WHEN @whole::boolean THEN NULL ELSE @number::integer END, nullif(@deployment::bigint, 0), @kind, @message, @detail::jsonb, @by)
		RETURNING id, at`,
		pgx.NamedArgs{
			"job": e.Job, "number": e.Number, "whole": e.Whole, "deployment": e.Deployment, "kind": e.Kind, "message": e.Message, "detail": detail, "by": e.By,
		}).Scan(&id, &at)
	if err != nil {
		return 0, at, fmt.Errorf("write event %s: %w", e.Kind, err)
	}
	return id, at, nil
}

func gitRevisionOf(ctx context.Context, db pg.DB, ref job.Ref) (string, error) {
	var revision string
	err := db.QueryRow(ctx, `SELECT git_revision FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&revision)
	return revision, wrap(err, "read the revision of %s", ref)
}
