package cli

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// room refuses what would fill PostgreSQL's disk, before anything is written. It only measures when the disk can be
// seen from here and the replay is large beside what it has left; what it cannot find out is no reason to refuse.
func (o deployOptions) room(ctx context.Context, cl *client, c *compiled, s plan.Staging, rule estimate.Room) error {
	if c.spec.Engine != job.SQL {
		return nil // how many rows a program writes is not known before
	}
	limited, cancel := context.WithTimeout(ctx, rule.Within)
	defer cancel()
	err := o.lacksRoom(limited, cl, c, s, rule)
	var r *job.Refusal
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &r) && r.Code == job.ExitGap:
		return r
	}
	return nil // staging meets whatever else is wrong, and says it
}

func (o deployOptions) lacksRoom(ctx context.Context, cl *client, c *compiled, s plan.Staging,
	rule estimate.Room,
) error {
	folder, why, err := pg.DataFolder(ctx, cl.pool)
	if err != nil || why != "" {
		return err
	}
	free, err := o.sys.free(folder)
	if err != nil {
		return err
	}
	admin, brokers, err := cl.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	p, err := cl.store.Ahead(ctx, s, cl.history(admin, s.Spec), o.sys.Now())
	if err != nil {
		return nil //nolint:nilerr // a range that cannot be replayed is refused by those who replay it
	}
	return rule.Judge(ctx, cl.samples(s.Spec, brokers), c.spec, c.query, p, free)
}
