package reprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// tryAgain is why a try of a flip or of its checks came to nothing although the next one may succeed.
type tryAgain struct {
	cause    string
	notReady bool
	apart    bool // the versions did not come to the same offsets
	blockers []Blocker
	next     string // the command that tries again, when it is not the verb alone
	err      error
}

func (e *tryAgain) Error() string { return e.cause }
func (e *tryAgain) Unwrap() error { return e.err }

// heals says that a new try may succeed.
func heals(err error) bool {
	var t *tryAgain
	return errors.As(err, &t)
}

// holder names a barrier, never twice.
func (c *Controller) holder(ref job.Ref) string {
	return fmt.Sprintf("%s %x %x", ref, c.Now().UnixNano(), c.rand.int64n(1<<40))
}

// barrier stops both versions at the same offsets and returns when they are there, with the moment at which that was
// seen. The caller releases it; it is void by itself after HoldFor.
func (c *Controller) barrier(ctx context.Context, by string, a, b job.Ref) (line, error) {
	err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := lockTimeout(ctx, tx, c.config.HoldFor); err != nil {
			return err
		}
		return c.Positions.Hold(ctx, tx, by, c.config.HoldFor, a, b)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil || pg.Unreachable(err):
		return line{}, err
	case pg.Code(err) == "" || pg.Retryable(err):
		return line{}, &tryAgain{cause: err.Error(), err: err} // somebody else's barrier stands
	default:
		return line{}, err
	}
	began := c.Now()
	for {
		there, err := c.Positions.Reached(ctx, c.Pool, by, false)
		if err != nil {
			return line{}, err
		}
		if there {
			break
		}
		if c.Now().Sub(began) >= c.config.HoldFor {
			return line{}, &tryAgain{apart: true, cause: fmt.Sprintf("%s and %s did not come to the same offsets within %s", a, b, words(c.config.HoldFor))}
		}
		if !sleep(ctx, c.config.PollEvery) {
			return line{}, ctx.Err()
		}
	}
	c.hit(FaultPromoteHeld)
	return drawLine(ctx, c.Pool)
}

// release ends a barrier, also when ctx is over.
func (c *Controller) release(ctx context.Context, by string) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := c.Positions.Release(limited, c.Pool, by); err != nil {
		c.Log.Warn("barrier not released, it ends by itself", "by", by, "error", err)
	}
}
