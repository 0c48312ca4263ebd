package reprocess

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// unheld returns the versions that do not stop at a hold, so that no barrier over them is ever reached.
func (c *Controller) unheld(ctx context.Context, refs ...job.Ref) ([]job.Ref, error) {
	var out []job.Ref
	for _, ref := range refs {
		spec, _, err := ledger.ReadSpec(ctx, c.Pool, ref)
		if err != nil {
			return nil, err
		}
		e, err := c.Engines.Of(spec)
		if err != nil {
			return nil, err
		}
		if !e.Held(spec) {
			out = append(out, ref)
		}
	}
	return out, nil
}

// holderOf names the barrier of a flip; empty when one of the versions does not stop at a hold.
func (c *Controller) holderOf(ctx context.Context, f *flip) (string, error) {
	free, err := c.unheld(ctx, f.st.Ref(), *f.from)
	if err != nil || len(free) > 0 {
		return "", err
	}
	return c.holder(f.st.Ref()), nil
}
