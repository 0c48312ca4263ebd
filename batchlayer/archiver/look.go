package archiver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// lookLimit is how long one look may take.
const lookLimit = 30 * time.Second

// looks compares what jobs want with what there is, until ctx ends.
func (a *Archiver) looks(ctx context.Context) {
	retry.Every(ctx, a.config.Look, lookLimit, a.Look,
		func(err error) { a.Log.Warn("archive: look at what is wanted", "error", err) })
}

// Look makes the archives and partitions that jobs want, ends those that they do not want any more, and notes where the
// logs of the partitions begin and end. Every agent does it; doing it twice changes nothing.
func (a *Archiver) Look(ctx context.Context) error {
	wishes, err := a.store.Wishes(ctx, a.Pool)
	if err != nil {
		return err
	}
	if err := a.store.Unwant(ctx, a.Pool, slices.Collect(maps.Keys(wishes))); err != nil || len(wishes) == 0 {
		return errors.Join(err, a.remove(ctx))
	}
	names := slices.Sorted(maps.Keys(wishes))
	cluster, ids, err := a.Brokers.IDs(ctx, names)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		id, known := ids[name]
		return !known || !kafka.HasID(name, id) || !wishes[name].In(cluster)
	})
	facts, err := a.Brokers.Topics(ctx, names)
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range facts {
		errs = append(errs, a.topic(ctx, cluster, wishes[f.Name], f))
	}
	archives, err := a.store.Archives(ctx, a.Pool)
	if err == nil {
		a.do(func() { a.follow(archives) })
	}
	return errors.Join(append(errs, err, a.warn(ctx), a.remove(ctx))...)
}

// warn tells the jobs that want an archive of its partitions that have become late or have stopped, and logs them.
func (a *Archiver) warn(ctx context.Context) error {
	if _, err := a.store.LoseDeletes(ctx, a.Pool); err != nil {
		return err
	}
	var turned []archive.Turned
	err := a.Pool.ReadCommitted(ctx, func(tx *pg.Tx) (err error) {
		if turned, err = a.store.Turned(ctx, tx); err != nil {
			return err
		}
		for _, t := range turned {
			if err := tell(ctx, tx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range turned {
		_, why := messageOf(t)
		a.Log.Warn("archive: "+why.Text(), "topic", t.Topic)
	}
	return nil
}

// tell writes into the histories of the jobs.
func tell(ctx context.Context, tx *pg.Tx, t archive.Turned) error {
	kind, why := messageOf(t)
	for _, name := range t.Jobs {
		e := ledger.Entry{
			Job: name, Whole: true, Kind: kind, Message: why,
			Detail: map[string]any{"topic": t.Topic, "partitions": t.Partitions}, By: tells,
		}
		if err := ledger.AddEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

// tells is who wrote what the archiver writes into a history.
const tells = "archive"

func messageOf(t archive.Turned) (ledger.EventKind, reason.Reason) {
	if t.State == archive.StateFault {
		return ledger.EventArchiveStopped, reason.ArchiveStopped(t.Topic, t.Partitions, t.Detail)
	}
	return ledger.EventArchiveLate, reason.ArchiveLate(t.Topic, t.Partitions, t.Deadline)
}

// topic makes a topic's archive and its partitions, and notes where their logs begin and end.
func (a *Archiver) topic(ctx context.Context, cluster string, w archive.Wish, f job.TopicFacts) error {
	var deletes *time.Duration
	if f.Compacted && f.DeleteRetentionMS >= 0 {
		deletes = new(time.Duration(f.DeleteRetentionMS) * time.Millisecond)
	}
	err := a.store.Want(ctx, a.Pool, archive.Wanted{
		Topic: f.Name, TopicID: f.ID, Cluster: cluster, Location: w.Location, RollEvery: w.RollEvery, RollSize: w.RollSize,
		Jobs:            w.Jobs,
		DeleteRetention: deletes,
	})
	if err != nil {
		return err
	}
	if err := a.store.AddPartitions(ctx, a.Pool, f.Partitions); err != nil {
		return err
	}
	return a.sample(ctx, f)
}

// sample notes where the logs of a topic's partitions begin and end, and when the first record that is not archived may
// be deleted.
func (a *Archiver) sample(ctx context.Context, f job.TopicFacts) error {
	next, err := a.store.Unsampled(ctx, a.Pool, f.ID, a.config.Look/2)
	if err != nil || len(next) == 0 {
		return err
	}
	behind := map[job.Partition]int64{}
	for _, p := range f.Partitions {
		if from, ok := next[p.ID]; ok && p.Err == nil && from < p.LastStable {
			behind[p.Partition] = max(from, p.Start)
		}
	}
	deadlines, err := a.deadlines(ctx, f, behind)
	if err != nil {
		return err
	}
	var samples []archive.Sample
	for _, p := range f.Partitions {
		if _, ok := next[p.ID]; ok && p.Err == nil {
			samples = append(samples, archive.Sample{PartitionFacts: p, Deadline: deadlines[p.Partition]})
		}
	}
	return a.store.NoteSamples(ctx, a.Pool, f.ID, samples)
}

// follow puts changed settings in force on the partitions that are read. It is called in the goroutine of Host.
func (a *Archiver) follow(archives []archive.Archive) {
	for _, of := range archives {
		for _, p := range a.parts {
			switch {
			case p.TopicID != of.TopicID || p.busy:
			case p.position.Location != of.Location:
				p.stop() // it begins again at the new location
			default:
				p.due = p.due.Add(of.RollEvery - p.position.RollEvery)
				p.position.RollEvery, p.position.RollSize = of.RollEvery, of.RollSize
			}
		}
	}
}
