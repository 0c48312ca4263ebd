package speedlayer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

const (
	sqlVersion = `
SELECT v.phase, v.paused_at IS NOT NULL AS paused, v.dialect, v.spec, v.layout, j.cluster_id
  FROM kappactl.version v JOIN kappactl.job j ON j.name = v.job WHERE v.job = @job AND v.number = @number`
	sqlPhase = `
SELECT phase, paused_at IS NOT NULL AS paused, coalesce((spec #> '{live,every}')::bigint, 0) AS every, spec ? 'archive' AS archive,
       CASE WHEN phase = 'replaying' THEN ` + beforeThis + ` ELSE 0 END AS before
  FROM kappactl.version v WHERE job = @job AND number = @number`
)

// version is one version with all that its work needs. It is not changed once loaded.
type version struct {
	ref      job.Ref
	cluster  string // Kafka's id of the cluster that the job reads; empty: any
	spec     *job.Spec
	layout   job.Layout
	compiled *query.Compiled
	land     string // PARTIAL as text columns in the order of Layout.StagedColumns
	upsert   string
	schema   string // of the version table and of staging
}

// standing is the work that the controller wants done on a version.
type standing struct {
	Phase   string
	Paused  bool
	Every   time.Duration // live.every, which a deploy changes in place
	Archive bool          // whether the job keeps an archive, which a deploy changes in place
	Before  int           // replays before this one in the queue, while it is one
}

// mode is the work that a standing asks of an agent.
type mode int

const (
	over    mode = iota // nothing, and nothing later in this Run
	waiting             // nothing now
	queued              // a replay, once one of those before it has ended
	replaying
	following
)

// mode says what to do when the server may replay so many versions at once.
func (s standing) mode(replays int) mode {
	phase := job.Phase(s.Phase)
	switch {
	case s.Paused || phase.Ended() || phase == job.Retiring:
		return over
	case phase == job.Replaying && s.Before >= replays:
		return queued
	case phase == job.Replaying:
		return replaying
	case phase.Consumes():
		return following
	case phase == job.Building:
		return waiting
	}
	return over
}

// load reads a version and compiles its query.
func (e *Engine) load(ctx context.Context, ref job.Ref) (*version, error) {
	var row struct {
		Phase        string
		Paused       bool
		Dialect      int
		Spec, Layout []byte
		Cluster      string
	}
	err := e.Pool.QueryRow(ctx, sqlVersion, refArgs(ref)).Scan(&row.Phase, &row.Paused, &row.Dialect, &row.Spec, &row.Layout, &row.Cluster)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("load %s: %w", ref, errNoVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", ref, err)
	}
	if row.Dialect != query.Dialect {
		return nil, fmt.Errorf("load %s: it was staged in dialect %d, this agent runs dialect %d", ref, row.Dialect, query.Dialect)
	}
	v := &version{ref: ref, cluster: row.Cluster, spec: &job.Spec{}}
	if err := json.Unmarshal(row.Spec, v.spec); err != nil {
		return nil, fmt.Errorf("load %s: read its spec: %w", ref, err)
	}
	if err := json.Unmarshal(row.Layout, &v.layout); err != nil {
		return nil, fmt.Errorf("load %s: read its layout: %w", ref, err)
	}
	if v.compiled, err = query.Compile(ctx, v.spec); err != nil {
		return nil, fmt.Errorf("compile %s: %w", ref, err)
	}
	names, types := v.layout.StagedColumns()
	if n, t := v.compiled.Layout.StagedColumns(); !slices.Equal(names, n) || !slices.Equal(types, t) {
		return nil, fmt.Errorf("compile %s: its query gives columns %v %v here, its table has %v %v", ref, n, t, names, types)
	}
	v.land, v.schema = v.compiled.Land(), v.spec.Serve.View.Schema
	v.upsert = upsert(job.Version{Ref: ref, Schema: v.schema, Layout: v.layout})
	return v, nil
}

func (e *Engine) standing(ctx context.Context, ref job.Ref) (standing, error) {
	var s standing
	err := e.Pool.QueryRow(ctx, sqlPhase, refArgs(ref)).Scan(&s.Phase, &s.Paused, &s.Every, &s.Archive, &s.Before)
	if errors.Is(err, pgx.ErrNoRows) {
		return standing{Phase: string(job.Retired)}, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the phase of %s: %w", ref, err)
	}
	return s, nil
}
