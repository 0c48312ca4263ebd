package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

// retention compares what a live version covers with what the log still holds.
func (e *examination) retention(ctx context.Context, s status.Job) {
	check := "log of " + string(s.Job)
	if s.Live == nil {
		return
	}
	if e.admin == nil {
		e.note(check, Skipped, "", "no broker answered")
		return
	}
	n, err := job.ParseNumber(*s.Live)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	ref := job.Ref{Job: s.Job, Number: n}
	spec, layout, err := ledger.ReadSpec(ctx, e.pool, ref)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	log := archive.NewLog(e.admin, archive.NewShelf(e.pool, e.Locations(e.settings), "", archive.DefaultShelf),
		archive.ReplayPolicy(spec.Replay.Source, spec.Archive != nil), true)
	facts, err := log.Topics(ctx, spec.Source.Topics)
	var missing *kafka.MissingTopicError
	if errors.As(err, &missing) {
		e.note(check, Failed, "kappactl status "+string(s.Job), "topic %s is gone", missing.Topic)
		return
	}
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	positions, err := e.Positions.Positions(ctx, e.pool, ref)
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	same := plan.Keeping{Spec: spec, Layout: layout}
	kept, err := plan.Kept(ctx, log, same, same, e.Now())
	if err != nil {
		e.failed(ctx, check, err)
		return
	}
	e.compareLog(ctx, check, ref, logFacts{facts, positions, kept, layout.Keep})
}

// logFacts holds the range of a log, the version's position in it, and the offset where the time that the version keeps
// begins.
type logFacts struct {
	topics    []job.TopicFacts
	positions []job.Position
	kept      map[job.Partition]int64 // nil: everything is kept, or not by the time of the records
	keep      *job.Keep               // of the version; nil: everything is kept
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
			e.note(check, Failed, next, "topic %s was deleted and made again: %s reads the one that is gone", at.Topic, ref)
			return
		case !known:
			e.note(check, Failed, next, "%s is gone, and %s is at its offset %d", at.Partition, ref, at.Next)
			return
		case p.Err != nil:
			e.failed(ctx, check, fmt.Errorf("look at %s: %w", at.Partition, p.Err))
			return
		case p.Start > at.Next:
			e.note(check, Failed, next, "%s is at offset %d of %s, and the log begins at %d: records are missing", ref, at.Next,
				p.Partition, p.Start)
			return
		case p.Start > at.CoversFrom && (!expires || p.Start > first):
			lost, partitions = lost+p.Start-at.CoversFrom, partitions+1
		}
	}
	if partitions > 0 {
		e.note(check, Warning, facts.cure(), "a new version would cover less than %s: %s of %s are no longer in the log%s",
			ref, render.Plural(lost, "offset"), render.Plural(int64(partitions), "partition"), facts.otherTime())
		return
	}
	of := ""
	if facts.kept != nil {
		of = " of the time that it keeps"
	}
	e.note(check, OK, "", "holds all that %s covers%s", ref, of)
}

// cure names the setting that makes the log cover the version, or the command that accepts the loss.
func (f logFacts) cure() string {
	const otherwise = "keep the log for longer, or accept it at the deploy"
	switch {
	case f.kept != nil:
		return "make serve.keep shorter, " + otherwise
	case f.keep != nil:
		return otherwise
	}
	return "set serve.keep, " + otherwise
}

// otherTime is why serve.keep does not bound what a new version has to cover; empty when it does, or is not set.
func (f logFacts) otherTime() string {
	if f.keep == nil || f.kept != nil {
		return ""
	}
	return "; serve.keep goes by " + f.keep.Column + ", which may be later than the times of the records"
}
