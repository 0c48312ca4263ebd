package speedlayer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
)

// sqlOpenBuilds are the generations that have segments to read and a place in the server's budget of replays. Replays
// of versions come first, then the builds in the order in which they began.
const sqlOpenBuilds = `
WITH building AS (
     SELECT g.job, g.number, g.generation, row_number() OVER (ORDER BY g.started_at, g.job, g.number) AS place
       FROM kappactl.generation g JOIN kappactl.version v USING (job, number)
      WHERE g.state = 'building' AND v.paused_at IS NULL
        AND EXISTS (SELECT FROM kappactl.batch_segment s WHERE s.job = g.job AND s.number = g.number
            AND s.generation = g.generation AND s.state IN ('open', 'claimed')))
SELECT b.job, b.number, b.generation FROM building b
 WHERE b.place + (SELECT count(*) FROM kappactl.version o WHERE o.phase = 'replaying' AND o.paused_at IS NULL
                AND EXISTS (SELECT FROM kappactl.segment s WHERE s.job = o.job AND s.number = o.number
                    AND s.state IN ('open', 'claimed'))) <= @replays`

// buildEvery is how often agents look for a generation to read; all versions of an agent look together.
const buildEvery = 200 * time.Millisecond

// openBuilds are the generations of versions that are open for reading, in the order of refs; 0: none of the version.
func (e *Engine) openBuilds(ctx context.Context, refs []job.Ref) ([]int, error) {
	type row struct {
		Job                string
		Number, Generation int
	}
	found, err := pg.Structs[row](ctx, e.Pool, sqlOpenBuilds, pgx.NamedArgs{"replays": e.config.Replays})
	if err != nil {
		return nil, fmt.Errorf("look for generations that are built: %w", err)
	}
	open := map[job.Ref]int{}
	for _, b := range found {
		open[job.Ref{Job: job.Name(b.Job), Number: job.Number(b.Number)}] = b.Generation
	}
	out := make([]int, len(refs))
	for i, ref := range refs {
		out[i] = open[ref]
	}
	return out, nil
}

// builds reads the segments of the version's generations, beside whatever else the run does, until ctx is done.
func (r *run) builds(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := min(r.tick(), buildEvery)
		generation, err := r.looks.builds.Put(ctx, r.ref)
		if err == nil && generation > 0 {
			err = r.build(ctx, generation)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
		default:
			failures++
			r.quiet.warn("a batch generation cannot be read and is tried again", err)
			wait = retry.Backoff(failures, r.tick(), toldEvery)
		}
		if retry.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// build reads segments of one generation until none is left to read, or others come first. It is a run of its own, so
// that it neither clears what is noted of the version's other work nor counts dead letters twice.
func (r *run) build(ctx context.Context, generation int) error {
	if err := r.compile(ctx); err != nil {
		return err
	}
	of := &run{Engine: r.Engine, version: r.version, log: r.log.With("generation", generation), quiet: r.quiet}
	of.kept.Store(r.kept.Load())
	defer of.quit(ctx)
	p := of.newReplay(ctx, target{ref: r.ref, generation: generation})
	defer p.pace.forget(ctx)
	still := func(ctx context.Context) (bool, error) {
		open, err := r.looks.builds.Put(ctx, r.ref)
		of.kept.Store(r.kept.Load())
		return err != nil || open == generation, err
	}
	return of.while(ctx, still, r.look(), p.renew, p.readAll)
}
