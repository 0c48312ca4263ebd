package ledger

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// NoteHook writes into the history how one run of a hook ended.
func (s *Store) NoteHook(ctx context.Context, facts job.HookFacts, o job.HookOutcome) error {
	return NoteHook(ctx, s.pool, facts, o)
}

// NoteHook writes into the history how one run of a hook ended.
func NoteHook(ctx context.Context, db pg.DB, facts job.HookFacts, o job.HookOutcome) error {
	n, err := job.ParseNumber(facts.Version)
	if err != nil {
		return err
	}
	e := Entry{
		Job: string(facts.Job), Number: int(n), Kind: EventHook, Message: reason.HookTold(o.Hook, facts.Event),
		By: "kappactl",
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
		e.Kind, e.Message = EventHookFailed, reason.HookFailed(o.Hook, facts.Event, o.Reason)
	}
	return AddEvent(ctx, db, e)
}
