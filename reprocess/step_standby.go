package reprocess

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// standbyDeployed takes a standby version whose file was deployed again through the gates of a candidate. It has its
// table and follows its topics, so it is staged and caught up as soon as its verdict is ready; checks, hooks and the
// decision to flip are those of every candidate.
func (w *watch) standbyDeployed(ctx context.Context, st *ledger.State, verdict job.Verdict) (next, error) {
	switch {
	case st.Until == untilStaged:
		return w.stop(ctx, st, ledger.Stopped, ledger.Answer{Reason: reason.StagedAsAsked(), Next: "kappactl deploy FILE"})
	case verdict == job.Unhealthy:
		v, err := ledger.FreshVerdict(ctx, w.c.Pool, st.Ref())
		if err != nil {
			return done, err
		}
		a, _ := ledger.AnswerOf(unhealthyRefusal(st, v))
		return w.stop(ctx, st, ledger.Failed, a)
	case verdict != job.Ready || st.PausedAt != nil:
		return later, nil
	case st.Until == untilCaughtUp:
		return w.stop(ctx, st, ledger.Stopped, ledger.Answer{Reason: reason.CaughtUpAsAsked(), Next: "kappactl deploy FILE"})
	}
	if bad, n, err := w.gate(ctx, st); bad || err != nil {
		return n, err
	}
	return w.verified(ctx, st)
}
