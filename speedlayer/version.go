package speedlayer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// version is one version with all that its work needs. It is not changed once loaded, except by compile.
type version struct {
	ref     job.Ref
	cluster string // Kafka's id of the cluster that the job reads; empty: any
	spec    *job.Spec
	layout  job.Layout
	upsert  string
	schema  string // of the version table and of staging

	compiling sync.Mutex      // guards what follows until compile has returned nil
	compiled  *query.Compiled // nil: not compiled yet
	land      string          // PARTIAL as text columns in the order of Layout.StagedColumns
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
	v, err := e.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	return v, v.compile(ctx)
}

// read reads a version. Its query is compiled when it is needed: a version that only rests can be taken over at once.
func (e *Engine) read(ctx context.Context, ref job.Ref) (*version, error) {
	var row struct {
		Phase        string
		Paused       bool
		Dialect      int
		Spec, Layout []byte
		Cluster      string
	}
	err := e.Pool.QueryRow(ctx, sqlVersion, refArgs(ref)).Scan(&row.Phase, &row.Paused, &row.Dialect, &row.Spec,
		&row.Layout, &row.Cluster)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("load %s: %w", ref, errNoVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", ref, err)
	}
	if row.Dialect != query.Dialect {
		return nil, fmt.Errorf("load %s: it was staged in dialect %d, this agent runs dialect %d", ref, row.Dialect,
			query.Dialect)
	}
	v := &version{ref: ref, cluster: row.Cluster, spec: &job.Spec{}}
	if err := json.Unmarshal(row.Spec, v.spec); err != nil {
		return nil, fmt.Errorf("load %s: read its spec: %w", ref, err)
	}
	if err := json.Unmarshal(row.Layout, &v.layout); err != nil {
		return nil, fmt.Errorf("load %s: read its layout: %w", ref, err)
	}
	v.schema = v.spec.Serve.View.Schema
	v.upsert = upsert(job.Version{Ref: ref, Schema: v.schema, Layout: v.layout})
	return v, nil
}

// compile compiles the query unless it is compiled already. compiled and land may be read once it has returned nil.
func (v *version) compile(ctx context.Context) error {
	v.compiling.Lock()
	defer v.compiling.Unlock()
	if v.compiled != nil {
		return nil
	}
	compiled, err := query.Compile(ctx, v.spec)
	if err != nil {
		return fmt.Errorf("compile %s: %w", v.ref, err)
	}
	names, types := v.layout.StagedColumns()
	if n, t := compiled.Layout.StagedColumns(); !slices.Equal(names, n) || !slices.Equal(types, t) {
		return fmt.Errorf("compile %s: its query gives columns %v %v here, its table has %v %v", v.ref, n, t, names, types)
	}
	v.compiled, v.land = compiled, compiled.Land()
	return nil
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
