package reprocess

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// expireEvery is how often expired rows are deleted. Readers do not see them in between.
const expireEvery = time.Minute

// expire deletes the rows that serve.keep no longer keeps. What goes wrong is said and tried again.
func (w *watch) expire(ctx context.Context, st *ledger.State) error {
	now := w.c.Now()
	if st.Layout.Keep == nil || st.Layout.Keep.For <= 0 || st.PausedAt != nil || now.Sub(w.expired) < expireEvery {
		return nil
	}
	w.expired = now
	var deleted int64
	err := w.during(ctx, st, func(ctx context.Context) (err error) {
		deleted, err = w.work.Expire(ctx, w.c.Pool, st.Version())
		return err
	})
	switch {
	case ctx.Err() != nil || pg.Unreachable(err):
		return err
	case err != nil:
		w.c.log(st).Warn("expired rows are not deleted", "reason", err)
	case deleted > 0:
		w.c.log(st).Info("expired rows are deleted", "rows", deleted)
	}
	return nil
}
