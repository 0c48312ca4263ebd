package ledger

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

// ReadSpec reads another version's job file.
func ReadSpec(ctx context.Context, db pg.DB, ref job.Ref) (*job.Spec, job.Layout, error) {
	var spec, layout string
	err := db.QueryRow(ctx, `SELECT spec::text, layout::text FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&spec, &layout)
	if err != nil {
		return nil, job.Layout{}, fmt.Errorf("read spec of %s: %w", ref, err)
	}
	var s job.Spec
	var l job.Layout
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return nil, l, fmt.Errorf("decode spec of %s: %w", ref, err)
	}
	if err := json.Unmarshal([]byte(layout), &l); err != nil {
		return nil, l, fmt.Errorf("decode layout of %s: %w", ref, err)
	}
	return &s, l, nil
}

// ReadFile returns the text of a version's job file; empty if it has none.
func ReadFile(ctx context.Context, db pg.DB, ref job.Ref) (text string, err error) {
	err = db.QueryRow(ctx, `SELECT file FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&text)
	if err != nil {
		return "", fmt.Errorf("read the job file of %s: %w", ref, err)
	}
	return text, nil
}

// VersionBrief holds the columns of a version that Resolve reads.
type VersionBrief struct {
	Number  int
	Phase   job.Phase
	Paused  bool
	EndedAt *time.Time
	Faulty  bool // a fault stops one of its partitions or segments
}

// faulty reports whether a fault stops a partition or a segment of version v.
const faulty = `(v.ended_at IS NULL AND (
			EXISTS (SELECT FROM kappactl.position p WHERE p.job = v.job AND p.number = v.number AND p.fault <> '')
			OR EXISTS (SELECT FROM kappactl.segment g WHERE g.job = v.job AND g.number = v.number AND g.state = 'failed'))) AS faulty`

// JobVersions are the versions of a job in brief.
type JobVersions struct {
	versions []VersionBrief
	// previous is the version that was live before the live one.
	previous *int
}

func readJobVersions(ctx context.Context, db pg.DB, name job.Name) (JobVersions, error) {
	var out JobVersions
	var live *int
	args := pgx.NamedArgs{"job": string(name)}
	err := db.QueryRow(ctx, `SELECT live, (SELECT d.previous FROM kappactl.deployment d
			WHERE d.job = j.name AND d.number = j.live AND d.promoted_at IS NOT NULL ORDER BY d.promoted_at DESC LIMIT 1)
		FROM kappactl.job j WHERE name = @job`, args).Scan(&live, &out.previous)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, UnknownJob(ctx, db, name)
	}
	if err != nil {
		return out, fmt.Errorf("read job %s: %w", name, err)
	}
	out.versions, err = pg.Structs[VersionBrief](ctx, db, `SELECT number, phase, paused_at IS NOT NULL AS paused, ended_at, `+faulty+`
		FROM kappactl.version v WHERE job = @job ORDER BY number DESC`, args)
	if err != nil {
		return out, fmt.Errorf("read versions of %s: %w", name, err)
	}
	return out, nil
}

// ReadVersion returns the phase of a version; ErrNotFound when it does not exist.
func ReadVersion(ctx context.Context, db pg.DB, ref job.Ref) (VersionBrief, error) {
	rows, err := pg.Structs[VersionBrief](ctx, db, `SELECT number, phase, paused_at IS NOT NULL AS paused, ended_at, `+faulty+`
		FROM kappactl.version v WHERE job = @job AND number = @number`, pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	if err != nil {
		return VersionBrief{}, fmt.Errorf("read %s: %w", ref, err)
	}
	if len(rows) == 0 {
		return VersionBrief{}, unknownVersion(ref)
	}
	return rows[0], nil
}

// HashKnown reports whether a job has a version with the hash that has not ended.
func HashKnown(ctx context.Context, db pg.DB, name job.Name, hash string) (bool, error) {
	var known bool
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM kappactl.version WHERE job = @job AND hash = @hash AND ended_at IS NULL)`,
		pgx.NamedArgs{"job": string(name), "hash": hash}).Scan(&known)
	return known, Wrap(err, "look for a version of %s", name)
}
