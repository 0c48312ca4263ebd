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
	kept, err := reprocess.Kept(ctx, e.admin, spec, spec, e.sys.Now())
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	e.compareLog(ctx, check, ref, logFacts{facts, positions, kept})
}

// logFacts are what a log holds, where a version stands in it, and where the time begins that the version keeps.
type logFacts struct {
	topics    []job.TopicFacts
	positions []job.Position
	kept      map[job.Partition]int64 // nil: everything is kept
}

// compareLog notes what a new version could not replay any more.
func (e *examination) compareLog(ctx context.Context, check string, ref job.Ref, facts logFacts) {
	next := "kappactl status " + string(ref.Job)
	log := map[job.Partition]job.PartitionFacts{}
	ids := map[string]job.TopicID{}
	for _, t := range facts.topics {
		ids[t.Name] = t.ID
		for _, p := range t.Partitions {
			log[p.Partition] = p
		}
	}
	lost, partitions := int64(0), 0
	for _, at := range facts.positions {
		p, known := log[at.Partition]
		first, expires := facts.kept[at.Partition]
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
		case p.Start > at.CoversFrom && (!expires || p.Start > first):
			lost, partitions = lost+p.Start-at.CoversFrom, partitions+1
		}
	}
	if partitions > 0 {
		cure := "set serve.keep"
		if facts.kept != nil {
			cure = "make serve.keep shorter"
		}
		e.note(check, healthWarning, cure+", keep the log for longer, or accept it at the deploy", "a new version would cover less than %s: %s of %s are no longer in the log",
			ref, render.Plural(lost, "offset"), render.Plural(int64(partitions), "partition"))
		return
	}
	of := ""
	if facts.kept != nil {
		of = " of the time that it keeps"
	}
	e.note(check, healthOK, "", "holds all that %s covers%s", ref, of)
}
