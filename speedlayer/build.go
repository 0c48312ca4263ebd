package speedlayer

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/retry"
)

// sqlOpenBuild is the generation of a version that has segments to read and a place in the server's budget of replays, or 0.
// Replays of versions come first, then the builds in the order in which they began.
const sqlOpenBuild = `
WITH building AS (
     SELECT g.job, g.number, g.generation, g.started_at FROM kappactl.generation g JOIN kappactl.version v USING (job, number)
      WHERE g.state = 'building' AND v.paused_at IS NULL
        AND EXISTS (SELECT FROM kappactl.batch_segment s WHERE s.job = g.job AND s.number = g.number
            AND s.generation = g.generation AND s.state IN ('open', 'claimed')))
SELECT coalesce((
       SELECT b.generation FROM building b WHERE b.job = @job AND b.number = @number AND @replays >
              (SELECT count(*) FROM building o WHERE (o.started_at, o.job, o.number) < (b.started_at, b.job, b.number))
            + (SELECT count(*) FROM kappactl.version o WHERE o.phase = 'replaying' AND o.paused_at IS NULL
                AND EXISTS (SELECT FROM kappactl.segment s WHERE s.job = o.job AND s.number = o.number
                    AND s.state IN ('open', 'claimed')))), 0)`

func (r *run) openBuild(ctx context.Context) (int, error) {
	args := refArgs(r.ref)
	args["replays"] = r.config.Replays
	var generation int
	if err := r.Pool.QueryRow(ctx, sqlOpenBuild, args).Scan(&generation); err != nil {
		return 0, fmt.Errorf("look for a generation of %s that is built: %w", r.ref, err)
	}
	return generation, nil
}

// builds reads the segments of the version's generations, beside whatever else the run does, until ctx is done.
func (r *run) builds(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		wait := r.tick()
		generation, err := r.openBuild(ctx)
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

// build reads segments of one generation until none is left to read, or others come first. It is a run of its own, so that
// it neither clears what is noted of the version's other work nor counts dead letters twice.
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
		open, err := r.openBuild(ctx)
		of.kept.Store(r.kept.Load())
		return err != nil || open == generation, err
	}
	return of.while(ctx, still, r.look(), p.renew, p.readAll)
}
