package reprocess

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// The kinds of event that are about hooks. internal/hooks reads the first: it tells addresses of it.
const (
	eventBeforePromote = "before promote"
	eventHook          = "hook"
	eventHookFailed    = "hook failed"
)

// agreement asks the hooks once for a promote, however often the flip is tried, and only when nothing but them and the checks is in
// its way: an error is the refusal of one of them, or that the version is not ready, of which they hear nothing. When the agent dies
// before the flip, the next one asks again, under another id.
func (c *Controller) agreement(a actor) func(context.Context, *flip) error {
	asked := false
	return func(ctx context.Context, f *flip) error {
		if asked || c.Hooks == nil || !c.Hooks.Wants(job.HookBeforePromote, job.Name(f.st.Job)) {
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

func (c *Controller) askHooks(ctx context.Context, a actor, st *state) error {
	e := st.entry(eventBeforePromote, "%s is about to be promoted", st.ref())
	e.By = a.by
	var previous *string
	if live := st.liveRef(); live != nil {
		n := live.Number.String()
		previous = &n
		e.Detail = map[string]string{"previous": n}
	}
	id, at, err := insertEvent(ctx, c.Pool, e)
	if err != nil {
		return err
	}
	v, err := gitRevisionOf(ctx, c.Pool, st.ref())
	if err != nil {
		return err
	}
	facts := job.HookFacts{
		Schema: 1, ID: id, Event: job.HookBeforePromote, At: at.UTC(), Job: job.Name(st.Job), Version: job.Number(st.Number).String(),
		Previous: previous, Deployment: &st.ID, View: st.view().String(), Message: e.Message, By: a.by, GitRevision: v,
	}
	outcomes, err := c.Hooks.Before(ctx, facts)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if err := noteHook(ctx, c.Pool, facts, o); err != nil {
			return err
		}
		if !o.OK {
			return refuse(job.ExitChecks, fmt.Sprintf("kappactl history %s   # has its output; then kappactl promote %s %s", st.Job, st.Job, job.Number(st.Number)),
				"%s is not promoted: hook %s refused: %s", st.ref(), o.Hook, o.Reason)
		}
	}
	return nil
}

// NoteHook writes into the history how one run of a hook ended.
func (s *Store) NoteHook(ctx context.Context, facts job.HookFacts, o job.HookOutcome) error {
	return noteHook(ctx, s.pool, facts, o)
}

func noteHook(ctx context.Context, db pg.DB, facts job.HookFacts, o job.HookOutcome) error {
	n, err := job.ParseNumber(facts.Version)
	if err != nil {
		return err
	}
	e := entry{
		Job: string(facts.Job), Number: int(n), Kind: eventHook, Message: fmt.Sprintf("hook %s was told of %s", o.Hook, facts.Event), By: "kappactl",
		Detail: struct {
			Event job.HookEvent `json:"event"`
			ID    int64         `json:"event_id"`
			job.HookOutcome
		}{facts.Event, facts.ID, o},
	}
	if facts.Deployment != nil {
		e.Deployment = *facts.Deployment
	}
	if !o.OK {
		e.Kind, e.Message = eventHookFailed, fmt.Sprintf("hook %s, told of %s: %s", o.Hook, facts.Event, o.Reason)
	}
	return addEvent(ctx, db, e)
}
