package reprocess

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/sampling"
)

const (
	// The live view is read every so many ticks at most, and so rarely that it takes at most a twentieth of the time.
	viewTicks = 5
	viewShare = 20
	// viewTimeout bounds one read. Nothing is known of a view that takes longer.
	viewTimeout = time.Second
)

// viewed is what is known of the live view of a version.
type viewed struct {
	next    time.Time // when it may be read again
	read    bool
	reached int64 // sum of the offsets that were read when it was
}

// readView finds out whether readers of the live version get an error from serve.columns or serve.where: rows that came
// after the flip may have values for which they cannot be computed. It reads only after records were processed, or
// while the last read failed.
func (w *watch) readView(ctx context.Context, st *ledger.State, s sampling.Sample) error {
	var reached int64
	for _, p := range s.Positions {
		reached += p.Next
	}
	now := w.c.Now()
	switch failed := !w.samples.Unreadable.IsZero(); {
	case !st.IsLive() || !checks.HasViewSQL(st.Version().Layout):
		w.samples.Unreadable, w.view = reason.Reason{}, viewed{}
		return nil
	case now.Before(w.view.next), w.view.read && w.view.reached == reached && !failed:
		return nil
	}
	why, err := w.c.runner().Unreadable(ctx, st.Version(), viewTimeout)
	if pg.Unreachable(err) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		w.c.log(st).Warn("the view cannot be read", "error", err)
		why = reason.Reason{}
	}
	w.samples.Unreadable = why
	w.view = viewed{
		next: now.Add(max(viewTicks*w.c.config.Tick, viewShare*w.c.Now().Sub(now))), read: true,
		reached: reached,
	}
	return nil
}
