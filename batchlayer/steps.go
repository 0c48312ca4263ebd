package batchlayer

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// plan returns the ranges that the generation reads: all, or those after the ranges of its base.
func (b *build) plan(ctx context.Context) (job.Build, error) {
	out := job.Build{Version: b.v.Version, Generation: b.number(), Base: b.row.Base, Workers: b.v.spec.Replay.Workers}
	held, err := generation.Ranges(ctx, b.Pool, b.v.Ref, b.number())
	if err != nil {
		return out, err
	}
	from := map[job.Partition]int64{}
	if b.row.Base != nil {
		base, err := generation.Ranges(ctx, b.Pool, b.v.Ref, *b.row.Base)
		if err != nil {
			return out, err
		}
		for _, r := range base {
			from[r.Partition] = r.To
		}
	}
	for _, r := range held {
		read := r.Frozen
		read.From = max(read.From, from[r.Partition])
		out.Ranges = append(out.Ranges, read)
		for _, gone := range r.Unread {
			part := read
			if part.From, part.To = max(gone.From, read.From), min(gone.To, read.To); part.Len() > 0 {
				out.Unread = append(out.Unread, part)
			}
		}
	}
	return out, nil
}

// begin makes the table of the generation and opens its segments.
func (b *build) begin(ctx context.Context) error {
	plan, err := b.plan(ctx)
	if err != nil {
		return err
	}
	return b.whileLocked(ctx, b.tell, func(ctx context.Context) error {
		return b.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return b.beginIn(ctx, tx, plan) })
	})
}

// beginIn makes what a generation is built in, in a transaction in which its version does not end and it is not given
// up: who removes them would not find what is made later.
func (b *build) beginIn(ctx context.Context, tx *pg.Tx, plan job.Build) error {
	if err := ledger.LockTimeout(ctx, tx, b.config.LockTimeout); err != nil {
		return err
	}
	phase, err := ledger.LockVersion(ctx, tx, b.v.Ref)
	if err != nil {
		return err
	}
	building, err := generation.LockBuilding(ctx, tx, b.v.Ref, b.number())
	if err != nil {
		return err
	}
	if !building || !runnable(phase) {
		return generation.ErrMoved
	}
	if err := b.Serving.CreateMember(ctx, tx, b.v.Version, b.number()); err != nil {
		return err
	}
	return b.Speed.BeginBuild(ctx, tx, plan)
}

// read waits until agents have read the segments.
func (b *build) read(ctx context.Context) error {
	for began := b.Now(); ; {
		p, err := b.Speed.BuildProgress(ctx, b.Pool, b.v.Ref, b.number())
		if err != nil {
			return err
		}
		if p.Fault != job.FaultNone && p.Fault != job.FaultMissing { // a topic that is away is waited for
			return b.unreadable(p)
		}
		if p.Done == p.Segments {
			return generation.NoteTimings(ctx, b.Pool, b.v.Ref, b.number(), workers(p.Timings))
		}
		// A short run does not wait long for the next look, and a long one is looked at seldom.
		if err := retry.Sleep(ctx, min(b.config.Poll, max(b.config.Poll/10, b.Now().Sub(began)/20))); err != nil {
			return err
		}
	}
}

// workers are the seconds of a build's workers by what they did, under names of their own.
func workers(timings map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, name := range []string{"read", "decode", "group", "land"} {
		if s, known := timings[name]; known {
			out["workers_"+name] = s
		}
	}
	return out
}

// unreadable is the end of a run that met a fault.
func (b *build) unreadable(p job.BuildProgress) error {
	fault := job.Fault{Kind: p.Fault, Detail: p.FaultDetail, From: p.FaultFrom, To: p.FaultTo}
	at := job.Partition{Topic: p.Topic, ID: p.Partition}
	return &ending{
		code: readiness.ExitCode(p.Fault), why: reason.BatchUnreadable(b.v.Ref, b.number(), reason.Fault(at, fault)),
		kind: ledger.EventBatchFailed, next: "correct the cause, then " + command("run", b.v.Job),
	}
}

func (b *build) fill(ctx context.Context) error {
	plan, err := b.plan(ctx)
	if err != nil {
		return err
	}
	return b.Speed.FillMember(ctx, b.Pool, plan)
}

// index makes the indexes of the filled table, whose staged rows are no longer needed, and its statistics.
func (b *build) index(ctx context.Context) error {
	if err := b.end(ctx); err != nil {
		return err
	}
	if err := b.indexMember(ctx); err != nil {
		return err
	}
	if err := b.Serving.AnalyzeMember(ctx, b.Pool, b.v.Version, b.number()); err != nil {
		return err
	}
	return generation.NoteSize(ctx, b.Pool, b.v.Ref, b.number(), pg.Ident(b.v.Schema, b.v.Member(b.number())))
}

// indexMember makes the indexes that the job file asks for by now: serve.indexes may have changed since the run began.
func (b *build) indexMember(ctx context.Context) error {
	now, err := b.load(ctx, b.v.Ref)
	if err != nil {
		return err
	}
	return b.Serving.IndexMember(ctx, b.Pool, now.Version, b.number())
}

// attach makes the generation part of the batch table. A change of serve.indexes that is written from then on finds it
// there; one that was written before is made up for.
func (b *build) attach(ctx context.Context) error {
	err := b.whileLocked(ctx, b.tell, func(ctx context.Context) error {
		return b.Serving.Attach(ctx, b.Pool, b.v.Version, b.number())
	})
	if err != nil {
		return err
	}
	return b.indexMember(ctx)
}

// command is a command about the batch layer of a job.
func command(verb string, name job.Name) string {
	return fmt.Sprintf("kappactl batch %s %s", verb, name)
}
