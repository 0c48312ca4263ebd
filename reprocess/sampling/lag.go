package sampling

import (
	"context"

	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// lagSeries is the stored lag of a deployment, once it was read. Its owner is the Sampler.
type lagSeries struct {
	readiness.LagSeries
	read bool
}

// keepLag adds what was sampled to the deployment's series when a point is due.
func (w *Sampler) keepLag(ctx context.Context, st *ledger.State, rows []readiness.Observation) error {
	if st.State.Ended() || len(rows) == 0 {
		return nil
	}
	if !w.lag.read {
		stored, err := ledger.ReadLagSeries(ctx, w.c.Pool, st.ID)
		if err != nil {
			return err
		}
		w.lag = lagSeries{stored, true}
	}
	if !w.lag.Due(st.Now, st.Phase) {
		return nil
	}
	if err := w.point(ctx, ledger.NewLagPoint{State: st, LagPoint: ledger.LagOf(readiness.Sum(rows))}); err != nil {
		return err
	}
	w.lag.Add(st.Now, st.Phase)
	return nil
}
