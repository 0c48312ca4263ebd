package cli

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// samples is what samples of a job's topics are read from and measured with.
func (c *client) samples(spec *job.Spec, brokers kafka.Config) estimate.Sources {
	from := estimate.Sources{
		Brokers: brokers, Now: c.now,
		Merging: func(ctx context.Context) mergecheck.Deps { return merging(ctx, c.pool) },
		InLog: func(ctx context.Context, ranges []job.Frozen) ([]job.Frozen, error) {
			return c.inLog(ctx, spec, ranges)
		},
	}
	if spec.ReadsArchive() {
		from.Archive = func(r *sample.Reader) { c.withArchive(r, spec) }
	}
	return from
}

// estimate measures a sample and fills in what all of it will cost, with warnings and refusals.
func (o planOptions) estimate(ctx context.Context, cl *client, c *compiled, p plan.Deploy, brokers kafka.Config,
	r *planResult,
) error {
	s, err := estimate.NewSampling(ctx, cl.samples(c.spec, brokers), p)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Measure(ctx, c.spec, c.query, &r.Replay)
	var serve *mergecheck.ServeError
	if errors.As(err, &serve) {
		r.refused(deployOptions{app: o.app, file: o.file}, &job.Refusal{
			Code: job.ExitUsage, Cause: serve.Error(), Next: "correct it in FILE",
		})
		return nil
	}
	if err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, r.Replay.TooManyLetters(c.spec)...)
	folder, why, err := pg.DataFolder(ctx, cl.pool)
	if err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, r.Replay.Fits(folder, why, o.sys.free)...)
	if r.Replay.DiskFree != nil {
		r.refused(deployOptions{app: o.app, file: o.file}, estimate.DefaultRoom().Refusal(r.Replay, *r.Replay.DiskFree))
	}
	r.Warnings = append(r.Warnings, r.Replay.Overtaken(p, o.sys.Now())...)
	return nil
}
