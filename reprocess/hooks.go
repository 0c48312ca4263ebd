package reprocess

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// agreement asks the hooks once for a promote, however often the flip is tried, and only when nothing but them and the
// checks is in its way: an error is the refusal of one of them, or that the version is not ready, of which they hear
// nothing. When the agent dies before the flip, the next one asks again, under another id.
func (c *Controller) agreement(a ledger.Actor) func(context.Context, *flip) error {
	asked := false
	return func(ctx context.Context, f *flip) error {
		if asked || f.args.DryRun || c.Hooks == nil || !c.Hooks.Wants(job.HookBeforePromote, job.Name(f.st.Job)) {
			return nil
		}
		if err := f.ready(ctx, c.Pool); err != nil {
			return err
		}
		err := c.askHooks(ctx, a, f.st)
		asked = err == nil
		return err
	}
}

func (c *Controller) askHooks(ctx context.Context, a ledger.Actor, st *ledger.State) error {
	e := st.Entry(ledger.EventBeforePromote, reason.BeforePromote(st.Ref()))
	e.By, e.Role = a.By, a.Role
	var previous *string
	if live := st.LiveRef(); live != nil {
		n := live.Number.String()
		previous = &n
		e.Detail = map[string]string{"previous": n}
	}
	id, at, err := ledger.InsertEvent(ctx, c.Pool, e)
	if err != nil {
		return err
	}
	v, err := ledger.GitRevisionOf(ctx, c.Pool, st.Ref())
	if err != nil {
		return err
	}
	facts := job.HookFacts{
		Schema: 1, ID: id, Event: job.HookBeforePromote, At: at.UTC(), Job: job.Name(st.Job),
		Version:  job.Number(st.Number).String(),
		Previous: previous, Deployment: &st.ID, View: st.View().String(), Message: e.Message.Text(), By: a.By, GitRevision: v,
	}
	outcomes, err := c.Hooks.Before(ctx, facts)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if err := ledger.NoteHook(ctx, c.Pool, facts, o); err != nil {
			return err
		}
		if !o.OK {
			next := fmt.Sprintf("kappactl history %s   # has its output; then kappactl promote %s %s", st.Job, st.Job,
				job.Number(st.Number))
			return ledger.RefuseFor(job.ExitChecks, next, reason.HookRefused(st.Ref(), o.Hook, o.Why()))
		}
	}
	return nil
}
