package sampling

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Moved notes how many keys of an upsert the replay saw in more than one partition: Kafka keeps the order of a key's
// records within a partition only.
func (w *Sampler) Moved(ctx context.Context, st *ledger.State) error {
	work, err := w.c.Engines.Of(&st.Spec)
	if err != nil {
		return err
	}
	keys, exact, err := work.Moved(ctx, w.c.Pool, st.Version())
	if err != nil || keys == 0 {
		return err
	}
	by := "time of the record"
	if st.Layout.Ordered() {
		by = "serve.order_by"
	}
	e := st.Entry(ledger.EventWarning, reason.KeysMoved(keys, exact, by))
	e.Detail = ledger.MovedKeys{Moved: keys, Exact: exact, By: by}
	w.c.log(st).Warn(e.Message.Text())
	return ledger.AddEvent(ctx, w.c.Pool, e)
}

// ForgetKeys lets the next sample read again what is known of keys in several partitions.
func (w *Sampler) ForgetKeys() { w.movedKnown = false }

// keysMoved are the warnings of an upsert whose keys are, or may be, in more than one partition. They are read once,
// and again after partitions were added.
func (w *Sampler) keysMoved(ctx context.Context, st *ledger.State) ([]reason.Reason, error) {
	if st.Layout.Shape != job.Latest || w.movedKnown {
		return w.moved, nil
	}
	seen, added, err := ledger.ReadMovedKeys(ctx, w.c.Pool, st)
	if err != nil {
		return nil, err
	}
	var out []reason.Reason
	if seen != nil {
		out = append(out, reason.KeysMoved(seen.Moved, seen.Exact, seen.By))
	}
	if added > 0 {
		out = append(out, reason.KeysMayMove())
	}
	w.moved, w.movedKnown = out, true
	return out, nil
}
