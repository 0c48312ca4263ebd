package cli

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/serving"
	"github.com/kappactl/kappactl/speedlayer"
)

// merging returns the dependencies with which check and test merge parts: the statements of agents and views, in
// temporary tables.
func merging(ctx context.Context, pool *pg.Pool) mergecheck.Deps {
	return mergecheck.Deps{
		Pool: pool, Agent: agent.Role(ctx, pool), Statements: speedlayer.Store{}, Views: views(),
		StagingColumn: speedlayer.StagingColumn, Fillfactor: serving.Fillfactor,
	}
}

// confined refuses a job whose serve.columns or serve.where reach beyond the job. What cannot be found out is no reason
// to refuse: the agent looks again.
func (a *app) confined(ctx context.Context, c *compiled, pool *pg.Pool) error {
	err := mergecheck.Confine(ctx, merging(ctx, pool), c.spec, c.query)
	var problems job.Problems
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &problems):
		return problems
	}
	return nil
}

// database opens the database of the settings; no control schema is needed.
func (a *app) database(ctx context.Context) (*pg.Pool, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.connect(ctx, settings)
}
