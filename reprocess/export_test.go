package reprocess

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// LockVersions takes the locks of a flip on the rows of two versions.
func LockVersions(ctx context.Context, tx *pg.Tx, a, b job.Ref) error {
	return ledger.LockVersions(ctx, tx, a, b)
}

// SetHook calls f at every fault point of the controller.
func (c *Controller) SetHook(f func(point string)) { c.hook = f }
