package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/speedlayer"
)

// retention compares what a live version covers with what the log still holds.
func (e *examination) retention(ctx context.Context, store *reprocess.Store, s reprocess.Status) {
	check := "log of " + string(s.Job)
	if s.Live == nil {
		return
	}
	if e.admin == nil {
		e.note(check, healthSkipped, "", "no broker answered")
		return
	}
	n, err := job.ParseNumber(*s.Live)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	ref := job.Ref{Job: s.Job, Number: n}
	spec, err := store.Spec(ctx, ref)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	facts, err := e.admin.Topics(ctx, spec.Source.Topics)
	var missing *kafka.MissingTopicError
	if errors.As(err, &missing) {
		e.note(check, healthFailed, "kappactl status "+string(s.Job), "topic %s is gone", missing.Topic)
		return
	}
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	positions, err := speedlayer.Store{}.Positions(ctx, e.pool, ref)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	e.compareLog(ctx, check, ref, facts, positions)
}

// compareLog notes what a new version could not replay any more.
func (e *examination) compareLog(ctx context.Context, check string, ref job.Ref, facts []job.TopicFacts, positions []job.Position) {
	next := "kappactl status " + string(ref.Job)
	log := map[job.Partition]job.PartitionFacts{}
	ids := map[string]job.TopicID{}
	for _, t := range facts {
		ids[t.Name] = t.ID
		for _, p := range t.Partitions {
			log[p.Partition] = p
		}
	}
	lost, partitions := int64(0), 0
	for _, at := range positions {
		p, known := log[at.Partition]
		switch {
		case ids[at.Topic] != at.TopicID:
			e.note(check, healthFailed, next, "topic %s was deleted and made again: %s reads the one that is gone", at.Topic, ref)
			return
		case !known:
			e.note(check, healthFailed, next, "%s is gone, and %s is at its offset %d", at.Partition, ref, at.Next)
			return
		case p.Err != nil:
			e.failed(ctx, check, fmt.Errorf("look at %s: %w", at.Partition, p.Err))
			return
		case p.Start > at.Next:
			e.note(check, healthFailed, next, "%s is at offset %d of %s, and the log begins at %d: records are missing", ref, at.Next, p.Partition, p.Start)
			return
		case p.Start > at.CoversFrom:
			lost, partitions = lost+p.Start-at.CoversFrom, partitions+1
		}
	}
	if partitions > 0 {
		e.note(check, healthWarning, "set serve.keep, keep the log for longer, or accept it at the deploy", "a new version would cover less than %s: %s of %s are no longer in the log",
			ref, render.Plural(lost, "offset"), render.Plural(int64(partitions), "partition"))
		return
	}
	e.note(check, healthOK, "", "holds all that %s covers", ref)
}
